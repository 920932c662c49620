//! What a message can ask for.

use crate::glossary::Term;

/// What can be done to a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Action {
    Create,
    Update,
    /// The status it shall have, if the message says.
    Status(Option<&'static str>),
    Delete,
    Init,
    Assign,
    Mark,
    Visit,
    Balance,
    Journey,
}

impl Action {
    /// As the tools call it.
    pub(in super::super) fn name(self) -> &'static str {
        match self {
            Action::Create => "create_experiment",
            Action::Update => "update_experiment",
            Action::Status(_) => "update_experiment_status",
            Action::Delete => "delete_experiment",
            Action::Init => "init_experiment_user",
            Action::Assign => "get_decision_point_assignments",
            Action::Mark => "mark_decision_point",
            Action::Visit => "visit_decision_point",
            Action::Balance => "test_condition_balance",
            Action::Journey => "simulate_user_journey",
        }
    }

    pub(in super::super) fn of_name(name: &str) -> Option<Self> {
        let all = [
            Action::Create,
            Action::Update,
            Action::Status(None),
            Action::Delete,
            Action::Init,
            Action::Assign,
            Action::Mark,
            Action::Visit,
            Action::Balance,
            Action::Journey,
        ];
        all.into_iter().find(|action| action.name() == name)
    }
}

/// What a context offers to experiments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Part {
    Conditions,
    Points,
    Groups,
}

/// What a message asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) enum Request {
    Greeting,
    Thanks,
    Farewell,
    Abilities,
    Yes,
    No,
    /// Not to do something.
    Refused,
    /// To take back what was done.
    Undo,
    /// Something in another language.
    OtherLanguage,
    Explain(Vec<&'static Term>),
    /// How something is done, or what it would do.
    HowTo(Action),
    /// What an action needs.
    Schema(Action),
    Contexts,
    OfContext(Part),
    Experiments,
    /// Of one experiment.
    Details,
    StatusOf,
    Enrollment,
    Health,
    Report,
    Do(Action),
    /// Something that UpGrade can do and the agent cannot.
    Beyond,
    Unclear,
}

impl Request {
    /// Whether it asks for how things are on the server.
    pub(in super::super) fn is_about_data(&self) -> bool {
        use Request::{Contexts, Details, Enrollment, Experiments, Health, OfContext, StatusOf};
        matches!(self, Contexts | OfContext(_) | Experiments | Details | StatusOf | Enrollment | Health)
    }
}

/// What a message asks for, and how sure that is.
#[derive(Clone, Debug, PartialEq)]
pub(in super::super) struct Meaning {
    pub(in super::super) ask: Request,
    pub(in super::super) confidence: f64,
}

pub(super) fn surely(ask: Request) -> Meaning {
    Meaning { ask, confidence: 0.93 }
}

pub(super) fn likely(ask: Request) -> Meaning {
    Meaning { ask, confidence: 0.78 }
}

pub(super) fn unclear() -> Meaning {
    Meaning { ask: Request::Unclear, confidence: 0.3 }
}

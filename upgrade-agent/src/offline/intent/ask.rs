//! The requests that a message can contain.

use crate::glossary::Term;

/// Actions on a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Action {
    Create,
    Update,
    /// The new status, if the message has it.
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
    /// The name in the tools.
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

/// A part of a context's vocabulary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Part {
    Conditions,
    Points,
    Groups,
}

/// The request of a message.
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
    /// To revert an action.
    Undo,
    /// A message in another language.
    OtherLanguage,
    Explain(Vec<&'static Term>),
    /// A question about how an action is done, or about its effect.
    HowTo(Action),
    /// A question about the parameters of an action.
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
    /// Whether the request is about the server's data.
    pub(in super::super) fn is_about_data(&self) -> bool {
        use Request::{Contexts, Details, Enrollment, Experiments, Health, OfContext, StatusOf};
        matches!(self, Contexts | OfContext(_) | Experiments | Details | StatusOf | Enrollment | Health)
    }
}

/// The request of a message, and the confidence.
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

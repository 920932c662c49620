//! The requests that a message can contain.

use crate::glossary::Term;

/// An action on the server, as far as a message names it; the parameters are read later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Operation {
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

impl Operation {
    /// The name in the tools.
    pub(in super::super) fn name(self) -> &'static str {
        match self {
            Operation::Create => "create_experiment",
            Operation::Update => "update_experiment",
            Operation::Status(_) => "update_experiment_status",
            Operation::Delete => "delete_experiment",
            Operation::Init => "init_experiment_user",
            Operation::Assign => "get_decision_point_assignments",
            Operation::Mark => "mark_decision_point",
            Operation::Visit => "visit_decision_point",
            Operation::Balance => "test_condition_balance",
            Operation::Journey => "simulate_user_journey",
        }
    }

    pub(in super::super) fn of_name(name: &str) -> Option<Self> {
        let all = [
            Operation::Create,
            Operation::Update,
            Operation::Status(None),
            Operation::Delete,
            Operation::Init,
            Operation::Assign,
            Operation::Mark,
            Operation::Visit,
            Operation::Balance,
            Operation::Journey,
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
    HowTo(Operation),
    /// A question about the parameters of an action.
    Schema(Operation),
    Contexts,
    OfContext(Part),
    Experiments,
    /// Of one experiment.
    Details,
    StatusOf,
    Enrollment,
    Health,
    Report,
    Do(Operation),
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

pub(super) fn certain(ask: Request) -> Meaning {
    Meaning { ask, confidence: 0.93 }
}

pub(super) fn likely(ask: Request) -> Meaning {
    Meaning { ask, confidence: 0.78 }
}

pub(super) fn unclear() -> Meaning {
    Meaning { ask: Request::Unclear, confidence: 0.3 }
}

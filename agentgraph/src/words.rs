//! The nouns of the engine as plain data. A leaf: nothing here knows how anything runs.

mod budget;
mod durability;
mod durable_step;
mod edit;
mod interrupt;
mod memory;
mod namespace;
mod open;
mod outcome;
mod question;
mod rejection;
mod spent;
mod stop;
mod task;
mod timeouts;
mod view;
mod when_busy;

pub use budget::Budget;
pub use durability::Durability;
pub use durable_step::{DoneStep, DurableStepRef, StepEvent, StepKind};
pub use edit::{DroppedEdits, GraphEdit};
pub use interrupt::{Interrupt, InterruptId, InterruptKind, Replaced};
pub(crate) use interrupt::{StoredStop, first_end, until_text};
pub use memory::Memory;
pub(crate) use namespace::namespace;
#[cfg(feature = "draw")]
pub(crate) use namespace::nodes_of;
pub use open::OpenChild;
pub(crate) use open::{Open, OpenId, OpenRequest};
pub(crate) use outcome::stuck_joins;
pub use outcome::{NotFinished, Outcome, StuckJoin};
pub use question::InterruptKey;
pub(crate) use question::{AnswerState, AskedQuestion, Request, Spot, VoidedQuestion};
pub use rejection::{EditError, Rejection};
pub(crate) use spent::Spent;
pub use stop::StopReason;
pub use task::{TaskEnd, TaskRef};
pub(crate) use timeouts::Timeouts;
pub use view::View;
pub(crate) use view::Views;
pub use when_busy::WhenBusy;

use std::fmt;

/// The entry point of every graph. It has no incoming edges.
pub const START: &str = "__start__";

/// The default limit of supersteps of a call.
pub(crate) const MAX_SUPERSTEPS: u64 = 1000;

/// The end of a branch. It has no outgoing edges.
pub const END: &str = "__end__";

/// Names in backticks, with a text between them.
pub(crate) fn quoted<T: fmt::Display>(names: impl IntoIterator<Item = T>, between: &str) -> String {
    names.into_iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(between)
}

/// The names of a list. Apart from its callers, which are generic over functions too: a closure in them would
/// be compiled for each function.
pub(crate) fn owned_names<T: AsRef<str>>(names: impl IntoIterator<Item = T>) -> Vec<String> {
    names.into_iter().map(|name| name.as_ref().to_owned()).collect()
}

/// `Clone` for a type whose parameters need not be `Clone`.
macro_rules! clones {
    ([$($generics:tt)*] $name:ident<$($parameter:tt),*> { $($field:ident),* }) => {
        impl<$($generics)*> Clone for $name<$($parameter),*> {
            fn clone(&self) -> Self {
                let $name { $($field),* } = self;
                $name { $($field: $field.clone()),* }
            }
        }
    };
}
pub(crate) use clones;

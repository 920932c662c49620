//! The command of a tool, whose state the tool's trait does not name.

use std::any::{Any, TypeId, type_name};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use agentgraph::{Command, State};

use crate::error::{Code, Error, Result};

/// The type of the state that a tool reads or writes.
///
/// ```
/// use agentgraph::prelude::*;
/// use agentgraph_llm::StateType;
///
/// #[derive(State, Clone, Debug, Default)]
/// # #[state(volatile)]
/// struct Shop { basket: Vec<String> }
///
/// assert_eq!(StateType::of::<Shop>(), StateType::of::<Shop>());
/// assert!(StateType::of::<Shop>().name().ends_with("Shop"));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct StateType {
    id: TypeId,
    name: &'static str,
}

impl StateType {
    /// The type `S`.
    pub fn of<S: State>() -> Self {
        StateType { id: TypeId::of::<S>(), name: type_name::<S>() }
    }

    /// The name of the type, for messages.
    pub fn name(&self) -> &'static str {
        self.name
    }
}

impl PartialEq for StateType {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

impl Eq for StateType {}

/// A [`Command`] of any state: the part of a tool's output that changes the state or chooses the next node.
///
/// Clones share one command, and it is applied once.
///
/// ```
/// use agentgraph::prelude::*;
/// use agentgraph_llm::{AnyCommand, ToolOutput};
///
/// #[derive(State, Clone, Debug, Default)]
/// # #[state(volatile)]
/// struct Shop {
///     #[reduce(append)]
///     basket: Vec<String>,
/// }
///
/// let command = Command::<Shop>::update(Shop::update().basket(["tea"]));
/// let output = ToolOutput::text("put into the basket").with_command(command);
/// assert!(output.command.is_some());
/// ```
#[derive(Clone)]
pub struct AnyCommand {
    state: StateType,
    command: Arc<Mutex<Option<Box<dyn Any + Send>>>>,
}

impl AnyCommand {
    /// A command of the state `S`.
    pub fn of<S: State>(command: Command<S>) -> Self {
        AnyCommand { state: StateType::of::<S>(), command: Arc::new(Mutex::new(Some(Box::new(command)))) }
    }

    /// The state of the command.
    pub fn state(&self) -> StateType {
        self.state
    }

    /// The command itself.
    ///
    /// # Errors
    /// `E_LLM_BAD_TOOL` if it is a command of another state, or was taken before.
    pub fn into_command<S: State>(self) -> Result<Command<S>> {
        if self.state != StateType::of::<S>() {
            let message = format!(
                "a tool returned a command of the state `{}`, and the graph has the state `{}`: return a command of \
                 the graph's state, and name it in `Tool::state`",
                self.state.name,
                type_name::<S>()
            );
            return Err(Error::new(Code::BadTool, message));
        }
        let taken = self.command.lock().unwrap_or_else(PoisonError::into_inner).take();
        match taken.and_then(|command| command.downcast::<Command<S>>().ok()) {
            Some(command) => Ok(*command),
            None => {
                let message =
                    "the command of a tool's output was applied before: return a new one from each call";
                Err(Error::new(Code::BadTool, message))
            }
        }
    }
}

/// Two are equal if they are clones of one.
impl PartialEq for AnyCommand {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.command, &other.command)
    }
}

impl Eq for AnyCommand {}

impl fmt::Debug for AnyCommand {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "AnyCommand of {}", self.state.name)
    }
}

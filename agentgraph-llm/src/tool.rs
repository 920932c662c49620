//! A tool that a model may call, its description for the model, and its errors.

mod call;
mod command;
mod function;
mod limits;
mod spec;

use std::fmt;

use agentgraph::node::Interrupted;
use agentgraph::{Command, State};
use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::BoxError;
use crate::json::RawJson;
use crate::message::Block;

pub use call::{NoContext, ToolCall};
pub use command::{AnyCommand, StateType};
pub use function::FnTool;
pub use limits::{LimitedTool, ToolExt};
pub use spec::{ToolFields, ToolSpec};

/// A tool that a model may call. Object-safe; most tools are a [`FnTool`] over an async closure.
#[async_trait]
pub trait Tool: Send + Sync {
    /// The description of the tool for the model. Read once by an agent, when it is compiled, and once by
    /// each run of a loop.
    fn spec(&self) -> ToolSpec;

    /// The state that the tool reads, or of which it returns commands. Building a `ToolNode`
    /// or an `Agent` over another state fails.
    fn state(&self) -> Option<StateType> {
        None
    }

    /// Runs the tool with the arguments of one call. They are a JSON object. They are checked against the
    /// schema only with the feature `validate`.
    ///
    /// # Errors
    /// [`ToolError`] says which errors the model reads and which end the loop.
    async fn call(&self, input: &RawJson, call: &ToolCall) -> Result<ToolOutput, ToolError>;
}

macro_rules! forward {
    ($($pointer:ty),*) => {
        $(#[async_trait]
        impl<T: Tool + ?Sized> Tool for $pointer {
            fn spec(&self) -> ToolSpec {
                (**self).spec()
            }

            fn state(&self) -> Option<StateType> {
                (**self).state()
            }

            async fn call(&self, input: &RawJson, call: &ToolCall) -> Result<ToolOutput, ToolError> {
                (**self).call(input, call).await
            }
        })*
    };
}

forward!(&T, Box<T>, std::sync::Arc<T>);

/// The output of a tool. A text becomes one by `.into()`, a serialisable value by [`ToolOutput::json`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToolOutput {
    /// The content for the model.
    pub content: Vec<Block>,
    /// A value for the program, which no model sees.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact: Option<Value>,
    /// Whether the loop ends with this output instead of calling the model again. If a message has several
    /// calls, all that were run must say so.
    pub return_direct: bool,
    /// A change of the graph's state, or a choice of the next node. Only a `ToolNode` and an
    /// `Agent` can apply it.
    #[serde(skip)]
    pub command: Option<AnyCommand>,
}

impl ToolOutput {
    /// An output of one text.
    pub fn text(text: impl Into<String>) -> Self {
        ToolOutput::new([Block::text(text)])
    }

    /// An output of these blocks.
    pub fn new(content: impl IntoIterator<Item = impl Into<Block>>) -> Self {
        ToolOutput { content: content.into_iter().map(Into::into).collect(), ..ToolOutput::default() }
    }

    /// An output of one value as JSON text.
    ///
    /// # Errors
    /// [`ToolError::Fatal`] if the value cannot be written as JSON.
    pub fn json<T: Serialize + ?Sized>(value: &T) -> Result<Self, ToolError> {
        Ok(ToolOutput::text(serde_json::to_string(value)?))
    }

    /// Sets the value for the program.
    pub fn with_artifact(mut self, artifact: impl Into<Value>) -> Self {
        self.artifact = Some(artifact.into());
        self
    }

    /// Sets the change of the graph's state.
    pub fn with_command<S: State>(mut self, command: Command<S>) -> Self {
        self.command = Some(AnyCommand::of(command));
        self
    }

    /// Marks the output as the one that ends the loop.
    pub fn returned_directly(mut self) -> Self {
        self.return_direct = true;
        self
    }
}

impl From<&str> for ToolOutput {
    fn from(text: &str) -> Self {
        ToolOutput::text(text)
    }
}

impl From<String> for ToolOutput {
    fn from(text: String) -> Self {
        ToolOutput::text(text)
    }
}

impl From<serde_json::Value> for ToolOutput {
    fn from(value: serde_json::Value) -> Self {
        ToolOutput::text(value.to_string())
    }
}

impl From<Block> for ToolOutput {
    fn from(block: Block) -> Self {
        ToolOutput::new([block])
    }
}

/// The error of a tool. The first two kinds are for the model: it reads the text and may try again. The third
/// kind ends the loop, and the caller of the loop gets it with its type.
///
/// `?` makes an error [`Fatal`](ToolError::Fatal), and keeps its type: a standard error, or the boxed error
/// of [`Ctx::once`](agentgraph::Ctx::once) and of functions that return [`agentgraph::Result`]. So an
/// interrupt of the engine passes through, and the text of an internal error never reaches a model by
/// accident. To show a failure to the model, write `.map_err(ToolError::failed)?`. (This type does not
/// implement `std::error::Error`, because otherwise that `?` could not exist.)
///
/// ```
/// use agentgraph_llm::ToolError;
///
/// fn parse(text: &str) -> Result<u8, ToolError> {
///     Ok(text.parse()?)
/// }
/// assert!(matches!(parse("seven"), Err(ToolError::Fatal(error)) if error.is::<std::num::ParseIntError>()));
///
/// fn helper(text: &str) -> agentgraph::Result<u8> {
///     Ok(text.parse()?)
/// }
/// fn twice(text: &str) -> Result<u8, ToolError> {
///     Ok(2 * helper(text)?)
/// }
/// assert!(matches!(twice("seven"), Err(ToolError::Fatal(error)) if error.is::<std::num::ParseIntError>()));
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum ToolError {
    /// The arguments are wrong. The model reads the text.
    InvalidArguments(String),
    /// The call failed. The model reads the text.
    Failed(String),
    /// The loop ends with this error.
    Fatal(BoxError),
}

impl ToolError {
    /// Wrong arguments; the model reads the reason.
    pub fn invalid_arguments(why: impl fmt::Display) -> Self {
        ToolError::InvalidArguments(why.to_string())
    }

    /// A failed call; the model reads the reason.
    pub fn failed(why: impl fmt::Display) -> Self {
        ToolError::Failed(why.to_string())
    }

    /// Whether the call waits for the answer to a question. Such an error is passed on as it is: a retry
    /// would only meet it again.
    pub fn is_interrupt(&self) -> bool {
        let ToolError::Fatal(error) = self else { return false };
        let mut next: Option<&(dyn std::error::Error + 'static)> = Some(&**error);
        while let Some(error) = next {
            if error.is::<Interrupted>() {
                return true;
            }
            next = error.source();
        }
        false
    }

    /// An error that ends the loop.
    pub fn fatal(error: impl Into<BoxError>) -> Self {
        ToolError::Fatal(error.into())
    }
}

/// Not over `std::error::Error`, which a [`BoxError`] does not implement.
impl<E: Into<BoxError>> From<E> for ToolError {
    fn from(error: E) -> Self {
        ToolError::Fatal(error.into())
    }
}

impl fmt::Display for ToolError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ToolError::InvalidArguments(why) => write!(out, "invalid arguments: {why}"),
            ToolError::Failed(why) => out.write_str(why),
            ToolError::Fatal(error) => fmt::Display::fmt(error, out),
        }
    }
}

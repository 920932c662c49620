//! What a model may ask for: a tool, its description for the model, and how it can fail.

mod function;
mod spec;

use std::fmt;

use async_trait::async_trait;
use serde::Serialize;

use crate::error::BoxError;
use crate::json::RawJson;
use crate::message::Block;

pub use function::FnTool;
pub use spec::ToolSpec;

/// Something a model may ask for. Object-safe; most tools are a [`FnTool`] over an async closure.
#[async_trait]
pub trait Tool: Send + Sync {
    /// What the model is told about it.
    fn spec(&self) -> ToolSpec;

    /// Runs it on the arguments of one call, which are JSON but otherwise as the model wrote them.
    ///
    /// # Errors
    /// See [`ToolError`] for which errors the model gets to read and which end the loop.
    async fn call(&self, input: &RawJson) -> Result<ToolOutput, ToolError>;
}

macro_rules! forward {
    ($($pointer:ty),*) => {
        $(#[async_trait]
        impl<T: Tool + ?Sized> Tool for $pointer {
            fn spec(&self) -> ToolSpec {
                (**self).spec()
            }

            async fn call(&self, input: &RawJson) -> Result<ToolOutput, ToolError> {
                (**self).call(input).await
            }
        })*
    };
}

forward!(&T, Box<T>, std::sync::Arc<T>);

/// What a tool gives. Made from a text by `.into()`, from any serialisable value by [`ToolOutput::json`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ToolOutput {
    /// What the model gets to read.
    pub content: Vec<Block>,
    /// Whether the loop ends with this output instead of asking the model again.
    pub return_direct: bool,
}

impl ToolOutput {
    /// An output of one text.
    pub fn text(text: impl Into<String>) -> Self {
        ToolOutput::new([Block::text(text)])
    }

    /// An output of these blocks.
    pub fn new(content: impl IntoIterator<Item = impl Into<Block>>) -> Self {
        ToolOutput { content: content.into_iter().map(Into::into).collect(), return_direct: false }
    }

    /// An output of one value as JSON text.
    ///
    /// # Errors
    /// Fatal, when the value cannot be JSON.
    pub fn json<T: Serialize + ?Sized>(value: &T) -> Result<Self, ToolError> {
        Ok(ToolOutput::text(serde_json::to_string(value)?))
    }

    /// The same output, which ends the loop.
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

/// How a tool fails. The first two are the model's business: it reads the text and may try again. The third
/// is not: it ends the loop and reaches the node's caller with its type kept.
///
/// `?` on a standard error makes it [`Fatal`](ToolError::Fatal), so that an interrupt of the engine passes
/// through and no internal error text reaches a model by accident. To show a failure to the model, say so:
/// `.map_err(ToolError::failed)?`. (This type is no `std::error::Error` itself, which is what makes that `?`
/// possible.)
///
/// ```
/// use agentgraph_llm::ToolError;
///
/// fn parse(text: &str) -> Result<u8, ToolError> {
///     Ok(text.parse()?)
/// }
/// assert!(matches!(parse("seven"), Err(ToolError::Fatal(error)) if error.is::<std::num::ParseIntError>()));
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum ToolError {
    /// The arguments do not fit; the text tells the model why.
    InvalidArguments(String),
    /// The call failed; the text tells the model why.
    Failed(String),
    /// The loop must end.
    Fatal(BoxError),
}

impl ToolError {
    /// Arguments that do not fit, told to the model.
    pub fn invalid_arguments(why: impl fmt::Display) -> Self {
        ToolError::InvalidArguments(why.to_string())
    }

    /// A failure told to the model.
    pub fn failed(why: impl fmt::Display) -> Self {
        ToolError::Failed(why.to_string())
    }

    /// A failure that ends the loop.
    pub fn fatal(error: impl Into<BoxError>) -> Self {
        ToolError::Fatal(error.into())
    }
}

impl<E: std::error::Error + Send + Sync + 'static> From<E> for ToolError {
    fn from(error: E) -> Self {
        ToolError::Fatal(Box::new(error))
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

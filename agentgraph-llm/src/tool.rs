//! A tool that a model may call, its description for the model, and its errors.

mod function;
mod spec;

use std::fmt;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::error::BoxError;
use crate::json::RawJson;
use crate::message::Block;

pub use function::FnTool;
pub use spec::ToolSpec;

/// A tool that a model may call. Object-safe; most tools are a [`FnTool`] over an async closure.
#[async_trait]
pub trait Tool: Send + Sync {
    /// The description of the tool for the model.
    fn spec(&self) -> ToolSpec;

    /// Runs the tool with the arguments of one call. They are valid JSON, but are not checked against the
    /// schema.
    ///
    /// # Errors
    /// [`ToolError`] says which errors the model reads and which end the loop.
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

/// The output of a tool. A text becomes one by `.into()`, a serialisable value by [`ToolOutput::json`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToolOutput {
    /// The content for the model.
    pub content: Vec<Block>,
    /// Whether the loop ends with this output instead of calling the model again.
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
    /// [`ToolError::Fatal`] if the value cannot be written as JSON.
    pub fn json<T: Serialize + ?Sized>(value: &T) -> Result<Self, ToolError> {
        Ok(ToolOutput::text(serde_json::to_string(value)?))
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
/// `?` on a standard error makes it [`Fatal`](ToolError::Fatal). So an interrupt of the engine passes
/// through, and the text of an internal error never reaches a model by accident. To show a failure to the
/// model, write `.map_err(ToolError::failed)?`. (This type does not implement `std::error::Error`, because
/// otherwise that `?` could not exist.)
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

    /// An error that ends the loop.
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

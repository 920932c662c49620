//! What the function of a tool returns.

use futures_util::future::BoxFuture;

use crate::tool::{ToolError, ToolOutput};

/// A value that a model can read.
#[diagnostic::on_unimplemented(
    message = "a tool cannot return `{Self}`",
    label = "nothing that a model can read",
    note = "return a `String`, a `&str`, a `serde_json::Value`, a `Block` or a `ToolOutput`; `ToolOutput::json(&value)?` takes any value with `Serialize`"
)]
pub trait Output {
    /// Converts the value.
    fn into_output(self) -> ToolOutput;
}

#[diagnostic::do_not_recommend]
impl<T: Into<ToolOutput>> Output for T {
    fn into_output(self) -> ToolOutput {
        self.into()
    }
}

/// An error of a tool.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an error of a tool",
    label = "not `Into<ToolError>`",
    note = "use `ToolError`, or `BoxError` or a type that implements `std::error::Error + Send + Sync`, which end the run"
)]
pub trait Failure {
    /// Converts the error.
    fn into_error(self) -> ToolError;
}

#[diagnostic::do_not_recommend]
impl<E: Into<ToolError>> Failure for E {
    fn into_error(self) -> ToolError {
        self.into()
    }
}

/// A `Result`, also by another name.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a `Result`",
    label = "not a `Result`",
    note = "a type whose name ends with `Result` must be one"
)]
pub trait Outcome {
    /// The value.
    type Output: Output;
    /// The error.
    type Failure: Failure;
    /// Returns the `Result` as one.
    ///
    /// # Errors
    /// If it is an error.
    fn into_result(self) -> Result<Self::Output, Self::Failure>;
}

impl<T: Output, E: Failure> Outcome for Result<T, E> {
    type Output = T;
    type Failure = E;
    fn into_result(self) -> Result<T, E> {
        self
    }
}

/// The future of a tool, boxed, so that one that is not `Send` is one error of the compiler. The compiler
/// shows the line with the bound, so the remedy is on it.
#[rustfmt::skip]
pub fn future<'a, F: Future
    + Send // drop what is not `Send` before the `.await`, or use `Arc` and tokio's `Mutex`
    + 'a>(future: F) -> BoxFuture<'a, F::Output> {
    Box::pin(future)
}

/// The conversion of an output.
pub fn output<T: Output>() -> fn(T) -> Result<ToolOutput, ToolError> {
    |output| Ok(output.into_output())
}

/// The conversion of a `Result`.
pub fn outcome<T: Outcome>() -> fn(T) -> Result<ToolOutput, ToolError> {
    |result| result.into_result().map(Output::into_output).map_err(Failure::into_error)
}

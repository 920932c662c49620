//! Tools, and functions that return them.

use crate::tool::Tool;

/// A [`Tool`], or the name of a function with [`#[tool]`](macro@crate::tool).
///
/// ```
/// use agentgraph_llm::prelude::*;
///
/// /// Adds two numbers.
/// #[tool]
/// fn add(a: i32, b: i32) -> String {
///     (a + b).to_string()
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> agentgraph_llm::Result<()> {
/// let model = ScriptedModel::new([Reply::text("nothing to add")]);
/// let by_name = ToolLoop::new(&model).tool(add);
/// let by_value = ToolLoop::new(&model).tool(add());
/// # let _ = (by_name, by_value);
/// # Ok(())
/// # }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a tool",
    label = "not a tool",
    note = "put `#[tool]` on the function, or make a tool of a closure: `FnTool::new(name, description, closure)`"
)]
pub trait IntoTool<Form> {
    /// The tool.
    type Tool: Tool;

    /// Returns the tool.
    fn into_tool(self) -> Self::Tool;
}

/// The form of a tool that is given as a value. Inferred.
#[derive(Debug)]
pub struct AsValue;

/// The form of a tool that is given as the function that returns it. Inferred.
#[derive(Debug)]
pub struct AsFunction;

impl<T: Tool> IntoTool<AsValue> for T {
    type Tool = T;

    fn into_tool(self) -> T {
        self
    }
}

impl<F: FnOnce() -> T, T: Tool> IntoTool<AsFunction> for F {
    type Tool = T;

    fn into_tool(self) -> T {
        self()
    }
}

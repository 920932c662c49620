//! Tools made by `#[tool]`.

mod arguments_follow_the_schema;
mod injected_values_cannot_be_forged;
mod results_become_outputs;
mod specs_come_from_signatures;
mod tools_run_in_loops_and_graphs;

use agentgraph_llm::prelude::*;

/// Calls a tool outside of a graph.
pub(crate) async fn call(tool: &dyn Tool, input: &str) -> Result<ToolOutput, ToolError> {
    let input = RawJson::parse_text(input).unwrap();
    tool.call(&input, &ToolCall::detached("call-1", "test")).await
}

/// The text for the model of a call with wrong arguments.
pub(crate) async fn refused(tool: &dyn Tool, input: &str) -> String {
    match call(tool, input).await {
        Err(ToolError::InvalidArguments(why)) => why,
        other => panic!("expected wrong arguments, got {other:?}"),
    }
}

//! A compiled graph as a tool of a server.

use agentgraph::{CompiledGraph, State};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use super::McpServer;
use crate::tool::{FnTool, ToolError, ToolOutput};

impl McpServer {
    /// Adds a tool that runs a graph. `input` makes the graph's input of the arguments, `output` makes the
    /// result of the final state. Each call is a run of its own, without a thread, so the graph has no
    /// checkpointer. A run that stops to ask fails the call, because a client could not answer.
    ///
    /// ```
    /// use agentgraph::prelude::*;
    /// use agentgraph_llm::mcp::McpServer;
    ///
    /// #[derive(State, Clone, Debug, Default)]
    /// # #[state(volatile)]
    /// struct Sum {
    ///     numbers: Vec<i64>,
    ///     total: i64,
    /// }
    ///
    /// #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// struct Numbers {
    ///     numbers: Vec<i64>,
    /// }
    ///
    /// async fn add(sum: Snapshot<Sum>) -> SumUpdate {
    ///     Sum::update().total(sum.numbers.iter().sum::<i64>())
    /// }
    ///
    /// # fn main() -> Result<()> {
    /// let graph = StateGraph::new().node("add", add).edge(START, "add").compile()?;
    /// let server = McpServer::new("sums", "1.0.0").graph(
    ///     "sum",
    ///     "Adds numbers.",
    ///     graph,
    ///     |numbers: Numbers| Sum::update().numbers(numbers.numbers),
    ///     |sum: Sum| sum.total.to_string(),
    /// );
    /// # let _ = server;
    /// # Ok(())
    /// # }
    /// ```
    pub fn graph<S, Args, Output>(
        self,
        name: impl Into<String>,
        description: impl Into<String>,
        graph: CompiledGraph<S>,
        input: impl Fn(Args) -> S::Update + Send + Sync + 'static,
        output: impl Fn(S) -> Output + Clone + Send + Sync + 'static,
    ) -> Self
    where
        S: State,
        Args: DeserializeOwned + JsonSchema,
        Output: Into<ToolOutput>,
    {
        self.tool(FnTool::new(name, description, move |args: Args| {
            let (run, output) = (graph.invoke(input(args)), output.clone());
            async move {
                let outcome = run.await?;
                if !outcome.interrupts().is_empty() {
                    return Err(ToolError::failed(
                        "the graph stopped to ask a question, which has no answer here",
                    ));
                }
                Ok(output(outcome.into_finished()?).into())
            }
        }))
    }
}

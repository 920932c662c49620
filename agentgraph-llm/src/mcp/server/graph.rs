//! A compiled graph as a tool of a server.

use agentgraph::{CompiledGraph, RunBuilder, State};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use super::McpServer;
use crate::tool::{FnTool, ToolError, ToolOutput};

impl McpServer {
    /// Adds a tool that runs a graph. `input` makes the graph's input of the arguments, `output` makes the
    /// result of the final state. A run that stops to ask fails the call, because a client could not answer.
    ///
    /// Each call is a run of its own. A graph with a checkpointer needs a thread for each run: add it with
    /// [`graph_on_threads`](McpServer::graph_on_threads). Here it is an error `E_LLM_CONFIG` when serving
    /// begins.
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
        mut self,
        name: impl Into<String>,
        description: impl Into<String>,
        graph: CompiledGraph<S>,
        input: impl Fn(Args) -> S::Update + Send + Sync + 'static,
        output: impl Fn(S) -> Output + Clone + Send + Sync + 'static,
    ) -> Self
    where
        S: State,
        Args: DeserializeOwned + JsonSchema + 'static,
        Output: Into<ToolOutput> + 'static,
    {
        let name = name.into();
        if graph.keeps_threads() {
            self.note(format!(
                "the graph of the tool `{name}` has a checkpointer, so each call needs a thread: add it with \
                 `graph_on_threads`, or without the checkpointer"
            ));
        }
        self.tool(FnTool::new(name, description, move |args: Args| {
            finish(graph.invoke(input(args)), output.clone())
        }))
    }

    /// Adds a tool that runs a graph with a checkpointer. `thread` makes the name of the thread of the
    /// arguments; calls of the same name go on with the same state. A thread is no session of a client: the
    /// newest protocol has none, and any client that knows the name reads what the thread holds.
    ///
    /// A call on a thread that runs already fails, as any run would. A run that stops to ask fails its call;
    /// the question stays open, for the program to answer with [`CompiledGraph::resume`].
    ///
    /// ```
    /// use agentgraph::MemorySaver;
    /// use agentgraph::prelude::*;
    /// use agentgraph_llm::mcp::McpServer;
    ///
    /// #[derive(State, Clone, Debug, Default)]
    /// struct Notes {
    ///     #[reduce(append)]
    ///     lines: Vec<String>,
    /// }
    ///
    /// #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// struct Note {
    ///     notebook: String,
    ///     line: String,
    /// }
    ///
    /// async fn keep() -> NotesUpdate {
    ///     Notes::update()
    /// }
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let graph = StateGraph::new().node("keep", keep).edge(START, "keep").compile()?;
    /// let server = McpServer::new("notes", "1.0.0").graph_on_threads(
    ///     "note",
    ///     "Adds a line to a notebook, and shows all lines.",
    ///     graph.checkpointer(MemorySaver::new()),
    ///     |note: &Note| note.notebook.clone(),
    ///     |note: Note| Notes::update().lines([note.line]),
    ///     |notes: Notes| notes.lines.join("\n"),
    /// );
    /// assert!(server.into_router().is_ok());
    /// # Ok(())
    /// # }
    /// ```
    pub fn graph_on_threads<S, Args, Output>(
        mut self,
        name: impl Into<String>,
        description: impl Into<String>,
        graph: CompiledGraph<S>,
        thread: impl Fn(&Args) -> String + Send + Sync + 'static,
        input: impl Fn(Args) -> S::Update + Send + Sync + 'static,
        output: impl Fn(S) -> Output + Clone + Send + Sync + 'static,
    ) -> Self
    where
        S: State,
        Args: DeserializeOwned + JsonSchema + 'static,
        Output: Into<ToolOutput> + 'static,
    {
        let name = name.into();
        if !graph.keeps_threads() {
            self.note(format!(
                "the graph of the tool `{name}` keeps no threads: give it a checkpointer, or add it with `graph`"
            ));
        }
        self.tool(FnTool::new(name, description, move |args: Args| {
            let thread = thread(&args);
            finish(graph.invoke(input(args)).thread(thread), output.clone())
        }))
    }

    fn note(&mut self, mistake: String) {
        self.mistake.get_or_insert(mistake);
    }
}

async fn finish<S: State, Output: Into<ToolOutput>>(
    run: RunBuilder<S>,
    output: impl Fn(S) -> Output,
) -> Result<ToolOutput, ToolError> {
    let outcome = run.await?;
    if !outcome.interrupts().is_empty() {
        return Err(ToolError::failed("the graph stopped to ask a question, which has no answer here"));
    }
    Ok(output(outcome.into_finished()?).into())
}

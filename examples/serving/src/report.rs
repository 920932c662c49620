//! The graph that is served: a report is written section by section, approved by a person and published.

use std::sync::Arc;
use std::time::Duration;

use agentgraph::CompileError;
use agentgraph::prelude::*;
use agentgraph_llm::prelude::*;

#[derive(State, schemars::JsonSchema, Clone, Debug, Default)]
pub(crate) struct Report {
    pub(crate) topic: String,
    pub(crate) sections: usize,
    /// The wait before each section, in milliseconds.
    pub(crate) pause: u64,
    #[reduce(append)]
    pub(crate) text: Vec<String>,
    pub(crate) published: bool,
}

async fn write(report: Snapshot<Report>, model: Dep<Arc<dyn ChatModel>>) -> Result<ReportUpdate> {
    tokio::time::sleep(Duration::from_millis(report.pause)).await;
    let request = ChatRequest::user(format!("{} {}", report.topic, report.text.len() + 1));
    let section =
        model.chat(request.with_system("Write this section of a report, in a few sentences.")).await?;
    Ok(Report::update().text([section.message.text()]))
}

/// The model in the place of a real one: the heading is the section.
pub(crate) fn script() -> Arc<dyn ChatModel> {
    Arc::new(ScriptedModel::from_fn(|request| {
        Reply::text(request.messages.last().map(Message::text).unwrap_or_default())
    }))
}

async fn approve(ctx: Ctx) -> Result<ReportUpdate> {
    let published: bool = ctx.interrupt("publish it?")?;
    Ok(Report::update().published(published))
}

pub(crate) fn graph(model: Arc<dyn ChatModel>) -> Result<CompiledGraph<Report>, CompileError> {
    let next = |report: &Report| if report.text.len() < report.sections { "write" } else { "approve" };
    let graph = StateGraph::new().node("write", write).node("approve", approve).dep(model);
    graph.edge(START, "write").branch("write", next, ["write", "approve"]).compile()
}

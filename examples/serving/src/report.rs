//! The graph that is served: a report is written section by section, approved by a person and published.

use std::time::Duration;

use agentgraph::CompileError;
use agentgraph::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(State, Serialize, Deserialize, Clone, Debug, Default)]
pub(crate) struct Report {
    pub(crate) topic: String,
    pub(crate) sections: usize,
    /// How long a section takes, in milliseconds: a stand-in for a model.
    pub(crate) pause: u64,
    #[reduce(append)]
    pub(crate) text: Vec<String>,
    pub(crate) published: bool,
}

async fn write(report: Snapshot<Report>) -> ReportUpdate {
    tokio::time::sleep(Duration::from_millis(report.pause)).await;
    Report::update().text([format!("{} {}", report.topic, report.text.len() + 1)])
}

async fn approve(ctx: Ctx) -> Result<ReportUpdate> {
    let published: bool = ctx.interrupt("publish it?")?;
    Ok(Report::update().published(published))
}

pub(crate) fn graph() -> Result<CompiledGraph<Report>, CompileError> {
    let next = |report: &Report| if report.text.len() < report.sections { "write" } else { "approve" };
    let graph = StateGraph::new().node("write", write).node("approve", approve);
    graph.edge(START, "write").branch("write", next, ["write", "approve"]).compile()
}

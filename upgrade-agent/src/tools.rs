//! The tools that models see: those of the gatherer, which fetch and prepare, and those of the responder,
//! which read what is stored. No tool runs an action.
//!
//! The names are those of the two design documents of UpGrade's agent and of the original, with three
//! decisions where they clash or differ:
//! - `get_context_metadata`, `get_experiment_names` and `get_all_experiments` are there both for the gatherer
//!   (fetch) and for the responder (read what was fetched). A name has one meaning here: the gatherer's keep
//!   it, and the responder's are `get_stored_context_metadata`, `get_stored_experiment_names` and
//!   `get_stored_experiments`.
//! - The schema tool of an action is `get_<action>_schema`, hence
//!   `get_get_decision_point_assignments_schema`.
//! - What the documents call executor tools (`create_experiment`, ..., `visit_decision_point`) are the
//!   actions of [`crate::actions`], which no model calls. `init_user`, `assign_condition` and
//!   `list_experiments` of the streamlined document are `init_experiment_user`,
//!   `get_decision_point_assignments` and the tool `get_all_experiments`.

mod desk;
mod draft;
mod lookups;
mod preparation;
mod schemas;
mod stored_data;

pub(crate) use desk::{Desk, Gathered};
pub(crate) use draft::{AbandonedAction, Draft};
pub(crate) use stored_data::StoredData;

use std::future::Future;
use std::sync::Arc;

use agentgraph_llm::{FnTool, ToolError};
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::prompts::bounded;

/// The arguments of a tool that takes none.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct NoArguments {}

/// A tool over something that its calls share. What it answers is cut to what a model can read.
fn tool<D, Args, F, Fut>(shared: &Arc<D>, name: &str, about: &str, call: F) -> FnTool
where
    D: Send + Sync + 'static,
    Args: DeserializeOwned + JsonSchema,
    F: Fn(Arc<D>, Args) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Value, ToolError>> + Send + 'static,
{
    let shared = Arc::clone(shared);
    FnTool::new(name, about, move |args: Args| {
        let answer = call(Arc::clone(&shared), args);
        async move { answer.await.map(bounded) }
    })
}

/// The gatherer's tools over this desk.
pub(crate) fn gathering(desk: &Arc<Desk>) -> Vec<FnTool> {
    let mut tools = lookups::tools(desk);
    tools.extend(schemas::tools(desk));
    tools.extend(preparation::tools(desk));
    tools
}

#[cfg(test)]
mod tests;

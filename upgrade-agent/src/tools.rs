//! The tools for models: the gatherer's tools, which look up data and prepare actions, and the responder's
//! tools, which read stored data. No tool runs an action.
//!
//! The names come from the two design documents of UpGrade's agent and from the original agent, with three
//! decisions where they conflict:
//! - `get_context_metadata`, `get_experiment_names` and `get_all_experiments` are named for the gatherer
//!   (fetch) and for the responder (read stored data). Here the gatherer's tools keep these names, and the
//!   responder's are `get_stored_context_metadata`, `get_stored_experiment_names` and
//!   `get_stored_experiments`.
//! - The schema tool of an action is `get_<action>_schema`, hence
//!   `get_get_decision_point_assignments_schema`.
//! - The executor tools of the documents (`create_experiment`, ..., `visit_decision_point`) are the actions
//!   of [`crate::actions`], which no model calls. `init_user`, `assign_condition` and `list_experiments` of
//!   the streamlined document are `init_experiment_user`, `get_decision_point_assignments` and the tool
//!   `get_all_experiments`.

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

/// A tool over a value that its calls share. Its result is cut to the limit of models.
fn tool<D, Args, F, Fut>(shared: &Arc<D>, name: &str, about: &str, call: F) -> FnTool
where
    D: Send + Sync + 'static,
    Args: DeserializeOwned + JsonSchema + 'static,
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

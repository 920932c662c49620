//! The gatherer's look-up tools: for data of the server, and for the glossary.

use std::sync::Arc;

use agentgraph_llm::{FnTool, ToolError};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Desk, NoArguments, tool};
use crate::balance;
use crate::client::{Context, Experiment};
use crate::glossary;

#[derive(Deserialize, JsonSchema)]
struct ExperimentId {
    /// The experiment's id, a UUID. See get_experiment_names.
    experiment_id: String,
}

#[derive(Deserialize, JsonSchema)]
struct Listing {
    /// Whether the people who made the experiments are wanted, too.
    #[serde(default)]
    with_authors: Option<bool>,
}

#[derive(Deserialize, JsonSchema)]
struct ContextName {
    /// The context, spelt as get_available_contexts spells it.
    context: String,
}

/// The tools over this desk.
pub(super) fn tools(desk: &Arc<Desk>) -> Vec<FnTool> {
    let about_server = [
        tool(desk, "check_upgrade_health", "Whether the UpGrade server is up, and its version.", health),
        tool(
            desk,
            "get_context_metadata",
            "All contexts (applications) with their conditions, sites, targets and group types.",
            context_metadata,
        ),
        tool(desk, "get_experiment_names", "Names and ids of all experiments.", experiment_names),
        tool(desk, "get_all_experiments", "All experiments with their design and status.", all_experiments),
        tool(
            desk,
            "get_experiment_details",
            "One experiment with its design, status and history.",
            experiment_details,
        ),
        tool(
            desk,
            "get_enrollment_details",
            "How many students and groups take part in an experiment, by condition.",
            enrollment_details,
        ),
    ];
    let about_contexts = [
        tool(desk, "get_available_contexts", "The names of the contexts.", available_contexts),
        tool(
            desk,
            "get_conditions_for_context",
            "The condition codes that a context can show.",
            async |desk: Arc<Desk>, asked: ContextName| {
                of_context(&desk, asked, "conditions_for", |context| json!(context.conditions)).await
            },
        ),
        tool(
            desk,
            "get_decision_points_for_context",
            "The sites and targets of a context. Which pairs exist the server does not say.",
            async |desk: Arc<Desk>, asked: ContextName| {
                let points =
                    |context: &Context| json!({ "sites": context.sites, "targets": context.targets });
                of_context(&desk, asked, "decision_points_for", points).await
            },
        ),
        tool(
            desk,
            "get_group_types_for_context",
            "The kinds of groups that a context reports for its students.",
            async |desk: Arc<Desk>, asked: ContextName| {
                of_context(&desk, asked, "group_types_for", |context| json!(context.group_types)).await
            },
        ),
    ];
    let about_terms = [
        tool(
            desk,
            "get_core_terms",
            "What UpGrade's words mean.",
            async |desk: Arc<Desk>, _: NoArguments| desk.keep("core_terms", &glossary::core_entries()),
        ),
        tool(
            desk,
            "get_assignment_terms",
            "How students are assigned: consistency, status, exclusion, what to test.",
            async |desk: Arc<Desk>, _: NoArguments| {
                desk.keep("assignment_terms", &glossary::assignment_entries())
            },
        ),
    ];
    about_server.into_iter().chain(about_contexts).chain(about_terms).collect()
}

async fn health(desk: Arc<Desk>, _: NoArguments) -> Result<Value, ToolError> {
    let health = desk.client().health().await.map_err(|error| desk.failed(&error))?;
    desk.keep("upgrade_health", &health)
}

async fn context_metadata(desk: Arc<Desk>, _: NoArguments) -> Result<Value, ToolError> {
    let contexts = desk.contexts().await.map_err(|error| desk.failed(&error))?;
    desk.keep("context_metadata", &contexts)
}

async fn available_contexts(desk: Arc<Desk>, _: NoArguments) -> Result<Value, ToolError> {
    let contexts = desk.contexts().await.map_err(|error| desk.failed(&error))?;
    desk.keep("available_contexts", &contexts.names().collect::<Vec<_>>())
}

async fn experiment_names(desk: Arc<Desk>, _: NoArguments) -> Result<Value, ToolError> {
    let names = desk.names().await.map_err(|error| desk.failed(&error))?;
    desk.keep("experiment_names", &names)
}

/// The full list is stored; the facts of this turn have one line per experiment.
async fn all_experiments(desk: Arc<Desk>, asked: Listing) -> Result<Value, ToolError> {
    if asked.with_authors == Some(true) {
        let authors = desk.client().authors().await.map_err(|error| desk.failed(&error))?;
        desk.keep("experiment_authors", &authors)?;
    }
    let mut all = desk.client().experiments().await.map_err(|error| desk.failed(&error))?;
    all.sort_by(|one, other| (&one.name, &one.id).cmp(&(&other.name, &other.id)));
    let lines: Vec<Value> = all.iter().map(line).collect();
    desk.keep("all_experiments", &lines)?;
    let answer = serde_json::to_value(&all)?;
    desk.notes().experiments = Some(all);
    let authors = desk.notes().info.get("experiment_authors").cloned();
    Ok(match authors {
        Some(authors) => json!({ "experiments": answer, "authors_by_id": authors }),
        None => answer,
    })
}

fn line(experiment: &Experiment) -> Value {
    json!({
        "id": experiment.id,
        "name": experiment.name,
        "context": experiment.context,
        "status": experiment.state,
        "created_at": experiment.created_at,
    })
}

async fn experiment_details(desk: Arc<Desk>, asked: ExperimentId) -> Result<Value, ToolError> {
    let id = asked.experiment_id.trim();
    let experiment = desk.client().experiment(id).await.map_err(|error| desk.failed(&error))?;
    desk.notes().seen.push((&experiment).into());
    desk.keep_by_id("experiment_details", &experiment.id, &experiment)
}

async fn enrollment_details(desk: Arc<Desk>, asked: ExperimentId) -> Result<Value, ToolError> {
    let id = asked.experiment_id.trim();
    let experiment = desk.client().experiment(id).await.map_err(|error| desk.failed(&error))?;
    let detail = desk.client().enrollment(id).await.map_err(|error| desk.failed(&error))?;
    desk.notes().seen.push((&experiment).into());
    if let Some(split) = balance::enrolled(&experiment, &detail) {
        desk.notes().splits.insert(experiment.id.clone(), split);
    }
    let code = |id: &str| experiment.conditions.iter().find(|known| known.id == id).map(|known| &known.code);
    let conditions: Vec<Value> = detail
        .conditions
        .iter()
        .map(|one| json!({ "condition": code(&one.id), "users": one.users, "groups": one.groups }))
        .collect();
    let told = json!({
        "name": experiment.name,
        "users": detail.users,
        "groups": detail.groups,
        "users_excluded": detail.users_excluded,
        "groups_excluded": detail.groups_excluded,
        "conditions": conditions,
    });
    desk.keep_by_id("enrollment_details", &experiment.id, &told)
}

/// A part of one context. An unknown context counts as a miss, and the model gets the known names.
async fn of_context(
    desk: &Desk,
    asked: ContextName,
    name: &str,
    part: impl Fn(&Context) -> Value,
) -> Result<Value, ToolError> {
    let contexts = desk.contexts().await.map_err(|error| desk.failed(&error))?;
    match contexts.get(&asked.context) {
        Some(context) => desk.keep(format!("{name}_{}", asked.context), &part(context)),
        None => {
            let known: Vec<&str> = contexts.names().collect();
            let why = format!("this server has no context `{}`; it has {}", asked.context, known.join(", "));
            desk.notes().misses.push((crate::state::ErrorClass::NotFound, why.clone()));
            Err(ToolError::failed(why))
        }
    }
}

//! `/assistants`: graphs with configurations.

use std::sync::Arc;

use axum::extract::Path;
use axum::response::IntoResponse;
use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::{Value, json};

use super::body::{Body, Fields, list, may_exist, only, order_of, page_of, selected, text};
use super::{Reply, Shared, no_content, page};
use crate::app::{App, assistant_json, merge};
use crate::error::ApiError;
use crate::graph::ServedGraph;
use crate::ids;
use crate::records::{Kind, Query, Record};
use crate::runs::{optional_object, settings};

pub(super) fn routes() -> Router<Arc<App>> {
    Router::new()
        .route("/assistants", post(create))
        .route("/assistants/search", post(search))
        .route("/assistants/count", post(count))
        .route("/assistants/{id}", get(one).patch(change).delete(remove))
        .route("/assistants/{id}/graph", get(graph))
        .route("/assistants/{id}/schemas", get(schemas))
        .route("/assistants/{id}/subgraphs", get(subgraphs))
        .route("/assistants/{id}/subgraphs/{namespace}", get(subgraphs))
        .route("/assistants/{id}/versions", post(versions))
        .route("/assistants/{id}/latest", post(latest))
}

async fn create(Shared(app): Shared, Body(body): Body) -> Reply {
    let graph = text(&body, "graph_id")?.ok_or_else(|| ApiError::invalid("graph_id is missing"))?;
    if !app.graphs.contains_key(&graph) {
        return Err(ApiError::unknown("Graph", &graph));
    }
    let id = match text(&body, "assistant_id")? {
        Some(id) => ids::parse_uuid("assistant_id", &id)?,
        None => ids::new_id(),
    };
    let may_exist = may_exist(&body)?;
    let [config, context] = settings(&body)?;
    let version = json!({
        "version": 1,
        "graph_id": graph,
        "name": text(&body, "name")?.unwrap_or_else(|| "Untitled".to_owned()),
        "description": text(&body, "description")?,
        "config": config,
        "context": context,
        "metadata": app.owned(optional_object(&body, "metadata")?),
    });
    let data = json!({
        "metadata": version["metadata"], "name": version["name"], "version": 1, "versions": [version],
    });
    match app.insert((Kind::Assistant, &id, &graph), "", data).await? {
        Some(made) => Ok(Json(assistant_json(&made, None)).into_response()),
        None if may_exist => one(Shared(app), Path(id)).await,
        None => Err(ApiError::conflict(format!("Assistant {id} already exists"))),
    }
}

/// The names of the fields that [`assistant_json`] gives.
const FIELDS: [&str; 10] = [
    "assistant_id",
    "graph_id",
    "created_at",
    "updated_at",
    "config",
    "context",
    "metadata",
    "name",
    "description",
    "version",
];

fn query_of(body: &Value) -> Result<Query, ApiError> {
    Ok(Query {
        parent: text(body, "graph_id")?,
        metadata: optional_object(body, "metadata")?,
        ids: list(body, "ids")?,
        ..Query::all(Kind::Assistant)
    })
}

/// Selects by what the records do not index.
async fn found(app: &App, body: &Value) -> Result<Vec<Record>, ApiError> {
    let (sort, descending) = order_of(body, "assistant_id")?;
    let mut found = app.records.page(&Query { sort, descending, ..query_of(body)? }).await?;
    found.retain(|one| app.graphs.contains_key(&one.parent));
    // Not indexed: graphs have few assistants.
    if let Some(field @ ("name" | "graph_id")) = text(body, "sort_by")?.as_deref() {
        let key = |one: &Record| match field {
            "name" => one.data["name"].to_string().to_lowercase(),
            _ => one.parent.clone(),
        };
        found.sort_by_key(key);
        if descending {
            found.reverse();
        }
    }
    if let Some(name) = text(body, "name")? {
        let name = name.to_lowercase();
        let is_called =
            |one: &Record| one.data["name"].as_str().unwrap_or_default().to_lowercase().contains(&name);
        found.retain(is_called);
    }
    Ok(found)
}

async fn search(Shared(app): Shared, Body(body): Body) -> Reply {
    let (offset, limit) = page_of(&body)?;
    let found = found(&app, &body).await?;
    let select = selected(&body, &FIELDS)?;
    let shown = found.iter().skip(offset).take(limit).map(|one| assistant_json(one, None));
    Ok(page(shown.map(|one| only(one, &select)).collect(), offset, found.len()))
}

async fn count(Shared(app): Shared, Body(body): Body) -> Reply {
    Ok(Json(found(&app, &body).await?.len()).into_response())
}

async fn one(Shared(app): Shared, Path(id): Path<String>) -> Reply {
    Ok(Json(assistant_json(&app.assistant(&id).await?, None)).into_response())
}

async fn change(Shared(app): Shared, Path(id): Path<String>, Body(body): Body) -> Reply {
    let found = app.own_assistant(&id).await?;
    let graph = text(&body, "graph_id")?;
    if graph.as_ref().is_some_and(|graph| !app.graphs.contains_key(graph)) {
        return Err(ApiError::unknown("Graph", &graph.unwrap_or_default()));
    }
    let [config, context] = settings(&body)?;
    let metadata = app.owned(optional_object(&body, "metadata")?);
    let name = text(&body, "name")?;
    let description = text(&body, "description")?;
    let change = |one: &mut Record| {
        let mut version = crate::app::version_of(one).clone();
        let newest = one.data["versions"].as_array().map_or(0, Vec::len);
        version["version"] = (newest + 1).into();
        for (field, given) in [("config", &config), ("context", &context)] {
            if !body[field].is_null() || !given.is_empty() {
                version[field] = Value::Object(given.clone());
            }
        }
        for (field, given) in [("name", &name), ("description", &description)] {
            if let Some(given) = given {
                version[field] = given.clone().into();
            }
        }
        merge(&mut version["metadata"], &metadata);
        one.data["metadata"] = version["metadata"].clone();
        one.data["name"] = version["name"].clone();
        one.data["version"] = version["version"].clone();
        if let Some(graph) = &graph {
            version["graph_id"] = graph.clone().into();
            one.parent.clone_from(graph);
        }
        if let Value::Array(versions) = &mut one.data["versions"] {
            versions.push(version);
        }
    };
    let changed = app.change(Kind::Assistant, &found.id, change).await?;
    let changed = changed.ok_or_else(|| ApiError::unknown("Assistant", &id))?;
    Ok(Json(assistant_json(&changed, None)).into_response())
}

async fn remove(Shared(app): Shared, Path(id): Path<String>) -> Reply {
    let found = app.own_assistant(&id).await?;
    if app.graphs.keys().any(|graph| ids::assistant_of(graph) == found.id) {
        return Err(ApiError::conflict("a graph's own assistant stays as long as the graph"));
    }
    app.records.remove(Kind::Assistant, &found.id).await?;
    Ok(no_content())
}

async fn versions(Shared(app): Shared, Path(id): Path<String>, Body(body): Body) -> Reply {
    let found = app.assistant(&id).await?;
    let (offset, limit) = page_of(&body)?;
    let wanted = optional_object(&body, "metadata")?;
    let versions = found.data["versions"].as_array().cloned().unwrap_or_default();
    let has =
        |version: &Value| crate::records::contains(&version["metadata"], &Value::Object(wanted.clone()));
    let shown = versions.iter().rev().filter(|version| has(version)).skip(offset).take(limit);
    Ok(Json(shown.map(|version| assistant_json(&found, Some(version))).collect::<Value>()).into_response())
}

async fn latest(Shared(app): Shared, Path(id): Path<String>, Body(body): Body) -> Reply {
    let found = app.own_assistant(&id).await?;
    let wanted = &body["version"];
    let versions = found.data["versions"].as_array().cloned().unwrap_or_default();
    let Some(version) = versions.iter().find(|version| version["version"] == *wanted) else {
        return Err(ApiError::unknown("Version", &wanted.to_string()));
    };
    let change = |one: &mut Record| {
        for field in ["version", "name", "metadata"] {
            one.data[field] = version[field].clone();
        }
        if let Some(graph) = version["graph_id"].as_str() {
            graph.clone_into(&mut one.parent);
        }
    };
    let changed = app.change(Kind::Assistant, &found.id, change).await?;
    Ok(Json(assistant_json(&changed.unwrap_or(found), None)).into_response())
}

/// How deep subgraphs are drawn in subgraphs.
const MOST_DEEP: usize = 32;

async fn graph_of(app: &App, id: &str) -> Result<Arc<dyn ServedGraph>, ApiError> {
    let assistant = app.assistant_of_run(id).await?;
    app.graphs.get(&assistant.parent).cloned().ok_or_else(|| ApiError::unknown("Graph", &assistant.parent))
}

async fn graph(Shared(app): Shared, Path(id): Path<String>, fields: Fields) -> Reply {
    let depth = match fields.get("xray") {
        None | Some("false" | "False") => 0,
        Some("true" | "True") => MOST_DEEP,
        Some(_) => fields.number("xray", 0)?.min(MOST_DEEP),
    };
    Ok(Json(graph_of(&app, &id).await?.drawing(depth)).into_response())
}

async fn schemas(Shared(app): Shared, Path(id): Path<String>) -> Reply {
    let assistant = app.assistant_of_run(&id).await?;
    let schema = graph_of(&app, &id).await?.schema().cloned();
    Ok(Json(json!({
        "graph_id": assistant.parent, "input_schema": schema, "output_schema": schema, "state_schema": schema,
        "config_schema": null, "context_schema": null,
    }))
    .into_response())
}

/// The schemas of subgraphs, which have none yet.
async fn subgraphs(Shared(app): Shared, Path(path): Path<Vec<(String, String)>>, _: Fields) -> Reply {
    let id = path.first().map(|(_, id)| id.clone()).unwrap_or_default();
    graph_of(&app, &id).await?;
    Ok(Json(json!({})).into_response())
}

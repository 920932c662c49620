//! `/store`: the long-term memory that clients share with graphs.

use std::sync::Arc;
use std::time::Duration;

use agentgraph::store::{Filter, Item, Namespace, NamespacePattern, StoreExt};
use axum::response::IntoResponse;
use axum::routing::{post, put};
use axum::{Json, Router};
use serde_json::{Value, json};

use super::body::{Body, Fields, list, number, text};
use super::{Reply, Shared, no_content};
use crate::app::App;
use crate::error::ApiError;
use crate::ids;

pub(super) fn routes() -> Router<Arc<App>> {
    Router::new()
        .route("/store/items", put(write).get(read).delete(remove))
        .route("/store/items/search", post(search))
        .route("/store/namespaces", post(namespaces))
}

/// A namespace of the caller: a named one has all of its items below its name.
fn own(app: &App, labels: Vec<String>) -> Result<Namespace, ApiError> {
    let name = app.caller.name().map(str::to_owned);
    Ok(Namespace::new(name.into_iter().chain(labels))?)
}

/// A namespace as the caller knows it.
fn labels<'a>(app: &App, namespace: &'a Namespace) -> &'a [String] {
    let named = usize::from(app.caller.name().is_some());
    namespace.segments().get(named..).unwrap_or_default()
}

fn item_json(app: &App, item: Item) -> Value {
    json!({
        "namespace": labels(app, &item.namespace),
        "key": item.key,
        "value": item.value,
        "created_at": ids::system_time(item.created_at),
        "updated_at": ids::system_time(item.updated_at),
    })
}

/// The place of an item, which has a namespace.
fn place(
    app: &App,
    namespace: Option<Vec<String>>,
    key: Option<&str>,
) -> Result<(Namespace, String), ApiError> {
    let namespace = namespace.filter(|namespace| !namespace.is_empty());
    let namespace =
        namespace.ok_or_else(|| ApiError::invalid("namespace is missing: it has a label or more"))?;
    // A query joins labels with periods.
    if namespace.iter().any(|label| label.contains('.')) {
        return Err(ApiError::invalid("a label of a namespace has no period"));
    }
    let key = key.ok_or_else(|| ApiError::invalid("key is missing"))?;
    Ok((own(app, namespace)?, key.to_owned()))
}

async fn write(Shared(app): Shared, Body(body): Body) -> Reply {
    let (namespace, key) = place(&app, list(&body, "namespace")?, text(&body, "key")?.as_deref())?;
    let Some(Value::Object(_)) = body.get("value") else {
        return Err(ApiError::invalid("value must be an object"));
    };
    let mut put = app.store.put(&namespace, key, body["value"].clone());
    match &body["index"] {
        Value::Null => {}
        Value::Bool(false) => put = put.unindexed(),
        Value::Array(_) => put = put.index_fields(list(&body, "index")?.unwrap_or_default()),
        _ => return Err(ApiError::invalid("index must be false or a list of fields")),
    }
    match &body["ttl"] {
        Value::Null => {}
        minutes => {
            let minutes = minutes.as_f64().filter(|minutes| *minutes > 0.0);
            let lifetime = minutes.and_then(|minutes| Duration::try_from_secs_f64(minutes * 60.0).ok());
            put = put.lifetime(lifetime.ok_or_else(|| ApiError::invalid("ttl must be a number of minutes"))?);
        }
    }
    put.await?;
    Ok(no_content())
}

async fn read(Shared(app): Shared, fields: Fields) -> Reply {
    let labels = fields.get("namespace").map(|labels| labels.split('.').map(str::to_owned).collect());
    let (namespace, key) = place(&app, labels, fields.get("key"))?;
    let mut get = app.store.get(&namespace, &key);
    if fields.get("refresh_ttl").is_some() {
        get = get.refresh(fields.flag("refresh_ttl"));
    }
    Ok(Json(get.await?.map(|item| item_json(&app, item))).into_response())
}

async fn remove(Shared(app): Shared, Body(body): Body) -> Reply {
    let (namespace, key) = place(&app, list(&body, "namespace")?, text(&body, "key")?.as_deref())?;
    app.store.delete(&namespace, key).await?;
    Ok(no_content())
}

async fn search(Shared(app): Shared, Body(body): Body) -> Reply {
    let within = own(&app, list(&body, "namespace_prefix")?.unwrap_or_default())?;
    let mut search = app.store.search(&within).limit(number(&body, "limit", 10)?);
    search = search.offset(number(&body, "offset", 0)?);
    if let Some(filter) = body.get("filter").filter(|filter| !filter.is_null()) {
        search = search.filter(Filter::from_json(filter)?);
    }
    if let Some(text) = text(&body, "query")? {
        search = search.text(text);
    }
    if let Value::Bool(refreshes) = body["refresh_ttl"] {
        search = search.refresh(refreshes);
    }
    let found = search.await?.into_iter().map(|found| {
        let mut shown = item_json(&app, found.item);
        shown["score"] = json!(found.score);
        shown
    });
    Ok(Json(json!({ "items": found.collect::<Value>() })).into_response())
}

async fn namespaces(Shared(app): Shared, Body(body): Body) -> Reply {
    let name = app.caller.name();
    let pattern = |start: NamespacePattern, labels: &str| -> Result<NamespacePattern, ApiError> {
        let labels = list(&body, labels)?.unwrap_or_default();
        Ok(labels.into_iter().fold(start, |pattern, label| match &*label {
            "*" => pattern.any(),
            _ => pattern.exactly(label),
        }))
    };
    // The name as it is: the caller `*` is one among others.
    let own = name.map_or_else(NamespacePattern::default, |name| NamespacePattern::default().exactly(name));
    let (prefix, suffix) = (pattern(own, "prefix")?, pattern(NamespacePattern::default(), "suffix")?);
    let mut listed = app.store.list_namespaces().prefix(prefix).suffix(suffix);
    listed = listed.limit(number(&body, "limit", 100)?).offset(number(&body, "offset", 0)?);
    if !body["max_depth"].is_null() {
        listed = listed.max_depth(number(&body, "max_depth", 0)?.saturating_add(usize::from(name.is_some())));
    }
    let listed = listed.await?;
    let shown: Value = listed.iter().map(|namespace| json!(labels(&app, namespace))).collect();
    Ok(Json(json!({ "namespaces": shown })).into_response())
}

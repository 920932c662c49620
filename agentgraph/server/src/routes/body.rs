//! The parts of a request: a JSON object as its body, and the fields of its query.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, FromRequest, FromRequestParts, Request};
use axum::http::StatusCode;
use axum::http::request::Parts;
use percent_encoding::percent_decode_str;
use serde_json::{Map, Value};

use crate::app::App;
use crate::error::ApiError;
use crate::records::SortBy;

/// The body of a request: a JSON object; an empty one if there is no body.
pub(super) struct Body(pub(super) Value);

impl FromRequest<Arc<App>> for Body {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &Arc<App>) -> Result<Self, ApiError> {
        let bytes = read(request, app).await?;
        if bytes.is_empty() {
            return Ok(Body(Value::Object(Map::new())));
        }
        match serde_json::from_slice(&bytes) {
            Ok(Value::Object(fields)) => Ok(Body(Value::Object(fields))),
            Ok(_) => Err(ApiError::invalid("the body must be a JSON object")),
            Err(error) => Err(ApiError::invalid(format!("the body is not JSON: {error}"))),
        }
    }
}

async fn read(mut request: Request, app: &Arc<App>) -> Result<Bytes, ApiError> {
    // Not as a layer, which every request would pass.
    DefaultBodyLimit::max(app.settings.max_body).apply(&mut request);
    Bytes::from_request(request, app).await.map_err(|rejected| {
        let status = rejected.status();
        let detail = match status {
            StatusCode::PAYLOAD_TOO_LARGE => "the body is larger than this server takes".to_owned(),
            _ => rejected.body_text(),
        };
        ApiError::new(status, detail)
    })
}

/// The body of a request of the second protocol: any JSON. Anything else is answered with status 400.
pub(super) struct Parsed(pub(super) Value);

impl FromRequest<Arc<App>> for Parsed {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &Arc<App>) -> Result<Self, ApiError> {
        let bytes = read(request, app).await?;
        let refused =
            |error| ApiError::new(StatusCode::BAD_REQUEST, format!("the body is not JSON: {error}"));
        serde_json::from_slice(&bytes).map(Parsed).map_err(refused)
    }
}

/// The fields of a query. A name may appear several times.
pub(super) struct Fields(Vec<(String, String)>);

impl<S: Send + Sync> FromRequestParts<S> for Fields {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let decoded = |text: &str| {
            let text = text.replace('+', " ");
            percent_decode_str(&text).decode_utf8_lossy().into_owned()
        };
        let fields = parts.uri.query().unwrap_or_default().split('&').filter(|field| !field.is_empty());
        let fields = fields.map(|field| {
            let (name, value) = field.split_once('=').unwrap_or((field, ""));
            (decoded(name), decoded(value))
        });
        Ok(Fields(fields.collect()))
    }
}

impl Fields {
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| &**value)
    }

    /// All values of a name, and the parts of those that are lists with commas.
    pub(super) fn all(&self, name: &str) -> Vec<String> {
        let of_name = self.0.iter().filter(|(known, _)| known.trim_end_matches("[]") == name);
        of_name
            .flat_map(|(_, value)| value.split(','))
            .filter(|one| !one.is_empty())
            .map(str::to_owned)
            .collect()
    }

    pub(super) fn flag(&self, name: &str) -> bool {
        self.get(name).is_some_and(|value| matches!(value, "1" | "true" | "True"))
    }

    pub(super) fn number(&self, name: &str, otherwise: usize) -> Result<usize, ApiError> {
        match self.get(name) {
            None => Ok(otherwise),
            Some(text) => text
                .parse()
                .map_err(|_| ApiError::invalid(format!("{name} must be an integer of at least 0"))),
        }
    }
}

/// A number of a body.
pub(super) fn number(body: &Value, name: &str, otherwise: usize) -> Result<usize, ApiError> {
    match &body[name] {
        Value::Null => Ok(otherwise),
        value => value
            .as_u64()
            .and_then(|number| usize::try_from(number).ok())
            .ok_or_else(|| ApiError::invalid(format!("{name} must be an integer of at least 0"))),
    }
}

/// A text of a body.
pub(super) fn text(body: &Value, name: &str) -> Result<Option<String>, ApiError> {
    match &body[name] {
        Value::Null => Ok(None),
        Value::String(text) => Ok(Some(text.clone())),
        _ => Err(ApiError::invalid(format!("{name} must be a string"))),
    }
}

/// A list of texts of a body.
pub(super) fn list(body: &Value, name: &str) -> Result<Option<Vec<String>>, ApiError> {
    match &body[name] {
        Value::Null => Ok(None),
        Value::Array(items) if items.iter().all(Value::is_string) => {
            Ok(Some(items.iter().filter_map(|item| item.as_str().map(str::to_owned)).collect()))
        }
        _ => Err(ApiError::invalid(format!("{name} must be a list of strings"))),
    }
}

/// The most items of a page.
const LARGEST_PAGE: usize = 1000;

/// The page that a search asks for: its offset and its limit.
pub(super) fn page_of(body: &Value) -> Result<(usize, usize), ApiError> {
    let limit = number(body, "limit", 10)?;
    if !(1..=LARGEST_PAGE).contains(&limit) {
        return Err(ApiError::invalid(format!("limit must be from 1 to {LARGEST_PAGE}")));
    }
    Ok((number(body, "offset", 0)?, limit))
}

/// The fields that a search asks for; all if it names none.
pub(super) fn selected(body: &Value, known: &[&str]) -> Result<Vec<String>, ApiError> {
    let select = list(body, "select")?.unwrap_or_default();
    match select.iter().find(|field| !known.contains(&field.as_str())) {
        Some(field) => {
            Err(ApiError::invalid(format!("select cannot be {field:?}: it can be {}", known.join(", "))))
        }
        None => Ok(select),
    }
}

/// An object with those of its fields that are selected.
pub(super) fn only(shown: Value, select: &[String]) -> Value {
    match shown {
        Value::Object(mut fields) if !select.is_empty() => {
            fields.retain(|name, _| select.contains(name));
            Value::Object(fields)
        }
        shown => shown,
    }
}

/// Whether a request to make something takes what is there.
pub(super) fn may_exist(body: &Value) -> Result<bool, ApiError> {
    match text(body, "if_exists")?.as_deref() {
        None | Some("raise") => Ok(false),
        Some("do_nothing") => Ok(true),
        Some(_) => Err(ApiError::invalid("if_exists must be raise or do_nothing")),
    }
}

/// The order that a search asks for: newest first unless it says otherwise, threads by their last change.
pub(super) fn order_of(body: &Value, ids: &str) -> Result<(SortBy, bool), ApiError> {
    let by = match text(body, "sort_by")?.as_deref() {
        None if ids == "thread_id" => SortBy::Updated,
        None | Some("created_at") => SortBy::Created,
        Some("updated_at" | "state_updated_at") => SortBy::Updated,
        Some("status") => SortBy::Status,
        Some(name) if name == ids => SortBy::Id,
        Some("name" | "graph_id") if ids == "assistant_id" => SortBy::Id,
        Some(other) => return Err(ApiError::invalid(format!("sort_by cannot be {other}"))),
    };
    match text(body, "sort_order")?.as_deref() {
        None | Some("desc") => Ok((by, true)),
        Some("asc") => Ok((by, false)),
        Some(_) => Err(ApiError::invalid("sort_order must be asc or desc")),
    }
}

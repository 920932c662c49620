//! Reads bodies by the rules of the original's framework, for all routes.

use axum::body::Body;
use axum::http::HeaderMap;
use axum::http::header::{AsHeaderName, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE};
use futures_util::StreamExt;
use serde_json::{Value, json};

use crate::wire::fault::Fault;

const LARGEST_BODY: usize = 5 * 1024 * 1024;

/// The body as JSON. Without a body or a JSON content type it is an empty object, except for blobs, whose
/// content type is not checked.
pub(super) async fn read(headers: &HeaderMap, body: Body, is_blob: bool) -> Result<Value, Fault> {
    let bytes = collected(body).await;
    let kind = header(headers, CONTENT_TYPE);
    let mut kind = kind.split(';').map(str::trim);
    if kind.next() != Some("application/json") && !is_blob {
        return Ok(json!({}));
    }
    let length = header(headers, CONTENT_LENGTH).parse::<u64>().ok();
    let bytes = bytes.ok_or_else(|| Fault::too_large(LARGEST_BODY, length))?;
    if bytes.is_empty() {
        return Ok(json!({}));
    }
    let charset = kind.find_map(|part| part.strip_prefix("charset="));
    if let Some(charset) = charset.map(|name| name.trim_matches('"')).filter(|name| !name.starts_with("utf-"))
    {
        return Err(Fault::unknown_charset(charset));
    }
    match header(headers, CONTENT_ENCODING).as_str() {
        "" | "identity" => parsed(&bytes),
        packed => Err(Fault::unknown_encoding(packed)),
    }
}

/// The whole body, up to the limit. A larger one is read to its end before the error, because a caller that
/// is still sending would not read the response.
async fn collected(body: Body) -> Option<Vec<u8>> {
    let mut chunks = body.into_data_stream();
    let mut bytes = Vec::new();
    let mut length = 0;
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk.ok()?;
        length += chunk.len();
        if length <= LARGEST_BODY {
            bytes.extend_from_slice(&chunk);
        }
    }
    (length <= LARGEST_BODY).then_some(bytes)
}

fn parsed(bytes: &[u8]) -> Result<Value, Fault> {
    match serde_json::from_slice(bytes) {
        Ok(value @ (Value::Object(_) | Value::Array(_))) => Ok(value),
        _ => Err(no_json(bytes)),
    }
}

/// The original passes on the words of its JavaScript engine, which no client reads: the place is enough.
fn no_json(bytes: &[u8]) -> Fault {
    let text = String::from_utf8_lossy(bytes);
    let told = match serde_json::from_slice::<Value>(bytes) {
        Err(error) if !error.is_eof() => {
            format!("Unexpected token in JSON at line {} column {}", error.line(), error.column())
        }
        _ => "Unexpected end of JSON input".to_owned(),
    };
    Fault::unparsed(told, &text)
}

fn header(headers: &HeaderMap, name: impl AsHeaderName) -> String {
    let value = headers.get(name).and_then(|value| value.to_str().ok());
    value.unwrap_or_default().to_ascii_lowercase()
}

//! Bodies as the original's framework reads them, whichever route they are for.

use axum::body::{Body, to_bytes};
use axum::http::HeaderMap;
use axum::http::header::{AsHeaderName, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE};
use serde_json::{Value, json};

use crate::server::fault::Fault;
use crate::server::json_text;

const LARGEST_BODY: usize = 5 * 1024 * 1024;

/// The body as JSON; no body, and a body that does not call itself JSON, is an empty object, unless it
/// is a blob, of which that is not asked.
pub(super) async fn read(headers: &HeaderMap, body: Body, is_blob: bool) -> Result<Value, Fault> {
    let bytes = to_bytes(body, LARGEST_BODY).await;
    let kind = header(headers, CONTENT_TYPE);
    let mut kind = kind.split(';').map(str::trim);
    if kind.next() != Some("application/json") && !is_blob {
        return Ok(json!({}));
    }
    let length = header(headers, CONTENT_LENGTH).parse::<u64>().ok();
    let bytes = bytes.map_err(|_| Fault::too_large(LARGEST_BODY, length))?;
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

fn parsed(bytes: &[u8]) -> Result<Value, Fault> {
    match serde_json::from_slice(bytes) {
        Ok(value @ (Value::Object(_) | Value::Array(_))) => Ok(value),
        _ => Err(no_json(&String::from_utf8_lossy(bytes))),
    }
}

/// What serde refuses and a JavaScript engine takes, such as half a surrogate pair, counts as cut off.
fn no_json(text: &str) -> Fault {
    let told = json_text::complaint(text).unwrap_or_else(|| "Unexpected end of JSON input".to_owned());
    Fault::unparsed(told, text)
}

fn header(headers: &HeaderMap, name: impl AsHeaderName) -> String {
    let value = headers.get(name).and_then(|value| value.to_str().ok());
    value.unwrap_or_default().to_ascii_lowercase()
}

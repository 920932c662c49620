//! What comes in and goes out over HTTP, in the form of xRx: requests, frames, error frames.
//!
//! Clients of this form look at no status of HTTP and have no words for a refusal. So every body is read as
//! far as it can be, and what cannot be read becomes an error frame.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::session::ShopSession;

/// Who said something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Speaker {
    /// The customer.
    User,
    /// This agent.
    Assistant,
}

/// A message of the conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spoken {
    /// Who said it.
    pub role: Speaker,
    /// The words.
    pub content: String,
}

impl Spoken {
    /// Words of the customer.
    pub fn user(content: impl Into<String>) -> Self {
        Spoken { role: Speaker::User, content: content.into() }
    }

    /// Words of the agent.
    pub fn assistant(content: impl Into<String>) -> Self {
        Spoken { role: Speaker::Assistant, content: content.into() }
    }
}

/// A click of the customer: a tool and its parameters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Click {
    /// The name of the tool.
    pub tool: String,
    /// The parameters.
    pub parameters: Map<String, Value>,
}

/// A request to run the agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunRequest {
    /// The conversation, without empty messages.
    pub messages: Vec<Spoken>,
    /// The session; a new one if the request has none.
    pub session: ShopSession,
    /// The click that the turn begins with.
    pub click: Option<Click>,
}

/// A request that cannot be answered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the request cannot be read: {0}")]
pub struct Unreadable(String);

impl RunRequest {
    /// A message of a customer in a session.
    pub fn message(session: ShopSession, text: impl Into<String>) -> Self {
        RunRequest { messages: vec![Spoken::user(text)], session, click: None }
    }

    /// Reads a body.
    ///
    /// # Errors
    /// If it is no JSON object, or has an action that is no click on a tool.
    pub fn read(body: &[u8]) -> Result<Self, Unreadable> {
        let body: Value = serde_json::from_slice(body).map_err(|error| Unreadable(error.to_string()))?;
        if !body.is_object() {
            return Err(Unreadable("it is no JSON object".to_owned()));
        }
        let messages = body["messages"].as_array().into_iter().flatten().filter_map(spoken).collect();
        let session = ShopSession::read(&body["session"]);
        Ok(RunRequest { messages, session, click: click(&body["action"])? })
    }
}

/// A message with words. Roles other than the two say nothing to this agent.
fn spoken(message: &Value) -> Option<Spoken> {
    let role = serde_json::from_value(message["role"].clone()).ok()?;
    let content = match &message["content"] {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            parts.iter().filter_map(|part| part["text"].as_str()).collect::<Vec<_>>().join(" ")
        }
        _ => return None,
    };
    (!content.trim().is_empty()).then_some(Spoken { role, content })
}

fn click(action: &Value) -> Result<Option<Click>, Unreadable> {
    if action.is_null() || action.as_object().is_some_and(Map::is_empty) {
        return Ok(None);
    }
    let details = &action["details"];
    let (Some("tool"), Some(tool)) = (action["type"].as_str(), details["tool"].as_str()) else {
        return Err(Unreadable("its action is no click on a tool".to_owned()));
    };
    // The browser of xRx sends JSON text, which its orchestrator parses.
    let parameters = match &details["parameters"] {
        Value::String(text) => serde_json::from_str(text).unwrap_or(Value::Null),
        other => other.clone(),
    };
    let parameters = match parameters {
        Value::Object(parameters) => parameters,
        Value::Null if details["parameters"].as_str().is_none_or(|text| text.trim().is_empty()) => Map::new(),
        _ => return Err(Unreadable("the parameters of its click are no JSON object".to_owned())),
    };
    Ok(Some(Click { tool: tool.to_owned(), parameters }))
}

/// What a node tells the customer's side.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Frame {
    /// What belongs into the history: one message of the assistant.
    pub messages: Vec<Spoken>,
    /// The session, with the cart.
    pub session: ShopSession,
    /// The node.
    pub node: String,
    /// A text, or the widget.
    pub output: Value,
    /// Why the node did it, as the model says.
    pub reason: String,
}

/// An error of a turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorFrame {
    /// What went wrong, for the customer.
    pub error: String,
    /// A stable word for it.
    pub code: String,
    /// Whether the same request may succeed later.
    pub retry: bool,
}

impl ErrorFrame {
    /// A request that cannot be read.
    pub fn unreadable(why: &Unreadable) -> Self {
        ErrorFrame { error: why.to_string(), code: "unreadable_request".to_owned(), retry: false }
    }
}

/// One event of a stream: JSON in one line, so that one write holds all of it.
pub fn event(frame: &impl Serialize) -> String {
    // The types above always become JSON; a frame that did not would end the stream in words.
    let json = serde_json::to_string(frame)
        .unwrap_or_else(|error| json!({ "error": error.to_string() }).to_string());
    format!("data: {json}\n\n")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn read(body: Value) -> RunRequest {
        RunRequest::read(body.to_string().as_bytes()).unwrap()
    }

    #[test]
    fn the_fields_that_clients_leave_out_are_optional() {
        for body in
            [json!({}), json!({"messages": null, "session": null, "action": null}), json!({"action": {}})]
        {
            let request = read(body);
            assert!(request.messages.is_empty() && request.click.is_none());
            assert!(!request.session.is_unopened());
        }
    }

    #[test]
    fn empty_and_unknown_messages_are_skipped_and_parts_are_joined() {
        let request = read(json!({"messages": [
            {"role": "assistant", "content": "a"}, {"role": "assistant", "content": ""},
            {"role": "system", "content": "obey"}, {"role": "user", "content": null}, 7,
            {"role": "user", "content": [{"type": "text", "text": "two"}, {"type": "text", "text": "items"}]}
        ]}));
        assert_eq!(request.messages, [Spoken::assistant("a"), Spoken::user("two items")]);
    }

    #[test]
    fn a_click_has_parameters_as_an_object_or_as_json_text() {
        for parameters in [json!({"product_id": 7}), json!(r#"{"product_id": 7}"#)] {
            let action =
                json!({"type": "tool", "details": {"tool": "get_product_details", "parameters": parameters}});
            let click = read(json!({"messages": [], "action": action})).click.unwrap();
            assert_eq!(
                (click.tool.as_str(), &click.parameters["product_id"]),
                ("get_product_details", &json!(7))
            );
        }
        for none in [json!(null), json!(""), json!({})] {
            let action = json!({"type": "tool", "details": {"tool": "get_cart_summary", "parameters": none}});
            assert!(read(json!({"action": action})).click.unwrap().parameters.is_empty());
        }
    }

    #[test]
    fn what_cannot_be_read_is_an_error_with_words() {
        let unknown = json!({"action": {"type": "dance"}}).to_string();
        let broken =
            json!({"action": {"type": "tool", "details": {"tool": "a", "parameters": "{"}}}).to_string();
        for body in ["", "[]", "{", &unknown, &broken] {
            let error = RunRequest::read(body.as_bytes()).unwrap_err();
            assert!(
                ErrorFrame::unreadable(&error).error.starts_with("the request cannot be read: "),
                "{body}"
            );
        }
    }

    #[test]
    fn an_error_frame_is_encoded_once_and_in_one_line() {
        let event = event(&ErrorFrame { error: "a\n\"b\"".into(), code: "c".into(), retry: true });
        assert_eq!(event, "data: {\"error\":\"a\\n\\\"b\\\"\",\"code\":\"c\",\"retry\":true}\n\n");
    }
}

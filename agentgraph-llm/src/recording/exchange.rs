//! One exchange of a recording: a line of JSON.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::error::{Code, Error};
use crate::mask::masked;
use crate::model::{Capabilities, ChatEvent, ChatRequest, ModelInfo};

/// A request and its reply.
#[derive(Serialize, Deserialize)]
pub(super) struct Exchange {
    provider: String,
    model: String,
    #[serde(default)]
    structured_output: bool,
    #[serde(default)]
    max_input_tokens: Option<u64>,
    /// The [canonical](ChatRequest::canonical) request.
    pub(super) request: String,
    pub(super) reply: Recorded,
}

/// What came back: events, and the error that ended them.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct Recorded {
    events: Vec<ChatEvent>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<RecordedError>,
}

#[derive(Serialize, Deserialize)]
struct RecordedError {
    code: String,
    message: String,
    status: Option<u16>,
    request_id: Option<String>,
    retry_after: Option<Duration>,
    is_retryable: bool,
}

impl Exchange {
    pub(super) fn begin(info: &ModelInfo, request: &ChatRequest) -> Self {
        Exchange {
            provider: info.provider.to_string(),
            model: info.model.clone(),
            structured_output: info.capabilities.structured_output,
            max_input_tokens: info.capabilities.max_input_tokens,
            request: request.canonical(),
            reply: Recorded::default(),
        }
    }

    pub(super) fn end(mut self, events: Vec<ChatEvent>, error: Option<&Error>) -> Self {
        self.reply = Recorded { events, error: error.map(RecordedError::of) };
        self
    }

    pub(super) fn read(line: &str) -> serde_json::Result<Self> {
        serde_json::from_str(line)
    }

    /// The model as it was when it was recorded.
    pub(super) fn info(&self) -> ModelInfo {
        let mut capabilities = Capabilities::new();
        capabilities.structured_output = self.structured_output;
        capabilities.max_input_tokens = self.max_input_tokens;
        ModelInfo::new(self.provider.clone(), self.model.clone()).with(capabilities)
    }

    /// The exchange as a line, without the secrets.
    pub(super) fn line(mut self, secrets: &[String]) -> String {
        if !secrets.is_empty() {
            self.reply.events = joined(&self.reply.events);
        }
        // An exchange consists of texts and numbers, so it always has a JSON text.
        let line = serde_json::to_string(&self).unwrap_or_default();
        let line = match secrets {
            [] => line,
            // What cannot be masked is not written.
            secrets => mask_texts(&line, secrets).unwrap_or_default(),
        };
        line + "\n"
    }
}

/// The events with the pieces of each block joined, so that no secret is split over two of them.
fn joined(events: &[ChatEvent]) -> Vec<ChatEvent> {
    let mut all: Vec<ChatEvent> = Vec::new();
    for event in events {
        match (all.last_mut(), event) {
            (Some(ChatEvent::TextDelta { index: at, text: all }), ChatEvent::TextDelta { index, text })
                if at == index =>
            {
                all.push_str(text);
            }
            (
                Some(ChatEvent::ThinkingDelta { index: at, thinking: all }),
                ChatEvent::ThinkingDelta { index, thinking },
            ) if at == index => all.push_str(thinking),
            (
                Some(ChatEvent::ToolInputDelta { index: at, json: all }),
                ChatEvent::ToolInputDelta { index, json },
            ) if at == index => all.push_str(json),
            _ => all.push(event.clone()),
        }
    }
    all
}

/// The JSON with the secrets masked in each of its strings, at any depth of quotes.
fn mask_texts(line: &str, secrets: &[String]) -> Option<String> {
    let mut value: serde_json::Value = serde_json::from_str(line).ok()?;
    mask_value(&mut value, secrets);
    serde_json::to_string(&value).ok()
}

fn mask_value(value: &mut serde_json::Value, secrets: &[String]) {
    match value {
        serde_json::Value::String(text) => *text = masked(text, secrets),
        serde_json::Value::Array(items) => items.iter_mut().for_each(|item| mask_value(item, secrets)),
        serde_json::Value::Object(fields) => fields.values_mut().for_each(|field| mask_value(field, secrets)),
        _ => {}
    }
}

impl Recorded {
    pub(super) fn into_parts(self) -> (Vec<ChatEvent>, Option<Error>) {
        (self.events, self.error.map(RecordedError::into_error))
    }
}

impl RecordedError {
    fn of(error: &Error) -> Self {
        RecordedError {
            code: error.code().as_str().to_owned(),
            message: error.message().to_owned(),
            status: error.status(),
            request_id: error.request_id().map(str::to_owned),
            retry_after: error.retry_after(),
            is_retryable: error.is_retryable(),
        }
    }

    fn into_error(self) -> Error {
        // A code of a later release is an error of this one, too.
        let code = Code::ALL.iter().copied().find(|code| code.as_str() == self.code);
        let mut error =
            Error::new(code.unwrap_or(Code::Server), self.message).with_retryable(self.is_retryable);
        if let Some(status) = self.status {
            error = error.with_status(status);
        }
        if let Some(id) = self.request_id {
            error = error.with_request_id(id);
        }
        match self.retry_after {
            Some(wait) => error.with_retry_after(wait),
            None => error,
        }
    }
}

//! Conversations with a scripted server, through the real HTTP driver.

use agentgraph_llm::openai::{OpenAiChatModel, OpenAiModel, Profile};
use agentgraph_llm::prelude::*;
use agentgraph_llm::{Error, MessageIds};
use futures_util::StreamExt;
use serde_json::Value;

use crate::server::{Reply, Server};

pub const KEY: &str = "sk-hunter2-hunter2";

/// The events of a stream: each value as `data`.
pub fn sse(events: &[Value]) -> String {
    events.iter().map(|event| format!("data: {event}\n\n")).collect()
}

/// The same with `[DONE]`.
pub fn sse_done(events: &[Value]) -> String {
    sse(events) + "data: [DONE]\n\n"
}

/// What a stream gave: its events as words, and the response or the error.
pub struct Heard {
    pub events: Vec<ChatEvent>,
    pub end: Result<ChatResponse, Error>,
}

impl Heard {
    pub fn response(self) -> ChatResponse {
        self.end.unwrap()
    }

    /// The pieces of text, joined.
    pub fn text(&self) -> String {
        let texts = self.events.iter().filter_map(|event| match event {
            ChatEvent::TextDelta { text, .. } => Some(text.as_str()),
            _ => None,
        });
        texts.collect()
    }
}

pub async fn hear(model: &dyn ChatModel) -> Heard {
    let mut events = Vec::new();
    let mut stream = match model.stream(ChatRequest::user("hi")).await {
        Ok(stream) => stream,
        Err(error) => return Heard { events, end: Err(error) },
    };
    loop {
        match stream.next().await.expect("a last event") {
            Ok(ChatEvent::Finished(response)) => {
                check_order(&events, &response);
                return Heard { events, end: Ok(response) };
            }
            Ok(event) => events.push(event),
            Err(error) => return Heard { events, end: Err(error) },
        }
    }
}

/// The pieces of each block are those of the block at that position.
fn check_order(events: &[ChatEvent], response: &ChatResponse) {
    for (at, block) in response.message.content.iter().enumerate() {
        let mut said = String::new();
        for event in events {
            match event {
                ChatEvent::TextDelta { index, text } if *index == at => said += text,
                ChatEvent::ThinkingDelta { index, thinking } if *index == at => said += thinking,
                ChatEvent::ToolInputDelta { index, json } if *index == at => said += json,
                _ => {}
            }
        }
        match block {
            Block::Text(block) => assert_eq!(said, block.text, "{events:?}"),
            Block::Thinking(block) => assert_eq!(said, block.thinking, "{events:?}"),
            Block::ToolUse(call) => {
                assert!(said == call.input.text() || (said.is_empty() && call.input.text() == "{}"), "{events:?}");
                let started = events.iter().any(|event| {
                    matches!(event, ChatEvent::ToolUseStarted { index, id, name }
                        if *index == at && *id == call.id && *name == call.name)
                });
                assert!(started, "{events:?}");
            }
            block => assert!(
                events.iter().any(|event| matches!(event, ChatEvent::Block { index, block: shown } if *index == at && shown == block)),
                "{block:?} in {events:?}"
            ),
        }
    }
}

pub async fn chat_model(profile: Profile, reply: Reply) -> (OpenAiChatModel, Server) {
    let server = Server::start([reply]).await;
    let builder = OpenAiChatModel::builder().profile(profile).api_key(KEY).model("one-of-tests");
    let model = builder.base_url(&server.url).max_retries(0).message_ids(MessageIds::sequence("m"));
    (model.build().unwrap(), server)
}

/// What comes of a streamed answer of Chat Completions.
pub async fn hear_chat(profile: Profile, stream: impl AsRef<[u8]>) -> Heard {
    let (model, _server) = chat_model(profile, Reply::stream(stream)).await;
    hear(&model).await
}

pub async fn model(reply: Reply) -> (OpenAiModel, Server) {
    let server = Server::start([reply]).await;
    let builder = OpenAiModel::builder().api_key(KEY).model("one-of-tests").base_url(&server.url);
    (builder.max_retries(0).build().unwrap(), server)
}

/// What comes of a streamed answer of the Responses API.
pub async fn hear_responses(events: &[Value]) -> Heard {
    let (model, _server) = model(Reply::stream(sse(events))).await;
    hear(&model).await
}

//! A chat model for tests that follows a script and records its requests.

mod reply;

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use futures_util::stream;

use crate::error::{Code, Error, Result};
use crate::message::{MessageIds, Origin};
use crate::model::{Capabilities, ChatModel, ChatRequest, ChatResponse, ChatStream, ModelInfo};
use crate::sent_key::SentKey;
use crate::telemetry::ChatTrace;

pub use reply::Reply;

/// A chat model for tests. It answers with a list of replies, or with a function of the request, and records
/// each request. Clones share script and records, so a test keeps one and hands out the other.
///
/// ```
/// use agentgraph_llm::prelude::*;
/// use serde_json::json;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> agentgraph_llm::Result<()> {
/// let model = ScriptedModel::new([Reply::tool_call("add", json!({"a": 2, "b": 3})), Reply::text("It is 5.")]);
///
/// let response = model.chat(ChatRequest::user("2 + 3?")).await?;
/// assert_eq!(response.message.tool_uses().next().unwrap().name, "add");
/// assert_eq!(model.requests()[0].messages[0].text(), "2 + 3?");
/// assert_eq!(model.remaining(), 1);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct ScriptedModel {
    name: Arc<str>,
    capabilities: Capabilities,
    shared: Arc<Mutex<Script>>,
    ids: MessageIds,
}

struct Script {
    source: Source,
    requests: Vec<ChatRequest>,
    tool_calls: usize,
}

enum Source {
    List { replies: VecDeque<Reply>, given: usize },
    Function(Box<dyn FnMut(&ChatRequest) -> Reply + Send>),
}

impl ScriptedModel {
    /// Answers with these replies, one per call, then with `E_LLM_SCRIPT_EXHAUSTED`.
    pub fn new(replies: impl IntoIterator<Item = impl Into<Reply>>) -> Self {
        let replies = replies.into_iter().map(Into::into).collect();
        ScriptedModel::from_source(Source::List { replies, given: 0 })
    }

    /// Answers by a function of the request.
    ///
    /// ```
    /// use agentgraph_llm::prelude::*;
    ///
    /// let model = ScriptedModel::from_fn(|request| Reply::text(format!("{} messages", request.messages.len())));
    /// ```
    pub fn from_fn(reply: impl FnMut(&ChatRequest) -> Reply + Send + 'static) -> Self {
        ScriptedModel::from_source(Source::Function(Box::new(reply)))
    }

    fn from_source(source: Source) -> Self {
        let shared = Script { source, requests: Vec::new(), tool_calls: 0 };
        ScriptedModel {
            name: "scripted".into(),
            capabilities: Capabilities::default(),
            shared: Arc::new(Mutex::new(shared)),
            ids: MessageIds::default(),
        }
    }

    /// Sets the model's name.
    pub fn named(mut self, name: impl Into<Arc<str>>) -> Self {
        self.name = name.into();
        self
    }

    /// Sets what the model says it can do.
    pub fn with_capabilities(mut self, capabilities: Capabilities) -> Self {
        self.capabilities = capabilities;
        self
    }

    /// Sets the source of message ids, such as [`MessageIds::sequence`].
    pub fn message_ids(mut self, ids: MessageIds) -> Self {
        self.ids = ids;
        self
    }

    /// The requests so far, in order.
    pub fn requests(&self) -> Vec<ChatRequest> {
        self.lock().requests.clone()
    }

    /// The number of replies left in the list; 0 for a function.
    pub fn remaining(&self) -> usize {
        match &self.lock().source {
            Source::List { replies, .. } => replies.len(),
            Source::Function(_) => 0,
        }
    }

    fn traced(&self, request: ChatRequest) -> Result<ChatResponse> {
        let trace = ChatTrace::begin(self.info(), &request);
        trace.record_request(&request, &SentKey::none());
        let result = trace.span().in_scope(|| self.answer(request));
        if result.is_ok() {
            trace.record_first_piece();
        }
        trace.end(result.as_ref());
        result
    }

    fn answer(&self, request: ChatRequest) -> Result<ChatResponse> {
        let mut shared = self.lock();
        let reply = shared.source.next(&request);
        shared.requests.push(request);
        let mut response = reply?.into_response(&self.name, &self.ids, &mut shared.tool_calls)?;
        response.message.origin.get_or_insert_with(|| Origin::new("scripted", &*self.name));
        Ok(response)
    }

    fn lock(&self) -> MutexGuard<'_, Script> {
        // A reply function that panicked leaves the records intact.
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Source {
    fn next(&mut self, request: &ChatRequest) -> Result<Reply> {
        match self {
            Source::Function(reply) => Ok(reply(request)),
            Source::List { replies, given } => match replies.pop_front() {
                Some(reply) => {
                    *given += 1;
                    Ok(reply)
                }
                None => Err(exhausted(*given, request)),
            },
        }
    }
}

fn exhausted(given: usize, request: &ChatRequest) -> Error {
    let last = request.messages.last().map_or("no message".to_owned(), |message| {
        let text: String = message.text().chars().take(80).collect();
        format!("{:?} {text:?} ({} tool results)", message.role, message.results().count())
    });
    let message = format!(
        "the script has {given} replies and call {} asks for one more; the last message is {last}: add a reply, or find \
         out why the model is called once more",
        given + 1
    );
    Error::new(Code::ScriptExhausted, message)
}

#[async_trait]
impl ChatModel for ScriptedModel {
    fn info(&self) -> ModelInfo {
        ModelInfo::new("scripted", &*self.name).with(self.capabilities)
    }

    async fn stream(&self, request: ChatRequest) -> Result<ChatStream> {
        let events = reply::chunks(self.traced(request)?);
        Ok(ChatStream::new(stream::iter(events.into_iter().map(Ok))))
    }
}

impl fmt::Debug for ScriptedModel {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = out.debug_struct("ScriptedModel");
        parts.field("name", &self.name).field("requests", &self.lock().requests.len());
        parts.field("remaining", &self.remaining()).finish()
    }
}

//! A clock without time, and a model that breaks off.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use agentgraph_llm::middleware::{Middleware, ModelRequest, NextModel};
use agentgraph_llm::*;
use futures_util::{StreamExt, stream};

/// Time passes only by sleeping.
pub(crate) struct TestClock {
    now: Mutex<SystemTime>,
    waits: Mutex<Vec<Duration>>,
}

impl TestClock {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(TestClock { now: Mutex::new(SystemTime::UNIX_EPOCH), waits: Mutex::default() })
    }

    pub(crate) fn pass(&self, time: Duration) {
        *self.now.lock().unwrap() += time;
    }

    pub(crate) fn waits(&self) -> Vec<Duration> {
        self.waits.lock().unwrap().clone()
    }
}

#[async_trait::async_trait]
impl Clock for TestClock {
    fn now(&self) -> SystemTime {
        *self.now.lock().unwrap()
    }

    fn jitter(&self) -> f64 {
        0.0
    }

    async fn sleep(&self, wait: Duration) {
        self.waits.lock().unwrap().push(wait);
        self.pass(wait);
        tokio::task::yield_now().await;
    }
}

/// One answer: pieces of a text, and whether it breaks off after them. No pieces and a break: it does not
/// begin.
#[derive(Clone, Debug)]
pub(crate) struct Take {
    pub(crate) pieces: Vec<String>,
    pub(crate) breaks: bool,
}

/// A model that plays takes.
pub(crate) struct Takes {
    name: &'static str,
    takes: Mutex<VecDeque<Take>>,
    pub(crate) requests: Mutex<Vec<ChatRequest>>,
}

impl Takes {
    pub(crate) fn new(name: &'static str, takes: impl IntoIterator<Item = Take>) -> Arc<Self> {
        let takes = Mutex::new(takes.into_iter().collect());
        Arc::new(Takes { name, takes, requests: Mutex::default() })
    }
}

#[async_trait::async_trait]
impl ChatModel for Takes {
    fn info(&self) -> ModelInfo {
        ModelInfo::new("takes", self.name)
    }

    async fn stream(&self, request: ChatRequest) -> Result<ChatStream> {
        self.requests.lock().unwrap().push(request);
        let take = self.takes.lock().unwrap().pop_front();
        let Take { pieces, breaks } = take.ok_or_else(|| Error::new(Code::ScriptExhausted, "no take"))?;
        if breaks && pieces.is_empty() {
            return Err(Error::new(Code::Overloaded, "busy"));
        }
        let end = match breaks {
            true => Err(Error::new(Code::Truncated, "cut")),
            false => {
                let message = Message::assistant(pieces.concat()).with_origin(&self.info());
                Ok(ChatEvent::Finished(ChatResponse::new(message, StopReason::EndTurn)))
            }
        };
        let pieces = pieces.into_iter().map(|text| Ok(ChatEvent::TextDelta { index: 0, text }));
        Ok(ChatStream::new(stream::iter(pieces.chain([end]).collect::<Vec<_>>())))
    }
}

/// All events of an answer through a middleware.
pub(crate) async fn events(
    middleware: &dyn Middleware,
    model: Arc<dyn ChatModel>,
    request: ChatRequest,
) -> Vec<Result<ChatEvent>> {
    match middleware.wrap_model(ModelRequest::new(model, request), NextModel::direct()).await {
        Ok(stream) => stream.collect().await,
        Err(error) => vec![Err(error)],
    }
}

/// What a listener has on its screen at the end: pieces before a restart are forgotten.
pub(crate) fn heard(events: &[Result<ChatEvent>]) -> String {
    let mut screen = String::new();
    for event in events {
        match event {
            Ok(ChatEvent::TextDelta { text, .. }) => screen += text,
            Ok(ChatEvent::Restarted {}) => screen.clear(),
            _ => {}
        }
    }
    screen
}

pub(crate) fn stored(events: &[Result<ChatEvent>]) -> Option<String> {
    match events.last() {
        Some(Ok(ChatEvent::Finished(response))) => Some(response.message.text()),
        _ => None,
    }
}

pub(crate) fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(work)
}

//! Answers that were given before, from a store.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use agentgraph::Store;
use agentgraph::store::{Namespace, StoreExt};
use async_trait::async_trait;
use futures_util::StreamExt;
use sha2::{Digest, Sha256};

use super::{Hooks, Middleware, ModelRequest, NextModel};
use crate::error::{Code, Error, Result};
use crate::message::MessageIds;
use crate::model::{ChatEvent, ChatResponse, ChatStream, ModelInfo, StopReason, Usage};

/// Part of each key, so that answers in another stored form are not read.
const FORM: &str = "1";

/// Answers a request that was made before with the stored answer.
///
/// Two requests are the same if the same model gets the same [canonical
/// request](crate::ChatRequest::canonical): what is sent counts, ids of messages do not. Only answers that
/// ended well are stored. An answer from the cache has used no tokens, and has a fresh message id.
///
/// ```
/// use agentgraph::store::MemoryStore;
/// use agentgraph_llm::middleware::{Middleware, ModelRequest, NextModel, ResponseCache};
/// use agentgraph_llm::prelude::*;
/// use std::sync::Arc;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> agentgraph_llm::Result<()> {
/// let cache = ResponseCache::new(Arc::new(MemoryStore::new()));
/// let model = Arc::new(ScriptedModel::new(["hello"]));          // has one answer only
/// for _ in 0..2 {
///     let request = ModelRequest::new(model.clone(), ChatRequest::user("hi"));
///     let stream = cache.wrap_model(request, NextModel::direct()).await?;
///     assert_eq!(stream.into_response().await?.message.text(), "hello");
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct ResponseCache {
    store: Arc<dyn Store>,
    namespace: Vec<String>,
    lifetime: Option<Duration>,
}

impl ResponseCache {
    /// Keeps answers in this store, in the namespace `["agentgraph-llm", "responses"]`, for as long as the
    /// store keeps items.
    pub fn new(store: Arc<dyn Store>) -> Self {
        let namespace = ["agentgraph-llm", "responses"].map(str::to_owned).into();
        ResponseCache { store, namespace, lifetime: None }
    }

    /// Sets the namespace.
    pub fn namespace<T: Into<String>>(mut self, segments: impl IntoIterator<Item = T>) -> Self {
        self.namespace = segments.into_iter().map(Into::into).collect();
        self
    }

    /// Sets how long an answer is kept.
    pub fn lifetime(mut self, lifetime: Duration) -> Self {
        self.lifetime = Some(lifetime);
        self
    }

    async fn read(&self, namespace: &Namespace, key: &str) -> Result<Option<ChatResponse>> {
        let stored = self.store.get_as::<ChatResponse>(namespace, key).await.map_err(failed)?;
        Ok(stored.map(|mut response| {
            response.message.id = MessageIds::default().next_id();
            response.usage = Usage::default();
            response
        }))
    }

    async fn write(&self, namespace: &Namespace, key: &str, response: &ChatResponse) -> Result<()> {
        let mut stored = response.clone();
        stored.limits = None;
        let put = self.store.put_as(namespace, key, &stored).unindexed();
        let put = match self.lifetime {
            Some(lifetime) => put.lifetime(lifetime),
            None => put,
        };
        put.await.map(|_| ()).map_err(failed)
    }
}

#[async_trait]
impl Middleware for ResponseCache {
    fn name(&self) -> &str {
        "response_cache"
    }

    fn hooks(&self) -> Hooks {
        Hooks::NONE
    }

    async fn wrap_model(&self, request: ModelRequest, next: NextModel<'_>) -> Result<ChatStream> {
        let namespace = Namespace::new(self.namespace.iter().cloned()).map_err(failed)?;
        let key = key(&request.model.info(), &request);
        if let Some(response) = self.read(&namespace, &key).await? {
            return Ok(ChatStream::from_response(response));
        }
        let cache = Arc::new((self.clone(), namespace, key));
        let stream = next.run(request).await?;
        Ok(ChatStream::new(stream.then(move |event| {
            let cache = Arc::clone(&cache);
            async move {
                let (cache, namespace, key) = &*cache;
                match event? {
                    ChatEvent::Finished(response) if is_good(&response) => {
                        cache.write(namespace, key, &response).await?;
                        Ok(ChatEvent::Finished(response))
                    }
                    event => Ok(event),
                }
            }
        })))
    }
}

/// An answer that was cut, refused or paused may come out better the next time.
fn is_good(response: &ChatResponse) -> bool {
    matches!(response.stop, StopReason::EndTurn | StopReason::StopSequence | StopReason::ToolUse)
}

/// A hash of who is asked, and of what that model gets.
fn key(model: &ModelInfo, request: &ModelRequest) -> String {
    let mut sent = request.request.clone();
    for message in &mut sent.messages {
        *message = message.for_model(model).into_owned();
    }
    let mut hash = Sha256::new();
    for part in [FORM, &model.provider, &model.model, &sent.canonical()] {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

fn failed(error: agentgraph::checkpoint::StoreError) -> Error {
    Error::new(Code::Middleware, format!("the cache of responses cannot use its store: {error}"))
        .with_source(error)
}

impl fmt::Debug for ResponseCache {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = out.debug_struct("ResponseCache");
        parts.field("namespace", &self.namespace).field("lifetime", &self.lifetime).finish_non_exhaustive()
    }
}

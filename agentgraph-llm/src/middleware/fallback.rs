//! Another model answers when one fails.

use std::sync::Arc;

use async_trait::async_trait;

use super::attempts::{Attempts, Next, first_success};
use super::{Hooks, Middleware, ModelRequest, NextModel};
use crate::error::{Error, Result};
use crate::model::{ChatModel, ChatStream};

/// Asks the next model, in order, when one fails, also after its first piece: a listener then gets
/// [`ChatEvent::Restarted`](crate::ChatEvent::Restarted), and the stored message has nothing of the failed
/// answer. If all fail, the error is that of the last.
///
/// What only the model that wrote it can read, such as signed thinking, is left out of a request to another:
/// see [`Message::for_model`](crate::Message::for_model).
///
/// ```
/// use agentgraph_llm::middleware::{Middleware, ModelFallback, ModelRequest, NextModel};
/// use agentgraph_llm::{Code, Error};
/// use agentgraph_llm::prelude::*;
/// use std::sync::Arc;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> agentgraph_llm::Result<()> {
/// let first = ScriptedModel::new([Reply::error(Error::new(Code::Overloaded, "busy"))]);
/// let fallback = ModelFallback::new([ScriptedModel::new(["hello"])]);
///
/// let request = ModelRequest::new(Arc::new(first), ChatRequest::user("hi"));
/// let stream = fallback.wrap_model(request, NextModel::direct()).await?;
/// assert_eq!(stream.into_response().await?.message.text(), "hello");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct ModelFallback {
    models: Arc<[Arc<dyn ChatModel>]>,
}

impl ModelFallback {
    /// Falls back to these models, in order.
    pub fn new(models: impl IntoIterator<Item = impl ChatModel + 'static>) -> Self {
        let models = models.into_iter().map(|model| Arc::new(model) as Arc<dyn ChatModel>);
        ModelFallback { models: models.collect() }
    }

    /// Adds a model of another type, after the others.
    pub fn or(self, model: impl ChatModel + 'static) -> Self {
        let added: Arc<dyn ChatModel> = Arc::new(model);
        ModelFallback { models: self.models.iter().cloned().chain([added]).collect() }
    }
}

#[async_trait]
impl Middleware for ModelFallback {
    fn name(&self) -> &str {
        "model_fallback"
    }

    fn hooks(&self) -> Hooks {
        Hooks::NONE
    }

    async fn wrap_model(&self, request: ModelRequest, next: NextModel<'_>) -> Result<ChatStream> {
        let next = next.into_owned();
        let first = next.clone().run(request.clone()).await;
        first_success(first, Models { models: Arc::clone(&self.models), tried: 0, request, next }).await
    }
}

struct Models {
    models: Arc<[Arc<dyn ChatModel>]>,
    tried: usize,
    request: ModelRequest,
    next: NextModel<'static>,
}

#[async_trait]
impl Attempts for Models {
    async fn next(&mut self, failed: Error) -> Next {
        let is_interrupt = failed.cause::<agentgraph::node::Interrupted>().is_some();
        let Some(model) = self.models.get(self.tried).filter(|_| !is_interrupt) else {
            return Next::GiveUp(failed);
        };
        self.tried += 1;
        Next::Attempt(self.next.clone().run(for_model(&self.request, model)).await)
    }
}

/// The request to another model, without what that model cannot read.
fn for_model(request: &ModelRequest, model: &Arc<dyn ChatModel>) -> ModelRequest {
    let mut request = request.clone().with_model(Arc::clone(model));
    let info = model.info();
    for message in &mut request.request.messages {
        if let std::borrow::Cow::Owned(stripped) = message.for_model(&info) {
            *message = stripped;
        }
    }
    request
}

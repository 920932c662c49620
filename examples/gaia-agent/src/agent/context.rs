//! [`TrimContext`]: a request that is too long for the model is made again with less of it.
//!
//! Old results of tools are left out of the request, not of the thread. A conversation that is too long
//! without them as well ends with the best answer so far: asked again, it would fail for ever.

use agentgraph_llm::middleware::ContextEditing;
use agentgraph_llm::{
    ChatResponse, ChatStream, Code, Hooks, Message, Middleware, ModelRequest, NextModel, Result, StopReason,
};
use async_trait::async_trait;
use futures_util::{StreamExt, stream};

use super::journal::task_of;
use crate::log::Log;

/// The tokens of a request above which old results are left out before it is made.
const FULL: u64 = 100_000;
/// How many of the last results stay, attempt by attempt.
const KEPT: [usize; 3] = [3, 1, 0];
const CLEARED: &str = "[left out, since the conversation is too long: call the tool again if it is needed]";

pub(super) struct TrimContext(pub(super) Log);

#[async_trait]
impl Middleware for TrimContext {
    fn name(&self) -> &str {
        "trim_context"
    }

    fn hooks(&self) -> Hooks {
        Hooks::NONE
    }

    async fn wrap_model(&self, request: ModelRequest, next: NextModel<'_>) -> Result<ChatStream> {
        let editing = ContextEditing::new().trigger(FULL).keep(KEPT[0]).placeholder(CLEARED);
        let mut asked = begun(editing.wrap_model(request.clone(), next.clone()).await).await;
        for kept in KEPT {
            match asked {
                Err(error) if error.code() == Code::TooLarge => {}
                other => return other,
            }
            self.0.line(
                &task_of(request.ctx()),
                "context",
                &format!("too long: the last {kept} results stay"),
            );
            let editing = ContextEditing::new().trigger(0).keep(kept).placeholder(CLEARED);
            asked = begun(editing.wrap_model(request.clone(), next.clone()).await).await;
        }
        match asked {
            Err(error) if error.code() == Code::TooLarge => {
                let nothing = ChatResponse::new(Message::assistant(""), StopReason::ContextWindowExceeded);
                Ok(ChatStream::from_response(nothing.with_model(request.model.info().model)))
            }
            other => other,
        }
    }
}

/// The stream, or the error that it begins with: the inner middleware answers before it has asked.
async fn begun(stream: Result<ChatStream>) -> Result<ChatStream> {
    let mut stream = stream?;
    match stream.next().await {
        Some(Err(error)) => Err(error),
        first => Ok(ChatStream::new(stream::iter(first).chain(stream))),
    }
}

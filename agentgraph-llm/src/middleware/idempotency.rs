//! Keys for tools with side effects, so that a call that is made twice takes effect once.

use std::collections::BTreeSet;

use async_trait::async_trait;
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::{Hooks, Middleware, ModelRequest, NextModel, NextTool};
use crate::error::Result;
use crate::json::{Object, RawJson};
use crate::model::ChatStream;
use crate::tool::{ToolCall, ToolError, ToolOutput, ToolSpec};

/// The key of a call: 32 hexadecimal digits that are the same whenever this call is made again, after a
/// retry, a crash or a resume, and other for every other call. It follows from the thread, the model's
/// answer, the id of the call and the tool; ids alone repeat, because some servers number their calls from 0.
///
/// ```
/// use agentgraph_llm::{ToolCall, middleware::idempotency_key};
///
/// let [first, again, other] = ["call-1", "call-1", "call-2"].map(|id| ToolCall::detached(id, "pay"));
/// assert_eq!(idempotency_key(&first), idempotency_key(&again));
/// assert_ne!(idempotency_key(&first), idempotency_key(&other));
/// assert_ne!(idempotency_key(&first), idempotency_key(&again.with_message_id("the next answer")));
/// ```
pub fn idempotency_key(call: &ToolCall) -> String {
    let thread = call.ctx().ok().and_then(|ctx| ctx.thread()).unwrap_or_default();
    let mut hash = Sha256::new();
    for part in [thread, call.message_id(), call.id(), call.name()] {
        // With its length, so that no two lists of parts are hashed alike.
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    hash.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

/// Hands each call of some tools its [`idempotency_key`] as an argument. The model does not see the argument,
/// and what it writes there is replaced.
///
/// ```
/// use agentgraph_llm::middleware::{IdempotencyKeys, Middleware, NextTool};
/// use agentgraph_llm::prelude::*;
/// use agentgraph_llm::ToolCall;
/// use serde_json::json;
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Payment {
///     cents: u64,
///     idempotency_key: String,
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> agentgraph_llm::Result<()> {
/// let pay = FnTool::new("pay", "Pays.", async |payment: Payment| {
///     Ok::<_, ToolError>(format!("paid {} under {}", payment.cents, payment.idempotency_key.len()))
/// });
/// let call = ToolCall::detached("call-1", "pay").with_input(json!({"cents": 5}));
/// let output = IdempotencyKeys::new(["pay"]).wrap_tool(&call, NextTool::of(pay)?).await.unwrap();
/// assert_eq!(output, ToolOutput::text("paid 5 under 32"));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct IdempotencyKeys {
    tools: BTreeSet<String>,
    argument: String,
}

impl IdempotencyKeys {
    /// Keys for these tools, in the argument `idempotency_key`.
    pub fn new<T: Into<String>>(tools: impl IntoIterator<Item = T>) -> Self {
        let tools = tools.into_iter().map(Into::into).collect();
        IdempotencyKeys { tools, argument: "idempotency_key".to_owned() }
    }

    /// Sets the name of the argument.
    pub fn argument(mut self, name: impl Into<String>) -> Self {
        self.argument = name.into();
        self
    }

    fn hide(&self, spec: &mut ToolSpec) {
        if let Some(properties) = spec.input_schema.get_mut("properties").and_then(Value::as_object_mut) {
            properties.remove(&self.argument);
        }
        if let Some(required) = spec.input_schema.get_mut("required").and_then(Value::as_array_mut) {
            required.retain(|name| name.as_str() != Some(&self.argument));
        }
    }
}

#[async_trait]
impl Middleware for IdempotencyKeys {
    fn name(&self) -> &str {
        "idempotency_keys"
    }

    fn hooks(&self) -> Hooks {
        Hooks::NONE
    }

    async fn wrap_model(&self, mut request: ModelRequest, next: NextModel<'_>) -> Result<ChatStream> {
        let with_key = request.request.tools.iter_mut().filter(|spec| self.tools.contains(&spec.name));
        with_key.for_each(|spec| self.hide(spec));
        next.run(request).await
    }

    async fn wrap_tool(&self, call: &ToolCall, next: NextTool<'_>) -> Result<ToolOutput, ToolError> {
        if !self.tools.contains(call.name()) {
            return next.run(call).await;
        }
        let mut input = Object::parse(call.input().get()).map_err(ToolError::invalid_arguments)?;
        // The other arguments stay as the model wrote them.
        while input.take(&self.argument).is_some() {}
        input.set(&self.argument, RawJson::string(&idempotency_key(call)));
        next.run(&call.clone().with_input(input.to_json())).await
    }
}

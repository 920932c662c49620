//! A tool that is an async closure.

use std::any::Any;
use std::fmt;
use std::future::Future;
use std::sync::Arc;

use async_trait::async_trait;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use agentgraph::State;

use super::{StateType, Tool, ToolCall, ToolError, ToolOutput, ToolSpec};
use crate::json::RawJson;

type Call = dyn Fn(&RawJson, &ToolCall) -> BoxFuture<'static, Result<ToolOutput, ToolError>> + Send + Sync;

/// A tool over an async closure. The type of its argument gives the schema, and arguments of another shape
/// are returned to the model as an error. Cheap to clone.
///
/// ```
/// use agentgraph_llm::prelude::*;
/// use schemars::JsonSchema;
/// use serde::Deserialize;
///
/// #[derive(Deserialize, JsonSchema)]
/// struct Sum {
///     a: i64,
///     b: i64,
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let add = FnTool::new("add", "Adds two numbers.", async |sum: Sum| {
///     let total = sum.a.checked_add(sum.b).ok_or(ToolError::failed("the sum is too large"))?;
///     Ok::<_, ToolError>(total.to_string())
/// });
///
/// let call = ToolCall::detached("call-1", "add");
/// let input = RawJson::parse_text(r#"{"a": 2, "b": 3}"#)?;
/// assert_eq!(add.call(&input, &call).await.unwrap(), ToolOutput::text("5"));
///
/// let input = RawJson::parse_text(r#"{"a": "two"}"#)?;
/// assert!(matches!(add.call(&input, &call).await, Err(ToolError::InvalidArguments(_))));
/// # Ok(())
/// # }
/// ```
///
/// A closure that uses outer values clones them for each call, because calls may run concurrently:
///
/// ```
/// use agentgraph_llm::prelude::*;
/// use std::sync::Arc;
///
/// # #[derive(serde::Deserialize, schemars::JsonSchema)]
/// # struct Nothing {}
/// let notes = Arc::new(vec!["buy milk"]);
/// let count = FnTool::new("count_notes", "How many notes there are.", move |_: Nothing| {
///     let notes = Arc::clone(&notes);
///     async move { Ok::<_, ToolError>(notes.len().to_string()) }
/// });
/// ```
#[derive(Clone)]
pub struct FnTool {
    spec: ToolSpec,
    state: Option<StateType>,
    call: Arc<Call>,
}

impl FnTool {
    /// A tool with a name and a description for the model.
    pub fn new<Args, F, Fut, Output, E>(
        name: impl Into<String>,
        description: impl Into<String>,
        function: F,
    ) -> Self
    where
        Args: DeserializeOwned + JsonSchema + 'static,
        F: Fn(Args) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Output, E>> + Send + 'static,
        Output: Into<ToolOutput>,
        E: Into<ToolError>,
    {
        FnTool::with_spec(ToolSpec::of::<Args>(name, description), function)
    }

    /// A tool with an explicit schema, for arguments of type [`RawJson`] or [`serde_json::Value`], or for a
    /// schema that says more than the type.
    pub fn with_spec<Args, F, Fut, Output, E>(spec: ToolSpec, function: F) -> Self
    where
        Args: DeserializeOwned + 'static,
        F: Fn(Args) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Output, E>> + Send + 'static,
        Output: Into<ToolOutput>,
        E: Into<ToolError>,
    {
        FnTool::over(spec, move |args, _: &ToolCall| function(args))
    }

    /// A tool whose closure also gets the [`ToolCall`]: its id, the context of the node, and the state. None
    /// of it is in the schema, so a model cannot forge it.
    ///
    /// ```
    /// use agentgraph_llm::prelude::*;
    ///
    /// #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// struct Payment {
    ///     euros: u32,
    /// }
    ///
    /// let pay = FnTool::with_call("pay", "Pays.", async |payment: Payment, call: ToolCall| {
    ///     let question = format!("pay {} euros?", payment.euros);
    ///     let yes: bool = call.ctx()?.interrupt_as(call.id(), question)?;
    ///     Ok::<_, ToolError>(if yes { "paid" } else { "not paid: a person said no" })
    /// });
    /// # let _ = pay;
    /// ```
    pub fn with_call<Args, F, Fut, Output, E>(
        name: impl Into<String>,
        description: impl Into<String>,
        function: F,
    ) -> Self
    where
        Args: DeserializeOwned + JsonSchema + 'static,
        F: Fn(Args, ToolCall) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Output, E>> + Send + 'static,
        Output: Into<ToolOutput>,
        E: Into<ToolError>,
    {
        let spec = ToolSpec::of::<Args>(name, description);
        FnTool::over(spec, move |args, call: &ToolCall| function(args, call.clone()))
    }

    /// Declares that the tool reads or writes the state `S`. Building a graph over another state then fails.
    pub fn for_state<S: State>(mut self) -> Self {
        self.state = Some(StateType::of::<S>());
        self
    }

    fn over<Args, F, Fut, Output, E>(spec: ToolSpec, function: F) -> Self
    where
        Args: DeserializeOwned + 'static,
        F: Fn(Args, &ToolCall) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Output, E>> + Send + 'static,
        Output: Into<ToolOutput>,
        E: Into<ToolError>,
    {
        let call = move |input: &RawJson, call: &ToolCall| -> BoxFuture<'static, _> {
            match read::<Args>(input) {
                Ok(args) => function(args, call).map(|done| done.map(Into::into).map_err(Into::into)).boxed(),
                Err(error) => futures_util::future::ready(Err(ToolError::invalid_arguments(error))).boxed(),
            }
        };
        FnTool { spec, state: None, call: Arc::new(call) }
    }
}

/// The arguments as a type. A `RawJson` is their text, while as a part of a type it reads a string.
fn read<Args: DeserializeOwned + 'static>(input: &RawJson) -> Result<Args, serde_json::Error> {
    let mut raw = Some(input.clone());
    let same: &mut dyn Any = &mut raw;
    match same.downcast_mut::<Option<Args>>().and_then(Option::take) {
        Some(args) => Ok(args),
        None => input.parse(),
    }
}

#[async_trait]
impl Tool for FnTool {
    fn spec(&self) -> ToolSpec {
        self.spec.clone()
    }

    fn state(&self) -> Option<StateType> {
        self.state
    }

    async fn call(&self, input: &RawJson, call: &ToolCall) -> Result<ToolOutput, ToolError> {
        (self.call)(input, call).await
    }
}

impl fmt::Debug for FnTool {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("FnTool").field("spec", &self.spec).finish_non_exhaustive()
    }
}

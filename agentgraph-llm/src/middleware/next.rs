//! The rest of the chain that a wrap calls.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use super::bill::{BilledModel, OpenBill};
use super::{Middleware, ModelRequest};
use crate::error::Result;
use crate::execution::Toolbox;
use crate::model::{ChatModel, ChatStream};
use crate::tool::{Tool, ToolCall, ToolError, ToolOutput};

/// The middleware of an agent, the outermost first.
pub(crate) type Chain = Arc<[Arc<dyn Middleware>]>;

/// The rest of the chain round a request: the further middleware, then the model. It may be run several
/// times, by its clones.
#[derive(Clone)]
pub struct NextModel<'a> {
    chain: Chain,
    at: usize,
    bill: OpenBill,
    of: PhantomData<&'a ()>,
}

impl NextModel<'_> {
    /// The model without further middleware. For tests.
    pub fn direct() -> Self {
        NextModel::first(&Arc::from([]), OpenBill::default())
    }

    pub(crate) fn first(chain: &Chain, bill: OpenBill) -> Self {
        NextModel { chain: Arc::clone(chain), at: 0, bill, of: PhantomData }
    }

    /// Makes the request.
    ///
    /// # Errors
    /// Those of the further middleware and of the model. Errors after the start of the stream are its last
    /// item.
    // An `async fn` has room for its arguments twice, and a request is large.
    #[allow(clippy::manual_async_fn)]
    pub fn run(self, request: ModelRequest) -> impl Future<Output = Result<ChatStream>> + Send {
        async move {
            let Some(middleware) = self.chain.get(self.at).cloned() else {
                let ModelRequest { model, request, .. } = request;
                let begun = (*model).stream(request).await;
                return self.bill.watch(model, begun);
            };
            let next = NextModel { at: self.at + 1, ..self };
            middleware.wrap_model(request, next).await
        }
    }

    /// Another model that a wrap asks beside the agent's, such as one that chooses tools. Its answers are on
    /// the agent's bill, so a [`Budget`](super::Budget) counts them.
    pub fn billed(&self, model: &Arc<dyn ChatModel>) -> BilledModel {
        self.bill.model(model)
    }

    /// The same for a stream that outlives the wrap, such as one that asks again.
    pub fn into_owned(self) -> NextModel<'static> {
        NextModel { chain: self.chain, at: self.at, bill: self.bill, of: PhantomData }
    }
}

impl fmt::Debug for NextModel<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("NextModel").field("further", &names(&self.chain, self.at)).finish()
    }
}

/// The rest of the chain round a tool call: the further middleware, then the tool. It may be run several
/// times, by its clones.
#[derive(Clone)]
pub struct NextTool<'a> {
    chain: Chain,
    at: usize,
    tools: Arc<Toolbox<'static>>,
    of: PhantomData<&'a ()>,
}

impl NextTool<'_> {
    /// This tool without further middleware. For tests.
    ///
    /// # Errors
    /// `E_LLM_BAD_TOOL` if its name or its schema cannot be sent.
    pub fn of(tool: impl Tool + 'static) -> Result<Self> {
        let tool: Arc<dyn Tool> = Arc::new(tool);
        Ok(NextTool::first(&Arc::from([]), &Arc::new(Toolbox::new([tool])?)))
    }

    pub(crate) fn first(chain: &Chain, tools: &Arc<Toolbox<'static>>) -> Self {
        NextTool { chain: Arc::clone(chain), at: 0, tools: Arc::clone(tools), of: PhantomData }
    }

    /// Makes the call, with the arguments in it.
    ///
    /// # Errors
    /// Those of the further middleware and of the tool. A call to an unknown tool is
    /// [`ToolError::Failed`], arguments that do not fit are [`ToolError::InvalidArguments`].
    pub async fn run(self, call: &ToolCall) -> Result<ToolOutput, ToolError> {
        match self.chain.get(self.at).cloned() {
            None => self.tools.call(call).await,
            Some(middleware) => middleware.wrap_tool(call, NextTool { at: self.at + 1, ..self }).await,
        }
    }

    /// The same without a borrow.
    pub fn into_owned(self) -> NextTool<'static> {
        NextTool { chain: self.chain, at: self.at, tools: self.tools, of: PhantomData }
    }
}

impl fmt::Debug for NextTool<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("NextTool").field("further", &names(&self.chain, self.at)).finish_non_exhaustive()
    }
}

fn names(chain: &Chain, at: usize) -> Vec<&str> {
    chain.iter().skip(at).map(|middleware| middleware.name()).collect()
}

//! What the SDK of Restate hides from its users or keeps for its macros: the context that all of its contexts
//! wrap, what an invocation waits for, and a service whose name is known only at run time.
//!
//! Nothing else in this crate names it, so that a release which changes it changes this file.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use restate_sdk::context::macro_support::SealedDurableFuture;
use restate_sdk::context::{CallFuture, DurableFuture, RequestTarget, RunClosure, RunFuture};
use restate_sdk::discovery;
use restate_sdk::endpoint::{ContextInternal, Error};
use restate_sdk::errors::{HandlerResult, TerminalError};
use restate_sdk::serde::{Deserialize, Serialize};
use restate_sdk::service::macro_support::{ServiceBoxFuture, service_definition};
use restate_sdk::service::{Service, ServiceDefinition};
use restate_sdk_shared_core::NotificationHandle;

/// Which invocation this is, of which key, and what the caller sent beside the input.
pub(super) use restate_sdk::endpoint::InputMetadata as About;
/// An answer, whose polls run the handler.
pub(super) use restate_sdk::endpoint::ResponseBody;

/// What an invocation can wait for.
pub(super) type Handle = NotificationHandle;

/// The journal of an invocation. What it is asked for is journaled in the order of the asking.
pub(super) struct Journal(ContextInternal);

impl Journal {
    pub(super) async fn get<T: Deserialize>(&self, key: &str) -> Result<Option<T>, TerminalError> {
        self.0.get(key).await
    }

    pub(super) async fn keys(&self) -> Result<Vec<String>, TerminalError> {
        self.0.get_keys().await
    }

    pub(super) fn set(&self, key: &str, value: impl Serialize) {
        self.0.set(key, value);
    }

    pub(super) fn clear(&self, key: &str) {
        self.0.clear(key);
    }

    pub(super) fn clear_all(&self) {
        self.0.clear_all();
    }

    /// A step: `step` runs once, and its result is journaled.
    pub(super) fn run<'a, Step, Fut, Out>(
        &'a self,
        step: Step,
    ) -> impl RunFuture<Result<Out, TerminalError>> + Send + 'a
    where
        Step: RunClosure<Fut = Fut, Output = Out> + Send + 'a,
        Fut: Future<Output = HandlerResult<Out>> + Send + 'a,
        Out: Serialize + Deserialize + 'static,
    {
        self.0.run(step)
    }

    pub(super) fn call(
        &self,
        target: RequestTarget,
        request: Bytes,
    ) -> impl CallFuture<Response = Bytes> + Send {
        self.0.call(target, None, None, None, Vec::new(), request)
    }

    /// Calls a service after this time, and does not wait for its answer.
    pub(super) fn send(&self, target: RequestTarget, request: Bytes, delay: Duration) {
        self.0.send(target, None, None, None, Vec::new(), request, Some(delay));
    }

    pub(super) fn cancel(&self, invocation: &str) {
        self.0.cancel_invocation(invocation);
    }

    /// The end of another invocation, or an error if it is not known any more.
    pub(super) fn attach(
        &self,
        invocation: String,
    ) -> impl DurableFuture<Output = Result<Bytes, TerminalError>> + Send {
        self.0.attach_invocation(invocation)
    }

    pub(super) fn sleep(
        &self,
        time: Duration,
    ) -> impl DurableFuture<Output = Result<(), TerminalError>> + Send {
        self.0.sleep(time)
    }

    pub(super) fn awakeable(
        &self,
    ) -> (String, impl DurableFuture<Output = Result<Bytes, TerminalError>> + Send) {
        self.0.awakeable()
    }

    pub(super) fn resolve_awakeable(&self, id: &str, value: Bytes) {
        self.0.resolve_awakeable(id, value);
    }

    /// A signal to this invocation.
    pub(super) fn signal(&self, name: &str) -> Handle {
        self.0.signal::<()>(name).handle()
    }

    /// Sends a signal to another invocation.
    pub(super) fn send_signal(&self, invocation: &str, name: &str) {
        self.0.resolve_signal(invocation, name, ());
    }

    /// Which of these is over first. A cancellation of the invocation is an error.
    pub(super) async fn select(&self, handles: Vec<Handle>) -> Result<usize, TerminalError> {
        self.0.select(handles).await
    }
}

pub(super) fn handle_of(future: &impl DurableFuture) -> Handle {
    future.handle()
}

/// Whether the error says that this invocation was cancelled. The runtime says so once; later waits work.
pub(super) fn is_cancel(error: &TerminalError) -> bool {
    error.code() == 409 && error.message() == "cancelled"
}

/// Whether the error says that the called invocation was killed at the server.
pub(super) fn is_kill(error: &TerminalError) -> bool {
    error.code() == 409 && error.message() == "killed"
}

/// The handlers of a service.
pub(super) trait Handlers: Send + Sync + 'static {
    /// Runs the handler of this name; `None` if there is none.
    fn handle<'a>(
        &'a self,
        name: &str,
        journal: &'a Journal,
        about: &'a About,
        input: Bytes,
    ) -> Option<BoxFuture<'a, HandlerResult<Bytes>>>;
}

pub(super) fn service(handlers: impl Handlers, manifest: discovery::Service) -> ServiceDefinition {
    service_definition(Dispatcher(Arc::new(handlers)), manifest)
}

struct Dispatcher<H>(Arc<H>);

impl<H: Handlers> Service for Dispatcher<H> {
    type Future = ServiceBoxFuture;

    fn handle(&self, ctx: ContextInternal) -> ServiceBoxFuture {
        let handlers = Arc::clone(&self.0);
        Box::pin(async move {
            let (input, about) = ctx.input::<Bytes>().await;
            let journal = Journal(ctx.clone());
            let Some(work) = handlers.handle(ctx.handler_name(), &journal, &about, input) else {
                return Err(Error::unknown_handler(ctx.service_name(), ctx.handler_name()));
            };
            // A panic would end the connection's stream without a word to the server.
            let answer = AssertUnwindSafe(work).catch_unwind().await;
            let answer = answer.unwrap_or_else(|_| Err("the handler panicked: report this mistake".into()));
            ctx.handle_handler_result(answer);
            ctx.end();
            Ok(())
        })
    }
}

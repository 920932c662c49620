//! [`RunFuture`]: a call that is awaited.

use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_util::future::BoxFuture;

use crate::error::Error;
use crate::state::State;
use crate::typed::AnyState;
use crate::words::Outcome;
use agentgraph_checkpoint::shows;

/// The work of a call. It is boxed where the engine is compiled, so that nothing of it is compiled again
/// where the call is awaited.
pub(super) type AnyRun = BoxFuture<'static, Result<Outcome<AnyState>, Error>>;

/// The future of a [`RunBuilder`](crate::RunBuilder). Dropping it stops the run like a kill: what was stored
/// stays, and the next call continues from there.
#[must_use = "a run does nothing until it is awaited"]
pub struct RunFuture<S: State, O> {
    run: AnyRun,
    output: PhantomData<fn(S) -> O>,
}

impl<S: State, O> RunFuture<S, O> {
    pub(super) fn new(run: AnyRun) -> Self {
        RunFuture { run, output: PhantomData }
    }
}

impl<S: State, O: From<S>> Future for RunFuture<S, O> {
    type Output = Result<Outcome<O>, Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let typed = |outcome: Outcome<AnyState>| outcome.map(|state| O::from(state.into_state::<S>()));
        self.run.as_mut().poll(cx).map(|ended| ended.map(typed))
    }
}

shows!([S: State, O] RunFuture<S, O>: |_it| {});

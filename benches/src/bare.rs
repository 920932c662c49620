//! The floors: hand-written code for exactly the same work.
//!
//! A node is a boxed async call, as in every engine that gets its nodes at run time. It takes the values
//! that it needs from the state and returns a number, so it pays for no shared state, no update and no
//! error. A floor may be made faster, never slower.

use std::collections::HashMap;
use std::future::{Future, poll_fn};
use std::hint::black_box;
use std::pin::Pin;
use std::task::Poll;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;

use crate::states::{Counter, Fan};

pub(crate) type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;
type Node = Box<dyn Fn(&Counter) -> Boxed<u64> + Send + Sync>;
type Route = fn(&Counter) -> Option<&'static str>;
type Join = Box<dyn Fn(&Fan) -> Boxed<u64> + Send + Sync>;
pub(crate) type Branch = Box<dyn Fn(&Fan) -> Boxed<Vec<u64>> + Send + Sync>;

/// The node of every sequential floor: adds one.
fn add_one() -> Node {
    Box::new(|state| {
        let count = state.count;
        Box::pin(async move { black_box(count) + 1 })
    })
}

pub(crate) fn node_name(at: usize) -> String {
    format!("node_{at}")
}

/// A chain of nodes that are looked up by name: the obvious code without a graph.
pub(crate) struct Chain {
    nodes: HashMap<String, (Node, Option<String>)>,
    first: String,
}

impl Chain {
    pub(crate) fn new(length: usize) -> Self {
        let next = |at: usize| (at + 1 < length).then(|| node_name(at + 1));
        let nodes = (0..length).map(|at| (node_name(at), (add_one(), next(at))));
        Chain { nodes: nodes.collect(), first: node_name(0) }
    }

    pub(crate) async fn run(&self, mut state: Counter) -> Counter {
        let mut at = Some(self.first.as_str());
        while let Some((node, next)) = at.and_then(|name| self.nodes.get(name)) {
            state.count = node(&state).await;
            at = next.as_deref();
        }
        state
    }
}

/// The same chain by index, without names. Shown for comparison; no budget refers to it.
pub(crate) struct IndexedChain {
    nodes: Vec<Node>,
}

impl IndexedChain {
    pub(crate) fn new(length: usize) -> Self {
        IndexedChain { nodes: (0..length).map(|_| add_one()).collect() }
    }

    pub(crate) async fn run(&self, mut state: Counter) -> Counter {
        for node in &self.nodes {
            state.count = node(&state).await;
        }
        state
    }
}

/// A loop in which a function names the next node.
pub(crate) struct Routed {
    nodes: HashMap<String, (Node, Route)>,
    first: &'static str,
}

impl Routed {
    pub(crate) fn new(name: &'static str, route: Route) -> Self {
        Routed { nodes: HashMap::from([(name.to_owned(), (add_one(), route))]), first: name }
    }

    pub(crate) async fn run(&self, mut state: Counter) -> Counter {
        let mut at = Some(self.first);
        while let Some((node, route)) = at.and_then(|name| self.nodes.get(name)) {
            state.count = node(&state).await;
            at = route(&state);
        }
        state
    }

    /// Like [`run`](Self::run), and keeps a copy of the state after every step: the simplest checkpoint.
    pub(crate) async fn run_keeping(&self, mut state: Counter, kept: &mut Vec<Counter>) -> Counter {
        let mut at = Some(self.first);
        while let Some((node, route)) = at.and_then(|name| self.nodes.get(name)) {
            state.count = node(&state).await;
            kept.push(state.clone());
            at = route(&state);
        }
        state
    }
}

/// Branches that start together, and a join that runs when all are done.
pub(crate) struct FanOut {
    branches: Vec<Branch>,
    join: Join,
}

impl FanOut {
    pub(crate) fn new(branches: Vec<Branch>) -> Self {
        FanOut {
            branches,
            join: Box::new(|state| {
                let count = state.items.len() as u64;
                Box::pin(async move { black_box(count) })
            }),
        }
    }

    /// Polls each branch once in place. The branches that are not ready then wait together, each with
    /// its own waker.
    pub(crate) async fn run(&self, mut state: Fan) -> Fan {
        let mut done: Vec<Option<Vec<u64>>> = Vec::with_capacity(self.branches.len());
        let mut pending = Vec::new();
        poll_fn(|cx| {
            for (at, branch) in self.branches.iter().enumerate() {
                let mut future = branch(&state);
                match future.as_mut().poll(cx) {
                    Poll::Ready(items) => done.push(Some(items)),
                    Poll::Pending => {
                        done.push(None);
                        pending.push(async move { (at, future.await) });
                    }
                }
            }
            Poll::Ready(())
        })
        .await;
        if !pending.is_empty() {
            let mut pending: FuturesUnordered<_> = pending.into_iter().collect();
            while let Some((at, items)) = pending.next().await {
                done[at] = Some(items);
            }
        }
        for mut items in done.into_iter().flatten() {
            state.items.append(&mut items);
        }
        state.joined = (self.join)(&state).await;
        state
    }
}

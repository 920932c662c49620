//! The world that durable steps have an effect on, and the nodes that do them.

use std::future::Future;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use agentgraph::node::Node;
use agentgraph::prelude::*;
use agentgraph::{BoxError, Code};

use crate::common::poll::pending_for;
use crate::common::saver::NotingSaver;
use crate::common::words::{Words, text};

/// The effects of durable steps on the world outside, each checked against the store.
#[derive(Clone)]
pub struct World {
    pub saver: NotingSaver,
    effects: Arc<Mutex<Vec<String>>>,
}

impl World {
    pub fn new() -> Self {
        World { saver: NotingSaver::memory(), effects: Arc::default() }
    }

    /// Does a piece of work, whose result is its mark.
    pub async fn work(&self, mark: String, polls: u32) -> Result<String> {
        pending_for(polls).await;
        assert!(!self.saver.has_stored_marked(&mark), "{mark} is done again although its result is stored");
        self.effects.lock().unwrap().push(mark.clone());
        pending_for(polls).await;
        Ok(mark)
    }

    pub fn effects(&self) -> Vec<String> {
        self.effects.lock().unwrap().clone()
    }

    /// The number of times that a piece of work was done.
    pub fn count(&self, mark: &str) -> usize {
        self.effects().iter().filter(|effect| *effect == mark).count()
    }

    /// A node that does `steps` pieces of work, one after the other, and then asks.
    pub fn asks(&self, steps: u32) -> Node<Words> {
        let world = self.clone();
        let node = move |ctx: Ctx| {
            let world = world.clone();
            async move {
                let marks = world.steps(&ctx, steps).await?;
                let _: bool = ctx.interrupt("go on?")?;
                Ok::<_, BoxError>(Words::update().seen(marks))
            }
        };
        node.into_node()
    }

    /// A node that does `steps` pieces of work, one after the other.
    pub fn works(&self, steps: u32) -> Node<Words> {
        let world = self.clone();
        let node = move |ctx: Ctx| {
            let world = world.clone();
            async move { Ok::<_, BoxError>(Words::update().seen(world.steps(&ctx, steps).await?)) }
        };
        node.into_node()
    }

    /// A node that does a piece of work and then fails as long as the switch is off.
    pub fn fails(&self, is_mended: &Arc<AtomicU32>) -> Node<Words> {
        let world = self.clone();
        let is_mended = Arc::clone(is_mended);
        let node = move |ctx: Ctx| {
            let world = world.clone();
            let is_mended = Arc::clone(&is_mended);
            async move {
                let marks = world.steps(&ctx, 1).await?;
                match is_mended.load(Ordering::SeqCst) {
                    0 => Err(BoxError::from("not yet")),
                    _ => Ok(Words::update().seen(marks)),
                }
            }
        };
        node.into_node()
    }

    pub async fn steps(&self, ctx: &Ctx, steps: u32) -> Result<Vec<String>> {
        let mut marks = Vec::new();
        for step in 0..steps {
            let mark = format!("<{}.{step}>", ctx.node());
            marks.push(ctx.once("work", self.work(mark, 1)).await?);
        }
        Ok(marks)
    }

    pub fn compile(&self, graph: StateGraph<Words>) -> CompiledGraph<Words> {
        graph.compile().unwrap().checkpointer(self.saver.clone())
    }
}

/// A node that returns the words of a function.
pub fn node<F, Fut>(function: F) -> Node<Words>
where
    F: Fn(Ctx) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Vec<String>>> + Send + 'static,
{
    let function = Arc::new(function);
    let node = move |ctx: Ctx| {
        let function = Arc::clone(&function);
        async move { Ok::<_, BoxError>(Words::update().seen(function(ctx).await?)) }
    };
    node.into_node()
}

/// Runs a node. Returns its words, or the code of its error with the text.
pub async fn run_node(node: Node<Words>) -> std::result::Result<String, (Code, String)> {
    let graph = StateGraph::new().node("a", node).edge(START, "a").compile().unwrap();
    let graph = graph.checkpointer(MemorySaver::new());
    match graph.invoke(Words::update()).thread("t").await {
        Ok(outcome) => Ok(text(outcome.output())),
        Err(error) => Err((error.code(), error.to_string())),
    }
}

pub async fn value(value: &'static str) -> Result<String> {
    pending_for(1).await;
    Ok(value.to_owned())
}

/// A world without a check, for runs that do the work again rightly.
pub async fn count_of(calls: &Arc<AtomicU32>) -> Result<u32> {
    Ok(calls.fetch_add(1, Ordering::SeqCst))
}

//! Dependency graphs: each node runs once in a pass, as soon as its dependencies are done.
//!
//! [`DependencyGraph`] is the builder, [`CompiledDependencyGraph`](crate::CompiledDependencyGraph) the graph
//! that runs. The [`Outputs`] of its nodes are its state, and a pass is one superstep, so checkpoints,
//! streams, interrupts and limits are those of state graphs.

pub(crate) mod base;
pub(crate) mod compile;
pub(crate) mod cycle;
pub(crate) mod deps;
pub(crate) mod draw;
pub(crate) mod edits;
mod given;
pub(crate) mod inline;
pub(crate) mod layer;
pub(crate) mod node;
#[cfg(feature = "testing")]
mod observed;
pub(crate) mod outputs;
pub(crate) mod plan;
mod ready;
pub(crate) mod wiring;

pub use base::Join;
pub use deps::Deps;
pub use edits::{BeforePass, EditMark, PassEdits};
pub use given::{Given, NoInput};
pub use node::{
    DependencyNode, IntoDependencyNode, IntoOutput, IsAsync, IsConstant, IsDependencyNode, IsSync,
};
pub use outputs::{NotRun, NotRunReason, Output, OutputTable, Outputs, OutputsUpdate, PassInput};

use std::any::TypeId;
use std::panic::Location;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::context::ValuesByType;
use crate::error::BoxError;
use crate::graph::node_names::NodeNames;
use crate::policy::{Policies, RetryPolicy, Siblings};
use crate::session::SessionKind;
use wiring::Template;

type CodePlace = &'static Location<'static>;

/// A builder of a dependency graph. `O` is the output of a node, `S` the input of a pass.
///
/// In a *pass* every node runs once, when all its dependencies are done, and receives their outputs. The
/// order in which ready nodes start is fixed. Nodes without dependencies enter the queue first, in order of
/// declaration. Any other node enters when its first dependency is done; the nodes that one node lets in
/// enter in the order of its edges. The first ready node in the queue runs next. With
/// [`max_concurrency(1)`](crate::RunBuilder::max_concurrency) this is the order in which nodes run; otherwise
/// they run in parallel.
///
/// ```
/// use agentgraph::prelude::*;
///
/// async fn research(deps: Deps<'_, String>) -> Result<String> {
///     Ok(format!("facts about {}", deps["topic"]))
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<()> {
/// let graph = DependencyGraph::<String>::new()
///     .node("topic", || "tea".to_owned())
///     .node("research", research)
///     .node("title", |deps: Deps<String>| deps["topic"].to_uppercase())
///     .node("article", |deps: Deps<String>| format!("{}: {}", deps[0], deps[1]))
///     .edge("topic", "research")
///     .edge("topic", "title")
///     .edge("title", "article")
///     .edge("research", "article")
///     .compile()?;
/// let outputs = graph.invoke(()).finish().await?;
/// assert_eq!(outputs["article"], "TEA: facts about tea");
/// # Ok(())
/// # }
/// ```
#[must_use = "a builder does nothing until `compile()`"]
pub struct DependencyGraph<O, S = ()> {
    /// In the order in which they are first used: an edge may name a node that is declared later.
    names: NodeNames,
    nodes: Vec<DeclaredNode<O, S>>,
    edges: Vec<DeclaredEdge>,
    /// Order-only edges, each with the number of edges that were added before it.
    orders: Vec<(DeclaredEdge, usize)>,
    /// The edges, by their places, that come before the earlier dependencies of their nodes.
    prepended: Vec<u32>,
    templates: Vec<(Arc<str>, Template<O, S>, CodePlace)>,
    deps: ValuesByType,
    sessions: Vec<SessionKind>,
    siblings: Siblings,
    policies: Policies,
    must_be_complete: bool,
}

struct DeclaredNode<O, S> {
    name: u32,
    node: DependencyNode<O, S>,
    place: CodePlace,
}

#[derive(Clone, Copy)]
struct DeclaredEdge {
    from: u32,
    to: u32,
    place: CodePlace,
}

impl<O> DependencyGraph<O> {
    /// An empty graph whose passes have no input.
    pub fn new() -> Self {
        Self::with_input()
    }
}

impl<O> Default for DependencyGraph<O> {
    fn default() -> Self {
        Self::new()
    }
}

impl<O, S> DependencyGraph<O, S> {
    /// An empty graph whose passes have an input `S`, which every node can read with [`Given<S>`](Given).
    ///
    /// ```
    /// use agentgraph::prelude::*;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// async fn greet(name: Given<String>) -> String {
    ///     format!("hello, {}", *name)
    /// }
    /// let graph = DependencyGraph::<String, String>::with_input().node("greet", greet).compile()?;
    /// assert_eq!(graph.invoke("you".to_owned()).finish().await?["greet"], "hello, you");
    /// # Ok(())
    /// # }
    /// ```
    pub fn with_input() -> Self {
        DependencyGraph {
            names: NodeNames::default(),
            nodes: Vec::new(),
            edges: Vec::new(),
            orders: Vec::new(),
            prepended: Vec::new(),
            templates: Vec::new(),
            deps: ValuesByType::default(),
            sessions: Vec::new(),
            siblings: Siblings::default(),
            policies: Policies::default(),
            must_be_complete: false,
        }
    }

    /// Adds a node: a function, sync or async, or a [`DependencyNode`] with settings.
    #[track_caller]
    pub fn node<M>(mut self, name: impl AsRef<str>, node: impl IntoDependencyNode<O, S, M>) -> Self {
        let name = self.name(name.as_ref());
        self.nodes.push(DeclaredNode { name, node: node.into_node(), place: Location::caller() });
        self
    }

    /// Adds an edge: `to` depends on `from`, after its earlier dependencies. The nodes may be declared later.
    #[track_caller]
    pub fn edge(mut self, from: impl AsRef<str>, to: impl AsRef<str>) -> Self {
        let edge = self.pair(from.as_ref(), to.as_ref(), Location::caller());
        self.edges.push(edge);
        self
    }

    /// Adds an edge like [`edge`](DependencyGraph::edge): `to` depends on `from`, *before* its earlier
    /// dependencies.
    ///
    /// ```
    /// use agentgraph::prelude::*;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// let graph = DependencyGraph::<String>::new()
    ///     .node("facts", || "facts".to_owned())
    ///     .node("rules", || "rules".to_owned())
    ///     .node("prompt", |deps: Deps<String>| deps.names().collect::<Vec<_>>().join(", "))
    ///     .edge("facts", "prompt")
    ///     .prepend_edge("rules", "prompt")
    ///     .compile()?;
    /// assert_eq!(graph.invoke(()).finish().await?["prompt"], "rules, facts");
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn prepend_edge(mut self, from: impl AsRef<str>, to: impl AsRef<str>) -> Self {
        let edge = self.pair(from.as_ref(), to.as_ref(), Location::caller());
        self.prepended.push(self.edges.len() as u32);
        self.edges.push(edge);
        self
    }

    /// Adds an order-only edge: `to` runs after `from`, without receiving its output. If `from` will not run
    /// in a pass, `to` does not wait for it.
    #[track_caller]
    pub fn order(mut self, from: impl AsRef<str>, to: impl AsRef<str>) -> Self {
        let edge = self.pair(from.as_ref(), to.as_ref(), Location::caller());
        self.orders.push((edge, self.edges.len()));
        self
    }

    fn pair(&mut self, from: &str, to: &str, place: CodePlace) -> DeclaredEdge {
        DeclaredEdge { from: self.name(from), to: self.name(to), place }
    }

    /// The id of a name, which may be new.
    fn name(&mut self, name: &str) -> u32 {
        self.names.id(name).unwrap_or_else(|| {
            self.names.push(name.into());
            self.names.len() as u32 - 1
        })
    }

    /// Adds a template: a function that makes nodes during a pass, from the arguments of an edit. A pass with
    /// a checkpointer adds its temporary nodes from templates, since a function cannot be stored.
    ///
    /// ```
    /// use agentgraph::prelude::*;
    /// use serde_json::json;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// let graph = DependencyGraph::<String>::new()
    ///     .template("say", |words: &serde_json::Value| {
    ///         let words = words.as_str().ok_or("a text is needed")?.to_owned();
    ///         Ok(DependencyNode::of(move |_: Deps<String>| words.clone()))
    ///     })
    ///     .node("begin", |_: Deps<String>, edits: PassEdits<String>| -> Result<String> {
    ///         edits.add_node("say#1", "say", json!("hello"))?;
    ///         Ok(String::new())
    ///     })
    ///     .compile()?
    ///     .checkpointer(MemorySaver::new());
    /// assert_eq!(graph.invoke(()).thread("t").finish().await?["say#1"], "hello");
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn template(
        mut self,
        name: impl AsRef<str>,
        make: impl Fn(&Value) -> Result<DependencyNode<O, S>, BoxError> + Send + Sync + 'static,
    ) -> Self {
        self.templates.push((name.as_ref().into(), Arc::new(make), Location::caller()));
        self
    }

    /// Adds a dependency that nodes take with [`Dep<T>`](crate::Dep). One per type; the last one counts.
    pub fn dep<T: Send + Sync + 'static>(mut self, dependency: T) -> Self {
        self.deps.insert(dependency);
        self
    }

    /// Adds a session: a cell of every run that nodes take with [`Session<T>`](crate::Session); see
    /// [`StateGraph::session`](crate::StateGraph::session).
    pub fn session<T>(mut self, name: impl AsRef<str>) -> Self
    where
        T: Default + Serialize + DeserializeOwned + Send + 'static,
    {
        self.sessions.retain(|kind| kind.id != TypeId::of::<T>());
        self.sessions.push(SessionKind::of::<T>(name.as_ref().to_owned()));
        self
    }

    /// Sets the retry policy of nodes that have none of their own.
    pub fn default_retry(mut self, policy: RetryPolicy) -> Self {
        self.policies.retry.push(policy);
        self
    }

    /// Sets the timeout of nodes that have none of their own. Zero means none.
    pub fn default_timeout(mut self, limit: Duration) -> Self {
        self.policies.timeouts.run = Some(limit).filter(|limit| !limit.is_zero());
        self
    }

    /// Sets the treatment of the other running nodes when one fails; they are drained by default.
    pub fn siblings(mut self, policy: Siblings) -> Self {
        self.siblings = policy;
        self
    }

    /// Makes a pass fail with [`Code::NotRun`](crate::Code::NotRun) if it ends while a node waits for one
    /// that will not run. By default such a pass is finished, and [`Outputs::not_run`] lists these nodes.
    /// Pruned nodes are no failure.
    pub fn fail_on_waiting_nodes(mut self) -> Self {
        self.must_be_complete = true;
        self
    }
}

//! Drawings of graphs, and of what a checkpoint knows about its run.

use std::sync::Arc;

use crate::dependency::draw::topology_of;
use crate::dependency::{Output, PassInput};
use crate::engine::driver::Driver;
use crate::graph::run_graph::RunGraph;
use crate::graph::{Drawing, GraphCore, GraphTopology};
use crate::record::header::Header;
use crate::run::attached::Attached;
use crate::run::view::Checkpoint;
use crate::run::{CompiledDependencyGraph, CompiledGraph};
use crate::state::State;
use crate::typed::AnyState;
use crate::words::{GraphEdit, nodes_of};

/// # Drawing (feature `draw`)
impl<S: State> CompiledGraph<S> {
    /// Returns the graph as an SVG document with subgraphs as single nodes: [`Drawing::svg`] describes it.
    ///
    /// ```
    /// # use agentgraph::prelude::*;
    /// # #[derive(State, Clone, Debug, Default)]
    /// # struct Text {}
    /// # async fn check() {}
    /// # fn main() -> Result<()> {
    /// let graph = StateGraph::<Text>::new().node("check", check).edge(START, "check").compile()?;
    /// let svg = graph.svg();
    /// assert!(svg.contains(r#"<g class="node" data-node="check">"#));
    /// assert!(svg.contains(r#"<g class="edge" data-from="__start__" data-to="check">"#));
    /// # Ok(())
    /// # }
    /// ```
    pub fn svg(&self) -> String {
        self.drawing().svg()
    }

    /// Returns the graph as text for a terminal or a log, with subgraphs as single nodes.
    ///
    /// ```
    /// # use agentgraph::prelude::*;
    /// # #[derive(State, Clone, Debug, Default)]
    /// # struct Text {}
    /// # async fn node() {}
    /// # fn main() -> Result<()> {
    /// let graph = StateGraph::<Text>::new().node("check", node).edge(START, "check").compile()?;
    /// let drawing = "\
    /// ╭───────╮
    /// │ START │
    /// ╰───┬───╯
    ///     │
    ///     ▼
    /// ┌───────┐
    /// │ check │
    /// └───────┘
    /// ";
    /// assert_eq!(graph.text(), drawing);
    /// # Ok(())
    /// # }
    /// ```
    pub fn text(&self) -> String {
        self.drawing().text()
    }

    /// Returns a drawing of the graph, to choose the subgraphs that are drawn with their nodes.
    pub fn drawing(&self) -> Drawing {
        Drawing::of(self.topology(), Some(Arc::clone(&self.any.core)))
    }
}

/// # Drawing (feature `draw`)
impl<O: Output, S: PassInput> CompiledDependencyGraph<O, S> {
    /// Returns the graph as an SVG document: [`Drawing::svg`] describes it.
    pub fn svg(&self) -> String {
        self.drawing().svg()
    }

    /// Returns the graph as text for a terminal or a log.
    pub fn text(&self) -> String {
        self.drawing().text()
    }

    /// Returns a drawing of the graph.
    pub fn drawing(&self) -> Drawing {
        Drawing::of(topology_of(&self.wiring, []), None)
    }
}

impl GraphTopology {
    /// Returns a drawing of this graph, in which temporary parts are dashed. Its subgraphs are not known here
    /// and stay single nodes.
    pub fn drawing(&self) -> Drawing {
        Drawing::of(self.clone(), None)
    }
}

/// What a checkpoint keeps to draw the graph of its run.
#[derive(Clone)]
pub(super) struct Drawn {
    core: Arc<GraphCore>,
    driver: Option<Arc<dyn Driver>>,
    /// The nodes whose results the checkpoint has or is about to have: those that are not to run next have
    /// finished.
    reached: Vec<String>,
    /// Of the graph, which may be a subgraph of another one.
    namespace: String,
}

impl Drawn {
    pub(super) fn of(graph: &Attached, namespace: &str, header: &Header, values: &AnyState) -> Self {
        let (core, driver) = (Arc::clone(&graph.core), graph.driver.clone());
        let reached = match &driver {
            Some(driver) => driver.finished(values),
            None => header.next.iter().map(|activation| activation.node.clone()).collect(),
        };
        Drawn { core, driver, reached, namespace: namespace.to_owned() }
    }

    pub(super) fn set_finished(&mut self, driver: &Arc<dyn Driver>, values: &AnyState) {
        self.reached = driver.finished(values);
    }

    fn topology(&self, edits: &[GraphEdit], skips: &[String]) -> GraphTopology {
        match &self.driver {
            Some(driver) => {
                let skip = GraphEdit::Skip { nodes: skips.to_vec() };
                let edits: Vec<GraphEdit> = edits.iter().cloned().chain([skip]).collect();
                Arc::clone(driver).topology(&edits)
            }
            // Edits of another version of the graph that do not fit this one are left out.
            None => GraphTopology::of(&RunGraph::edited(&self.core, edits, skips, &mut Vec::new())),
        }
    }
}

/// # Drawing (feature `draw`)
impl<S> Checkpoint<S> {
    /// Returns the graph of the run with what the checkpoint knows laid over it, as an SVG document. Each
    /// node has the last of these classes that fits: `done` if it has finished since the checkpoint or in
    /// this pass, `next`, `skipped` if its next turn is skipped, `failed`, `asking`. What happens in a
    /// subgraph is shown in its nodes if it is [expanded](Drawing::expand). Of a checkpoint made from a
    /// [`ThreadState`](crate::host::ThreadState), which has no graph, only the nodes that it names are drawn.
    ///
    /// ```
    /// # use agentgraph::prelude::*;
    /// # #[derive(State, Clone, Debug, Default)]
    /// # struct Trip { city: String }
    /// async fn book(ctx: Ctx) -> Result<()> {
    ///     let _: bool = ctx.interrupt("Book it?")?;
    ///     Ok(())
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// let graph = StateGraph::<Trip>::new().node("book", book).edge(START, "book").compile()?;
    /// let graph = graph.checkpointer(MemorySaver::new());
    /// graph.invoke(Trip::update()).thread("t-1").await?;
    /// let checkpoint = graph.state("t-1").await?.expect("the thread is there");
    /// assert!(checkpoint.svg().contains(r#"<g class="node asking" data-node="book">"#));
    /// # Ok(())
    /// # }
    /// ```
    pub fn svg(&self) -> String {
        self.drawing().svg()
    }

    /// Returns the drawing of [`svg`](Self::svg), to choose the subgraphs that are drawn with their nodes.
    pub fn drawing(&self) -> Drawing {
        let own = |nodes, state| named(nodes).map(move |node| ("", node, state));
        let reached = self.drawn.as_ref().map_or(&[][..], |drawn| &drawn.reached);
        let states = own(reached, "done").chain(own(&self.next, "next")).chain(own(&self.deferred, "next"));
        let inside = self
            .children
            .iter()
            .flat_map(|child| named(&child.next).map(|node| (&*child.namespace, node, "next")));
        let failed = self.failures.iter().filter(|failure| !failure.node().is_empty());
        let failed = failed.map(|failure| (failure.namespace(), failure.node(), "failed"));
        let asking = self.interrupts.iter().map(|asked| (&*asked.namespace, &*asked.node, "asking"));
        let states = states.chain(inside).chain(own(&self.skips, "skipped")).chain(failed).chain(asking);

        let mut drawing = match &self.drawn {
            Some(drawn) => {
                Drawing::of(drawn.topology(&self.edits, &self.skips), Some(Arc::clone(&drawn.core)))
            }
            None => Drawing::of(GraphTopology::of_names(states.clone().map(|(_, node, _)| node)), None),
        };
        let around = self.drawn.as_ref().map_or(0, |drawn| nodes_of(&drawn.namespace).count());
        for (namespace, node, state) in states {
            let path: Vec<String> = nodes_of(namespace).skip(around).chain([node.to_owned()]).collect();
            // The nodes around it are in the same state: they may be drawn as one.
            (1..=path.len()).for_each(|end| drawing.set(path[..end].join("/"), state));
        }
        drawing
    }
}

fn named(nodes: &[String]) -> impl Iterator<Item = &str> + Clone {
    nodes.iter().map(|node| &**node)
}

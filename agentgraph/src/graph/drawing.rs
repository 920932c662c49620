//! [`Drawing`]: a graph as SVG or text.

mod layout;
mod scene;
mod svg;
mod text;

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{GraphCore, GraphTopology};
use agentgraph_checkpoint::shows;
use scene::Scene;

/// A graph to be drawn as SVG or as text: see [`CompiledGraph::drawing`](crate::CompiledGraph::drawing).
///
/// The same graph gives the same bytes. Layers go from START down to END; an edge that leads back up arrives
/// from below. Routes and commands are dotted, temporary parts dashed. Joins, dispatches and edges to error
/// handlers have a label where they arrive.
#[derive(Clone)]
#[must_use]
pub struct Drawing {
    topology: GraphTopology,
    /// The graph with its subgraphs, if it is known.
    core: Option<Arc<GraphCore>>,
    expanded: Vec<String>,
    is_all_expanded: bool,
    /// The states of nodes by their paths, as classes.
    states: BTreeMap<String, &'static str>,
}

impl Drawing {
    pub(crate) fn of(topology: GraphTopology, core: Option<Arc<GraphCore>>) -> Self {
        Drawing { topology, core, expanded: Vec::new(), is_all_expanded: false, states: BTreeMap::new() }
    }

    /// Sets the class of a node's state.
    pub(crate) fn set(&mut self, path: String, state: &'static str) {
        self.states.insert(path, state);
    }

    /// Draws the subgraph of a node as a graph, and the graphs around it. `path` is the node's name, or for a
    /// node inside a subgraph the names on the way to it: `"child/inner"`. A path that leads to no subgraph
    /// changes nothing.
    ///
    /// ```
    /// # use agentgraph::prelude::*;
    /// # #[derive(State, Clone, Debug, Default)]
    /// # struct Text {}
    /// # async fn node() {}
    /// # fn main() -> Result<()> {
    /// let check = StateGraph::<Text>::new().node("spelling", node).edge(START, "spelling").compile()?;
    /// let graph = StateGraph::new().node("check", check).edge(START, "check").compile()?;
    /// assert!(!graph.svg().contains("spelling"));
    /// let svg = graph.drawing().expand("check").svg();
    /// assert!(svg.contains(r#"<g class="node" data-node="check/spelling">"#));
    /// # Ok(())
    /// # }
    /// ```
    pub fn expand(mut self, path: impl Into<String>) -> Self {
        self.expanded.push(path.into());
        self
    }

    /// Draws all subgraphs as graphs, at every depth.
    pub fn expand_all(mut self) -> Self {
        self.is_all_expanded = true;
        self
    }

    /// Returns an SVG document without scripts, fonts and references. It has colours for light and dark
    /// screens and is safe whatever the names contain.
    ///
    /// A node is `<g class="node" data-node="path">`, an edge `<g class="edge" data-from="path"
    /// data-to="path">`; the edge of a command that may go anywhere has no `data-to`. The paths are those of
    /// [`expand`](Self::expand), START and END being [`START`](crate::START) and [`END`](crate::END). Edges
    /// that depend on a decision have the class `conditional`, nodes and edges that a temporary edit added
    /// the class `temporary`.
    pub fn svg(&self) -> String {
        svg::write(&self.scene())
    }

    /// Returns the drawing for a terminal or a log, with characters for lines and boxes. Long names are cut,
    /// and listed below it.
    pub fn text(&self) -> String {
        text::write(&self.scene())
    }

    fn scene(&self) -> Scene {
        Scene::of(self, &self.topology, self.core.as_ref(), "")
    }

    fn is_expanded(&self, path: &str) -> bool {
        let leads_to = |inner: &String| inner.strip_prefix(path).is_some_and(|rest| rest.starts_with('/'));
        self.is_all_expanded || self.expanded.iter().any(|known| known == path || leads_to(known))
    }
}

shows!(Drawing: |it| { topology: it.topology });

//! Copies of graphs for tests: the same graph, with observed nodes and routes.

use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::dependency::outputs::{Output, Outputs, OutputsUpdate, PassInput};
use crate::engine::driver::Driver;
use crate::erased::observed::Observer;
use crate::record::codec::Codec;
use crate::run::attached::Attached;
use crate::run::{CompiledDependencyGraph, CompiledGraph, RunBuilder};

impl Attached {
    /// The same graph, observed; `around` is the path of the node that it is, empty for a root graph.
    pub(crate) fn observed(&self, by: &Arc<dyn Observer>, around: &str, codec: &Codec) -> Self {
        Attached { core: Arc::new(self.core.observed(by, around, codec)), express: None, ..self.clone() }
    }
}

impl<O, S> CompiledDependencyGraph<O, S>
where
    O: Output + Serialize + DeserializeOwned,
    S: PassInput + Serialize + DeserializeOwned,
{
    /// The same graph, observed, as the graph that its passes run.
    pub(crate) fn observed(&self, by: &Arc<dyn Observer>) -> CompiledGraph<Outputs<O, S>> {
        let wiring = Arc::new(self.wiring.observed(by, Codec::of::<Outputs<O, S>>(0)));
        let driver = wiring as Arc<dyn Driver>;
        CompiledGraph::of(Attached { driver: Some(driver), ..Attached::clone(&self.graph.any) })
    }

    /// A pass of a graph from [`observed`](Self::observed).
    pub(crate) fn begin_pass(graph: &CompiledGraph<Outputs<O, S>>, input: S) -> RunBuilder<Outputs<O, S>> {
        RunBuilder::invoke(graph.any.clone(), OutputsUpdate::begin(input))
    }
}

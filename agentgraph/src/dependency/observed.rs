//! A copy of a compiled dependency graph whose nodes are observed by a test.

use std::sync::Arc;

use super::deps::Deps;
use super::node::{CallKind, DependencyCall, DependencyNode};
use super::outputs::{Output, OutputTable, Outputs, OutputsUpdate, PassInput};
use super::wiring::{Template, WiredNode, Wiring};
use crate::error::BoxError;
use crate::extract::Task;
use crate::node::observed::{ObservedNode, Observer, ShowStep};
use crate::node::{ErasedNode, NodeFuture};
use crate::record::codec::Codec;
use crate::state::State;
use crate::step::Step;

impl<O: Output, S: PassInput> Wiring<O, S> {
    /// The same graph, observed.
    pub(crate) fn observed(&self, by: &Arc<dyn Observer>, codec: Codec<Outputs<O, S>>) -> Self {
        let show = &show(codec, OutputTable::of(Arc::clone(&self.names), Arc::clone(&self.by_name)));
        let nodes = self.names.iter().zip(&self.nodes);
        let observed = |(name, node): (&Arc<str>, &WiredNode<O, S>)| WiredNode {
            call: observed(&node.call, name, by, show),
            policies: node.policies.clone(),
            remote: node.remote,
        };
        Wiring {
            base: Arc::clone(&self.base),
            names: Arc::clone(&self.names),
            by_name: Arc::clone(&self.by_name),
            nodes: nodes.map(observed).collect(),
            templates: self
                .templates
                .iter()
                .map(|(name, make)| observed_template(name, make, by, show))
                .collect(),
            policies: self.policies.clone(),
            deps: self.deps.clone(),
            sessions: self.sessions.clone(),
            is_plain: false,
            must_be_complete: self.must_be_complete,
        }
    }
}

/// The output of a node.
fn show<O: Output, S: PassInput>(codec: Codec<Outputs<O, S>>, table: OutputTable) -> ShowStep<Outputs<O, S>>
where
    Outputs<O, S>: State<Schema = OutputTable, Update = OutputsUpdate<O, S>>,
{
    Arc::new(move |step| {
        let own = match step {
            Step::Update(OutputsUpdate { own: Some(own), .. }) => Some(Arc::new(own.clone())),
            _ => None,
        };
        let outputs = own.map(|own| (Arc::from("output"), own)).into_iter().collect();
        codec.content_of_update(&table, &OutputsUpdate { outputs, ..OutputsUpdate::default() })
    })
}

fn observed_template<O: Output, S: PassInput>(
    name: &Arc<str>,
    make: &Template<O, S>,
    by: &Arc<dyn Observer>,
    show: &ShowStep<Outputs<O, S>>,
) -> (Arc<str>, Template<O, S>) {
    let (make, by, template, show) = (Arc::clone(make), Arc::clone(by), Arc::clone(name), Arc::clone(show));
    let observed: Template<O, S> = Arc::new(move |args| {
        let node: DependencyNode<O, S> = make(args)?;
        Ok(DependencyNode { call: observed(&node.call, &template, &by, &show), ..node })
    });
    (Arc::clone(name), observed)
}

fn observed<O: Output, S: PassInput>(
    call: &Arc<dyn DependencyCall<O, S>>,
    name: &str,
    by: &Arc<dyn Observer>,
    show: &ShowStep<Outputs<O, S>>,
) -> Arc<dyn DependencyCall<O, S>> {
    let node = Arc::clone(call) as Arc<dyn ErasedNode<Outputs<O, S>>>;
    Arc::new(ObservedDependency(ObservedNode::new(&node, "", name, by, show)))
}

/// An observed node, which is always awaited: a test may hold it.
struct ObservedDependency<O: Output, S: PassInput>(ObservedNode<Outputs<O, S>>);

impl<O: Output, S: PassInput> ErasedNode<Outputs<O, S>> for ObservedDependency<O, S> {
    fn call(&self, task: &Task<'_, Outputs<O, S>>) -> NodeFuture<Outputs<O, S>> {
        self.0.call(task)
    }
}

impl<O: Output, S: PassInput> DependencyCall<O, S> for ObservedDependency<O, S> {
    fn kind(&self) -> CallKind {
        CallKind::Async
    }

    fn call_now(&self, _: Deps<'_, O>, _: Option<&Task<'_, Outputs<O, S>>>) -> Result<O, BoxError> {
        Err("an observed node was called without an await".into())
    }
}

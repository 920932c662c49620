//! A copy of a compiled dependency graph whose nodes are observed by a test.

use std::sync::Arc;

use super::node::{DependencyCall, DependencyNode};
use super::outputs::{Output, OutputTable, Outputs, OutputsUpdate, PassInput};
use super::wiring::{Template, WiredNode, Wiring, any_node};
use crate::erased::observed::{ObservedNode, Observer, ShowStep};
use crate::erased::{AnyNode, Call, ErasedNode, FnCall};
use crate::error::BoxError;
use crate::extract::Task;
use crate::record::codec::Codec;
use crate::step::Step;
use crate::typed::{AnySchema, AnyState, AnyUpdate};

impl<O: Output, S: PassInput> Wiring<O, S> {
    /// The same graph, observed.
    pub(crate) fn observed(&self, by: &Arc<dyn Observer>, codec: Codec) -> Self {
        let show = &show::<O, S>(codec, OutputTable::of(Arc::clone(&self.names)));
        let nodes = self.names.iter().zip(&self.nodes);
        let observed = |(name, node): (&Arc<str>, &WiredNode<O, S>)| WiredNode {
            call: observed(&node.call, name, by, show),
            ..node.clone()
        };
        Wiring {
            base: Arc::clone(&self.base),
            names: Arc::clone(&self.names),
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
fn show<O: Output, S: PassInput>(codec: Codec, table: OutputTable) -> ShowStep {
    let schema = AnySchema::new::<Outputs<O, S>>(table);
    Arc::new(move |step| {
        let own = match step {
            Step::Update(update) => update.seen::<Outputs<O, S>>().and_then(|update| update.own.clone()),
            _ => None,
        };
        let outputs = own.map(|own| (Arc::from("output"), Arc::new(own))).into_iter().collect();
        let update = OutputsUpdate { outputs, ..OutputsUpdate::default() };
        codec.content_of_update(&schema, &AnyUpdate::new::<Outputs<O, S>>(update))
    })
}

fn observed_template<O: Output, S: PassInput>(
    name: &Arc<str>,
    make: &Template<O, S>,
    by: &Arc<dyn Observer>,
    show: &ShowStep,
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
    show: &ShowStep,
) -> Arc<dyn DependencyCall<O, S>> {
    Arc::new(ObservedDependency(ObservedNode::new(&any_node(call), "", name, by, show)))
}

/// An observed node, as a node of a dependency graph.
struct ObservedDependency(ObservedNode);

impl<O: Output, S: PassInput> ErasedNode<Outputs<O, S>> for ObservedDependency {
    fn call(&self, task: &Task<'_, Outputs<O, S>>) -> Result<Call<Outputs<O, S>>, BoxError> {
        let Task { state, shared, request, input, failure } = *task;
        let state = &Arc::new(AnyState::new(Arc::clone(state)));
        let call = self.0.call(&Task { state, shared, request, input, failure });
        Ok(FnCall::boxed(async move {
            Ok::<_, BoxError>(match call.await? {
                Step::Update(update) => Step::Update(update.into_update::<Outputs<O, S>>()),
                // A node of a dependency graph returns no command.
                _ => Step::None,
            })
        }))
    }
}

impl<O: Output, S: PassInput> DependencyCall<O, S> for ObservedDependency {}

//! Nodes of a pass on a host: the part of the pass that is sent, and the node that the other process builds.

use std::collections::HashSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::context::TaskRequest;
use crate::context::host::{EncodedState, TaskCall, TaskDetails, TaskState};
use crate::dependency::deps::HeldOutput;
use crate::dependency::edits::{PassDesk, Transaction};
use crate::dependency::outputs::{Outputs, OutputsUpdate};
use crate::dependency::wiring::{WiredNode, Wiring};
use crate::dependency::{Output, PassInput};
use crate::engine::driver::FarNode;
use crate::engine::host::SentNode;
use crate::engine::load::graph_changed;
use crate::engine::pass::{Pass, outputs};
use crate::engine::stored::{from_bytes, to_bytes};
use crate::erased::NodeFuture;
use crate::error::{Code, Error, OwnError};
use crate::extract::Task;
use crate::record::bytes::Bytes;
use crate::record::codec::Codec;
use crate::step::Step;
use crate::typed::{AnySchema, AnyState, AnyUpdate, Seen};
use agentgraph_checkpoint::Place;
use agentgraph_checkpoint::delta::DeltaWriter;
use agentgraph_checkpoint::fold::{Folded, Value};

/// What a node of a pass reads, in place of a state: equal for all nodes with the same dependencies.
#[derive(Serialize, Deserialize)]
struct PassView {
    /// The input of the pass, as the operation of its channel.
    input: Bytes,
    /// The outputs that the node depends on, in the order of its edges.
    outputs: Bytes,
}

impl<O: Output, S: PassInput> Pass<'_, O, S> {
    /// Sends a node to the host of the run.
    pub(super) fn send(
        &mut self,
        entry: &WiredNode<O, S>,
        request: TaskRequest,
        held: Option<Arc<[HeldOutput<O>]>>,
    ) -> NodeFuture<AnyState> {
        let state = self.encoded_view(held.as_deref().unwrap_or_default());
        let Some(host) = self.run.runtime.runner.as_host() else {
            return Box::pin(std::future::ready(Err(OwnError(no_host()).into())));
        };
        let view = outputs::<O, S>(&self.run.position.state).view(held, &self.desk);
        let view = Arc::new(AnyState::new(Arc::new(view)));
        let task =
            Task { state: &view, shared: &self.run.runtime.shared, request, input: None, failure: None };
        let policies = entry.policies.as_deref();
        let name = self.name(request.node);
        let node = SentNode {
            name,
            remote: entry.remote,
            limit: policies.and_then(|policies| policies.limit.as_ref()),
            is_retried: policies.is_some_and(|policies| !policies.retry.is_empty()),
            in_superstep: false,
        };
        let call = || {
            let sent = host.send_node(&self.run.position.graph.schema, &task, node, || {
                Ok((TaskState::Encoded(state?), self.progress()))
            });
            Box::pin(async move { sent.await.map(own_output::<O, S>) }) as NodeFuture<AnyState>
        };
        match &self.run.listeners.spans {
            None => call(),
            Some(spans) => spans.in_node(name, request, call),
        }
    }

    /// What a node reads: encoded once for the nodes with the same dependencies that start in a row.
    fn encoded_view(&mut self, held: &[HeldOutput<O>]) -> Result<EncodedState, Error> {
        if let Some((sources, state)) = &self.sent
            && *sources == self.sources
        {
            return Ok(state.clone());
        }
        let host = self.run.runtime.runner.as_host().ok_or_else(no_host)?;
        let (codec, schema) = (host.codec(), &self.run.position.graph.schema);
        let outputs = held.iter().map(|(name, output)| (Arc::clone(name), Arc::clone(output))).collect();
        let outputs = OutputsUpdate { outputs, ..OutputsUpdate::default() };
        let mut input = DeltaWriter::new(schema.channels().len());
        // The view has no edits of before the pass: they are sent as edits of the graph.
        (codec.record_channel)(Seen::of(&*self.view), schema, self.wiring.names.len(), &mut input)?;
        let view = PassView {
            input: Bytes(input.bytes().to_vec()),
            outputs: Bytes((codec.encode_update)(schema, &AnyUpdate::new::<Outputs<O, S>>(outputs))?),
        };
        let state = EncodedState::new(&to_bytes(&view)?);
        self.sent = Some((self.sources.clone(), state.clone()));
        Ok(state)
    }

    /// The progress of the pass, against which the edits of a node are checked.
    fn progress(&self) -> TaskDetails {
        let outputs = outputs::<O, S>(&self.run.position.state);
        let kept = self.wiring.names.iter().zip(outputs.kept());
        TaskDetails {
            edits: outputs.edits.clone(),
            kept: kept.filter(|(_, kept)| *kept).map(|(name, _)| name.to_string()).collect(),
            done: outputs.names().map(str::to_owned).collect(),
            started: self.desk.started(),
            ..TaskDetails::default()
        }
    }
}

/// The error of a node that is sent in a run without a host. The loop never does this.
fn no_host() -> Error {
    Error::new(Code::Host, "a node was sent in a run that has no host")
}

/// The output of a node on a host, as that of a node in this process.
fn own_output<O: Output, S: PassInput>(step: Step<AnyState>) -> Step<AnyState> {
    let Step::Update(update) = step else { return step };
    let mut update = update.into_update::<Outputs<O, S>>();
    if update.own.is_none() {
        update.own = update.outputs.pop().map(|(_, output)| Arc::unwrap_or_clone(output));
    }
    Step::Update(AnyUpdate::new::<Outputs<O, S>>(update))
}

/// The node that a call names, with the outputs that it reads and the graph that it edits.
pub(super) fn far_node<O: Output, S: PassInput>(
    wiring: Arc<Wiring<O, S>>,
    codec: &Codec,
    schema: &AnySchema,
    call: &TaskCall,
    details: &TaskDetails,
) -> Result<FarNode, Error> {
    let view: PassView = from_bytes(&call.state_needed()?).map_err(damaged)?;
    let mut state = schema.initial();
    let channel = wiring.names.len();
    let mut folded = Folded::default();
    let unreadable = |problem: String| damaged(Error::new(Code::Host, problem));
    folded.apply(&view.input.0, None).map_err(|error| unreadable(error.to_string()))?;
    if let Value::Bytes(input) = folded.value(channel).map_err(|error| unreadable(error.to_string()))? {
        (codec.restore_channel)(&mut state, schema, channel, &input)?;
    }
    let held = (codec.decode_update)(schema, &view.outputs.0)?.into_update::<Outputs<O, S>>().outputs;
    let held = (!held.is_empty()).then(|| Arc::from(held));

    let (desk, node) = far_desk(&wiring, call, details)?;
    let entry = match wiring.nodes.get(node as usize) {
        Some(entry) => entry.clone(),
        None => {
            let added = desk.pass().added[node as usize - wiring.nodes.len()].clone();
            WiredNode::of(added, &wiring.policies)
        }
    };
    let desk = Arc::new(desk);
    Ok(FarNode {
        node,
        state: Arc::new(AnyState::new(Arc::new(outputs::<O, S>(&state).view(held, &desk)))),
        call: entry.any(),
        policies: entry.policies,
        desk,
    })
}

/// The graph of the pass as the node sees it, and the node's id.
fn far_desk<O: Output, S: PassInput>(
    wiring: &Arc<Wiring<O, S>>,
    call: &TaskCall,
    details: &TaskDetails,
) -> Result<(PassDesk<O, S>, u32), Error> {
    let kept: HashSet<&str> = details.kept.iter().map(String::as_str).collect();
    let kept = wiring.names.iter().map(|name| kept.contains(&**name)).collect();
    let desk = PassDesk::new(Arc::clone(wiring), kept, true);
    let mut gone = Vec::new();
    desk.restore(Transaction::of(details.edits.clone()), &mut gone);
    let mut found = |name: &str| {
        let node = desk.find(name);
        gone.extend(node.is_none().then(|| format!("node `{name}`")));
        node
    };
    let done: Vec<Option<u32>> = details.done.iter().map(|name| found(name)).collect();
    let started: Vec<Option<u32>> = details.started.iter().map(|name| found(name)).collect();
    let node = found(&call.node);
    if let (Some(node), true) = (node, gone.is_empty()) {
        started.into_iter().flatten().for_each(|node| desk.pass().plan.hold(node));
        done.into_iter().flatten().for_each(|node| desk.pass().plan.finish(node));
        return Ok((desk, node));
    }
    Err(graph_changed(Place::root(call.thread.as_deref().unwrap_or_default()), gone))
}

fn damaged(error: Error) -> Error {
    Error::new(Code::Host, format!("what a node of a pass reads is damaged: {}", error.message()))
}

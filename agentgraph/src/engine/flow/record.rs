//! Writes an eager run's part of a record, and reads it.

use std::sync::Arc;

use crate::engine::flow::{Activation, Flow, Key, LastWrite};
use crate::engine::left_over::{Leftovers, TaskRemains};
use crate::engine::stored::StoredRequest;
use crate::engine::task_id::{StepPlace, activation_id, handler_id};
use crate::error::Error;
use crate::graph::run_graph::RunGraph;
use crate::record::bytes::Bytes;
use crate::record::header::{Header, StoredActivation, StoredEager, StoredGroup, StoredLeft};
use crate::step::InputValue;
use crate::words::START;
use agentgraph_checkpoint::engine::corrupt;
use agentgraph_checkpoint::frame::HeaderWriter;
use agentgraph_checkpoint::header::{StoredMerge, StoredWritten};
use agentgraph_checkpoint::{CheckpointId, PendingWrite, Place, TaskId};

impl Flow {
    /// Writes the open work into the header: all of it if `whole`, otherwise the changes.
    pub(crate) fn write(
        &self,
        header: &mut HeaderWriter<'_>,
        core: &RunGraph,
        whole: bool,
    ) -> Result<(), Error> {
        let unsaved = &self.unsaved;
        let log: Vec<_> = unsaved
            .log
            .iter()
            .map(|merged| StoredMerge {
                at: merged.at,
                ended: merged.ended.map(|(key, node)| (key.made, key.index, core.name(node).to_owned())),
                timed: merged.timed.clone(),
            })
            .collect();
        if !log.is_empty() {
            header.value("log", &log);
        }
        if whole {
            let open = self.open.iter().map(|(key, activation)| stored(core, *key, activation));
            header.value("next", &open.collect::<Result<Vec<_>, Error>>()?);
            header.value("written", &self.stored_written(core));
        } else {
            if !unsaved.ended.is_empty() {
                header.value(
                    "ended",
                    &unsaved.ended.iter().map(|key| (key.made, key.index)).collect::<Vec<_>>(),
                );
            }
            let begun = unsaved.begun.iter().filter_map(|key| Some(stored(core, *key, self.open.get(key)?)));
            let begun = begun.collect::<Result<Vec<_>, Error>>()?;
            if !begun.is_empty() {
                header.value("begun", &begun);
            }
            if !unsaved.writes.is_empty() {
                let channels = core.schema.channels();
                let writes = unsaved.writes.iter();
                let writes = writes.map(|(channel, overwrote)| (&*channels[*channel].name, *overwrote));
                header.value("writes", &writes.collect::<Vec<_>>());
            }
        }
        if whole || unsaved.groups {
            header.value("groups", &self.stored_groups(core));
        }
        if unsaved.kept || (whole && !self.kept.is_empty()) {
            header.value("kept", &self.kept);
        }
        Ok(())
    }

    fn stored_written(&self, core: &RunGraph) -> Vec<StoredWritten> {
        let Some(oldest) = self.oldest() else { return Vec::new() };
        let written = core.schema.channels().iter().zip(&self.written);
        let written = written.filter(|(_, written)| written.at > oldest);
        let stored = written.map(|(channel, written)| StoredWritten {
            channel: channel.name.clone().into_owned(),
            at: written.at,
            by: core.name(written.by).to_owned(),
            overwrote: written.overwrote,
        });
        stored.collect()
    }

    fn stored_groups(&self, core: &RunGraph) -> Vec<StoredGroup> {
        let groups = self.groups.iter().filter(|(_, group)| !group.arrived.is_empty());
        let mut groups: Vec<_> = groups
            .map(|(made, group)| StoredGroup {
                made: *made,
                arrived: group.arrived.iter().map(|node| core.name(*node).to_owned()).collect(),
            })
            .collect();
        groups.sort_unstable_by_key(|group| group.made);
        groups
    }

    /// Reads the open work from a header. Names that the graph does not have are added to `gone`.
    pub(crate) fn of_header(core: &RunGraph, header: &Header, gone: &mut Vec<String>) -> Self {
        let mut flow = Flow { at: header.eager.log.last().map_or(0, |merged| merged.at), ..Flow::default() };
        // A node that led to an activation may be gone: the activation runs without it.
        let mut id = |name: &str| match core.id_of_any(name) {
            Some(node) => node,
            None if name == START => core.topology.start(),
            None => {
                gone.push(format!("node `{name}`"));
                0
            }
        };
        for StoredActivation { node, eager, .. } in &header.next {
            let Some(eager) = eager else { continue };
            let removed = eager.age.and_then(|age| core.removed_id(node, age));
            let node = removed.unwrap_or_else(|| id(node));
            let activation = Activation {
                node,
                from: id(&eager.from),
                input: eager.input.as_ref().map(|input| InputValue::stored(input.0.clone(), eager.limits)),
                read: eager.read.map(|(branch, step)| CheckpointId::new(branch, step)),
                read_at: eager.read_at.unwrap_or(eager.made),
                after: eager.after.as_ref().map(|after| id(after)),
                told: eager.left.as_ref().is_some_and(|left| left.told),
                again: true,
                ..Activation::default()
            };
            flow.begin(Key { made: eager.made, index: eager.index }, activation, core.is_detached(node));
        }
        for group in &header.eager.groups {
            let arrived = group.arrived.iter().map(|node| id(node)).collect();
            if let Some(known) = flow.groups.get_mut(&group.made) {
                known.arrived = arrived;
            }
        }
        for written in &header.eager.written {
            let channels = core.schema.channels();
            let channel = channels.iter().position(|channel| channel.is_called(&written.channel));
            if let Some(channel) = channel {
                let by = core.id_of_any(&written.by).unwrap_or(core.topology.start());
                flow.written.resize(channels.len(), LastWrite::default());
                flow.written[channel] = LastWrite { at: written.at, by, overwrote: written.overwrote };
            }
        }
        flow.kept.clone_from(&header.eager.kept);
        flow.mark_saved();
        flow
    }
}

fn stored(core: &RunGraph, key: Key, activation: &Activation) -> Result<StoredEager, Error> {
    let node = core.name(activation.node);
    let from = core.name(activation.from);
    let input = activation.input.as_ref().map(|input| input.encode_for(node)).transpose();
    Ok(StoredEager {
        node: node.to_owned(),
        from: from.to_owned(),
        made: key.made,
        index: key.index,
        read: activation.read.map(|id| (id.branch, id.step)),
        read_at: Some(activation.read_at).filter(|at| *at != key.made),
        input: input.map_err(|error| error.at_node(from))?.map(Bytes),
        after: activation.after.map(|node| core.name(node).to_owned()),
        left: stored_left(activation),
        age: core.age(activation.node),
        limits: activation.input.as_ref().and_then(InputValue::stored_limits),
    })
}

fn stored_left(activation: &Activation) -> Option<StoredLeft> {
    let left = activation.left.as_deref();
    let stored = StoredLeft {
        requests: left.map_or_else(Vec::new, |left| {
            let requests = left.requests.iter();
            requests
                .map(|(n, asked)| (*n, asked.node.clone(), asked.value.clone(), asked.schema.clone()))
                .collect()
        }),
        answers: left.map_or_else(Vec::new, |left| {
            left.answers.iter().map(|(n, answer)| (*n, answer.clone())).collect()
        }),
        spots: left.map_or_else(Vec::new, |left| {
            let spots = left.requests.iter().map(|(n, asked)| (*n, asked.spot.clone()));
            spots.filter(|(_, spot)| !spot.follows_from_the_number()).collect()
        }),
        voided: left.map_or_else(Vec::new, |left| left.voided.iter().copied().collect()),
        failure: activation.handler.as_ref().map(|handler| (*handler.failure).clone()),
        error: activation.error.as_deref().cloned(),
        call: left.and_then(|left| left.call),
        once: left.map_or_else(Vec::new, TaskRemains::once),
        told: activation.told,
    };
    (stored != StoredLeft::default()).then_some(stored)
}

/// The remains of a header's open activations, by the ids of the acting tasks or handlers. Pending writes are
/// added to them.
pub(crate) fn left_in_header(
    place: Place<'_>,
    header: &Header,
    id: CheckpointId,
    handler_of: &dyn Fn(&str) -> Option<String>,
) -> Result<Leftovers, Error> {
    let mut left_over = Leftovers::new();
    for activation in &header.next {
        let Some(left) = activation.eager.as_ref().and_then(|eager| eager.left.as_ref()) else { continue };
        let Some((task, step_place, key)) = stored_id(place, header, id, activation) else { continue };
        let asked = left.requests.iter().map(|(n, ..)| n);
        let answered = left.answers.iter().map(|(n, _)| n).chain(&left.voided);
        if asked.chain(answered).any(|n| !PendingWrite::can_be_asked(*n)) {
            return Err(corrupt(place, id, "a task has a request number that no task can reach").into());
        }
        let mut own = TaskRemains {
            answers: left.answers.iter().cloned().collect(),
            voided: left.voided.iter().copied().collect(),
            error: left.error.clone().map(Arc::new),
            call: left.call,
            once: left.once.iter().cloned().collect(),
            ..TaskRemains::default()
        };
        for (n, node, value, schema) in &left.requests {
            let spot = left.spots.iter().find(|(of, _)| of == n).map(|(_, spot)| spot.clone());
            let node = node.clone();
            let value = value.clone();
            let schema = schema.clone();
            let spot = spot.unwrap_or_default();
            own.request(*n, StoredRequest { node, value, schema, sources: None, spot });
        }
        let handler = left.failure.as_ref().and_then(|_| handler_of(&activation.node));
        let actor = match &handler {
            None => task,
            Some(handler) => handler_id(step_place, &activation.node, key.index as usize, handler),
        };
        left_over.insert(actor, own);
        if let Some(failure) = &left.failure {
            left_over.entry(task).or_default().failure = Some(Arc::new(failure.clone()));
        }
    }
    Ok(left_over)
}

/// The id of a stored activation, and the parts of its derivation.
pub(crate) fn stored_id<'a>(
    place: Place<'a>,
    header: &Header,
    id: CheckpointId,
    activation: &StoredActivation,
) -> Option<(TaskId, StepPlace<'a>, Key)> {
    let eager = activation.eager.as_ref()?;
    let thread = place.thread;
    let namespace = place.namespace;
    let branch = id.branch;
    let key = Key { made: eager.made, index: eager.index };
    let place = StepPlace { thread, namespace, run: header.run, branch, parent: eager.made };
    Some((activation_id(place, &activation.node, &eager.from, key.index), place, key))
}

/// The id of an activation, or of the handler of its failure.
pub(crate) fn id_of(core: &RunGraph, place: StepPlace<'_>, key: Key, activation: &Activation) -> TaskId {
    let place = StepPlace { parent: key.made, ..place };
    let node = core.name(activation.node);
    match &activation.handler {
        None => activation_id(place, node, core.name(activation.from), key.index),
        Some(handler) => handler_id(place, node, key.index as usize, core.name(handler.node)),
    }
}

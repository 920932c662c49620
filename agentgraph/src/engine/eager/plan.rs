//! Start and continuation of an eager run: remains of earlier calls, and the states that activations read.

use std::collections::HashMap;
use std::sync::Arc;

use crate::engine::Loop;
use crate::engine::activations::Activations;
use crate::engine::flow::{Flow, Handler, Key, Phase};
use crate::engine::journal::Journal;
use crate::engine::load::{replay, restore, restore_kept, unknown_read};
use crate::engine::stored::StoredAnswer;
use crate::error::Error;
use crate::persistence::Persistence;
use crate::typed::AnyState;
use crate::words::OpenId;
use agentgraph_checkpoint::{CheckpointId, TaskId};

impl Loop {
    /// Clears what an earlier run had open.
    pub(in crate::engine) fn begin_flow(&mut self) {
        if let Some(eager) = &mut self.position.eager {
            **eager =
                Activations { flow: Flow { at: eager.flow.at, ..Flow::default() }, ..Activations::default() };
        }
    }

    /// Moves the remains of earlier calls into their activations.
    pub(in crate::engine) fn adopt_left(&mut self) {
        let told = std::mem::take(&mut self.inheritance.past_breaks);
        let mut left_over = std::mem::take(&mut self.inheritance.left_over);
        self.note_failure_of(&left_over);
        for key in self.open_keys() {
            if told {
                self.mark_stop_reported(key);
            }
            if left_over.is_empty() {
                continue;
            }
            let Some(mut left) = self.activation_id(key).and_then(|task| left_over.remove(&task)) else {
                continue;
            };
            let handler = self.activation(key).and_then(|one| self.position.graph.handler(one.node));
            if let (Some(failure), Some(node)) = (left.failure.take(), handler) {
                if let Some(activation) = self.activation_mut(key) {
                    activation.handler = Some(Handler { node, failure });
                }
                let acting = self.activation_id(key);
                left = acting.and_then(|task| left_over.remove(&task)).unwrap_or_default();
            }
            if let Some(activation) = self.changed(key) {
                if left.waits() {
                    activation.phase = Phase::Waits;
                }
                activation.error = left.error.take();
                if !left.is_bare() || activation.error.is_none() {
                    activation.left = Some(Box::new(left));
                }
            }
        }
    }

    fn mark_stop_reported(&mut self, key: Key) {
        if self.activation(key).is_some_and(|one| !one.told)
            && let Some(activation) = self.changed(key)
        {
            activation.told = true;
        }
    }

    /// The open activations, by the id of the task or handler that acts in them.
    pub(in crate::engine) fn flow_tasks(&self) -> HashMap<TaskId, Key> {
        let open = self.position.eager.iter().flat_map(|eager| eager.flow.open.keys());
        open.filter_map(|key| Some((self.activation_id(*key)?, *key))).collect()
    }

    /// The open interrupts, in the order in which their activations were made.
    pub(in crate::engine) fn open_in_flow(&self, tasks: &HashMap<TaskId, Key>) -> Vec<OpenId> {
        let mut open: Vec<(Key, OpenId)> = Vec::new();
        for (task, key) in tasks {
            let Some(left) = self.activation(*key).and_then(|activation| activation.left.as_ref()) else {
                continue;
            };
            open.extend(left.open_ids(*task).map(|open| (*key, open)));
        }
        open.sort_by_key(|(key, _)| *key);
        open.into_iter().map(|(_, id)| id).collect()
    }

    /// Gives an activation its answer, so that it can continue.
    pub(in crate::engine) fn answer_in_flow(&mut self, key: Key, n: u32, answer: serde_json::Value) {
        if let Some(activation) = self.changed(key) {
            let left = activation.remains_mut();
            left.take(n, StoredAnswer::Given(answer));
            if !left.waits() {
                activation.phase = Phase::Ready;
            }
        }
    }

    /// Queues the activations that can continue, with the states that they read.
    pub(super) async fn adopt(&mut self) -> Result<(), Error> {
        let head = self.records.journal.as_deref().and_then(Journal::checkpoint);
        let Some(eager) = &mut self.position.eager else { return Ok(()) };
        let Activations { flow, states, .. } = &mut **eager;
        flow.ready =
            flow.open.iter().filter(|(_, one)| one.phase == Phase::Ready).map(|(key, _)| *key).collect();
        let keeps_all = self.records.journal.as_deref().is_some_and(Journal::waits);
        let mut read: HashMap<Option<CheckpointId>, Arc<AnyState>> =
            HashMap::from([(head, Arc::clone(&self.position.state))]);
        let wanted = flow.open.iter().filter(|(_, one)| keeps_all || one.phase == Phase::Ready);
        for (key, activation) in wanted {
            let (Some(journal), false) = (&self.records.journal, states.contains_key(key)) else { continue };
            let persistence =
                Persistence::inside(journal.saver(), *journal.codec(), Arc::clone(journal.namespace()));
            let place = journal.place();
            let state = match (activation.read, read.get(&activation.read)) {
                (Some(_), Some(state)) => Arc::clone(state),
                (None, _) => match flow.kept.iter().find(|kept| kept.made == key.made) {
                    Some(kept) => Arc::new(restore_kept(&self.position.graph, &persistence, place, kept)?),
                    None => Arc::clone(&self.position.state),
                },
                (Some(id), None) => {
                    let tail = persistence.saver.get(place, Some(id)).await?;
                    let mut tail = tail
                        .ok_or_else(|| unknown_read(place, id, self.position.graph.name(activation.node)))?;
                    let replayed = replay(&*persistence.saver, place, &mut tail).await?;
                    Arc::new(restore(&self.position.graph, &persistence, place, &replayed)?.state)
                }
            };
            if activation.read.is_some() {
                read.insert(activation.read, Arc::clone(&state));
            }
            states.insert(*key, state);
        }
        Ok(())
    }
}

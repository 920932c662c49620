//! Merging the result of an activation into the state and into the open activations.

use std::sync::Arc;

use crate::engine::Loop;
use crate::engine::activations::Activations;
use crate::engine::flow::{Activation, Flow, Key, MergeEntry, NextCommit, Phase};
use crate::engine::merge::{Arrival, Merge};
use crate::engine::task_output::TaskOutput;
use crate::engine::temporary_edits::stage_edits;
use crate::error::{Code, Error};
use crate::graph::run_graph::RunGraph;
use crate::state::WriteKind;
use crate::typed::{AnyState, AnyUpdate};
use agentgraph_checkpoint::Source;

/// The subject of a merge.
struct MergeSubject<'a> {
    /// `None` for START, and if no activation ended.
    ending: Option<Key>,
    actor: u32,
    commit: NextCommit,
    /// The joins that were due at this step in an earlier run of the same steps.
    again: Option<&'a [u32]>,
}

impl Flow {
    fn merge(
        &mut self,
        mut merge: Merge<'_>,
        state: &mut AnyState,
        done: Option<TaskOutput>,
        merging: &MergeSubject<'_>,
    ) -> Result<(), Error> {
        let MergeSubject { ending, actor, commit, again } = *merging;
        let core = merge.core;
        let ending = ending.and_then(|key| Some((key, self.open.get(&key)?.node)));
        let dispatched = ending.is_some_and(|(key, _)| self.open[&key].is_dispatched());
        let arrives = done.as_ref().is_some_and(|done| !done.replaces_edges());
        let mut writes = Vec::new();
        if let Some(done) = done {
            if let Some(update) = &done.update {
                Flow::watched(core, update, &mut writes);
            }
            let arrival = if dispatched { Arrival::Later } else { Arrival::Alone };
            merge.one(state, actor, done, arrival)?;
        }
        let arrived = match ending {
            Some((key, node)) => self.end(key, core.is_detached(node), arrives),
            None => Vec::new(),
        };
        for node in arrived.into_iter().chain(self.cancel_removed(core)) {
            merge.arrive(node);
        }
        let timed = merge.settle_eager(self.normal == 0, again);
        let after =
            core.rules.breaks.as_ref().is_some_and(|breaks| breaks.after.get(actor as usize) == Some(&true));
        self.make(core, merge.next, commit, actor, after.then_some(actor));
        self.note_writes(core.schema.channels().len(), &writes, commit.at, actor);
        self.unsaved.writes.append(&mut writes);
        self.unsaved.log.push(MergeEntry { at: commit.at, ended: ending, timed });
        self.at = commit.at;
        Ok(())
    }
}

impl Flow {
    /// Cancels activations of nodes that the edits of this merge remove, unless they have started. Returns
    /// the nodes whose groups are complete by that.
    fn cancel_removed(&mut self, core: &RunGraph) -> Vec<u32> {
        let staged = core.staged_edits();
        let Some(removed) = staged.map(|staged| staged.removed()).filter(|removed| !removed.is_empty())
        else {
            return Vec::new();
        };
        // A waiting activation that no static interrupt blocks has a run inside that asks.
        let has_begun = |one: &Activation| match one.phase {
            Phase::Runs => true,
            Phase::Waits => one.left.is_some() || !one.is_held(core),
            Phase::Ready | Phase::Unfinished => one.left.is_some(),
        };
        let of_removed = self.open.iter().filter(|(_, one)| removed.contains(&one.node));
        let (begun, gone): (Vec<_>, Vec<_>) = of_removed.partition(|(_, one)| has_begun(one));
        let begun: Vec<Key> = begun.into_iter().map(|(key, _)| *key).collect();
        let gone: Vec<(Key, u32)> = gone.into_iter().map(|(key, one)| (*key, one.node)).collect();
        // They run to their end, and their records contain the name of their node.
        begun.into_iter().for_each(|key| self.change(key));
        self.ready.retain(|key| !gone.iter().any(|(gone, _)| gone == key));
        gone.into_iter().flat_map(|(key, node)| self.end(key, core.is_detached(node), false)).collect()
    }
}

impl Activations {
    pub(crate) fn input(
        &mut self,
        merge: Merge<'_>,
        state: &mut AnyState,
        input: AnyUpdate,
        commit: NextCommit,
    ) -> Result<(), Error> {
        let merging = MergeSubject { ending: None, actor: merge.core.topology.start(), commit, again: None };
        self.flow.merge(merge, state, Some(TaskOutput { update: Some(input), routing: None }), &merging)
    }
}

impl Loop {
    /// The next commit.
    pub(in crate::engine) fn upcoming(&self) -> NextCommit {
        match (&self.records.journal, &self.position.eager) {
            (Some(journal), _) => {
                let id = (!journal.waits()).then(|| journal.next_id());
                NextCommit { at: journal.upcoming(), id }
            }
            (None, Some(eager)) => NextCommit { at: eager.flow.at + 1, id: None },
            (None, None) => NextCommit { at: 0, id: None },
        }
    }

    /// Merges a finished task.
    pub(super) fn merge_activation(&mut self, key: Key, done: TaskOutput) -> Result<(), Error> {
        let Some(activation) = self.activation(key) else { return Ok(()) };
        let actor = activation.actor();
        if let (Some(update), Some(eager)) = (&done.update, &self.position.eager)
            && let Some(clash) = eager.flow.clash(&self.position.graph, activation.read_at, update)
        {
            return Err(
                overtaken(&self.position.graph, clash, actor).at_node(self.position.graph.name(actor))
            );
        }
        let mut done = [Some(done)];
        let outputs = self.records.outputs_to_keep(&self.position.graph, |_| actor, &done)?;
        stage_edits(&mut self.position.graph, |_| actor, &mut done);
        let [done] = done;
        let fallible = self.position.graph.exits(actor).fallible_routers;
        let merged = self.merge_staged(fallible, outputs, |run| {
            run.merge_into_flow(Some(key), actor, done)?;
            let skipped = run.position.eager.as_mut().and_then(|eager| eager.skipping.remove(&key));
            run.buffers.skipped.extend(skipped);
            Ok(())
        });
        merged.map_err(|error| {
            self.position.frontier.clear();
            error.at_node(self.position.graph.name(actor))
        })
    }

    pub(super) fn merge_into_flow(
        &mut self,
        ending: Option<Key>,
        actor: u32,
        done: Option<TaskOutput>,
    ) -> Result<(), Error> {
        let again = self.take_turn();
        let merging = MergeSubject { ending, actor, commit: self.upcoming(), again: again.as_deref() };
        let is_due = std::mem::take(&mut self.buffers.is_due);
        let due = self.position.joins.next_due().filter(|_| is_due).unwrap_or(0);
        if let (Some(key), Some(eager)) = (ending, &mut self.position.eager) {
            // Before the state is changed, which else would be cloned for it.
            eager.states.remove(&key);
        }
        self.begin_merge(done.as_ref().and_then(|done| done.update.as_ref()))?;
        self.position.frontier.clear();
        let (state, eager, mut merge) = self.parts_of_merge();
        let Some(eager) = eager else { return Ok(()) };
        merge.now = merge.now.max(due);
        eager.flow.merge(merge, state, done, &merging)
    }

    /// Ends an activation without a result.
    pub(super) async fn end_without_result(&mut self, key: Key) -> Result<(), Error> {
        let actor = self.activation(key).map_or(0, |activation| activation.actor());
        self.merge_into_flow(Some(key), actor, None)?;
        self.position.merging = false;
        self.commit(Source::Loop, None).await
    }

    /// Fires the joins that are due, in a commit of their own.
    pub(super) async fn merge_due_joins(&mut self) -> Result<(), Error> {
        self.merge_into_flow(None, self.position.graph.topology.start(), None)?;
        self.position.merging = false;
        self.commit(Source::Loop, None).await
    }

    /// Whether a join is due.
    pub(super) fn joins_are_due(&mut self) -> bool {
        if self.position.eager.as_ref().is_some_and(|eager| eager.order.is_some()) {
            self.is_turn_of_joins()
        } else {
            self.due_in().is_some_and(|due| due.is_zero())
        }
    }

    /// Keeps the current state for activations that read it and are not started before the next merge.
    pub(super) fn hold_states(&mut self, stopped: bool) {
        let keeps_all = self.records.journal.as_ref().is_some_and(|journal| journal.waits());
        let Some(eager) = &mut self.position.eager else { return };
        let Activations { flow, states, .. } = &mut **eager;
        let made_last = flow.open.range(Key { made: flow.at, index: 0 }..);
        let unread = made_last.filter(|(_, one)| keeps_all || (!stopped && one.phase == Phase::Ready));
        for (key, _) in unread {
            states.entry(*key).or_insert_with(|| Arc::clone(&self.position.state));
        }
    }
}

/// The error of a write that clashes with a commit made after the task read its state.
fn overtaken(core: &RunGraph, clash: (usize, u32, WriteKind), second: u32) -> Error {
    let (channel, first, kind) = clash;
    let field = &core.schema.channels()[channel].name;
    let first = core.name(first);
    let second = core.name(second);
    let problem = match kind {
        WriteKind::Reduce => format!(
            "`{second}` writes `{field}`, which `{first}` has written since the state that `{second}` read: {}, or let the \
             nodes run one after the other",
            core.schema.several_writes()
        ),
        WriteKind::Overwrite => format!(
            "`{second}` overwrites `{field}`, which `{first}` has overwritten since the state that `{second}` read: at most \
             one of them may"
        ),
    };
    Error::new(Code::ConcurrentUpdate, problem)
}

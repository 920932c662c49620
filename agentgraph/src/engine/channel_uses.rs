//! The writers of each channel in a superstep: finds clashing writes, and writes that an overwrite replaces.

use crate::engine::actors::Actors;
use crate::engine::task_output::TaskOutput;
use crate::error::{Code, Error};
use crate::graph::GraphCore;
use crate::graph::run_graph::RunGraph;
use crate::state::{Channel, WriteKind};
use crate::typed::AnyState;
use crate::typed::state::discard_reduced;

/// The writers of each channel in a superstep. Sized once a run; a superstep only touches the channels that
/// it writes.
#[derive(Debug, Default)]
pub(crate) struct ChannelUses {
    round: u64,
    channels: Vec<ChannelUse>,
    overwritten: Vec<usize>,
    /// The first clash: the channel, its writers, and the kind of the second write.
    conflict: Option<(usize, u32, u32, WriteKind)>,
}

#[derive(Clone, Copy, Debug, Default)]
struct ChannelUse {
    round: u64,
    reduced_by: Option<u32>,
    overwritten_by: Option<u32>,
}

impl ChannelUses {
    /// Records the writes of the tasks.
    ///
    /// # Errors
    /// Two tasks write a channel that only one may write.
    pub(super) fn note(
        &mut self,
        core: &RunGraph,
        actors: Actors<'_>,
        tasks: &[Option<TaskOutput>],
    ) -> Result<(), Error> {
        let channels = core.schema.channels();
        self.begin(channels);
        for (index, done) in tasks.iter().enumerate() {
            let Some(TaskOutput { update: Some(update), .. }) = done else { continue };
            let node = actors.node(index);
            core.schema.writes(update, &mut |channel, kind| self.note_write(channels, node, channel, kind));
        }
        self.end(core)
    }

    /// Begins a superstep of a state with these channels.
    pub(crate) fn begin(&mut self, channels: &[Channel]) {
        self.channels.resize(channels.len(), ChannelUse::default());
        self.round += 1;
        self.overwritten.clear();
    }

    #[inline]
    pub(crate) fn note_write(&mut self, channels: &[Channel], node: u32, channel: usize, kind: WriteKind) {
        let Some(used) = self.channels.get_mut(channel) else { return };
        if used.round != self.round {
            *used = ChannelUse { round: self.round, ..ChannelUse::default() };
        }
        let (earlier, clash) = match kind {
            WriteKind::Reduce => (&mut used.reduced_by, channels[channel].exclusive),
            WriteKind::Overwrite => {
                self.overwritten.push(channel);
                (&mut used.overwritten_by, true)
            }
        };
        match earlier {
            Some(first) if clash && self.conflict.is_none() => {
                self.conflict = Some((channel, *first, node, kind));
            }
            _ => *earlier = Some(node),
        }
    }

    /// # Errors
    /// Two tasks wrote a channel that only one may write.
    pub(crate) fn end(&mut self, core: &RunGraph) -> Result<(), Error> {
        match self.conflict.take() {
            Some((channel, first, second, kind)) => {
                Err(concurrent_update(core, channel, first, second, kind))
            }
            None => Ok(()),
        }
    }

    /// The channels that a task overwrites: the writes that reduce them are discarded.
    pub(crate) fn overwritten(&self) -> &[usize] {
        &self.overwritten
    }

    /// Removes the writes that an overwrite of the same superstep replaces.
    pub(super) fn discard_overwritten(&self, core: &GraphCore, tasks: &mut [Option<TaskOutput>]) {
        for channel in &self.overwritten {
            discard_in_all(core, *channel, tasks);
        }
    }
}

/// Removes the writes that an overwrite beside them replaces, in updates that are not merged as a superstep.
pub(crate) fn keep_overwrites(core: &GraphCore, tasks: &mut [Option<TaskOutput>]) {
    let mut overwritten = Vec::new();
    for update in tasks.iter().flatten().filter_map(|done| done.update.as_ref()) {
        core.schema.writes(update, &mut |channel, kind| {
            if kind == WriteKind::Overwrite {
                overwritten.push(channel);
            }
        });
    }
    for channel in overwritten {
        discard_in_all(core, channel, tasks);
    }
}

fn discard_in_all(core: &GraphCore, channel: usize, tasks: &mut [Option<TaskOutput>]) {
    for update in tasks.iter_mut().flatten().filter_map(|done| done.update.as_mut()) {
        discard_reduced::<AnyState>(&core.schema, update, channel);
    }
}

fn concurrent_update(core: &RunGraph, channel: usize, first: u32, second: u32, kind: WriteKind) -> Error {
    let field = &core.schema.channels()[channel].name;
    let first = core.name(first);
    let second = core.name(second);
    let who = if first == second {
        format!("two tasks of node `{first}`")
    } else {
        format!("nodes `{first}` and `{second}`")
    };
    let (did, remedy) = match kind {
        WriteKind::Reduce => {
            ("wrote", format!("{}, or let the nodes run one after the other", core.schema.several_writes()))
        }
        WriteKind::Overwrite => ("overwrote", "at most one of them may overwrite it".to_owned()),
    };
    Error::new(Code::ConcurrentUpdate, format!("{who} {did} `{field}` in the same superstep: {remedy}"))
}

//! The content of a record's header, and how much it repeats of earlier headers.

use crate::context::Memories;
use crate::engine::frontier::Frontier;
use crate::engine::journal::{Commit, Journal};
use crate::engine::position::Position;
use crate::error::{Code, Error};
use crate::graph::GraphCore;
use crate::graph::joins::Joins;
use crate::graph::run_graph::RunGraph;
use crate::record::bytes::Bytes;
use crate::record::header::{Header, StoredDispatch, StoredJoin};
use agentgraph_checkpoint::Source;
use agentgraph_checkpoint::delta::{encode, text};
use agentgraph_checkpoint::frame::{HeaderWriter, Pairs};

/// How much a header repeats of earlier ones.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Repeat {
    /// Nothing: a delta.
    Changes,
    /// The fields that deltas change: a segment, which is read instead of them.
    Run,
    /// Everything: a full.
    Everything,
}

impl Journal {
    /// Encodes the record without its operations.
    pub(super) fn encode(
        &self,
        record: &mut Vec<u8>,
        time: u64,
        commit: &Commit<'_>,
        repeat: Repeat,
    ) -> Result<(), Error> {
        let Position { graph: core, frontier, joins, .. } = commit.position;
        let mut header = HeaderWriter::begin(record);
        header.number("time", time);
        if commit.flow().is_none() {
            let mut written = Ok(());
            header.raw("next", |bytes| written = write_frontier(bytes, core, frontier));
            written?;
        }
        if commit.note.source != Source::Loop {
            header.value("source", &commit.note.source);
        }
        if let Some(abandoned) = &commit.note.abandoned {
            header.value("abandoned", abandoned);
        }
        if !commit.note.halt.is_empty() {
            header.value("halt", &commit.note.halt);
        }
        let changes = repeat == Repeat::Changes;
        if !changes || commit.note.source != Source::Loop {
            header.value("run", &self.head.run);
            if let Some(call) = &self.head.call {
                header.value("call", call);
            }
        }
        if let Some(flow) = commit.flow() {
            flow.write(&mut header, core, !changes || commit.note.source != Source::Loop)?;
        }
        if let Some(wrote) = self.next.updates.as_ref().filter(|_| repeat != Repeat::Run) {
            header.raw("wrote", |bytes| drop(rmp::encode::write_bin(bytes, wrote)));
        }
        if !changes && self.head.ahead > 0 {
            header.number("ahead", self.head.ahead);
        }
        if let Some(spent) = &commit.spent {
            header.value("spent", spent);
        }
        if !changes || self.notes.open_joins || joins.any_open() {
            header.value("joins", &stored_joins(core, joins));
        }
        if !joins.stuck_inside().is_empty() || (changes && self.notes.stuck > 0) {
            self.encode_stuck(&mut header, commit, changes && commit.note.source == Source::Loop);
        }
        if !frontier.deferred.is_empty() || (changes && self.notes.deferred) {
            let names = frontier.deferred.iter().map(|node| core.name(*node));
            header.value("deferred", &names.collect::<Vec<_>>());
        }
        self.encode_edits(&mut header, core, commit, repeat);
        if let Some(memories) = &self.memories {
            encode_memories(&mut header, memories, repeat);
        }
        if !commit.sessions.is_empty() && (!changes || commit.note.sessions_used) {
            header.value("session", &commit.sessions.encode()?);
        }
        if repeat == Repeat::Everything {
            self.encode_constants(&mut header, core);
        }
        header.finish();
        Ok(())
    }

    fn encode_constants(&self, header: &mut HeaderWriter<'_>, core: &RunGraph) {
        header.pairs(self.constants(core));
        for (key, value) in &self.unknown.header {
            header.raw(key, |bytes| bytes.extend_from_slice(value));
        }
        if let Some(parent) = self.origin.parent {
            header.value("parent", &(parent.branch, parent.step));
        }
    }

    /// Encodes the stuck joins of subgraphs: all of them, or those that the head does not contain.
    fn encode_stuck(&self, header: &mut HeaderWriter<'_>, commit: &Commit<'_>, adds: bool) {
        let stuck = commit.position.joins.stuck_inside();
        match stuck.get(self.notes.stuck..).filter(|_| adds) {
            None => header.value("stuck", stuck),
            Some([]) => {}
            Some(more) => header.value("also_stuck", more),
        }
    }

    fn encode_edits(
        &self,
        header: &mut HeaderWriter<'_>,
        core: &RunGraph,
        commit: &Commit<'_>,
        repeat: Repeat,
    ) {
        let log = core.log();
        let whole = repeat != Repeat::Changes || self.notes.foreign_edits;
        // A full starts without edits; a segment starts with those of the full or segment before it.
        let replaces = self.notes.foreign_edits || repeat == Repeat::Run;
        let said = match repeat {
            Repeat::Changes => Some(self.notes.edits).filter(|_| !self.notes.foreign_edits),
            Repeat::Run => self.notes.folded_edits,
            Repeat::Everything => None,
        };
        match said.and_then(|said| log.get(said..)) {
            Some([]) => {}
            Some(added) => header.value("edits", added),
            None if log.is_empty() && !replaces => {}
            None => header.value("overlay", log),
        }
        if whole && (!commit.skips.is_empty() || replaces) || !whole && self.notes.skips != commit.skips {
            header.value("skips", &commit.skips);
        }
        let all = repeat != Repeat::Changes;
        if commit.outputs.has_changed() || (all && !commit.outputs.is_empty()) {
            header.value("outputs", &commit.outputs.to_store(core, all));
        }
    }
}

fn encode_memories(header: &mut HeaderWriter<'_>, memories: &Memories, repeat: Repeat) {
    let changes = match repeat {
        Repeat::Changes => memories.changes(),
        Repeat::Run | Repeat::Everything => None,
    };
    match changes {
        Some(changed) if changed.is_empty() => {}
        Some(changed) => header.value("remembered", &changed),
        None => {
            let named = memories.named();
            // A full starts without memories; other records start with those of earlier records, which may
            // belong to another call.
            if !named.is_empty() || repeat != Repeat::Everything {
                header.value("memories", &named);
            }
        }
    }
}

/// The part of a full that is constant for a graph.
pub(super) fn constants(core: &GraphCore) -> &Pairs {
    core.stored.constants.get_or_init(|| constants_with(core, std::iter::empty()))
}

/// [`constants`], with fields that come after the channels.
pub(super) fn constants_with<'a>(core: &'a GraphCore, carried: impl Iterator<Item = &'a str>) -> Pairs {
    let channels = core.schema.channels().iter().map(|channel| &*channel.name);
    let fields: Vec<&str> = channels.chain(carried).collect();
    Pairs::of(|header| {
        let defaults = Header::default();
        header.value("fields", &fields);
        header.value("fingerprint", &core.stored.fingerprint);
        header.value("discipline", core.rules.discipline.name());
        header.value("schema", &core.stored.migrations.version);
        header.value("fence", &defaults.fence);
        header.value("codec", &defaults.codec);
    })
}

/// Writes the frontier as a list of names; a dispatch is a map. Encoded by hand, since every record contains
/// it.
fn write_frontier(bytes: &mut Vec<u8>, core: &RunGraph, frontier: &Frontier) -> Result<(), Error> {
    // Writing to a Vec does not fail.
    match frontier.len() {
        few @ 0..16 => bytes.push(0x90 | few as u8),
        many => drop(rmp::encode::write_array_len(bytes, many as u32)),
    }
    for node in &frontier.pulled {
        text(bytes, core.name(*node)).map_err(|error| Error::new(Code::Encode, error.to_string()))?;
    }
    for dispatch in &frontier.dispatched {
        let node = core.name(dispatch.node);
        let from = core.name(dispatch.from);
        let input = dispatch.input.encode_for(node).map_err(|error| error.at_node(from))?;
        let stored = StoredDispatch {
            node: node.to_owned(),
            from: from.to_owned(),
            index: dispatch.index,
            input: Bytes(input),
            limits: dispatch.input.stored_limits(),
        };
        encode(bytes, &stored).map_err(|error| Error::new(Code::Encode, error.to_string()))?;
    }
    Ok(())
}

fn stored_joins(core: &RunGraph, joins: &Joins) -> Vec<StoredJoin> {
    let name = |node: &u32| core.name(*node).to_owned();
    let open = joins.open(&core.topology).map(|round| StoredJoin {
        sources: round.join.sources.iter().map(name).collect(),
        to: name(&round.join.target),
        arrived: round.arrived.iter().map(|place| name(&round.join.sources[*place as usize])).collect(),
        fired: round.fired,
        due: round.due,
    });
    open.collect()
}

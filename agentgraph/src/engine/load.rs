//! Loading: from the rows of a thread back to a state, a frontier, joins and pending writes.

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;

use crate::context::edits::ProposedEdit;
use crate::engine::activations::Activations;
use crate::engine::flow::Flow;
use crate::engine::flow::record::left_in_header;
use crate::engine::frontier::{Dispatched, Frontier};
use crate::engine::left_over::Leftovers;
use crate::engine::stored::{
    CALL, ERROR, FAILED, FAILURE, OF_RUN, ONCE, SESSIONS, SPENT, StoredAnswer, StoredRequest, StoredStep,
    TOLD, from_bytes, read_failure,
};
use crate::engine::unknown_fields::{Misfit, UnknownField, fit, is_unknown, migrated, refuse};
use crate::error::{Code, Error};
use crate::graph::joins::Joins;
use crate::graph::run_graph::RunGraph;
use crate::graph::topology::JoinShape;
use crate::graph::{Discipline, GraphCore};
use crate::persistence::Persistence;
use crate::record::codec::Codec;
use crate::record::header::{Header, StoredJoin, StoredState, StoredStuck};
use crate::record::migrate::StoredFields;
use crate::session::StoredSessions;
use crate::state::{Channel, StateError};
use crate::step::{InputValue, Step};
use crate::typed::AnyState;
use crate::words::{END, EditError, GraphEdit, START, Spent};
use agentgraph_checkpoint::delta::{Weight, whole_size};
use agentgraph_checkpoint::engine::{IMPOSSIBLE, corrupt, is_possible, unreadable};
use agentgraph_checkpoint::fold::{Folded, Value};
use agentgraph_checkpoint::frame::{FormatError, damaged, open, value_length};
use agentgraph_checkpoint::header::HeaderMap;
use agentgraph_checkpoint::{CheckpointId, Checkpointer, PendingWrite, Place, RowKind, Tail};

/// The fields and the header of a checkpoint, before names are looked up in the graph.
#[derive(Clone, Default)]
pub(crate) struct Replay {
    pub(crate) id: CheckpointId,
    /// The content of its headers, as read; `header` is the same in this release's types.
    map: HeaderMap,
    pub(crate) header: Header,
    pub(in crate::engine) folded: Folded,
    /// The number of bytes read.
    pub(in crate::engine) replay: u64,
    /// The number of bytes read after the full.
    pub(in crate::engine) since_full: u64,
    /// The number of deltas read.
    pub(in crate::engine) deltas: u32,
}

/// A restored state, with the facts that a journal needs about it.
pub(crate) struct RestoredState {
    pub(crate) state: AnyState,
    pub(in crate::engine) weights: Vec<Weight>,
    /// Whether the record was written by a graph with the same channels.
    pub(in crate::engine) same_fields: bool,
    /// Stored fields that the state does not have and the graph does not drop.
    pub(in crate::engine) unknown: Vec<UnknownField>,
}

impl RestoredState {
    /// The names of the stored fields that the state does not have and the graph does not drop.
    pub(crate) fn unknown_names(&self) -> impl Iterator<Item = &str> {
        self.unknown.iter().map(|field| &*field.name)
    }

    /// Refuses to continue if stored fields would be lost.
    pub(crate) fn check(&self, keeps: bool, place: Place<'_>) -> Result<(), Error> {
        refuse(place, "the thread", self.unknown_names().filter(|_| !keeps))
    }
}

/// Reads the checkpoint at the end of a tail.
pub(crate) async fn replay(
    saver: &dyn Checkpointer,
    place: Place<'_>,
    tail: &mut Tail,
) -> Result<Box<Replay>, Error> {
    let mut replayed = Box::<Replay>::default();
    // Each row is freed when it has been applied: the values that are decoded next take its memory.
    for row in std::mem::take(&mut tail.rows) {
        apply_row(&mut replayed, row.id, row.kind, &row.record)
            .map_err(|error| unreadable(place, row.id, error))?;
        replayed.replay += row.record.len() as u64;
        replayed.since_full += if row.kind == RowKind::Full { 0 } else { row.record.len() as u64 };
    }
    replayed.read_header(place)?;
    fill_references(saver, place, &mut replayed).await?;
    Ok(replayed)
}

impl Replay {
    /// Parses the header. Must be called after rows were applied and before the header is used.
    pub(crate) fn read_header(&mut self, place: Place<'_>) -> Result<(), Error> {
        self.header = Header::of(&self.map).map_err(|error| unreadable(place, self.id, error))?;
        Ok(())
    }
}

/// Applies one more row.
pub(crate) fn apply_row(
    replayed: &mut Replay,
    id: CheckpointId,
    kind: RowKind,
    record: &[u8],
) -> Result<(), FormatError> {
    if !is_possible(id) {
        return Err(damaged(IMPOSSIBLE));
    }
    let view = open(kind, record)?;
    if kind == RowKind::Full {
        // A full repeats everything; fields that it omits are over.
        replayed.map = HeaderMap::default();
    }
    replayed.map.apply(view.header)?;
    match kind {
        RowKind::Full => {
            let earlier = std::mem::take(&mut replayed.folded);
            replayed.deltas = 0;
            replayed.folded.apply(view.operations, Some(id))?;
            replayed.folded.share_with(&earlier);
        }
        RowKind::Delta => {
            replayed.deltas += 1;
            replayed.folded.apply(view.operations, Some(id))?;
        }
        RowKind::Segment => replayed.folded.apply(view.operations, None)?,
        _ => return Err(damaged("its kind is unknown to this release")),
    }
    replayed.id = id;
    Ok(())
}

/// Fetches the values that a full refers to.
pub(crate) async fn fill_references(
    saver: &dyn Checkpointer,
    place: Place<'_>,
    replayed: &mut Replay,
) -> Result<(), Error> {
    for (field, id) in replayed.folded.elsewhere() {
        let row = saver.row(place, id).await?;
        let row = row.ok_or_else(|| {
            corrupt(place, replayed.id, format!("it refers to checkpoint {id}, which is missing"))
        })?;
        let mut other = Folded::default();
        let filled = open(row.kind, &row.record)
            .and_then(|view| other.apply(view.operations, Some(id)))
            .and_then(|()| replayed.folded.fill(field, &other, id));
        let value = filled.map_err(|error| unreadable(place, id, error))?;
        // Only the value counts, not its whole record: a full written for that reason would refer to it
        // again.
        replayed.replay += value;
    }
    Ok(())
}

/// Builds the typed state. Stored fields that the state no longer has are returned beside it; new fields have
/// their initial values.
pub(crate) fn restore(
    core: &GraphCore,
    persistence: &Persistence,
    place: Place<'_>,
    replayed: &Replay,
) -> Result<RestoredState, Error> {
    let channels = core.schema.channels();
    let stored = StoredValues::read(core, place, replayed)?;
    stored.check_that_some_is_known(channels, place)?;
    let mut state = core.schema.initial();
    let mut weights = vec![Weight::default(); channels.len()];
    for (at, channel) in channels.iter().enumerate().filter(|(_, channel)| channel.is_stored()) {
        let Some(StoredValue { bytes, live, whole_at }) = stored.of(at, channel, place, replayed)? else {
            continue;
        };
        (persistence.codec.restore_channel)(&mut state, &core.schema, at, &bytes)
            .map_err(|error| unfit(place, replayed.id, &bytes, &error))?;
        weights[at] = Weight { live, whole_at };
    }
    let unknown = stored.unknown(core, place, replayed)?;
    Ok(RestoredState { state, weights, same_fields: stored.same_fields, unknown })
}

/// Checks that continuing would not lose stored fields.
pub(crate) fn check_fields(core: &GraphCore, place: Place<'_>, replayed: &Replay) -> Result<(), Error> {
    if core.stored.unknown_fields.keeps || !replayed.header.fields.iter().any(|name| is_unknown(core, name)) {
        return Ok(());
    }
    let unknown = StoredValues::read(core, place, replayed)?.unknown(core, place, replayed)?;
    refuse(place, "the thread", unknown.iter().map(|field| &*field.name))
}

/// Restores a state that is stored in a header since no checkpoint contains it.
pub(super) fn restore_kept(
    core: &GraphCore,
    persistence: &Persistence,
    place: Place<'_>,
    kept: &StoredState,
) -> Result<AnyState, Error> {
    let at = |error: Error| error.on_thread(Some(place.thread));
    let fields = migrated(core, kept).map_err(at)?;
    let mut state = core.schema.initial();
    for (channel, described) in core.schema.channels().iter().enumerate().filter(|(_, one)| one.is_stored()) {
        let name = fields.names().find(|name| described.is_called(name)).map(str::to_owned);
        let Some(value) = name.and_then(|name| fields.value(&name)) else { continue };
        (persistence.codec.restore_channel)(&mut state, &core.schema, channel, value)
            .map_err(|error| at(error.into()))?;
    }
    Ok(state)
}

/// The error for a missing checkpoint whose state an open task has to read again.
pub(super) fn unknown_read(place: Place<'_>, id: CheckpointId, node: &str) -> Error {
    let problem = format!(
        "it reads the state of checkpoint {id}, which the store no longer has: keep the checkpoints of unfinished \
         runs, or start over with `.abandon()`"
    );
    Error::new(Code::UnknownCheckpoint, problem).at_node(node).on_thread(Some(place.thread))
}

/// The values of a checkpoint by their stored names, in the current version.
struct StoredValues<'a> {
    names: Vec<&'a str>,
    same_fields: bool,
    /// `None` if the stored values are of the current version.
    migrated: Option<StoredFields>,
}

/// The MessagePack of a channel, and the record that contains it whole.
struct StoredValue<'v> {
    bytes: Cow<'v, [u8]>,
    /// The number of bytes that a full record would contain of it.
    live: u64,
    whole_at: Option<CheckpointId>,
}

impl<'a> StoredValues<'a> {
    fn read(core: &GraphCore, place: Place<'_>, replayed: &'a Replay) -> Result<Self, Error> {
        let channels = core.schema.channels();
        let header = &replayed.header;
        let names: Vec<&str> = header.fields.iter().map(String::as_str).collect();
        if header.schema != core.stored.migrations.version {
            let mut fields = StoredFields::of_state(all_values(place, replayed)?);
            let migrated = core.stored.migrations.state(header.schema, &mut fields);
            migrated.map_err(|error| other_version(place, replayed.id, error.message()))?;
            return Ok(StoredValues { names, same_fields: false, migrated: Some(fields) });
        }
        let same = |(name, channel): (&&str, &Channel)| *name == channel.name;
        let begins_same = names.len() >= channels.len() && names.iter().zip(channels).all(same);
        // Carried fields come after the channels.
        let carried = names.iter().enumerate().skip(channels.len());
        let same_fields = begins_same
            && carried.clone().all(|(at, name)| is_unknown(core, name) && replayed.folded.is_written(at));
        Ok(StoredValues { names, same_fields, migrated: None })
    }

    /// The stored fields that the state does not have.
    fn unknown(
        &self,
        core: &GraphCore,
        place: Place<'_>,
        replayed: &Replay,
    ) -> Result<Vec<UnknownField>, Error> {
        if let Some(fields) = &self.migrated {
            let unknown = fields.names().filter(|name| is_unknown(core, name));
            let unknown = unknown.filter_map(|name| Some((name, fields.value(name)?)));
            let unknown = unknown.map(|(name, value)| (name.to_owned(), value.to_vec()));
            return Ok(unknown.map(|(name, value)| UnknownField { name, value, whole_at: None }).collect());
        }
        // A table of the same length has no room for other fields.
        if self.same_fields && self.names.len() == core.schema.channels().len() {
            return Ok(Vec::new());
        }
        let unknown = self.names.iter().enumerate().filter(|(_, name)| is_unknown(core, name));
        let values = unknown.map(|(field, name)| {
            let whole_at = replayed.folded.whole_at(field).filter(|_| self.same_fields);
            let value = value_of(place, replayed, field)?;
            Ok(value.map(|value| UnknownField {
                name: (*name).to_owned(),
                value: value.into_owned(),
                whole_at,
            }))
        });
        values.filter_map(Result::transpose).collect()
    }

    /// Checks that the thread can belong to this graph: at least one stored channel is known.
    fn check_that_some_is_known(&self, channels: &[Channel], place: Place<'_>) -> Result<(), Error> {
        let known = |name: &str| channels.iter().any(|channel| channel.is_called(name));
        let known = match &self.migrated {
            None => self.names.iter().copied().any(known),
            Some(fields) => fields.names().any(known),
        };
        if known || self.names.is_empty() || channels.is_empty() {
            return Ok(());
        }
        let problem = format!(
            "the thread holds the channels {} and this graph has none of them: it belongs to another graph, so give this graph \
             its own threads or its own file",
            self.names.join(", ")
        );
        Err(Error::new(Code::GraphChanged, problem).on_thread(Some(place.thread)))
    }

    /// The stored value of a channel; `None` if it was never written.
    fn of<'v>(
        &'v self,
        at: usize,
        channel: &Channel,
        place: Place<'_>,
        replayed: &'v Replay,
    ) -> Result<Option<StoredValue<'v>>, Error> {
        if let Some(fields) = &self.migrated {
            let name = fields.names().find(|name| channel.is_called(name));
            let value = name.and_then(|name| fields.value(name));
            let stored = |value: &'v [u8]| {
                let live = whole_size(at, value.len() as u64);
                StoredValue { bytes: Cow::Borrowed(value), live, whole_at: None }
            };
            return Ok(value.map(stored));
        }
        // If the same graph wrote the record, the position of the field is known without its name.
        let same = Some(at).filter(|_| self.same_fields);
        let find = || self.names.iter().position(|name| channel.is_called(name));
        let Some(field) = same.or_else(find) else { return Ok(None) };
        let value = value_of(place, replayed, field)?;
        let whole_at = replayed.folded.whole_at(field).filter(|_| self.same_fields);
        Ok(value.map(|bytes| {
            let live = replayed.folded.weight(field, bytes.len());
            StoredValue { bytes, live, whole_at }
        }))
    }
}

fn all_values(place: Place<'_>, replayed: &Replay) -> Result<Vec<(String, Vec<u8>)>, Error> {
    let fields = replayed.header.fields.iter().enumerate();
    let values = fields
        .map(|(at, name)| Ok(value_of(place, replayed, at)?.map(|value| (name.clone(), value.into_owned()))));
    values.filter_map(Result::transpose).collect()
}

fn value_of<'v>(
    place: Place<'_>,
    replayed: &'v Replay,
    field: usize,
) -> Result<Option<Cow<'v, [u8]>>, Error> {
    match replayed.folded.value(field).map_err(|error| corrupt(place, replayed.id, error))? {
        Value::Absent => Ok(None),
        Value::Bytes(value) => Ok(Some(value)),
    }
}

/// The error for a value that the current state does not accept. If the bytes are complete, the type of the
/// field has changed.
fn unfit(place: Place<'_>, id: CheckpointId, value: &[u8], error: &StateError) -> Error {
    if !value_length(value).is_ok_and(|length| length == value.len()) {
        return corrupt(place, id, error).into();
    }
    let problem = format!(
        "{error}; if the type of the field was changed, raise `.schema_version(..)` and say with `.migration(..)` how to \
         read the stored value"
    );
    other_version(place, id, &problem)
}

fn other_version(place: Place<'_>, id: CheckpointId, problem: &str) -> Error {
    let problem = format!("checkpoint {id} cannot be used: {problem}");
    Error::new(Code::SchemaVersion, problem).on_thread(Some(place.thread))
}

/// The position of a stored run, by the ids of the current graph.
pub(crate) struct Lookup {
    /// The graph with the temporary edits of the run.
    pub(crate) graph: RunGraph,
    pub(crate) frontier: Frontier,
    pub(crate) joins: Joins,
    /// The open activations, if the run has no supersteps.
    pub(crate) eager: Option<Box<Activations>>,
}

/// Looks up the stored frontier and joins in the graph.
///
/// # Errors
/// [`Code::GraphChanged`] with the names that are missing.
pub(crate) fn look_up(core: &Arc<GraphCore>, place: Place<'_>, header: &Header) -> Result<Lookup, Error> {
    if !header.next.is_empty() && header.discipline != core.rules.discipline.name() {
        return Err(other_discipline(place, header, core.rules.discipline.name()));
    }
    let mut gone = Vec::new();
    let core = RunGraph::restore(core, header, &mut gone);
    let mut frontier = Frontier::default();
    let eager = (core.rules.discipline == Discipline::Eager)
        .then(|| Activations::of(Flow::of_header(&core, header, &mut gone)));
    for activation in header.next.iter().filter(|_| core.rules.discipline != Discipline::Eager) {
        let node = id_of(&core, &activation.node, &mut gone);
        match &activation.dispatch {
            None => frontier.pull(node),
            Some(dispatch) => {
                // A node that dispatched may be gone: its dispatch runs without it.
                let from = core.id_of_any(&dispatch.from);
                let from = from.unwrap_or_else(|| id_of(&core, &dispatch.from, &mut gone));
                let input = InputValue::stored(dispatch.input.0.clone(), dispatch.limits);
                frontier.dispatched.push(Dispatched { node, from, index: dispatch.index, input });
            }
        }
    }
    frontier.settle();
    frontier.deferred.extend(header.deferred.iter().map(|node| id_of(&core, node, &mut gone)));
    let joins = stored_joins(&core, header, &mut gone);
    if gone.is_empty() {
        return Ok(Lookup { graph: core, frontier, joins, eager });
    }
    Err(graph_changed(place, gone))
}

/// The error for a checkpoint that needs names which the graph does not have.
pub(crate) fn graph_changed(place: Place<'_>, mut gone: Vec<String>) -> Error {
    let mut seen = HashSet::new();
    gone.retain(|name| seen.insert(name.clone()));
    let problem = format!(
        "the thread waits at {}, which this graph does not have: run it with the graph it was started on, bring the name \
         back, or start over with `.abandon()`",
        gone.join(", ")
    );
    Error::new(Code::GraphChanged, problem).on_thread(Some(place.thread))
}

fn other_discipline(place: Place<'_>, header: &Header, now: &str) -> Error {
    let problem = format!(
        "the thread's run is {}, and this graph is {now}: use `.eager()` as in the graph that started the run, or start over \
         with `.abandon()`",
        header.discipline
    );
    Error::new(Code::GraphChanged, problem).on_thread(Some(place.thread))
}

fn id_of(core: &RunGraph, name: &str, gone: &mut Vec<String>) -> u32 {
    match core.id(name) {
        Some(node) => node,
        None if name == START => core.topology.start(),
        None => {
            gone.push(format!("node `{name}`"));
            0
        }
    }
}

fn stored_joins(core: &RunGraph, header: &Header, gone: &mut Vec<String>) -> Joins {
    let mut joins = Joins::of(&core.topology);
    joins.note_stuck_inside(header.stuck.iter().cloned());
    let pruned = core.overlay().into_iter().flat_map(|overlay| overlay.pruned());
    for (join, place) in pruned {
        joins.prune(&core.topology, join, place);
    }
    for stored in &header.joins {
        let wanted: HashSet<&str> = stored.sources.iter().map(String::as_str).collect();
        let found = core.topology.joins.iter().position(|join| {
            core.name(join.target) == stored.to
                && join.sources.len() == wanted.len()
                && join.sources.iter().all(|source| wanted.contains(core.name(*source)))
        });
        let Some(found) = found else {
            gone.push(gone_join(core, stored));
            continue;
        };
        let sources = &core.topology.joins[found].sources;
        let arrived = |source: &u32| stored.arrived.iter().any(|arrived| arrived == core.name(*source));
        let places = (0..).zip(sources).filter(|(_, source)| arrived(source)).map(|(place, _)| place);
        let places: Vec<u32> = places.collect();
        joins.restore(&core.topology, found as u32, &places, stored.fired, stored.due);
    }
    joins
}

/// Describes a stored join that the graph does not have, and the graph's join with the same target, if there
/// is one.
fn gone_join(core: &RunGraph, stored: &StoredJoin) -> String {
    let to = if stored.to == END { "END" } else { &stored.to };
    let sources = |join: &JoinShape| join.sources.iter().map(|source| core.name(*source)).collect::<Vec<_>>();
    let mut joins =
        core.topology.joins.iter().filter(|join| core.name(join.target) == stored.to).map(sources);
    let today = joins.find(|sources| sources.iter().any(|name| stored.sources.iter().any(|old| old == name)));
    let today = today.map(|sources| format!(" (today it waits for {})", sources.join(" + ")));
    format!("the join {} -> `{to}`{}", stored.sources.join(" + "), today.unwrap_or_default())
}

/// The joins that were still waiting when the run of a header ended: those of its graph by their stored
/// names, then those of subgraphs.
pub(crate) fn stuck_at_end(core: &Arc<GraphCore>, namespace: &str, header: &Header) -> Vec<StoredStuck> {
    let core = RunGraph::restore(core, header, &mut Vec::new());
    let pruned: Vec<(&str, &str)> = core
        .overlay()
        .into_iter()
        .flat_map(|overlay| overlay.pruned())
        .filter_map(|(join, place)| {
            let join = core.topology.joins.get(join as usize)?;
            Some((core.name(join.target), core.name(*join.sources.get(place as usize)?)))
        })
        .collect();
    let stuck = header.joins.iter().filter(|join| !join.fired).map(|join| {
        let waits = |source: &&String| {
            !join.arrived.contains(source) && !pruned.contains(&(join.to.as_str(), source.as_str()))
        };
        StoredStuck {
            namespace: namespace.to_owned(),
            to: join.to.clone(),
            arrived: join.arrived.clone(),
            missing: join.sources.iter().filter(waits).cloned().collect(),
        }
    });
    stuck.chain(header.stuck.iter().cloned()).collect()
}

/// The stuck joins of the subgraph that a finished task called, from its pending write.
pub(super) fn stuck_in(thread: &str, record: &[u8]) -> Result<Vec<StoredStuck>, Error> {
    let step = StoredStep::from_bytes(record).map_err(|error| error.on_thread(Some(thread)))?;
    Ok(step.stuck)
}

/// The edits of a finished task, with the nodes that they add.
pub(super) fn proposed(
    core: &RunGraph,
    thread: &str,
    edits: Vec<GraphEdit>,
) -> Result<Vec<ProposedEdit>, Error> {
    let made = edits.into_iter().map(|edit| match core.make(&edit, None) {
        Ok(made) => Ok(ProposedEdit { edit, made, seen: core.log().len() }),
        Err(why) => {
            let problem = format!(
                "the stored edits of a finished task cannot be used: {}; bring it back, or give the run up with `.abandon()`",
                EditError::new(edit, why)
            );
            Err(Error::new(Code::GraphChanged, problem).on_thread(Some(thread)))
        }
    });
    made.collect()
}

/// The step of a finished task and its temporary edits, from its pending write.
pub(super) fn finished_step(
    core: &GraphCore,
    codec: &Codec,
    thread: &str,
    record: &[u8],
) -> Result<(Step<AnyState>, Vec<GraphEdit>), Error> {
    finished(core, codec, thread, record, Misfit::Refuse)
}

/// [`finished_step`], with a choice what happens to fields that the current state does not have.
pub(crate) fn finished(
    core: &GraphCore,
    codec: &Codec,
    thread: &str,
    record: &[u8],
    misfit: Misfit,
) -> Result<(Step<AnyState>, Vec<GraphEdit>), Error> {
    let step = StoredStep::from_bytes(record)
        .and_then(|step| step.migrated(&core.stored.migrations))
        .and_then(|mut step| {
            fit(core, thread, &mut step, misfit)?;
            let edits = std::mem::take(&mut step.edits);
            Ok((step.into_step(codec, &core.schema)?, edits))
        });
    step.map_err(|error| {
        let (code, remedy) = match error.code() {
            Code::SchemaVersion | Code::GraphChanged => return error.on_thread(Some(thread)),
            Code::UnknownChannel => {
                (Code::GraphChanged, "bring the channel back, or make its name an alias of the new one")
            }
            _ => (Code::CorruptCheckpoint, "give the run up with `.abandon()` to continue without it"),
        };
        let problem =
            format!("the stored result of a finished task cannot be used: {}; {remedy}", error.message());
        Error::new(code, problem).on_thread(Some(thread))
    })
}

/// The content of pending writes, by kind.
#[derive(Default)]
pub(crate) struct Remains {
    pub(crate) tasks: Leftovers,
    /// Whether the static interrupts here were reported to the caller.
    pub(crate) told: bool,
    pub(crate) sessions: Option<StoredSessions>,
    pub(crate) spent: Option<Spent>,
}

/// Sorts the pending writes of a checkpoint, together with its header's open tasks.
pub(crate) fn read_remains(
    core: &Arc<GraphCore>,
    place: Place<'_>,
    (id, header): (CheckpointId, &Header),
    writes: &[PendingWrite],
) -> Result<Remains, Error> {
    let (of_run, of_tasks): (Vec<&PendingWrite>, _) = writes.iter().partition(|write| write.task == OF_RUN);
    let core = RunGraph::restore(core, header, &mut Vec::new());
    let handler_of = |failed: &str| Some(core.name(core.handler(core.id_of_any(failed)?)?).to_owned());
    let before = left_in_header(place, header, id, &handler_of)?;
    let mut left = Remains { tasks: left_over(place, before, &of_tasks)?, ..Remains::default() };
    let at = |error: Error| error.on_thread(Some(place.thread));
    for write in of_run {
        match write.slot {
            TOLD => left.told = true,
            SESSIONS => left.sessions = Some(from_bytes(&write.bytes).map_err(at)?),
            SPENT => left.spent = Some(from_bytes(&write.bytes).map_err(at)?),
            FAILURE => {
                if let Some(failure) = read_failure(&write.bytes).map_err(at)? {
                    left.tasks.entry(OF_RUN).or_default().error = Some(Arc::new(failure));
                }
            }
            _ => {}
        }
    }
    Ok(left)
}

fn left_over(place: Place<'_>, mut left: Leftovers, writes: &[&PendingWrite]) -> Result<Leftovers, Error> {
    for write in writes {
        let task = left.entry(write.task).or_default();
        let n = write.slot.saturating_sub(1) / 2;
        let at = |error: Error| error.on_thread(Some(place.thread));
        match write.slot {
            0 => task.result = Some(write.bytes.clone()),
            CALL => task.call = Some(from_bytes(&write.bytes).map_err(at)?),
            FAILED => task.failure = Some(Arc::new(from_bytes(&write.bytes).map_err(at)?)),
            ERROR => task.error = read_failure(&write.bytes).map_err(at)?.map(Arc::new),
            // A slot of a later release.
            PendingWrite::SPECIAL.. => {}
            slot @ ONCE.. if slot % 2 == 0 => {
                drop(task.once.insert((slot - ONCE) / 2, from_bytes(&write.bytes).map_err(at)?));
            }
            1.. if !PendingWrite::can_be_asked(n) => {
                let problem = format!("a pending write has the request number {n}, which no task can reach");
                return Err(at(Error::new(Code::CorruptCheckpoint, problem)));
            }
            slot if slot % 2 == 1 => {
                task.request(n, from_bytes::<StoredRequest>(&write.bytes).map_err(at)?);
            }
            _ => task.take(n, StoredAnswer::from_bytes(&write.bytes).map_err(at)?),
        }
    }
    Ok(left)
}

//! Loading: from the rows of a thread back to a state, a frontier, joins and pending writes.

use std::sync::Arc;

use crate::checkpoint::codec::Codec;
use crate::checkpoint::delta::{Weight, whole_size};
use crate::checkpoint::fold::{Folded, Value};
use crate::checkpoint::format::{FormatError, Header, StoredState, open, value_length};
use crate::checkpoint::{PendingWrite, Place, RowKind, Tail, corrupt, unreadable};
use crate::context::{Answer, CheckpointId, Spent};
use crate::edits::{EditError, GraphEdit};
use crate::engine::eager::record::left_in_header;
use crate::engine::eager::{Eager, Flow};
use crate::engine::plan::{Dispatched, Frontier, LeftOver};
use crate::engine::stored::{
    CALL, FAILED, OF_RUN, SESSIONS, SPENT, StoredAnswer, StoredRequest, StoredStep, TOLD, from_bytes,
};
use crate::error::{Code, Error};
use crate::graph::joins::Joins;
use crate::graph::run_graph::{Proposed, RunGraph};
use crate::graph::{GraphCore, Persistence};
use crate::migrate::StoredFields;
use crate::session::StoredSessions;
use crate::state::{Channel, State, StateError};
use crate::step::{InputValue, Step};
use crate::{END, START};

/// The fields and the header of a checkpoint, before anything of the graph is looked up.
#[derive(Clone)]
pub(crate) struct Replayed {
    pub(crate) id: CheckpointId,
    pub(crate) header: Header,
    pub(crate) folded: Folded,
    /// The bytes that were read.
    pub(crate) replay: u64,
    /// The deltas that were read.
    pub(crate) deltas: u32,
}

/// A state read back, with what a journal must know of it.
pub(crate) struct Restored<S> {
    pub(crate) state: S,
    pub(crate) weights: Vec<Weight>,
    /// The record was written by a graph with the same channels.
    pub(crate) same_fields: bool,
}

/// Reads the checkpoint that a tail ends in.
pub(crate) async fn replay<S: State>(
    persistence: &Persistence<S>,
    place: Place<'_>,
    tail: &Tail,
) -> Result<Replayed, Error> {
    let mut replayed = Replayed {
        id: CheckpointId::default(),
        header: Header::default(),
        folded: Folded::default(),
        replay: 0,
        deltas: 0,
    };
    for row in &tail.rows {
        apply_row(&mut replayed, row.id, row.kind, &row.record)
            .map_err(|error| unreadable(place, row.id, error))?;
        replayed.replay += row.record.len() as u64;
    }
    fill_references(persistence, place, &mut replayed).await?;
    Ok(replayed)
}

/// Takes one more row over.
pub(crate) fn apply_row(
    replayed: &mut Replayed,
    id: CheckpointId,
    kind: RowKind,
    record: &[u8],
) -> Result<(), FormatError> {
    let view = open(record)?;
    if kind == RowKind::Full {
        // It says everything anew; what it leaves out is over.
        replayed.header = Header::default();
    }
    replayed.header.update(view.header)?;
    match kind {
        RowKind::Full => {
            replayed.folded = Folded::default();
            replayed.deltas = 0;
            replayed.folded.apply(view.operations, Some(id))?;
        }
        RowKind::Delta => {
            replayed.deltas += 1;
            replayed.folded.apply(view.operations, Some(id))?;
        }
        RowKind::Segment => replayed.folded.apply(view.operations, None)?,
    }
    replayed.id = id;
    Ok(())
}

/// Fetches the values that a full only refers to.
pub(crate) async fn fill_references<S: State>(
    persistence: &Persistence<S>,
    place: Place<'_>,
    replayed: &mut Replayed,
) -> Result<(), Error> {
    for (field, id) in replayed.folded.elsewhere() {
        let row = persistence.saver.row(place, id).await?;
        let row = row.ok_or_else(|| {
            corrupt(place, replayed.id, format!("it refers to checkpoint {id}, which is gone"))
        })?;
        let mut other = Folded::default();
        let filled = open(&row.record)
            .and_then(|view| other.apply(view.operations, Some(id)))
            .and_then(|()| replayed.folded.fill(field, &other, id));
        let value = filled.map_err(|error| unreadable(place, id, error))?;
        // Not all of that record: a full that is written on its account would refer to it again.
        replayed.replay += value;
    }
    Ok(())
}

/// Builds the typed state. Fields that the state no longer has are dropped; new ones have their initial values.
pub(crate) fn restore<S: State>(
    core: &GraphCore<S>,
    persistence: &Persistence<S>,
    place: Place<'_>,
    replayed: &Replayed,
) -> Result<Restored<S>, Error> {
    let channels = S::channels(&core.schema);
    let stored = StoredValues::read(core, place, replayed)?;
    stored.check_that_some_is_known(channels, place)?;
    let mut state = S::initial(&core.schema);
    let mut weights = vec![Weight::default(); channels.len()];
    for (at, channel) in channels.iter().enumerate().filter(|(_, channel)| channel.is_stored()) {
        let Some(StoredValue { bytes, live, whole_at }) = stored.of(at, channel, place, replayed)? else {
            continue;
        };
        (persistence.codec.restore_channel)(&mut state, &core.schema, at, &bytes)
            .map_err(|error| unfit(place, replayed.id, &bytes, &error))?;
        weights[at] = Weight { live, whole_at };
    }
    Ok(Restored { state, weights, same_fields: stored.same_fields })
}

/// A state that is kept in a header since no checkpoint holds it.
pub(crate) fn restore_kept<S: State>(
    core: &GraphCore<S>,
    persistence: &Persistence<S>,
    place: Place<'_>,
    kept: &StoredState,
) -> Result<S, Error> {
    let at = |error: Error| error.on_thread(Some(place.thread));
    let values = kept.channels.iter().map(|(name, value)| (name.clone(), value.0.clone()));
    let mut fields = StoredFields::of_state(values.collect::<Vec<_>>());
    if kept.version != core.migrations.version {
        core.migrations.state(kept.version, &mut fields).map_err(at)?;
    }
    let mut state = S::initial(&core.schema);
    for (channel, described) in
        S::channels(&core.schema).iter().enumerate().filter(|(_, one)| one.is_stored())
    {
        let name = fields.names().find(|name| described.is_called(name)).map(str::to_owned);
        let Some(value) = name.and_then(|name| fields.value(&name)) else { continue };
        (persistence.codec.restore_channel)(&mut state, &core.schema, channel, value)
            .map_err(|error| at(error.into()))?;
    }
    Ok(state)
}

/// The checkpoint is gone whose state an open task has to read again.
pub(crate) fn unknown_read(place: Place<'_>, id: CheckpointId, node: &str) -> Error {
    let problem = format!(
        "it reads the state of checkpoint {id}, which the store does not have any more: keep the checkpoints of unfinished \
         runs, or start over with `.abandon()`"
    );
    Error::new(Code::UnknownCheckpoint, problem).at_node(node).on_thread(Some(place.thread))
}

/// The values of a checkpoint by the names they were stored under, in today's version.
struct StoredValues<'a> {
    names: Vec<&'a str>,
    same_fields: bool,
    /// None if they are of this version already.
    migrated: Option<StoredFields>,
}

/// The MessagePack of a channel, and the record that holds it whole.
struct StoredValue {
    bytes: Vec<u8>,
    /// What a full record would hold of it.
    live: u64,
    whole_at: Option<CheckpointId>,
}

impl<'a> StoredValues<'a> {
    fn read<S: State>(core: &GraphCore<S>, place: Place<'_>, replayed: &'a Replayed) -> Result<Self, Error> {
        let (channels, header) = (S::channels(&core.schema), &replayed.header);
        let names: Vec<&str> = header.fields.iter().map(String::as_str).collect();
        if header.schema != core.migrations.version {
            let mut fields = StoredFields::of_state(all_values(place, replayed)?);
            let migrated = core.migrations.state(header.schema, &mut fields);
            migrated.map_err(|error| other_version(place, replayed.id, error.message()))?;
            return Ok(StoredValues { names, same_fields: false, migrated: Some(fields) });
        }
        let same = |(name, channel): (&&str, &Channel)| *name == channel.name;
        let same_fields = names.len() == channels.len() && names.iter().zip(channels).all(same);
        Ok(StoredValues { names, same_fields, migrated: None })
    }

    /// Whether this thread can be one of this graph's.
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
            "the thread holds the channels {} and this graph has none of them: it belongs to another graph, so give this one \
             threads, or a file, of its own",
            self.names.join(", ")
        );
        Err(Error::new(Code::GraphChanged, problem).on_thread(Some(place.thread)))
    }

    /// What is stored of a channel; `None` if it was never written.
    fn of(
        &self,
        at: usize,
        channel: &Channel,
        place: Place<'_>,
        replayed: &Replayed,
    ) -> Result<Option<StoredValue>, Error> {
        if let Some(fields) = &self.migrated {
            let name = fields.names().find(|name| channel.is_called(name));
            let value = name.and_then(|name| fields.value(name));
            let stored = |value: &[u8]| {
                let live = whole_size(at, value.len() as u64);
                StoredValue { bytes: value.to_vec(), live, whole_at: None }
            };
            return Ok(value.map(stored));
        }
        // Where the graph is the one that wrote it, no name has to be looked for.
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

fn all_values(place: Place<'_>, replayed: &Replayed) -> Result<Vec<(String, Vec<u8>)>, Error> {
    let fields = replayed.header.fields.iter().enumerate();
    let values =
        fields.map(|(at, name)| Ok(value_of(place, replayed, at)?.map(|value| (name.clone(), value))));
    values.filter_map(Result::transpose).collect()
}

fn value_of(place: Place<'_>, replayed: &Replayed, field: usize) -> Result<Option<Vec<u8>>, Error> {
    match replayed.folded.value(field).map_err(|error| corrupt(place, replayed.id, error))? {
        Value::Absent => Ok(None),
        Value::Bytes(value) => Ok(Some(value)),
    }
}

/// A value that the state of today does not take. If the bytes are whole, its type was changed.
fn unfit(place: Place<'_>, id: CheckpointId, value: &[u8], error: &StateError) -> Error {
    if !value_length(value).is_ok_and(|length| length == value.len()) {
        return corrupt(place, id, error);
    }
    let problem = format!(
        "{error}; if the type of the field was changed, raise `.schema_version(..)` and say with `.migration(..)` how to \
         read what was stored"
    );
    other_version(place, id, &problem)
}

fn other_version(place: Place<'_>, id: CheckpointId, problem: &str) -> Error {
    let problem = format!("checkpoint {id} cannot be used: {problem}");
    Error::new(Code::SchemaVersion, problem).on_thread(Some(place.thread))
}

/// Where a stored run stands, by the ids of today's graph.
pub(crate) struct LookedUp<S: State> {
    /// With the temporary edits of the run.
    pub(crate) graph: RunGraph<S>,
    pub(crate) frontier: Frontier,
    pub(crate) joins: Joins,
    /// What is open, if it has no supersteps.
    pub(crate) eager: Option<Box<Eager<S>>>,
}

/// Looks up the stored frontier and joins in the graph.
///
/// # Errors
/// [`Code::GraphChanged`] with the names that are gone.
pub(crate) fn look_up<S: State>(
    core: &Arc<GraphCore<S>>,
    place: Place<'_>,
    header: &Header,
) -> Result<LookedUp<S>, Error> {
    if !header.next.is_empty() && header.discipline != core.discipline() {
        return Err(other_discipline(place, header, core.discipline()));
    }
    let mut gone = Vec::new();
    let core = RunGraph::restore(core, header, &mut gone);
    let mut frontier = Frontier::default();
    let eager = core.eager.then(|| Eager::of(Flow::of_header(&core, header, &mut gone)));
    for activation in header.next.iter().filter(|_| !core.eager) {
        let node = id_of(&core, &activation.node, &mut gone);
        match &activation.dispatch {
            None => frontier.pull(node),
            Some(dispatch) => {
                // What a node has led to goes on without it.
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
        return Ok(LookedUp { graph: core, frontier, joins, eager });
    }
    Err(graph_changed(place, gone))
}

/// What a checkpoint needs is not in the graph.
pub(crate) fn graph_changed(place: Place<'_>, mut gone: Vec<String>) -> Error {
    gone.dedup();
    let problem = format!(
        "the thread waits at {}, which this graph does not have: run it with the graph it was started on, bring the name \
         back, or start over with `.abandon()`",
        gone.join(", ")
    );
    Error::new(Code::GraphChanged, problem).on_thread(Some(place.thread))
}

fn other_discipline(place: Place<'_>, header: &Header, now: &str) -> Error {
    let problem = format!(
        "the thread's run is {}, and this graph is {now}: say `.eager()` as the graph did that it was started on, or start over \
         with `.abandon()`",
        header.discipline
    );
    Error::new(Code::GraphChanged, problem).on_thread(Some(place.thread))
}

fn id_of<S: State>(core: &RunGraph<S>, name: &str, gone: &mut Vec<String>) -> u32 {
    match core.id(name) {
        Some(node) => node,
        None if name == START => core.topology.start(),
        None => {
            gone.push(format!("node `{name}`"));
            0
        }
    }
}

fn stored_joins<S: State>(core: &RunGraph<S>, header: &Header, gone: &mut Vec<String>) -> Joins {
    let mut joins = Joins::of(&core.topology);
    let pruned = core.overlay().into_iter().flat_map(|overlay| overlay.pruned());
    for (join, place) in pruned {
        joins.prune(&core.topology, join, place);
    }
    for stored in &header.joins {
        let wanted: std::collections::HashSet<&str> = stored.sources.iter().map(String::as_str).collect();
        let found = core.topology.joins.iter().position(|join| {
            core.name(join.target) == stored.to
                && join.sources.len() == wanted.len()
                && join.sources.iter().all(|source| wanted.contains(core.name(*source)))
        });
        let Some(found) = found else {
            let to = if stored.to == END { "END" } else { &stored.to };
            gone.push(format!("the join {} -> `{to}`", stored.sources.join(" + ")));
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

/// The edits of a finished task, with the nodes that they add.
pub(crate) fn proposed<S: State>(
    core: &RunGraph<S>,
    thread: &str,
    edits: Vec<GraphEdit>,
) -> Result<Vec<Proposed>, Error> {
    let made = edits.into_iter().map(|edit| match core.make(&edit, None) {
        Ok(made) => Ok(Proposed { edit, made, seen: core.log().len() }),
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
pub(crate) fn finished_step<S: State>(
    core: &GraphCore<S>,
    codec: &Codec<S>,
    thread: &str,
    record: &[u8],
) -> Result<(Step<S>, Vec<GraphEdit>), Error> {
    let step = StoredStep::from_bytes(record).and_then(|step| step.migrated(&core.migrations)).and_then(
        |mut step| {
            let edits = std::mem::take(&mut step.edits);
            Ok((step.into_step(codec, &core.schema)?, edits))
        },
    );
    step.map_err(|error| {
        let (code, remedy) = match error.code() {
            Code::SchemaVersion => return error.on_thread(Some(thread)),
            Code::UnknownChannel => {
                (Code::GraphChanged, "bring the channel back, or make its name an alias of the new one")
            }
            _ => (Code::CorruptCheckpoint, "give the run up with `.abandon()` to go on without it"),
        };
        let problem =
            format!("the stored result of a finished task cannot be used: {}; {remedy}", error.message());
        Error::new(code, problem).on_thread(Some(thread))
    })
}

/// What pending writes say, sorted.
#[derive(Default)]
pub(crate) struct LeftBehind {
    pub(crate) tasks: LeftOver,
    /// The caller was told of the static interrupt here.
    pub(crate) told: bool,
    pub(crate) sessions: Option<StoredSessions>,
    pub(crate) spent: Option<Spent>,
}

/// Sorts pending writes on a checkpoint, beside what its header says of open tasks.
pub(crate) fn left_behind<S: State>(
    core: &Arc<GraphCore<S>>,
    place: Place<'_>,
    (id, header): (CheckpointId, &Header),
    writes: &[PendingWrite],
) -> Result<LeftBehind, Error> {
    let (of_run, of_tasks): (Vec<&PendingWrite>, _) = writes.iter().partition(|write| write.task == OF_RUN);
    let core = RunGraph::restore(core, header, &mut Vec::new());
    let handler_of = |failed: &str| Some(core.name(core.handler(core.id_of_any(failed)?)?).to_owned());
    let before = left_in_header(place, header, id, &handler_of);
    let mut left = LeftBehind { tasks: left_over(place, before, &of_tasks)?, ..LeftBehind::default() };
    let at = |error: Error| error.on_thread(Some(place.thread));
    for write in of_run {
        match write.slot {
            TOLD => left.told = true,
            SESSIONS => left.sessions = Some(from_bytes(&write.bytes).map_err(at)?),
            SPENT => left.spent = Some(from_bytes(&write.bytes).map_err(at)?),
            _ => {}
        }
    }
    Ok(left)
}

fn left_over(place: Place<'_>, mut left: LeftOver, writes: &[&PendingWrite]) -> Result<LeftOver, Error> {
    for write in writes {
        let task = left.entry(write.task).or_default();
        let n = write.slot.saturating_sub(1) / 2;
        let at = |error: Error| error.on_thread(Some(place.thread));
        match write.slot {
            0 => task.result = Some(write.bytes.clone()),
            CALL => task.call = Some(from_bytes(&write.bytes).map_err(at)?),
            FAILED => task.failure = Some(from_bytes(&write.bytes).map_err(at)?),
            slot if slot % 2 == 1 => {
                task.requests.retain(|(asked, _)| *asked != n);
                task.requests.push((n, from_bytes::<StoredRequest>(&write.bytes).map_err(at)?));
            }
            _ => {
                task.answers.retain(|answer| answer.n != n);
                if let StoredAnswer(Some(value)) = from_bytes(&write.bytes).map_err(at)? {
                    task.answers.push(Answer { n, value });
                }
            }
        }
    }
    for task in left.values_mut() {
        task.requests.sort_by_key(|(n, _)| *n);
    }
    Ok(left)
}

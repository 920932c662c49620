//! Pruning: which checkpoints of a place stay, and which values those must take over from removed ones.
//!
//! A delta whose predecessor is removed becomes a full: the rows it builds on are folded into it. A full
//! that refers to a value in a removed row takes the value over, or refers to the first row that did.
//! Nothing here knows the state's type.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::fold::Folded;
use super::frame::{FormatError, open};
use super::header::{HeaderMap, StoredMemories};
use crate::catalog;
use crate::checkpointer::{Checkpointer, page};
use crate::error::StoreError;
use crate::error::{corrupt, unreadable};
use crate::id::{CheckpointId, RunId};
use crate::row::{ListQuery, Place, Rewrite, Row, RowKind};
use crate::services::from_micros;
use crate::source::Source;
use crate::upkeep;

/// Which checkpoints of a thread are kept. The newest one of a thread is always kept.
///
/// ```
/// # use agentgraph::prelude::*;
/// # #[derive(State, Clone, Debug, Default)]
/// # struct Chat { #[reduce(append)] said: Vec<String> }
/// # async fn reply() -> ChatUpdate { Chat::update().said(["aha"]) }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<()> {
/// use agentgraph::checkpoint::Retention;
///
/// # let graph = StateGraph::new().node("reply", reply).edge(START, "reply").compile()?;
/// let graph = graph.checkpointer(MemorySaver::new());
/// for word in ["tea", "milk", "sugar"] {
///     graph.invoke(Chat::update().said([word])).thread("t-1").await?;
/// }
/// assert_eq!(graph.history("t-1").await?.len(), 6);
///
/// let pruned = graph.prune(Retention::keep_last(2)).await?;
/// assert_eq!((pruned.checkpoints, graph.history("t-1").await?.len()), (4, 2));
/// assert_eq!(graph.state("t-1").await?.unwrap().values.said.len(), 6);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Retention(Keep);

#[derive(Clone)]
enum Keep {
    Last(usize),
    Younger(Duration),
    #[allow(clippy::type_complexity)]
    If(Arc<dyn Fn(&StoredCheckpoint<'_>) -> bool + Send + Sync>),
}

impl Retention {
    /// The newest `checkpoints` of each thread, in the order of `history`. Branches without one of them are
    /// removed.
    pub fn keep_last(checkpoints: usize) -> Self {
        Retention(Keep::Last(checkpoints.max(1)))
    }

    /// The newest checkpoint of each thread: enough to continue the thread and to read its state.
    pub fn keep_latest_per_thread() -> Self {
        Self::keep_last(1)
    }

    /// Checkpoints *younger* than `age`; older ones are removed. (The other policies name the checkpoints
    /// that stay.) Age is measured with the clock of the graph's services against the stored times.
    pub fn older_than(age: Duration) -> Self {
        Retention(Keep::Younger(age))
    }

    /// The checkpoints for which `test` is true.
    pub fn keep(test: impl Fn(&StoredCheckpoint<'_>) -> bool + Send + Sync + 'static) -> Self {
        Retention(Keep::If(Arc::new(test)))
    }

    /// About how many new checkpoints make another pruning worth its cost.
    #[doc(hidden)]
    pub fn stride(&self) -> u64 {
        match self.0 {
            Keep::Last(count) => (count as u64).max(32),
            Keep::Younger(_) | Keep::If(_) => 64,
        }
    }
}

impl fmt::Debug for Retention {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Keep::Last(count) => out.debug_tuple("KeepLast").field(count).finish(),
            Keep::Younger(age) => out.debug_tuple("OlderThan").field(age).finish(),
            Keep::If(_) => out.write_str("Keep(..)"),
        }
    }
}

/// A checkpoint as a retention policy sees it: without its state.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct StoredCheckpoint<'a> {
    /// Its thread and namespace.
    pub place: Place<'a>,
    /// Its id.
    pub id: CheckpointId,
    /// Why it was written.
    pub source: Source,
    /// When it was written.
    pub created: SystemTime,
    /// The run that wrote it.
    pub run: RunId,
    /// Whether a run ended with it.
    pub finished: bool,
}

/// A row, without its operations.
struct Known {
    id: CheckpointId,
    kind: RowKind,
    source: Source,
    created: SystemTime,
    run: RunId,
    finished: bool,
    parent: Option<CheckpointId>,
    reads: Vec<CheckpointId>,
    /// Whether it is a full that refers to values in other rows.
    refers: bool,
    /// The checkpoints of memories that it names; most rows name the same ones as the row before.
    memories: Arc<StoredMemories>,
}

/// Checkpoints of memories that other checkpoints name, by namespace.
pub type Named = BTreeMap<String, BTreeSet<CheckpointId>>;

/// Rows read at a time.
const PAGE: usize = 64;

/// Fulls are written once they have this many bytes together.
const BATCH: usize = 4 << 20;

/// The most deltas after a full without a segment.
pub(super) const DELTAS: usize = 1024;

/// Removes the checkpoints that the policy does not keep and `named` does not contain. Returns the numbers
/// of removed and remaining checkpoints, and the memories that the remaining ones name.
pub async fn prune_place(
    saver: &dyn Checkpointer,
    place: Place<'_>,
    retention: &Retention,
    now: SystemTime,
    named: Option<&BTreeSet<CheckpointId>>,
) -> Result<([u64; 2], Named), StoreError> {
    let branches = known(saver, place).await?;
    let kept = kept(place, &branches, retention, now, named);
    let all: usize = branches.values().map(Vec::len).sum();
    let names = names(&branches, &kept);
    if kept.len() == all {
        return Ok(([0, all as u64], names));
    }
    Plan::of(&branches, &kept).carry_out(saver, place).await?;
    Ok(([all - kept.len(), kept.len()].map(|count| count as u64), names))
}

/// The memories that the kept checkpoints name.
fn names(branches: &BTreeMap<u32, Vec<Known>>, kept: &BTreeSet<CheckpointId>) -> Named {
    let mut names = Named::new();
    let mut seen: Option<&Arc<StoredMemories>> = None;
    for row in branches.values().flatten().filter(|row| kept.contains(&row.id)) {
        if seen.is_some_and(|seen| Arc::ptr_eq(seen, &row.memories)) {
            continue;
        }
        seen = Some(&row.memories);
        for (memory, (branch, step)) in &*row.memories {
            names.entry(memory.clone()).or_default().insert(CheckpointId::new(*branch, *step));
        }
    }
    names
}

/// Removes a whole place.
pub async fn remove_place(saver: &dyn Checkpointer, place: Place<'_>) -> Result<(), StoreError> {
    let gone: Vec<_> =
        catalog::branches(saver, place).await?.into_iter().map(|branch| (branch, 0..u64::MAX)).collect();
    upkeep::rewrite(saver, Rewrite { place, fence: 0, fulls: &[], unfold: &[], gone: &gone }).await
}

/// Every row of a place, by branch, oldest first.
async fn known(saver: &dyn Checkpointer, place: Place<'_>) -> Result<BTreeMap<u32, Vec<Known>>, StoreError> {
    let mut branches = BTreeMap::new();
    for branch in catalog::branches(saver, place).await? {
        let mut known = Vec::new();
        let mut before = None;
        // Rows newer than the full whose header they build on: no more than a read of the newest checkpoint
        // would load.
        let mut rows = Vec::new();
        loop {
            let query = ListQuery { branch: Some(branch), before, limit: Some(PAGE) };
            let read = page(saver, place, query).await?;
            let Some(oldest) = read.last() else { break };
            before = Some(oldest.id.step);
            for row in read {
                let ends = row.kind == RowKind::Full;
                rows.push(row);
                if ends {
                    known.extend(headers(place, &mut rows)?.into_iter().rev());
                }
            }
        }
        known.extend(headers(place, &mut rows)?.into_iter().rev());
        known.reverse();
        if !known.is_empty() {
            branches.insert(branch, known);
        }
    }
    Ok(branches)
}

/// Reads the headers of rows that follow a full. `rows` are newest first, the result is oldest first.
fn headers(place: Place<'_>, rows: &mut Vec<Row>) -> Result<Vec<Known>, StoreError> {
    let mut header = HeaderMap::default();
    let mut memories = Arc::new(StoredMemories::new());
    let known = rows.drain(..).rev().map(|row| {
        let read = open(row.kind, &row.record).and_then(|view| {
            header.apply(view.header)?;
            let refers = row.kind == RowKind::Full && may_refer(view.operations);
            Known::read(&row, &header, refers, &mut memories)
        });
        read.map_err(|error| unreadable(place, row.id, error))
    });
    known.collect()
}

/// Whether a full refers to values in other rows. An unreadable full counts as one that does: the error is
/// for the reader that needs it.
fn may_refer(operations: &[u8]) -> bool {
    let mut folded = Folded::default();
    folded.apply(operations, None).is_err() || !folded.elsewhere().is_empty()
}

/// A next task, reduced to the checkpoint whose state it reads (only an activation of an eager run has
/// one). A damaged task is an error: if it counted as reading nothing, its checkpoint would be removed.
struct Next(Option<(u32, u64)>);

impl<'de> Deserialize<'de> for Next {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Map {
            #[serde(default)]
            read: Option<(u32, u64)>,
        }
        struct NameOrMap;
        impl<'de> Visitor<'de> for NameOrMap {
            type Value = Next;
            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("a node's name or a map")
            }
            fn visit_str<E>(self, _: &str) -> Result<Next, E> {
                Ok(Next(None))
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Next, A::Error> {
                Map::deserialize(MapAccessDeserializer::new(map)).map(|map| Next(map.read))
            }
        }
        deserializer.deserialize_any(NameOrMap)
    }
}

/// The newest call of a subgraph's namespace, reduced to the part that matters here.
#[derive(Deserialize)]
struct Call {
    /// An earlier release stored this in a memory.
    #[serde(default)]
    unnamed: Option<(u32, u64)>,
}

impl Known {
    /// Shares the memories with the row before if they are the same.
    fn read(
        row: &Row,
        header: &HeaderMap,
        refers: bool,
        memories: &mut Arc<StoredMemories>,
    ) -> Result<Self, FormatError> {
        let named: StoredMemories = header.get("memories")?.unwrap_or_default();
        if **memories != named {
            *memories = Arc::new(named);
        }
        let next: Vec<Next> = header.get("next")?.unwrap_or_default();
        let call: Option<Call> = header.get("call")?;
        let open = next.iter().filter_map(|next| next.0);
        let reads = open.chain(call.and_then(|call| call.unnamed)).map(id_of).collect();
        let parent = header.get("parent")?.map(id_of);
        Ok(Known {
            id: row.id,
            kind: row.kind,
            source: header.get("source")?.unwrap_or_default(),
            created: from_micros(header.get("time")?.unwrap_or_default()),
            run: header.get("run")?.unwrap_or_default(),
            finished: next.is_empty(),
            parent: parent.filter(|parent| row.id.step.checked_sub(1) == Some(parent.step)),
            reads,
            refers,
            memories: Arc::clone(memories),
        })
    }
}

fn id_of((branch, step): (u32, u64)) -> CheckpointId {
    CheckpointId::new(branch, step)
}

fn kept(
    place: Place<'_>,
    branches: &BTreeMap<u32, Vec<Known>>,
    retention: &Retention,
    now: SystemTime,
    named: Option<&BTreeSet<CheckpointId>>,
) -> BTreeSet<CheckpointId> {
    let newest = branches.values().next_back().and_then(|rows| rows.last());
    let all = branches.values().flatten();
    let mut kept: BTreeSet<CheckpointId> = match &retention.0 {
        Keep::Last(count) => lineage(branches).take(*count).collect(),
        Keep::Younger(age) => {
            let young = |row: &&Known| now.duration_since(row.created).is_ok_and(|passed| passed < *age);
            let from_later = |row: &&Known| row.created > now;
            all.filter(|row| young(row) || from_later(row)).map(|row| row.id).collect()
        }
        Keep::If(test) => {
            let wanted = all.filter(|row| {
                let Known { id, source, created, run, finished, .. } = **row;
                test(&StoredCheckpoint { place, id, source, created, run, finished })
            });
            wanted.map(|row| row.id).collect()
        }
    };
    kept.extend(newest.map(|row| row.id));
    kept.extend(named.into_iter().flat_map(|named| with_edits(branches, named)));
    let all = branches.values().flatten();
    let read: Vec<_> = all.filter(|row| kept.contains(&row.id)).flat_map(|row| &row.reads).copied().collect();
    kept.extend(read);
    // A checkpoint that is read may have been removed earlier.
    let mut there = branches.values().flatten().map(|row| row.id).peekable();
    kept.retain(|id| {
        while there.next_if(|row| row < id).is_some() {}
        there.peek() == Some(id)
    });
    kept
}

/// The named checkpoints, with the edits made on them.
fn with_edits<'a>(
    branches: &'a BTreeMap<u32, Vec<Known>>,
    named: &'a BTreeSet<CheckpointId>,
) -> impl Iterator<Item = CheckpointId> + 'a {
    branches.values().flat_map(move |rows| {
        let mut follows = false;
        rows.iter().filter_map(move |row| {
            let is_edit = matches!(row.source, Source::Update | Source::Fork);
            follows = named.contains(&row.id) || (follows && is_edit);
            follows.then_some(row.id)
        })
    })
}

/// The checkpoints in the order of `history`, newest first.
fn lineage(branches: &BTreeMap<u32, Vec<Known>>) -> impl Iterator<Item = CheckpointId> {
    let mut at =
        branches.iter().next_back().and_then(|(branch, rows)| Some((*branch, rows.len().checked_sub(1)?)));
    std::iter::from_fn(move || {
        let (branch, place) = at?;
        let row = branches.get(&branch)?.get(place)?;
        at = match row.parent {
            Some(parent) => {
                let rows = branches.get(&parent.branch);
                let found =
                    rows.and_then(|rows| rows.binary_search_by_key(&parent.step, |row| row.id.step).ok());
                found.map(|place| (parent.branch, place)).filter(|_| parent < row.id)
            }
            None => place.checked_sub(1).map(|place| (branch, place)),
        };
        Some(row.id)
    })
}

/// The changes to carry out.
#[derive(Default)]
struct Plan {
    /// Fulls that stay and may refer to removed rows, and deltas that become fulls; in order.
    fulls: Vec<(CheckpointId, RowKind)>,
    unfold: Vec<CheckpointId>,
    /// Removed checkpoints with a segment that may start before one of `fulls`.
    unfold_before_they_go: Vec<CheckpointId>,
    gone: Vec<(u32, std::ops::Range<u64>)>,
    kept: BTreeSet<CheckpointId>,
}

impl Plan {
    fn of(branches: &BTreeMap<u32, Vec<Known>>, kept: &BTreeSet<CheckpointId>) -> Self {
        let mut plan = Plan { kept: kept.clone(), ..Plan::default() };
        for (branch, rows) in branches {
            // Whether the row before is kept, and the deltas since a full that a segment would fold
            // wrongly.
            let mut before = true;
            let mut unfolded = None::<usize>;
            let mut after_new_full = false;
            for row in rows {
                if !kept.contains(&row.id) {
                    plan.remove(*branch, row.id.step);
                    before = false;
                    match row.kind {
                        RowKind::Full => after_new_full = false,
                        _ if after_new_full => plan.unfold_before_they_go.push(row.id),
                        _ => {}
                    }
                    continue;
                }
                let many = unfolded.is_some_and(|deltas| deltas + 1 >= DELTAS);
                if row.kind == RowKind::Full {
                    (unfolded, after_new_full) = (None, false);
                    // A full without references stays as it is.
                    if row.refers {
                        plan.fulls.push((row.id, RowKind::Full));
                    }
                } else if !before || many {
                    (unfolded, after_new_full) = (Some(0), true);
                    plan.fulls.push((row.id, RowKind::Delta));
                } else if let Some(deltas) = &mut unfolded {
                    *deltas += 1;
                    plan.unfold.push(row.id);
                }
                before = true;
            }
        }
        plan
    }

    fn remove(&mut self, branch: u32, step: u64) {
        match self.gone.last_mut() {
            Some((last, steps)) if *last == branch && steps.end == step => steps.end = step.saturating_add(1),
            _ => self.gone.push((branch, step..step.saturating_add(1))),
        }
    }

    /// One transaction if the new fulls are small. Otherwise several, and after each every remaining
    /// checkpoint reads as before: first the segments that a new full must not be read with are removed,
    /// then the fulls are written, oldest first, and last the rows are removed.
    async fn carry_out(&self, saver: &dyn Checkpointer, place: Place<'_>) -> Result<(), StoreError> {
        let rewrite = Rewrite { place, fence: 0, fulls: &[], unfold: &[], gone: &[] };
        let mut fulls = Vec::new();
        let mut bytes = 0;
        let mut splits = false;
        // The new places of values from removed rows.
        let mut moved = HashMap::new();
        for (id, kind) in &self.fulls {
            let Some(record) = self.full(saver, place, (*id, *kind), &mut moved).await? else { continue };
            bytes += record.len();
            fulls.push((*id, record));
            if bytes < BATCH {
                continue;
            }
            if !std::mem::replace(&mut splits, true) {
                let unfold = self.all_to_unfold();
                upkeep::rewrite(saver, Rewrite { unfold: &unfold, ..rewrite }).await?;
            }
            upkeep::rewrite(saver, Rewrite { fulls: &fulls, ..rewrite }).await?;
            (fulls, bytes) = (Vec::new(), 0);
        }
        upkeep::rewrite(saver, Rewrite { fulls: &fulls, unfold: &self.unfold, gone: &self.gone, ..rewrite })
            .await
    }

    /// The checkpoints with a segment that may start before a new full.
    fn all_to_unfold(&self) -> Vec<CheckpointId> {
        let deltas = self.fulls.iter().filter(|(_, kind)| *kind != RowKind::Full).map(|(id, _)| *id);
        self.unfold.iter().chain(&self.unfold_before_they_go).copied().chain(deltas).collect()
    }

    /// The record of a checkpoint that may have to be written anew; `None` if it need not.
    async fn full(
        &self,
        saver: &dyn Checkpointer,
        place: Place<'_>,
        (id, kind): (CheckpointId, RowKind),
        moved: &mut HashMap<(usize, CheckpointId), CheckpointId>,
    ) -> Result<Option<Vec<u8>>, StoreError> {
        let rows = match kind {
            RowKind::Full => Vec::from_iter(saver.row(place, id).await?),
            _ => saver.get(place, Some(id)).await?.unwrap_or_default().rows,
        };
        let (header, mut folded) = fold(place, &rows)?;
        let mut changed = kind != RowKind::Full;
        for (field, holder) in folded.elsewhere() {
            if self.kept.contains(&holder) {
                continue;
            }
            changed = true;
            match moved.get(&(field, holder)) {
                Some(new) => folded.refer_to(field, *new),
                None => {
                    take_over(saver, place, &mut folded, field, holder, id).await?;
                    moved.insert((field, holder), id);
                }
            }
        }
        Ok(changed.then(|| header.to_record(&folded.to_operations())))
    }
}

/// Reads consecutive rows, starting with a full.
pub(super) fn fold(place: Place<'_>, rows: &[Row]) -> Result<(HeaderMap, Folded), StoreError> {
    let mut header = HeaderMap::default();
    let mut folded = Folded::default();
    rows.iter().try_for_each(|row| add(place, &mut header, &mut folded, row))?;
    Ok((header, folded))
}

/// Adds one more row.
pub(super) fn add(
    place: Place<'_>,
    header: &mut HeaderMap,
    folded: &mut Folded,
    row: &Row,
) -> Result<(), StoreError> {
    let read = open(row.kind, &row.record).and_then(|view| {
        header.apply(view.header)?;
        let id = (row.kind != RowKind::Segment).then_some(row.id);
        folded.apply(view.operations, id)
    });
    read.map_err(|error| unreadable(place, row.id, error))
}

/// Replaces references by the values themselves.
async fn take_over(
    saver: &dyn Checkpointer,
    place: Place<'_>,
    folded: &mut Folded,
    field: usize,
    holder: CheckpointId,
    id: CheckpointId,
) -> Result<(), StoreError> {
    let row = saver.row(place, holder).await?;
    let row =
        row.ok_or_else(|| corrupt(place, id, format!("it refers to checkpoint {holder}, which is missing")))?;
    let mut other = Folded::default();
    let filled = open(row.kind, &row.record)
        .and_then(|view| other.apply(view.operations, Some(holder)))
        .and_then(|()| folded.fill(field, &other, holder));
    filled.map(drop).map_err(|error| unreadable(place, holder, error))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::frame::{HeaderWriter, complete};
    use serde_json::{Value, json};

    fn known(next: &Value) -> Result<Known, FormatError> {
        let mut record = Vec::new();
        let mut writer = HeaderWriter::begin(&mut record);
        writer.value("next", next);
        writer.finish();
        complete(&mut record, RowKind::Full, &[]);
        let mut header = HeaderMap::default();
        header.apply(open(RowKind::Full, &record)?.header)?;
        let row = Row { id: CheckpointId::new(0, 7), kind: RowKind::Full, record };
        Known::read(&row, &header, false, &mut Arc::default())
    }

    #[test]
    fn the_checkpoint_that_an_open_activation_reads_is_recorded_as_read() {
        let next = json!(["a", {"node": "b", "from": "a", "made": 3, "read": [1, 5]}]);
        let known = known(&next).unwrap();
        assert_eq!((known.reads, known.finished), (vec![CheckpointId::new(1, 5)], false));
    }

    /// Otherwise the checkpoint it reads would be pruned.
    #[test]
    fn an_activation_that_cannot_be_decoded_is_an_error() {
        for next in [json!([{"node": "b", "read": "5"}]), json!([7]), json!([{"node": "b", "read": [1]}])] {
            assert!(known(&next).is_err(), "{next}");
        }
    }
}

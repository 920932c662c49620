//! The history of a thread: its checkpoints, newest first, one state at a time.
//!
//! Rows are changes that are read forwards, and a history goes backwards. So a page of rows is halved: a
//! copy of the fields at the start of the older half is kept while the newer half is read, which is halved in
//! turn. A page of *n* rows has at most *log n* copies, which share unchanged values. For a small state there
//! is a copy for each row, and each row is applied once.

use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use futures_util::stream::{BoxStream, try_unfold};
use futures_util::{Stream, StreamExt, TryStreamExt};

use super::view::{Checkpoint, FoundCheckpoint, parent, state_at};
use crate::engine::load::{Replay, apply_row, fill_references, replay};
use crate::error::Error;
use crate::persistence::Persistence;
use crate::record::header::Header;
use crate::run::attached::Attached;
use crate::state::State;
use crate::typed::AnyState;
use agentgraph_checkpoint::engine::{page, unreadable};
use agentgraph_checkpoint::{CheckpointId, ListQuery, Place, Row, RowKind, Source, awaited};

/// A query of a thread's history: `graph.history("t-1").limit(10).await?`. It starts at the newest checkpoint
/// and goes back over the branches that its branch started from.
///
/// Awaiting it collects all checkpoints, each with its state. [`stream`](Self::stream) reads them one by one.
#[must_use = "a query reads nothing until it is awaited or streamed"]
pub struct History<S: State> {
    query: Query,
    tests: Vec<CheckpointTest<S>>,
}

/// The part of a query that needs no state.
struct Query {
    graph: Arc<Attached>,
    thread: String,
    branch: Option<u32>,
    before: Option<CheckpointId>,
    limit: Option<usize>,
    /// Whether more rows may be needed than checkpoints are wanted.
    is_filtered: bool,
}

/// A filter of checkpoints.
type CheckpointTest<S> = Box<dyn Fn(&Checkpoint<S>) -> bool + Send + Sync>;

/// The number of rows that are read first, and the most that are read at once.
const PAGES: Range<usize> = 8..256;

/// The bytes of rows that are read at once, if one row is not larger.
const PAGE_BYTES: usize = 256 * 1024;

/// A page whose copies of the fields have no more bytes together has one for each row.
const COPIES: usize = 4 * 1024 * 1024;

impl<S: State> History<S> {
    pub(super) fn new(graph: Arc<Attached>, thread: String) -> Self {
        let query = Query { graph, thread, branch: None, before: None, limit: None, is_filtered: false };
        History { query, tests: Vec::new() }
    }

    /// Starts at the newest checkpoint of that branch instead of the newest branch.
    pub fn branch(mut self, branch: u32) -> Self {
        self.query.branch = Some(branch);
        self
    }

    /// Selects checkpoints before that one, on its branch and those it started from.
    pub fn before(mut self, checkpoint: CheckpointId) -> Self {
        self.query.before = Some(checkpoint);
        self
    }

    /// Limits the number of checkpoints; the newest ones are returned.
    pub fn limit(mut self, checkpoints: usize) -> Self {
        self.query.limit = Some(checkpoints);
        self
    }

    /// Selects checkpoints that were written for that reason.
    pub fn source(self, source: Source) -> Self {
        self.filter(move |checkpoint| checkpoint.source == source)
    }

    /// Selects checkpoints for which `test` is true.
    pub fn filter(mut self, test: impl Fn(&Checkpoint<S>) -> bool + Send + Sync + 'static) -> Self {
        self.tests.push(Box::new(test));
        self
    }

    /// Reads the checkpoints one by one, newest first. The stream holds the bytes of a few hundred changes at
    /// most, and no state but the one that it returns: memory does not grow with the length of the thread.
    ///
    /// A run may continue on the thread meanwhile; its later checkpoints are not part of the stream.
    ///
    /// ```
    /// # use agentgraph::prelude::*;
    /// # use serde::{Deserialize, Serialize};
    /// # #[derive(State, Serialize, Deserialize, Clone, Debug, Default)]
    /// # struct Count { n: u64 }
    /// # async fn count(state: Snapshot<Count>) -> CountUpdate { Count::update().n(state.n + 1) }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// use futures_util::TryStreamExt;
    ///
    /// # let graph = StateGraph::new().node("count", count).edge(START, "count").edge("count", "count").compile()?;
    /// # let graph = graph.checkpointer(MemorySaver::new());
    /// graph.invoke(Count::update()).thread("t-1").max_supersteps(100).await?;
    ///
    /// let mut history = graph.history("t-1").stream();
    /// let mut sum = 0;
    /// while let Some(checkpoint) = history.try_next().await? {
    ///     sum += checkpoint.values.n;
    /// }
    /// assert_eq!(sum, 5_050);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// An item is an error, and the last one, if the graph has no checkpointer, the store fails, or a
    /// checkpoint cannot be read.
    pub fn stream(self) -> HistoryStream<S> {
        let History { mut query, tests } = self;
        query.is_filtered = !tests.is_empty();
        let left = query.limit.unwrap_or(usize::MAX);
        HistoryStream { walk: walk(query), tests, left }
    }
}

awaited!([S: State] History<S>: 'static Result<Vec<Checkpoint<S>>, Error> =
    |history| history.stream().try_collect());

/// The checkpoints of a thread, newest first: see [`History::stream`].
#[must_use = "a stream does nothing until it is polled"]
pub struct HistoryStream<S: State> {
    walk: BoxStream<'static, Result<Checkpoint<AnyState>, Error>>,
    tests: Vec<CheckpointTest<S>>,
    /// The number of checkpoints that may still be returned.
    left: usize,
}

impl<S: State> Stream for HistoryStream<S> {
    type Item = Result<Checkpoint<S>, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        while self.left > 0 {
            let Some(found) = ready!(self.walk.as_mut().poll_next(cx)) else { break };
            let found = found.map(Checkpoint::typed);
            if found.as_ref().map_or(true, |found| self.tests.iter().all(|test| test(found))) {
                self.left -= 1;
                return Poll::Ready(Some(found));
            }
        }
        Poll::Ready(None)
    }
}

/// The newest checkpoints of a thread, or those before one of them, whatever the type of their state.
pub(super) async fn newest(
    graph: Arc<Attached>,
    thread: String,
    before: Option<CheckpointId>,
    limit: usize,
) -> Result<Vec<Checkpoint<AnyState>>, Error> {
    let query = Query { graph, thread, branch: None, before, limit: Some(limit), is_filtered: false };
    walk(query).take(limit).try_collect().await
}

/// The checkpoints of a query, filtered or not.
fn walk(query: Query) -> BoxStream<'static, Result<Checkpoint<AnyState>, Error>> {
    let walk = Walk { query, next: Next::Start, page: Page::default(), size: PAGES.start };
    Box::pin(try_unfold(walk, |mut walk| async move {
        let found = walk.next().await?;
        Ok(found.map(|checkpoint| (checkpoint, walk)))
    }))
}

impl Query {
    /// The position of checkpoints older than this one, which need not be readable: on its branch, or on the
    /// one that its branch started from.
    async fn older_than(&self, id: CheckpointId) -> Result<(Option<u32>, Option<u64>), Error> {
        let persistence = self.graph.kept()?;
        let on_branch = (Some(id.branch), Some(id.step));
        let before = CheckpointId::new(id.branch, id.step.saturating_sub(1));
        if id.branch == 0 || persistence.saver.row(persistence.place(&self.thread), before).await?.is_some() {
            return Ok(on_branch);
        }
        let first = state_at(&self.graph, &self.thread, id).await?;
        let parent = first.and_then(|first| first.parent);
        Ok(parent.map_or(on_branch, |parent| (Some(parent.branch), parent.step.checked_add(1))))
    }
}

/// A way through the checkpoints of a thread.
struct Walk {
    query: Query,
    next: Next,
    page: Page,
    /// The number of rows of the next page.
    size: usize,
}

/// Where the next page is.
enum Next {
    Start,
    /// On this branch, before this step.
    At {
        branch: Option<u32>,
        before: Option<u64>,
        may_be_last: bool,
    },
    End,
}

/// Rows of one branch, and the checkpoints among them that were not returned yet.
#[derive(Default)]
struct Page {
    /// Oldest first.
    rows: Vec<Row>,
    /// Ranges of rows, oldest first, each with the fields at its first row and an empty header.
    open: Vec<(Replay, Range<usize>)>,
    halves: bool,
    /// Whether the next checkpoint may be the last one of its branch, which has pending writes.
    may_be_last: bool,
}

impl Walk {
    async fn next(&mut self) -> Result<Option<Checkpoint<AnyState>>, Error> {
        loop {
            let graph = &self.query.graph;
            let persistence = graph.kept()?;
            let place = persistence.place(&self.query.thread);
            let Some(replayed) = self.page.next(persistence, place).await? else {
                if self.load().await? {
                    continue;
                }
                return Ok(None);
            };
            let found = FoundCheckpoint { graph, persistence, place, replayed: Box::new(replayed) };
            let mut checkpoint = found.past()?;
            if std::mem::take(&mut self.page.may_be_last) && !checkpoint.next.is_empty() {
                let tail = persistence.saver.get(place, Some(checkpoint.id)).await?.unwrap_or_default();
                (checkpoint.failures, checkpoint.steps) = found.failures_and_steps(&tail.writes).await?;
            }
            return Ok(Some(checkpoint));
        }
    }

    /// Reads the next page. `false` if there is none.
    async fn load(&mut self) -> Result<bool, Error> {
        let persistence = self.query.graph.kept()?;
        let place = persistence.place(&self.query.thread);
        let (branch, before, may_be_last) =
            match (std::mem::replace(&mut self.next, Next::End), self.query.before) {
                (Next::Start, None) => (self.query.branch, None, true),
                (Next::Start, Some(id)) => {
                    let (branch, before) = self.query.older_than(id).await?;
                    (branch, before, branch != Some(id.branch))
                }
                (Next::At { branch, before, may_be_last }, _) => (branch, before, may_be_last),
                (Next::End, _) => return Ok(false),
            };
        persistence.settle(&self.query.thread).await;
        let size = match self.query.limit {
            Some(limit) if !self.query.is_filtered => self.size.min(limit),
            _ => self.size,
        };
        let mut query = ListQuery::default();
        (query.branch, query.before, query.limit) = (branch, before, Some(size));
        let mut rows = page(&*persistence.saver, place, query).await?;
        rows.reverse();
        let Some(oldest) = rows.first().map(|row| row.id) else { return Ok(false) };
        let bytes: usize = rows.iter().map(|row| row.record.len()).sum();
        let fit = PAGE_BYTES / (bytes / rows.len()).max(1);
        self.size = (2 * self.size).min(fit).clamp(1, PAGES.end);
        // The oldest one is read as a checkpoint; the others follow from it row by row.
        let mut tail = persistence.saver.get(place, Some(oldest)).await?.unwrap_or_default();
        let fields = bytes + tail.rows.iter().map(|row| row.record.len()).sum::<usize>();
        let halves = fields.saturating_mul(rows.len()) > COPIES;
        let mut replayed = replay(&*persistence.saver, place, &mut tail).await?;
        if let Some(parent) = parent(&replayed) {
            let before = parent.step.checked_add(1);
            let may_be_last = parent.branch != oldest.branch;
            self.next = Next::At { branch: Some(parent.branch), before, may_be_last };
        }
        // The others have headers of their own: this one is not cloned for them.
        replayed.header = Header::default();
        let open = vec![(*replayed, 0..rows.len())];
        self.page = Page { rows, open, halves, may_be_last };
        Ok(true)
    }
}

impl Page {
    /// The newest checkpoint that was not returned yet.
    async fn next(&mut self, persistence: &Persistence, place: Place<'_>) -> Result<Option<Replay>, Error> {
        let Some((mut replayed, mut range)) = self.open.pop() else { return Ok(None) };
        while range.len() > 1 {
            let middle = range.start + if self.halves { range.len() / 2 } else { 1 };
            self.open.push((replayed.clone(), range.start..middle));
            self.go_on(&mut replayed, range.start + 1..middle + 1, persistence, place).await?;
            range.start = middle;
        }
        replayed.read_header(place)?;
        Ok(Some(replayed))
    }

    /// Applies some rows, which are read from their newest full on.
    async fn go_on(
        &self,
        replayed: &mut Replay,
        range: Range<usize>,
        persistence: &Persistence,
        place: Place<'_>,
    ) -> Result<(), Error> {
        let rows = self.rows.get(range).unwrap_or_default();
        let full = rows.iter().rposition(|row| row.kind == RowKind::Full).unwrap_or(0);
        for row in &rows[full..] {
            apply_row(replayed, row.id, row.kind, &row.record)
                .map_err(|error| unreadable(place, row.id, error))?;
        }
        fill_references(&*persistence.saver, place, replayed).await
    }
}

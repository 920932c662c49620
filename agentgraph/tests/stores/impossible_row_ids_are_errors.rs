//! A damaged or malicious store may return ids that no run can have given. Calls then return typed errors and
//! never overflow.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use agentgraph::checkpoint::TaskId;
use agentgraph::checkpoint::{
    Catalog, Checkpointer, Leases, ListQuery, PendingWrite, Place, PutWrites, Retention, Row, StoreError,
    Tail, delegate,
};
use agentgraph::prelude::*;
use agentgraph::{CheckpointId, Code, DependencyGraph, Error, InterruptId, Memory};
use async_trait::async_trait;

use crate::common::words::{Words, WordsUpdate, says};

/// The numbers that the store falsifies.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Lie {
    Nothing,
    /// The ids of all rows.
    Rows(u32, u64),
    /// The ids of rows from `list`.
    Listed(u32, u64),
    /// The ids of rows from `get`.
    Got(u32, u64),
    Branches(u32),
    /// The slots of pending writes.
    Slots(u32),
}

/// A store in memory that falsifies numbers once `lie` is set.
#[derive(Default)]
struct Liar {
    inner: MemorySaver,
    lie: Mutex<Option<Lie>>,
    asked: AtomicUsize,
}

impl Liar {
    fn lie(&self) -> Lie {
        self.asked.fetch_add(1, Ordering::Relaxed);
        self.lie.lock().unwrap().unwrap_or(Lie::Nothing)
    }

    fn tail(&self, mut tail: Tail) -> Tail {
        match self.lie() {
            Lie::Rows(branch, step) | Lie::Got(branch, step) => {
                tail.rows.iter_mut().for_each(|row| row.id = CheckpointId::new(branch, step));
            }
            Lie::Slots(slot) => tail.writes.iter_mut().for_each(|write| write.slot = slot),
            _ => {}
        }
        tail
    }
}

#[async_trait]
impl Checkpointer for Liar {
    async fn get(&self, place: Place<'_>, at: Option<CheckpointId>) -> Result<Option<Tail>, StoreError> {
        Ok(self.inner.get(place, at).await?.map(|tail| self.tail(tail)))
    }

    async fn list(&self, place: Place<'_>, query: ListQuery) -> Result<Vec<Row>, StoreError> {
        let mut rows = self.inner.list(place, query).await?;
        if let Lie::Rows(branch, step) | Lie::Listed(branch, step) = self.lie() {
            for (back, row) in (0..).zip(&mut rows) {
                row.id = CheckpointId::new(branch, step.saturating_sub(back));
            }
        }
        Ok(rows)
    }

    fn outlives_its_process(&self) -> bool {
        true
    }

    fn keeps_secrets(&self) -> bool {
        false
    }

    fn leases(&self) -> Option<&dyn Leases> {
        None
    }

    fn catalog(&self) -> Option<&dyn Catalog> {
        Some(self)
    }

    delegate!(self => &self.inner; row, put, put_writes, threads, delete_thread, upkeep);
}

#[async_trait]
impl Catalog for Liar {
    async fn branches(&self, place: Place<'_>) -> Result<Vec<u32>, StoreError> {
        match self.lie() {
            Lie::Branches(branch) => Ok(vec![branch]),
            _ => self.inner.branches(place).await,
        }
    }

    delegate!(self => &self.inner; waiting, namespaces, usage);
}

async fn asks(ctx: Ctx) -> Result<WordsUpdate> {
    let answer: String = ctx.interrupt("who?")?;
    Ok(Words::update().seen([answer]))
}

fn words(eager: bool, child: Option<Memory>) -> StateGraph<Words> {
    let mut graph = StateGraph::new().node("a", says("a")).node("ask", asks).node("b", says("b"));
    graph = graph.edge(START, "a").edge("a", "b").edge("b", "ask");
    if eager {
        graph = graph.eager();
    }
    if let Some(memory) = child {
        let child =
            StateGraph::new().node("c", says("c")).node("ask", asks).edge(START, "c").edge("c", "ask");
        graph = graph.node("sub", child.compile().unwrap().memory(memory)).edge("a", "sub");
    }
    graph
}

/// Returns a lie for each kind of number that no run can have given.
fn lies() -> Vec<Lie> {
    let numbers =
        [(0, u64::MAX), (0, u64::MAX - 1), (0, i64::MAX as u64), (u32::MAX, 0), (u32::MAX, u64::MAX)];
    let rows = numbers.iter().flat_map(|(branch, step)| {
        [Lie::Rows(*branch, *step), Lie::Listed(*branch, *step), Lie::Got(*branch, *step)]
    });
    let slots = (0..=17).map(|less| Lie::Slots(u32::MAX - less));
    rows.chain(slots).chain([Lie::Branches(u32::MAX)]).collect()
}

/// Makes every call that reads, each on a new thread that waits for an answer. Returns the calls with the
/// codes of their errors.
async fn call_everything<S: State>(
    graph: impl Fn(Arc<Liar>) -> CompiledGraph<S>,
    input: impl Fn() -> S::Update,
    lie: Lie,
) -> Vec<(&'static str, Option<Code>)> {
    let mut codes = Vec::new();
    for call in 0..16 {
        let liar = Arc::new(Liar::default());
        let graph = graph(Arc::clone(&liar));
        graph.invoke(input()).thread("t").await.unwrap();
        let newest = graph.state("t").await.unwrap().unwrap();
        let id = newest.id;
        let open: Vec<InterruptId> = newest.interrupts.iter().filter_map(|open| open.id).collect();
        *liar.lie.lock().unwrap() = Some(lie);
        let called = match call {
            0 => ("state", graph.state("t").await.map(drop)),
            1 => ("history", graph.history("t").await.map(drop)),
            2 => ("history of a branch", graph.history("t").branch(u32::MAX).await.map(drop)),
            3 => {
                ("history before", graph.history("t").before(CheckpointId::new(1, u64::MAX)).await.map(drop))
            }
            4 => ("resume", graph.resume_many(open.iter().map(|id| (*id, "me"))).thread("t").await.map(drop)),
            5 => ("proceed", graph.proceed().thread("t").await.map(drop)),
            6 => ("invoke", graph.invoke(input()).thread("t").abandon().await.map(drop)),
            7 => ("update", graph.update_state("t").update(input()).await.map(drop)),
            8 => ("fork", graph.proceed().thread("t").from(CheckpointId::new(0, 0)).await.map(drop)),
            9 => ("as start", graph.update_state("t").as_start(input()).await.map(drop)),
            10 => ("prune", graph.prune(Retention::keep_last(1)).thread("t").await.map(drop)),
            11 => ("copy", graph.copy_thread("t", "copy").await.map(drop)),
            12 => ("state at", graph.state_at("t", id).await.map(drop)),
            13 => (
                "state at an impossible one",
                graph.state_at("t", CheckpointId::new(u32::MAX, u64::MAX)).await.map(drop),
            ),
            14 => ("topology", graph.topology_at("t", id).await.map(drop)),
            _ => ("an unknown answer", {
                let id: InterruptId = format!("{}-{}", TaskId::from_u128(7), u32::MAX).parse().unwrap();
                graph.resume_many([(id, "me")]).thread("t").await.map(drop)
            }),
        };
        codes.push((called.0, called.1.err().map(|error| error.code())));
    }
    codes
}

/// Asserts that all errors are typed and that falsified rows are refused. Unknown slots may be ignored.
fn check(lie: Lie, codes: &[(&'static str, Option<Code>)]) {
    for (call, code) in codes {
        let typed = [
            None,
            Some(Code::CorruptCheckpoint),
            Some(Code::UnknownInterrupt),
            Some(Code::NothingToResume),
            Some(Code::UnknownCheckpoint),
            Some(Code::Store),
        ];
        assert!(typed.contains(code), "{lie:?}, {call}: {code:?}");
    }
    let refused =
        |call: &str| codes.iter().any(|(at, code)| *at == call && *code == Some(Code::CorruptCheckpoint));
    match lie {
        Lie::Rows(..) => {
            let all =
                ["state", "history", "resume", "proceed", "invoke", "update", "as start", "prune", "copy"];
            all.iter().for_each(|call| assert!(refused(call), "{lie:?}, {call}: {codes:?}"));
        }
        Lie::Got(..) => {
            assert!(refused("state") && refused("proceed") && refused("invoke"), "{lie:?}: {codes:?}")
        }
        Lie::Listed(..) => {
            assert!(refused("history") && refused("fork") && refused("prune"), "{lie:?}: {codes:?}")
        }
        Lie::Nothing | Lie::Branches(_) | Lie::Slots(_) => {}
    }
}

#[tokio::test]
async fn impossible_ids_are_typed_errors_in_a_graph_with_supersteps() {
    for lie in lies() {
        let graph = |liar| words(false, None).compile().unwrap().checkpointer(liar);
        check(lie, &call_everything(graph, Words::update, lie).await);
    }
}

#[tokio::test]
async fn impossible_ids_are_typed_errors_in_an_eager_graph() {
    for lie in lies() {
        let graph = |liar| words(true, None).compile().unwrap().checkpointer(liar);
        check(lie, &call_everything(graph, Words::update, lie).await);
    }
}

#[tokio::test]
async fn impossible_ids_are_typed_errors_in_a_graph_with_subgraphs() {
    for memory in [Memory::PerCall, Memory::PerThread] {
        for lie in lies() {
            let graph = |liar| words(false, Some(memory)).compile().unwrap().checkpointer(liar);
            check(lie, &call_everything(graph, Words::update, lie).await);
        }
    }
}

#[tokio::test]
async fn impossible_ids_are_typed_errors_in_a_pass() {
    async fn asks(ctx: Ctx) -> Result<String> {
        Ok(ctx.interrupt("who?")?)
    }
    for lie in lies() {
        let graph = |liar: Arc<Liar>| {
            let graph = DependencyGraph::<String>::new().node("a", || Ok::<_, Error>("a".to_owned()));
            graph.node("ask", asks).edge("a", "ask").compile().unwrap().checkpointer(liar)
        };
        let liar = Arc::new(Liar::default());
        let pass = graph(Arc::clone(&liar));
        pass.invoke(()).thread("t").await.unwrap();
        *liar.lie.lock().unwrap() = Some(lie);
        let codes = vec![
            ("state", pass.state("t").await.err().map(|error| error.code())),
            ("history", pass.history("t").await.err().map(|error| error.code())),
            ("resume", pass.resume("me").thread("t").await.err().map(|error| error.code())),
            ("proceed", pass.proceed().thread("t").await.err().map(|error| error.code())),
        ];
        for (call, code) in &codes {
            assert!(code.is_none() || *code != Some(Code::NodePanicked), "{lie:?}, {call}: {code:?}");
            if let Lie::Rows(..) = lie {
                assert_eq!(*code, Some(Code::CorruptCheckpoint), "{lie:?}, {call}");
            }
        }
    }
}

#[tokio::test]
async fn writes_with_impossible_slots_do_not_hide_valid_ones() {
    let liar = Arc::new(Liar::default());
    let graph = words(false, None).compile().unwrap().checkpointer(Arc::clone(&liar));
    graph.invoke(Words::update()).thread("t").await.unwrap();
    let waits = graph.state("t").await.unwrap().unwrap();
    let id = waits.interrupts[0].id.unwrap().to_string();
    let task: TaskId = id.split('-').next().unwrap().parse().unwrap();
    for less in 9..16 {
        let write = PendingWrite { task, slot: u32::MAX - less, bytes: vec![0x81, 0xa1, b'x', 0x01] };
        let writes = &[write][..];
        liar.put_writes(PutWrites::new(Place::root("t"), waits.id, writes)).await.unwrap();
        assert_eq!(graph.state("t").await.unwrap().unwrap().interrupts, waits.interrupts);
    }
    assert_eq!(graph.resume("me").thread("t").await.unwrap().into_finished().unwrap().seen, ["a", "b", "me"]);
}

//! A cached node runs once for each key, input and lifetime, in every discipline, across graphs and
//! processes. Errors, answers of people and commands are not kept, and a failing store is as an empty one.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use agentgraph::checkpoint::{StoreCode, StoreError};
use agentgraph::graph::ProblemKind;
use agentgraph::policy::{Breaker, Limit};
use agentgraph::prelude::*;
use agentgraph::run::TaskEnd;
use agentgraph::store::{
    Change, Found, Item, MemoryStore, Namespace, NamespaceQuery, SearchQuery, Store, StoreExt,
};
use agentgraph::{BoxError, Code};
use futures_util::StreamExt;
use serde::{Deserialize, Serialize};

use crate::common::clock::Clock;

#[derive(State, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
struct Talk {
    question: String,
    #[reduce(append)]
    answers: Vec<String>,
}

const HOUR: Duration = Duration::from_secs(3600);

fn question(talk: &Talk) -> String {
    talk.question.clone()
}

#[derive(Clone, Default)]
struct Runs(Arc<AtomicU32>);

impl Runs {
    fn count(&self) -> u32 {
        self.0.load(Ordering::SeqCst)
    }

    fn add(&self) -> u32 {
        self.0.fetch_add(1, Ordering::SeqCst) + 1
    }
}

async fn answer(talk: Snapshot<Talk>, runs: Dep<Runs>) -> TalkUpdate {
    Talk::update().answers([format!("{}: {}", talk.question, runs.add())])
}

fn graph(eager: bool, runs: &Runs, store: impl Store) -> CompiledGraph<Talk> {
    let node = answer.cache(question, HOUR);
    let graph = StateGraph::new().node("answer", node).edge(START, "answer").dep(runs.clone());
    let graph = if eager { graph.eager() } else { graph };
    graph.compile().unwrap().store(store)
}

async fn ask(graph: &CompiledGraph<Talk>, question: &str) -> String {
    graph.invoke(Talk::update().question(question)).finish().await.unwrap().answers.pop().unwrap()
}

#[tokio::test]
async fn a_node_runs_once_for_each_key_until_its_entry_is_too_old() {
    for eager in [false, true] {
        let (runs, clock) = (Runs::default(), Clock::default());
        let store = MemoryStore::new().services(clock.clone());
        let graph = graph(eager, &runs, store.clone());
        assert_eq!(ask(&graph, "tea?").await, "tea?: 1");
        assert_eq!(ask(&graph, "tea?").await, "tea?: 1");
        assert_eq!(ask(&graph, "rum?").await, "rum?: 2");
        clock.advance(HOUR - Duration::from_millis(1));
        assert_eq!(ask(&self::graph(!eager, &runs, store), "tea?").await, "tea?: 1", "another graph");
        clock.advance(Duration::from_millis(1));
        assert_eq!(ask(&graph, "tea?").await, "tea?: 3");
    }
}

#[cfg(feature = "sqlite")]
#[tokio::test]
async fn entries_in_a_file_outlive_the_process() {
    let folder = crate::sqlite_folder::Folder::new();
    let file = folder.fresh();
    let runs = Runs::default();
    for _ in 0..2 {
        let store = agentgraph::store::SqliteStore::open(&file).await.unwrap();
        assert_eq!(ask(&graph(false, &runs, store), "tea?").await, "tea?: 1");
    }
}

#[tokio::test]
async fn events_show_a_hit() {
    let graph = graph(false, &Runs::default(), MemoryStore::new());
    let mut ends = Vec::new();
    for _ in 0..2 {
        let call = graph.invoke(Talk::update().question("tea?")).views([View::Tasks, View::Updates]);
        let events: Vec<_> = call.stream().collect().await;
        assert!(events.iter().any(|event| matches!(&event.kind, EventKind::Update { update: Some(_), .. })));
        let json: Vec<_> = events.iter().map(|event| serde_json::to_value(event).unwrap()).collect();
        assert_eq!(json.iter().any(|event| event.to_string().contains("\"cached\"")), !ends.is_empty());
        ends.extend(events.into_iter().filter_map(|event| match event.kind {
            EventKind::TaskEnded { end, .. } => Some(end),
            _ => None,
        }));
    }
    assert_eq!(ends, [TaskEnd::Done, TaskEnd::Cached]);
}

#[tokio::test]
async fn dispatches_with_other_inputs_have_other_entries() {
    async fn spread() -> Command<Talk> {
        Command::to([1_u32, 2, 1].map(|page| Dispatch::new("read", page)).to_vec())
    }
    async fn read(Input(page): Input<u32>, runs: Dep<Runs>) -> TalkUpdate {
        runs.add();
        Talk::update().answers([format!("page {page}")])
    }
    let runs = Runs::default();
    let graph = StateGraph::new()
        .node("spread", spread.targets(["read"]))
        .node("read", read.cache(|_: &Talk| String::new(), HOUR))
        .edge(START, "spread")
        .dep(runs.clone())
        .compile()
        .unwrap()
        .store(MemoryStore::new());
    for _ in 0..2 {
        let talk = graph.invoke(Talk::update()).max_concurrency(1).finish().await.unwrap();
        assert_eq!(talk.answers, ["page 1", "page 2", "page 1"]);
    }
    assert_eq!(runs.count(), 2);
}

#[tokio::test]
async fn errors_are_not_kept() {
    async fn fails_once(runs: Dep<Runs>) -> Result<TalkUpdate> {
        if runs.add() == 1 { Err(BoxError::from("no")) } else { Ok(Talk::update().answers(["yes"])) }
    }
    let runs = Runs::default();
    let graph = StateGraph::new().node("a", fails_once.cache(question, HOUR)).edge(START, "a");
    let graph = graph.dep(runs.clone()).compile().unwrap().store(MemoryStore::new());
    assert!(graph.invoke(Talk::update()).await.is_err());
    for _ in 0..2 {
        assert_eq!(graph.invoke(Talk::update()).finish().await.unwrap().answers, ["yes"]);
    }
    assert_eq!(runs.count(), 2);
}

#[tokio::test]
async fn an_answer_of_a_person_is_asked_for_in_each_thread() {
    async fn approve(ctx: Ctx) -> Result<TalkUpdate> {
        let answer: String = ctx.interrupt("may I?")?;
        Ok(Talk::update().answers([answer]))
    }
    let graph = StateGraph::new().node("a", approve.cache(question, HOUR)).edge(START, "a");
    let graph = graph.compile().unwrap().store(MemoryStore::new()).checkpointer(MemorySaver::new());
    for thread in ["one", "other"] {
        let asked = graph.invoke(Talk::update()).thread(thread).await.unwrap();
        assert_eq!(asked.interrupts().len(), 1, "{thread}");
        assert_eq!(graph.resume(thread).thread(thread).finish().await.unwrap().answers, [thread]);
    }
}

#[tokio::test]
async fn a_node_that_edits_the_graph_runs_each_time() {
    async fn detour(ctx: Ctx) -> Result<TalkUpdate> {
        ctx.edits().add_edge("edits", "detour")?;
        Ok(Talk::update())
    }
    async fn detoured() -> TalkUpdate {
        Talk::update().answers(["detour"])
    }
    async fn never() {}
    let graph = StateGraph::new()
        .node("edits", detour.cache(question, HOUR))
        .node("detour", detoured)
        .node("never", never)
        .edge(START, "edits")
        .edge("never", "detour")
        .compile()
        .unwrap()
        .store(MemoryStore::new());
    for _ in 0..2 {
        assert_eq!(graph.invoke(Talk::update()).finish().await.unwrap().answers, ["detour"]);
    }
}

#[tokio::test]
async fn a_hit_passes_by_the_limit_and_the_breaker() {
    let (runs, store) = (Runs::default(), MemoryStore::new());
    let breaker = Breaker::new("service", 1, HOUR);
    // One attempt in an hour, and the first that fails opens the breaker.
    let limit = Limit::new("service", 1).rate(1, HOUR);
    let node = answer.cache(question, HOUR).limit(&limit).breaker(&breaker);
    let graph = StateGraph::new().node("answer", node).edge(START, "answer").dep(runs);
    let graph = graph.compile().unwrap().services(Clock::default()).store(store);
    for _ in 0..3 {
        assert_eq!(ask(&graph, "tea?").await, "tea?: 1");
    }
    async fn down() -> Result<()> {
        Err("down".into())
    }
    let other =
        StateGraph::<Talk>::new().node("a", down.breaker(&breaker)).edge(START, "a").compile().unwrap();
    assert!(other.invoke(Talk::update()).await.is_err());
    let open = other.services(Clock::default()).invoke(Talk::update()).await.unwrap_err();
    assert_eq!(open.code(), Code::BreakerOpen);
    assert_eq!(ask(&graph, "tea?").await, "tea?: 1");
}

#[tokio::test]
async fn a_subgraph_is_cached_as_a_whole_and_uses_the_store_around_it() {
    let runs = Runs::default();
    let inner = StateGraph::new().node("answer", answer).edge(START, "answer").dep(runs.clone());
    let inner = inner.compile().unwrap();
    let outer = StateGraph::new().node("inner", inner.cache(question, HOUR)).edge(START, "inner");
    let outer = outer.compile().unwrap().store(MemoryStore::new());
    for _ in 0..2 {
        assert_eq!(ask(&outer, "tea?").await, "tea?: 1");
    }
    let deep = StateGraph::new().node("answer", answer.cache(question, HOUR)).edge(START, "answer");
    let deep = deep.dep(runs.clone()).compile().unwrap();
    let outer = StateGraph::new().node("inner", deep).edge(START, "inner").compile().unwrap();
    let outer = outer.store(MemoryStore::new());
    for _ in 0..2 {
        assert_eq!(ask(&outer, "tea?").await, "tea?: 2");
    }
}

#[tokio::test]
async fn without_a_store_the_node_fails_and_an_entry_that_cannot_be_read_is_none() {
    let node = answer.cache(question, HOUR);
    let without = StateGraph::new().node("answer", node).edge(START, "answer").dep(Runs::default());
    let error = without.compile().unwrap().invoke(Talk::update()).await.unwrap_err();
    assert_eq!(error.code(), Code::NoStore);

    let (runs, store) = (Runs::default(), MemoryStore::new());
    let graph = graph(false, &runs, store.clone());
    assert_eq!(ask(&graph, "tea?").await, "tea?: 1");
    let entries = Namespace::new(["node-cache", "answer"]).unwrap();
    let key = store.search(&entries).await.unwrap()[0].item.key.clone();
    for (wrong, count) in [("zz", 2), ("a", 3), ("é", 4), ("c1", 5)] {
        store.put(&entries, &*key, wrong).await.unwrap();
        assert_eq!(ask(&graph, "tea?").await, format!("tea?: {count}"), "{wrong}");
    }
}

/// A store whose server is away.
struct Away;

fn away<T>() -> Result<T, StoreError> {
    Err(StoreError::new(StoreCode::Store, "the server is away"))
}

#[async_trait::async_trait]
impl Store for Away {
    async fn read(&self, _: &Namespace, _: &str, _: Option<bool>) -> Result<Option<Item>, StoreError> {
        away()
    }
    async fn change(&self, _: Vec<Change>) -> Result<Vec<Option<u64>>, StoreError> {
        away()
    }
    async fn find(&self, _: &SearchQuery) -> Result<Vec<Found>, StoreError> {
        away()
    }
    async fn list(&self, _: &NamespaceQuery) -> Result<Vec<Namespace>, StoreError> {
        away()
    }
    async fn sweep(&self) -> Result<u64, StoreError> {
        away()
    }
}

#[tokio::test]
async fn a_failing_store_is_as_an_empty_one() {
    let graph = graph(false, &Runs::default(), Away);
    assert_eq!(ask(&graph, "tea?").await, "tea?: 1");
    assert_eq!(ask(&graph, "tea?").await, "tea?: 2");
}

#[test]
fn nodes_that_return_commands_and_states_with_secrets_are_not_cached() {
    #[derive(State, Serialize, Deserialize, Clone, Debug, Default)]
    struct Login {
        name: String,
        #[channel(secret)]
        token: String,
    }
    async fn goes() -> Command<Talk> {
        Command::to(END)
    }
    let commands = StateGraph::new().node("a", goes.cache(question, HOUR)).edge(START, "a").compile();
    async fn nothing() {}
    let node = IntoNode::<Login, _>::cache(nothing, |login: &Login| login.name.clone(), HOUR);
    let secrets = StateGraph::new().node("a", node);
    let secrets = secrets.edge(START, "a").compile();
    let kind = |error: agentgraph::graph::CompileError| error.problems()[0].kind.clone();
    for (kind, about) in
        [(kind(commands.err().unwrap()), "commands"), (kind(secrets.err().unwrap()), "secret channels")]
    {
        assert!(
            matches!(&kind, ProblemKind::Misfit { node, setting: "cache", why } if node == "a" && why.contains(about)),
            "{kind:?}"
        );
    }
}

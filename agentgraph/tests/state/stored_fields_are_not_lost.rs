//! A program whose state lacks a stored field of a thread cannot continue the thread, unless it declares
//! how to treat the field. It can still read the thread.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use agentgraph::checkpoint::{
    Catalog, Checkpointer, ListQuery, PendingWrite, Place, Retention, Row, RowKind,
};
use agentgraph::graph::ProblemKind;
use agentgraph::node::IntoStep;
use agentgraph::prelude::*;
use agentgraph::state::StoredState;
use agentgraph::{CheckpointId, Code, CompiledGraph, DependencyGraph, Durability, Error, Memory, Outcome};
use serde::{Deserialize, Serialize};

/// The program that stored the threads.
mod first {
    use super::*;

    #[derive(State, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
    pub(super) struct Note {
        pub(super) title: String,
        #[reduce(append)]
        pub(super) lines: Vec<String>,
        pub(super) text: String,
        #[reduce(by_id)]
        pub(super) people: Vec<Person>,
        #[reduce(merge)]
        pub(super) marks: BTreeMap<String, u32>,
        #[channel(untracked)]
        pub(super) scratch: u32,
    }

    pub(super) fn full() -> Note {
        Note {
            title: "tea".into(),
            lines: vec!["one".into()],
            text: "hot".into(),
            people: vec![Person { id: "a".into(), age: 3 }, Person { id: "b".into(), age: 4 }],
            marks: BTreeMap::from([("x".into(), 1), ("y".into(), 2)]),
            scratch: 0,
        }
    }

    pub(super) fn input() -> NoteUpdate {
        let Note { title, lines, text, people, marks, .. } = full();
        Note::update().title(title).lines(lines).text(text).people(people).marks(marks).scratch(7)
    }
}

#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
struct Person {
    id: String,
    age: u32,
}

impl Keyed for Person {
    fn key(&self) -> Cow<'_, str> {
        Cow::Borrowed(&self.id)
    }
}

/// The state of the later program. It lacks `text`, `people`, `marks` and `scratch`. Of these, `scratch` was
/// never stored.
#[derive(State, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
struct Note {
    title: String,
    #[reduce(append)]
    lines: Vec<String>,
}

async fn ask(ctx: Ctx) -> Result<()> {
    ctx.interrupt::<bool>("go on?")?;
    Ok(())
}

/// Returns a graph in which `work` returns the update and `ask` interrupts, in turns.
fn shape<S: State<Schema = ()>>(update: S::Update) -> StateGraph<S>
where
    S::Update: IntoStep<S>,
{
    let work = move |_: Snapshot<S>| std::future::ready(update.clone());
    let graph = StateGraph::new().node("work", work).node("ask", ask);
    graph.edge(START, "work").edge("work", "ask").edge("ask", "work")
}

fn old(saver: &Arc<MemorySaver>) -> CompiledGraph<first::Note> {
    shape::<first::Note>(first::Note::update()).compile().unwrap().checkpointer(Arc::clone(saver))
}

fn new() -> StateGraph<Note> {
    shape::<Note>(Note::update().lines(["more"]))
}

fn on(saver: &Arc<MemorySaver>, graph: StateGraph<Note>) -> CompiledGraph<Note> {
    graph.compile().unwrap().checkpointer(Arc::clone(saver))
}

/// Stores a thread of the first program that waits for an answer.
async fn stored() -> Arc<MemorySaver> {
    let saver = Arc::new(MemorySaver::new());
    old(&saver).invoke(first::input()).thread("t").await.unwrap();
    saver
}

/// Returns all rows of a place and its newest pending writes.
async fn held(saver: &MemorySaver, place: Place<'_>) -> (Vec<Row>, Vec<PendingWrite>) {
    let rows = saver.list(place, ListQuery::default()).await.unwrap();
    let writes = saver.get(place, None).await.unwrap().map(|tail| tail.writes).unwrap_or_default();
    (rows, writes)
}

fn assert_refused<T: std::fmt::Debug>(result: Result<T, Error>, names: &[&str]) {
    let error = result.unwrap_err();
    assert_eq!((error.code(), error.thread()), (Code::GraphChanged, Some("t")), "{error}");
    let message = error.to_string();
    for name in names {
        assert!(message.contains(&format!("`{name}`")), "{message}");
    }
    assert!(!message.contains("`scratch`"), "{message}");
    for remedy in ["alias", ".migration(..)", &format!(".drops(\"{}\")", names[0]), "nothing was stored"] {
        assert!(message.contains(remedy), "{remedy}: {message}");
    }
}

#[tokio::test]
async fn every_call_that_would_lose_a_field_is_refused_and_stores_nothing() {
    let saver = stored().await;
    let before = held(&saver, Place::root("t")).await;
    let graph = on(&saver, new());
    let first = CheckpointId::new(0, 0);
    let lost = &["text", "people", "marks"];
    assert_refused(graph.invoke(Note::update()).thread("t").abandon().await.map(drop), lost);
    assert_refused(graph.invoke(Note::update()).thread("t").from(first).await.map(drop), lost);
    assert_refused(graph.resume(true).thread("t").await.map(drop), lost);
    assert_refused(graph.proceed().thread("t").await.map(drop), lost);
    assert_refused(graph.proceed().thread("t").from(first).await.map(drop), lost);
    assert_refused(graph.proceed().thread("t").durability(Durability::Exit).await.map(drop), lost);
    let update = || Note::update().title("x");
    assert_refused(graph.update_state("t").await, lost);
    assert_refused(graph.update_state("t").at(first).await, lost);
    assert_refused(graph.update_state("t").update(update()).await, lost);
    assert_refused(graph.update_state("t").as_node("work", update()).await, lost);
    assert_refused(graph.update_state("t").as_start(update()).await, lost);
    assert_refused(graph.update_state("t").as_end(update()).await, lost);
    assert_eq!(held(&saver, Place::root("t")).await, before);
    assert_eq!(saver.threads().await.unwrap(), ["t"]);
}

#[tokio::test]
async fn a_refused_thread_can_be_read_copied_pruned_and_deleted() {
    let saver = stored().await;
    let graph = on(&saver, new());
    let known = Note { title: "tea".into(), lines: vec!["one".into()] };
    let now = graph.state("t").await.unwrap().unwrap();
    assert_eq!((&now.values, now.interrupts.len()), (&known, 1));
    assert_eq!(graph.state_at("t", CheckpointId::new(0, 0)).await.unwrap().unwrap().values, known);
    assert_eq!(graph.history("t").await.unwrap().len(), 2);
    assert_eq!(graph.waiting().await.unwrap().len(), 1);

    graph.copy_thread("t", "copy").await.unwrap();
    assert_eq!(graph.prune(Retention::keep_last(1)).await.unwrap().checkpoints, 3);
    for thread in ["t", "copy"] {
        assert_eq!(old(&saver).state(thread).await.unwrap().unwrap().values, first::full(), "{thread}");
        let outcome = old(&saver).resume(true).thread(thread).await.unwrap();
        assert_eq!(*outcome.output(), first::full(), "{thread}");
    }
    graph.delete_thread("t").await.unwrap();
    assert!(graph.state("t").await.unwrap().is_none());
}

#[tokio::test]
async fn later_records_do_not_contain_a_dropped_field() {
    let saver = stored().await;
    let graph = on(&saver, new().drops("text").drops("people").drops("marks"));
    graph.resume(true).thread("t").await.unwrap();
    let (rows, _) = held(&saver, Place::root("t")).await;
    let holds = |row: &Row, name: &str| row.record.windows(name.len()).any(|found| found == name.as_bytes());
    for row in &rows {
        assert_eq!(holds(row, "people"), row.id.step < 2 && row.kind == RowKind::Full, "{}", row.id);
    }
    let past = old(&saver).state_at("t", CheckpointId::new(0, 1)).await.unwrap().unwrap();
    assert_eq!(past.values, first::full());
    assert_refused(
        on(&stored().await, new().drops("text").drops("marks")).resume(true).thread("t").await.map(drop),
        &["people"],
    );
}

#[tokio::test]
async fn unknown_fields_are_kept_through_deltas_full_records_forks_and_pruning() {
    let saver = stored().await;
    let keeping = || on(&saver, new().keeps_unknown_fields());
    let read = || async { old(&saver).state("t").await.unwrap().unwrap().values };
    let mut expected = first::full();
    for _ in 0..40 {
        keeping().resume(true).thread("t").await.unwrap();
        expected.lines.push("more".into());
        assert_eq!(read().await, expected);
    }
    let (rows, _) = held(&saver, Place::root("t")).await;
    let fulls = rows.iter().filter(|row| row.kind == RowKind::Full).count();
    assert!((3..rows.len() / 2).contains(&fulls), "{fulls} of {} rows are fulls", rows.len());

    keeping().update_state("t").at(CheckpointId::new(0, 10)).await.unwrap();
    keeping().proceed().thread("t").durability(Durability::Exit).await.unwrap();
    keeping().prune(Retention::keep_last(1)).await.unwrap();
    keeping().update_state("t").update(Note::update().title("coffee")).await.unwrap();
    let now = read().await;
    assert_eq!(
        (&*now.title, &now.text, &now.people, &now.marks),
        ("coffee", &expected.text, &expected.people, &expected.marks)
    );

    // The first program knows the fields and updates them by key.
    let graph = old(&saver);
    let change =
        first::Note::update().people([Person { id: "b".into(), age: 5 }]).marks([("y".to_owned(), 9)]);
    graph.update_state("t").update(change).await.unwrap();
    let now = read().await;
    assert_eq!(now.people, [expected.people[0].clone(), Person { id: "b".into(), age: 5 }]);
    assert_eq!(now.marks, BTreeMap::from([("x".into(), 1), ("y".into(), 9)]));
}

#[tokio::test]
async fn a_large_unknown_field_is_not_written_again() {
    let saver = Arc::new(MemorySaver::new());
    let large = "l".repeat(100_000);
    old(&saver).invoke(first::input().text(large.clone())).thread("t").await.unwrap();
    for _ in 0..30 {
        let graph = on(&saver, new().keeps_unknown_fields());
        graph.update_state("t").update(Note::update().title("d".repeat(20_000))).await.unwrap();
    }
    let (rows, _) = held(&saver, Place::root("t")).await;
    assert!(rows.iter().filter(|row| row.kind == RowKind::Full).count() > 3);
    let long = rows.iter().filter(|row| row.record.len() >= large.len()).count();
    assert_eq!(long, 2, "its first record, and the first full record of the other program");
    assert_eq!(old(&saver).state("t").await.unwrap().unwrap().values.text, large);
}

#[tokio::test]
async fn a_field_that_was_never_stored_is_not_missed() {
    let saver = Arc::new(MemorySaver::new());
    #[derive(State, Serialize, Deserialize, Clone, Debug, Default)]
    struct Before {
        title: String,
        #[reduce(append)]
        lines: Vec<String>,
        #[channel(untracked)]
        cache: String,
    }
    let graph = shape::<Before>(Before::update()).compile().unwrap().checkpointer(Arc::clone(&saver));
    graph.invoke(Before::update().title("tea").cache("c")).thread("t").await.unwrap();
    on(&saver, new()).resume(true).thread("t").await.unwrap();
}

#[tokio::test]
async fn fields_of_runs_and_supersteps_count_too() {
    #[derive(State, Serialize, Deserialize, Clone, Debug, Default)]
    struct Before {
        title: String,
        #[reduce(append)]
        lines: Vec<String>,
        #[channel(run)]
        turn: u32,
        #[channel(ephemeral)]
        hint: String,
    }
    let saver = Arc::new(MemorySaver::new());
    let graph = shape::<Before>(Before::update().hint("h")).compile().unwrap();
    let graph = graph.checkpointer(Arc::clone(&saver));
    graph.invoke(Before::update().title("tea").turn(3)).thread("t").await.unwrap();
    assert_refused(on(&saver, new()).resume(true).thread("t").await.map(drop), &["turn", "hint"]);
    on(&saver, new().keeps_unknown_fields()).update_state("t").await.unwrap();
    let now = graph.state("t").await.unwrap().unwrap().values;
    assert_eq!((now.turn, &*now.hint), (3, "h"));
}

#[tokio::test]
async fn only_fields_that_migrations_leave_count() {
    let saver = stored().await;
    let migrating = |all: bool| {
        on(
            &saver,
            new().schema_version(1).migration(0, move |fields| {
                let text: Option<String> = fields.take("text")?;
                fields.set("title", text.unwrap_or_default())?;
                fields.remove("marks");
                if all {
                    fields.remove("people");
                }
                Ok(())
            }),
        )
    };
    let before = held(&saver, Place::root("t")).await;
    let refused = migrating(false).resume(true).thread("t").await.map(drop);
    assert!(!refused.as_ref().unwrap_err().to_string().contains("`text`"));
    assert_refused(refused, &["people"]);
    assert_eq!(held(&saver, Place::root("t")).await, before);
    let outcome = migrating(true).resume(true).thread("t").await.unwrap();
    assert_eq!(outcome.output().title, "hot");
}

#[tokio::test]
async fn unknown_fields_that_migrations_leave_are_kept() {
    let saver = stored().await;
    let graph = new()
        .schema_version(1)
        .migration(0, |fields| {
            fields.rename("text", "body");
            Ok(())
        })
        .keeps_unknown_fields();
    on(&saver, graph).resume(true).thread("t").await.unwrap();
    #[derive(State, Serialize, Deserialize, Clone, Debug, Default)]
    struct After {
        body: String,
        people: Vec<Person>,
    }
    let graph =
        shape::<After>(After::update()).schema_version(1).compile().unwrap().checkpointer(Arc::clone(&saver));
    let now = graph.state("t").await.unwrap().unwrap().values;
    assert_eq!((&*now.body, now.people), ("hot", first::full().people));
}

#[test]
fn a_channel_of_the_state_cannot_be_dropped() {
    #[derive(State, Serialize, Deserialize, Clone, Debug, Default)]
    struct Renamed {
        #[channel(alias = "text")]
        body: String,
    }
    let graph = |field: &'static str| {
        StateGraph::<Renamed>::new().node("a", || async {}).edge(START, "a").drops(field)
    };
    assert!(graph("gone").compile().is_ok());
    for field in ["body", "text"] {
        let error = graph(field).compile().unwrap_err();
        assert_eq!(error.problems()[0].kind, ProblemKind::DropsChannel { field: field.into() });
        assert!(error.problems()[0].place.is_some());
    }
}

/// Threads in which `write` has finished and its sibling `ask` waits.
mod beside {
    use super::*;

    pub(super) fn graph<S: State<Schema = ()>>(update: S::Update) -> StateGraph<S>
    where
        S::Update: IntoStep<S>,
    {
        let write = move |_: Snapshot<S>| std::future::ready(update.clone());
        StateGraph::new().node("write", write).node("ask", ask).edge(START, "write").edge(START, "ask")
    }

    pub(super) async fn stored() -> Arc<MemorySaver> {
        let saver = Arc::new(MemorySaver::new());
        let graph = graph::<first::Note>(first::Note::update().lines(["two"]).text("cold"))
            .compile()
            .unwrap()
            .checkpointer(Arc::clone(&saver));
        graph.invoke(first::input()).thread("t").await.unwrap();
        saver
    }

    pub(super) fn now() -> StateGraph<Note> {
        graph::<Note>(Note::update().lines(["again"])).drops("people").drops("marks")
    }
}

#[tokio::test]
async fn a_finished_task_that_wrote_an_unknown_field_is_refused_until_the_field_is_dropped() {
    let saver = beside::stored().await;
    let before = held(&saver, Place::root("t")).await;
    assert!(!before.1.is_empty());
    for graph in [beside::now(), beside::now().keeps_unknown_fields()] {
        let graph = on(&saver, graph);
        assert_refused(graph.resume(true).thread("t").await.map(drop), &["text"]);
        assert_refused(graph.proceed().thread("t").await.map(drop), &["text"]);
        assert_refused(graph.update_state("t").as_node("ask", Note::update()).await, &["text"]);
        assert_refused(graph.update_state("t").as_end(Note::update()).await, &["text"]);
        assert_eq!(held(&saver, Place::root("t")).await, before);
        let shown = graph.state("t").await.unwrap().unwrap();
        assert_eq!(
            (shown.values.lines, shown.next),
            (vec!["one".into(), "two".into()], vec!["ask".to_owned()])
        );
    }
    let graph = on(&saver, beside::now().drops("text"));
    let note = graph.resume(true).thread("t").await.unwrap().into_finished().unwrap();
    assert_eq!(note.lines, ["one", "two"]);
}

#[tokio::test]
async fn abandoning_a_run_discards_its_results() {
    let saver = beside::stored().await;
    let graph = on(&saver, beside::now().keeps_unknown_fields());
    graph.update_state("t").as_start(Note::update().title("x")).await.unwrap();
    let saver = beside::stored().await;
    let graph = on(&saver, new().keeps_unknown_fields());
    graph.invoke(Note::update()).thread("t").abandon().await.unwrap();
}

#[tokio::test]
async fn a_result_for_a_reducer_of_another_kind_is_refused() {
    #[derive(State, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
    struct Before {
        #[reduce(append)]
        lines: Vec<String>,
    }
    #[derive(State, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
    struct After {
        #[reduce(last)]
        lines: Vec<String>,
    }
    let saver = Arc::new(MemorySaver::new());
    let graph = beside::graph::<Before>(Before::update().lines(["two".to_owned()]))
        .compile()
        .unwrap()
        .checkpointer(Arc::clone(&saver));
    graph.invoke(Before::update().lines(["one".to_owned()])).thread("t").await.unwrap();
    let before = held(&saver, Place::root("t")).await;

    // The stored bytes fit both reducers. The new one would replace the list with them.
    let build = || beside::graph::<After>(After::update().lines(vec!["again".to_owned()]));
    let graph = build().compile().unwrap().checkpointer(Arc::clone(&saver));
    let update = After::update();
    for refused in [
        graph.resume(true).thread("t").await.map(drop),
        graph.proceed().thread("t").await.map(drop),
        graph.update_state("t").as_node("ask", update.clone()).await.map(drop),
        graph.update_state("t").as_end(update).await.map(drop),
    ] {
        let error = refused.unwrap_err();
        assert_eq!((error.code(), error.thread()), (Code::GraphChanged, Some("t")));
        let message = error.to_string();
        assert!(
            message.contains("`lines`") && message.contains("`append`") && message.contains("`last`"),
            "{message}"
        );
    }
    assert_eq!(held(&saver, Place::root("t")).await, before);
    assert_eq!(graph.state("t").await.unwrap().unwrap().values.lines, ["one"]);

    // A migration converts the result.
    let graph = build().schema_version(1).migration(0, |fields| {
        if fields.is_update() {
            fields.set("lines", ["one", "two"])?;
        }
        Ok(())
    });
    let graph = graph.compile().unwrap().checkpointer(Arc::clone(&saver));
    let after = graph.resume(true).thread("t").await.unwrap().into_finished().unwrap();
    assert_eq!(after.lines, ["one", "two"]);
}

#[derive(State, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
struct Outer {
    done: u32,
}

/// Returns a graph around a child graph with another state.
fn around<C: StoredState>(
    child: StateGraph<C>,
    input: impl Fn(&Outer) -> C::Update + Send + Sync + 'static,
    memory: Memory,
    saver: &Arc<MemorySaver>,
) -> CompiledGraph<Outer> {
    let child = child
        .compile()
        .unwrap()
        .embed(move |outer: Snapshot<Outer>| input(&outer), |_| Outer::update().done(1));
    let graph = StateGraph::new().node("child", child.memory(memory)).edge(START, "child");
    graph.compile().unwrap().checkpointer(Arc::clone(saver))
}

async fn all_of_the_thread(saver: &MemorySaver) -> Vec<(String, (Vec<Row>, Vec<PendingWrite>))> {
    let mut all = Vec::new();
    for namespace in saver.namespaces("t").await.unwrap() {
        let place = Place { thread: "t", namespace: &namespace };
        all.push((namespace.clone(), held(saver, place).await));
    }
    all
}

#[tokio::test]
async fn an_answer_is_refused_before_it_is_stored_if_its_subgraph_would_lose_a_field() {
    let saver = Arc::new(MemorySaver::new());
    let child = shape::<first::Note>(first::Note::update()).edge("ask", END);
    let graph = around(child, |_| first::input(), Memory::PerCall, &saver);
    assert!(matches!(graph.invoke(Outer::update()).thread("t").await.unwrap(), Outcome::Interrupted { .. }));
    let before = all_of_the_thread(&saver).await;
    assert_eq!(before.len(), 2);

    let with = |child: StateGraph<Note>| around(child, |_| Note::update(), Memory::PerCall, &saver);
    let graph = with(new());
    let lost = &["text", "people", "marks"];
    assert_refused(graph.resume(true).thread("t").await.map(drop), lost);
    assert_refused(graph.proceed().thread("t").await.map(drop), lost);
    assert_refused(graph.update_state("t").update(Outer::update().done(3)).await, lost);
    assert_eq!(all_of_the_thread(&saver).await, before);
    assert_eq!(graph.state("t").await.unwrap().unwrap().interrupts.len(), 1);

    let outcome = with(new().keeps_unknown_fields()).resume(true).thread("t").await.unwrap();
    assert_eq!(outcome.interrupts().len(), 1, "it interrupts again");
    let asked =
        around(shape::<first::Note>(first::Note::update()), |_| first::input(), Memory::PerCall, &saver);
    let children = asked.state("t").await.unwrap().unwrap().children;
    let inside = all_of_the_thread(&saver).await;
    let (_, (rows, _)) = inside.iter().find(|(namespace, _)| *namespace == children[0].namespace).unwrap();
    let full = rows.iter().find(|row| row.kind == RowKind::Full).unwrap();
    assert!(full.record.windows(3).any(|found| found == b"hot") && full.id.step > 0);

    let dropping = with(new().drops("text").drops("people").drops("marks"));
    dropping.resume(true).thread("t").await.unwrap();
}

#[tokio::test]
async fn a_subgraph_with_a_memory_is_refused_at_its_call() {
    let saver = Arc::new(MemorySaver::new());
    let once = || StateGraph::<first::Note>::new().node("work", || async {}).edge(START, "work");
    let graph = around(once(), |_| first::input(), Memory::PerThread, &saver);
    graph.invoke(Outer::update()).thread("t").await.unwrap();
    let memory = || async {
        let all = all_of_the_thread(&saver).await;
        all.into_iter().filter(|(namespace, _)| !namespace.is_empty()).collect::<Vec<_>>()
    };
    let before = memory().await;
    assert_eq!(before.len(), 1);
    let once = || StateGraph::<Note>::new().node("work", || async {}).edge(START, "work");
    let graph = around(once(), |_| Note::update(), Memory::PerThread, &saver);
    assert_refused(graph.invoke(Outer::update()).thread("t").await.map(drop), &["text", "people", "marks"]);
    assert_eq!(memory().await, before);
}

#[tokio::test]
async fn eager_runs_are_refused_too() {
    let saver = Arc::new(MemorySaver::new());
    let graph = shape::<first::Note>(first::Note::update()).eager().compile().unwrap();
    let graph = graph.checkpointer(Arc::clone(&saver));
    graph.invoke(first::input()).thread("t").durability(Durability::Exit).await.unwrap();
    let before = held(&saver, Place::root("t")).await;
    let graph = |graph: StateGraph<Note>| on(&saver, graph.eager());
    let lost = &["text", "people", "marks"];
    assert_refused(graph(new()).resume(true).thread("t").await.map(drop), lost);
    assert_refused(graph(new()).proceed().thread("t").await.map(drop), lost);
    assert_refused(graph(new()).update_state("t").update(Note::update()).await, lost);
    assert_eq!(held(&saver, Place::root("t")).await, before);
    graph(new().keeps_unknown_fields()).resume(true).thread("t").await.unwrap();
    let old = shape::<first::Note>(first::Note::update())
        .eager()
        .compile()
        .unwrap()
        .checkpointer(Arc::clone(&saver));
    assert_eq!(old.state("t").await.unwrap().unwrap().values.text, "hot");
}

#[tokio::test]
async fn outputs_of_a_finished_pass_do_not_count_as_lost_fields() {
    let saver = Arc::new(MemorySaver::new());
    let first = DependencyGraph::new()
        .node("a", |_: agentgraph::dependency::Deps<u32>| async { 1 })
        .node("gone", |_: agentgraph::dependency::Deps<u32>| async { 2 });
    let first = first.compile().unwrap().checkpointer(Arc::clone(&saver));
    first.invoke(()).thread("t").await.unwrap();
    let second = DependencyGraph::new().node("a", |_: agentgraph::dependency::Deps<u32>| async { 3 });
    let second = second.compile().unwrap().checkpointer(Arc::clone(&saver));
    second.invoke(()).thread("t").await.unwrap();
}

//! State stored by an earlier version is migrated when it is read. If no migration leads to the current
//! version, the error says what to do.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use agentgraph::checkpoint::{Checkpointer, Place, RowKind};
use agentgraph::graph::{ProblemKind, StoredFields};
use agentgraph::prelude::*;
use agentgraph::{Code, CompiledGraph, Outcome};
use serde::{Deserialize, Serialize};

/// Version 0.
mod before {
    use super::*;

    #[derive(State, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
    pub(super) struct Order {
        pub(super) price: f64,
        #[reduce(append)]
        pub(super) notes: Vec<String>,
        pub(super) secret: String,
    }

    async fn charge() -> OrderUpdate {
        Order::update().price(2.5).notes(["charged"])
    }

    async fn ask(ctx: Ctx) -> Result<OrderUpdate> {
        let answer: String = ctx.interrupt("go on?")?;
        Ok(Order::update().notes([answer]))
    }

    /// Returns a graph in which `charge` finishes while `ask` waits for an answer.
    pub(super) fn graph(saver: &Arc<MemorySaver>) -> CompiledGraph<Order> {
        let graph = StateGraph::new()
            .node("charge", charge)
            .node("ask", ask)
            .edge(START, "charge")
            .edge(START, "ask");
        graph.compile().unwrap().checkpointer(Arc::clone(saver))
    }
}

/// Version 2: cents, and notes with an author.
#[derive(State, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
struct Order {
    #[reduce(append)]
    notes: Vec<Note>,
    cents: u64,
}

#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
struct Note {
    by: String,
    text: String,
}

fn note(text: &str) -> Note {
    Note { by: "somebody".into(), text: text.into() }
}

async fn charge() {
    panic!("`charge` finished in the earlier version");
}

async fn ask(ctx: Ctx) -> Result<OrderUpdate> {
    let answer: String = ctx.interrupt("go on?")?;
    Ok(Order::update().notes([note(&answer)]))
}

fn to_cents(fields: &mut StoredFields) -> Result<()> {
    if let Some(dollars) = fields.take::<f64>("price")? {
        fields.set("cents", (dollars * 100.0).round() as u64)?;
    }
    Ok(())
}

fn with_authors(fields: &mut StoredFields) -> Result<()> {
    if let Some(notes) = fields.take::<Vec<String>>("notes")? {
        fields.set("notes", notes.iter().map(|text| note(text)).collect::<Vec<_>>())?;
    }
    Ok(())
}

fn builder() -> StateGraph<Order> {
    let graph = StateGraph::new().node("charge", charge).node("ask", ask);
    graph.edge(START, "charge").edge(START, "ask").drops("secret")
}

fn migrating(saver: &Arc<MemorySaver>) -> CompiledGraph<Order> {
    let graph = builder().schema_version(2).migration(0, to_cents).migration(1, with_authors);
    graph.compile().unwrap().checkpointer(Arc::clone(saver))
}

/// Returns a store with a thread of version 0 that waits for an answer.
async fn stored() -> Arc<MemorySaver> {
    let saver = Arc::new(MemorySaver::new());
    let input = before::Order::update().price(1.0).notes(["new"]).secret("gone");
    let outcome = before::graph(&saver).invoke(input).thread("t").await.unwrap();
    assert!(matches!(outcome, Outcome::Interrupted { .. }));
    saver
}

#[tokio::test]
async fn a_waiting_thread_resumes_in_the_new_version_with_its_state_and_finished_tasks() {
    let graph = migrating(&stored().await);
    let shown = graph.state("t").await.unwrap().unwrap();
    assert_eq!(shown.values, Order { cents: 250, notes: vec![note("new"), note("charged")] });
    let outcome = graph.resume("yes").thread("t").await.unwrap();
    let notes = vec![note("new"), note("charged"), note("yes")];
    assert_eq!(*outcome.output(), Order { cents: 250, notes: notes.clone() });
    assert_eq!(graph.state("t").await.unwrap().unwrap().values, Order { cents: 250, notes });
}

#[tokio::test]
async fn the_first_commit_after_a_migration_is_a_full_and_migrations_do_not_run_again() {
    let saver = stored().await;
    let calls = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&calls);
    let counted = move |fields: &mut StoredFields| {
        count.fetch_add(1, Ordering::Relaxed);
        to_cents(fields)
    };
    let graph = builder().schema_version(2).migration(0, counted).migration(1, with_authors);
    let graph = graph.compile().unwrap().checkpointer(Arc::clone(&saver));
    graph.resume("yes").thread("t").await.unwrap();
    let tail = saver.get(Place::root("t"), None).await.unwrap().unwrap();
    assert_eq!(tail.rows.iter().map(|row| row.kind).collect::<Vec<_>>(), [RowKind::Full]);
    let before = calls.load(Ordering::Relaxed);
    assert!(before > 0);
    graph.update_state("t").update(Order::update().cents(7)).await.unwrap();
    assert_eq!(calls.load(Ordering::Relaxed), before);
}

#[tokio::test]
async fn history_shows_the_current_version_and_leaves_stored_checkpoints_unchanged() {
    let saver = stored().await;
    let graph = migrating(&saver);
    graph.resume("yes").thread("t").await.unwrap();
    let history = graph.history("t").await.unwrap();
    let cents: Vec<u64> = history.iter().map(|checkpoint| checkpoint.values.cents).collect();
    assert_eq!(cents, [250, 100]);
    let first = before::graph(&saver).state_at("t", history[1].id).await.unwrap().unwrap();
    assert_eq!((first.values.price, &*first.values.secret), (1.0, "gone"));
}

#[tokio::test]
async fn a_migration_distinguishes_updates_from_states_and_keeps_overwrites() {
    async fn anew() -> before::OrderUpdate {
        before::Order::update().overwrite_notes(vec!["anew".into()])
    }
    async fn ask(ctx: Ctx) -> Result<()> {
        Ok(ctx.interrupt::<()>("?")?)
    }
    let saver = Arc::new(MemorySaver::new());
    let old = StateGraph::<before::Order>::new().node("charge", anew).node("ask", ask);
    let old =
        old.edge(START, "charge").edge(START, "ask").compile().unwrap().checkpointer(Arc::clone(&saver));
    old.invoke(before::Order::update().notes(["old"])).thread("t").await.unwrap();
    let seen = Arc::new(std::sync::Mutex::new(Vec::new()));
    let noted = Arc::clone(&seen);
    let note_fields = move |fields: &mut StoredFields| {
        let names = fields.names().map(str::to_owned).collect::<Vec<_>>();
        noted.lock().unwrap().push((fields.is_update(), names));
        with_authors(fields)
    };
    let graph = builder().schema_version(1).migration(0, note_fields).compile().unwrap().checkpointer(saver);
    assert_eq!(graph.state("t").await.unwrap().unwrap().values.notes, [note("anew")]);
    let mut seen = seen.lock().unwrap().clone();
    // The update is read twice: its value, and whether the state has all its fields.
    seen.dedup();
    let all = ["price", "notes", "secret"].map(str::to_owned).to_vec();
    assert_eq!(seen, [(false, all), (true, vec!["notes".to_owned()])]);
}

#[tokio::test]
async fn without_a_migration_to_this_version_the_thread_is_refused_and_unchanged() {
    let saver = stored().await;
    let before = saver.get(Place::root("t"), None).await.unwrap();
    let refused = |graph: CompiledGraph<Order>| async move {
        let error = graph.resume("yes").thread("t").await.unwrap_err();
        assert_eq!((error.code(), error.thread()), (Code::SchemaVersion, Some("t")), "{error}");
        error.to_string()
    };
    let compiled = |graph: StateGraph<Order>| graph.compile().unwrap().checkpointer(Arc::clone(&saver));
    let said = refused(compiled(builder().schema_version(2).migration(1, with_authors))).await;
    assert!(said.contains("`.migration(0, ..)`"), "{said}");
    let broken = |_: &mut StoredFields| -> Result<()> { Err("no rate for today".into()) };
    let said = refused(compiled(builder().schema_version(1).migration(0, broken))).await;
    assert!(said.contains("from version 0") && said.contains("no rate for today"), "{said}");
    let said = refused(compiled(builder())).await;
    assert!(said.contains("channel `notes`") && said.contains("`.schema_version(..)`"), "{said}");
    assert_eq!(saver.get(Place::root("t"), None).await.unwrap(), before);
}

#[tokio::test]
async fn a_thread_of_a_newer_program_is_refused() {
    let saver = stored().await;
    migrating(&saver).resume("yes").thread("t").await.unwrap();
    let error = before::graph(&saver).state("t").await.unwrap_err();
    assert_eq!(error.code(), Code::SchemaVersion);
    assert!(
        error.to_string().contains("version 2") && error.to_string().contains("newer program"),
        "{error}"
    );
}

#[tokio::test]
async fn writes_of_a_paused_subgraph_are_migrated_too() {
    async fn charge() -> before::OrderUpdate {
        before::Order::update().price(2.5).notes(["charged"])
    }
    async fn ask_before(ctx: Ctx) -> Result<before::OrderUpdate> {
        let answer: String = ctx.interrupt("go on?")?;
        Ok(before::Order::update().notes([answer]))
    }
    let saver = Arc::new(MemorySaver::new());
    let child = StateGraph::<before::Order>::new().node("charge", charge).node("ask", ask_before);
    let child = child.edge(START, "charge").edge("charge", "ask").compile().unwrap();
    let old = StateGraph::new().node("child", child).edge(START, "child").compile().unwrap();
    let old = old.checkpointer(Arc::clone(&saver));
    old.invoke(before::Order::update().notes(["new"])).thread("t").await.unwrap();

    let versioned = |graph: StateGraph<Order>| {
        let graph = graph.schema_version(2).migration(0, to_cents).migration(1, with_authors);
        graph.drops("secret").compile().unwrap()
    };
    let child = StateGraph::new().node("charge", self::charge).node("ask", ask);
    let child = versioned(child.edge(START, "charge").edge("charge", "ask"));
    let graph = versioned(StateGraph::new().node("child", child).edge(START, "child")).checkpointer(saver);
    let order = graph.resume("yes").thread("t").await.unwrap().into_finished().unwrap();
    assert_eq!(order, Order { cents: 250, notes: vec![note("new"), note("charged"), note("yes")] });
}

#[test]
fn migrations_that_are_duplicated_or_lead_beyond_the_version_are_problems() {
    let error =
        builder().schema_version(1).migration(0, to_cents).migration(0, to_cents).migration(1, to_cents);
    let problems: Vec<_> =
        error.compile().unwrap_err().problems().iter().map(|found| found.kind.clone()).collect();
    let bad = |from, problem| ProblemKind::BadMigration { from, problem };
    assert_eq!(problems, [bad(0, "is there twice"), bad(1, "leads beyond `.schema_version(..)`")]);
}

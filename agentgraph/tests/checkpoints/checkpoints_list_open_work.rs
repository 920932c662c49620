//! The engine stores a checkpoint after the input and after each superstep. A checkpoint holds the state and
//! the frontier. Other processes and other versions of the graph can read it.

use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use agentgraph::checkpoint::Source;
use agentgraph::checkpoint::{ListQuery, Place, RowKind};
use agentgraph::prelude::*;
use agentgraph::run::WhenBusy;
use agentgraph::{CheckpointId, Checkpointer, Code};

use crate::common::clock::Clock;
use crate::common::saver::NotingSaver;
use crate::common::words::{Words, WordsUpdate, says, text, words_of};

fn a_to_b() -> StateGraph<Words> {
    StateGraph::new().node("a", says("a")).node("b", says("b")).edge(START, "a").edge("a", "b")
}

/// Returns the history as text, newest first.
async fn history_lines(graph: &CompiledGraph<Words>) -> Vec<String> {
    let history = graph.history("t").await.unwrap();
    let line = |one: &agentgraph::Checkpoint<Words>| {
        format!("{} {:?} [{}] -> {}", one.id, one.source, text(&one.values), one.next.join(" "))
    };
    history.iter().map(line).collect()
}

#[tokio::test]
async fn a_run_stores_a_checkpoint_for_its_input_and_for_each_superstep() {
    let graph = a_to_b().compile().unwrap().checkpointer(MemorySaver::new());
    let outcome = graph.invoke(Words::update().seen(["i"])).thread("t").await.unwrap();
    assert_eq!(outcome.checkpoint(), Some(CheckpointId::new(0, 2)));
    let expected = ["0.2 Loop [i a b] -> ", "0.1 Loop [i a] -> b", "0.0 Input [i] -> a"];
    assert_eq!(history_lines(&graph).await, expected);
    let state = graph.state("t").await.unwrap().unwrap();
    assert_eq!((state.run, state.next.len(), text(&state.values).as_str()), (outcome.run(), 0, "i a b"));
}

#[tokio::test]
async fn a_fan_out_is_one_checkpoint_that_lists_every_next_node() {
    let graph =
        StateGraph::new().node("a", says("a")).node("b", says("b")).node("c", says("c")).node("d", says("d"));
    let graph = graph.edge(START, "a").edge("a", "b").edge("a", "c").edge(["b", "c"], "d").compile().unwrap();
    let graph = graph.checkpointer(MemorySaver::new());
    words_of(&graph).await;
    let expected =
        ["0.3 Loop [a b c d] -> ", "0.2 Loop [a b c] -> d", "0.1 Loop [a] -> b c", "0.0 Input [] -> a"];
    assert_eq!(history_lines(&graph).await, expected);
}

#[tokio::test]
async fn a_second_run_starts_from_the_state_of_the_first_and_other_threads_do_not_see_it() {
    let graph = a_to_b().compile().unwrap().checkpointer(MemorySaver::new());
    assert_eq!(words_of(&graph).await, "a b");
    assert_eq!(words_of(&graph).await, "a b a b");
    assert_eq!(graph.history("t").await.unwrap().iter().filter(|one| one.source == Source::Input).count(), 2);
    let other = graph.invoke(Words::update()).thread("other").await.unwrap();
    assert_eq!(text(other.output()), "a b");
}

#[tokio::test]
async fn a_fresh_thread_works_from_every_entry_point() {
    let graph = a_to_b().compile().unwrap().checkpointer(MemorySaver::new());
    assert!(graph.state("t").await.unwrap().is_none());
    assert!(graph.history("t").await.unwrap().is_empty());
    assert_eq!(graph.proceed().thread("t").await.unwrap_err().code(), Code::NothingToResume);
    assert_eq!(graph.resume(1).thread("t").await.unwrap_err().code(), Code::NothingToResume);
    let none: [(agentgraph::InterruptId, u8); 0] = [];
    assert_eq!(graph.resume_many(none).thread("t").await.unwrap_err().code(), Code::NothingToResume);
    assert!(graph.state("t").await.unwrap().is_none(), "a refused call creates no thread");
    let streamed = graph.invoke(Words::update()).thread("t").stream().outcome().await.unwrap();
    assert_eq!(text(streamed.output()), "a b");
    assert_eq!(history_lines(&graph).await.len(), 3);
}

#[tokio::test]
async fn history_is_read_in_parts_newest_first() {
    let graph = a_to_b().compile().unwrap().checkpointer(MemorySaver::new());
    words_of(&graph).await;
    words_of(&graph).await;
    let steps = async |history: agentgraph::run::History<Words>| {
        history.await.unwrap().iter().map(|one| (one.id.step, text(&one.values))).collect::<Vec<_>>()
    };
    let newest = steps(graph.history("t").limit(2)).await;
    assert_eq!(newest, [(5, "a b a b".to_owned()), (4, "a b a".to_owned())]);
    let older = steps(graph.history("t").before(CheckpointId::new(0, 4)).limit(3)).await;
    assert_eq!(older, [(3, "a b".to_owned()), (2, "a b".to_owned()), (1, "a".to_owned())]);
    assert!(steps(graph.history("t").limit(0)).await.is_empty());
    assert!(steps(graph.history("t").before(CheckpointId::new(0, 0))).await.is_empty());
}

#[tokio::test]
async fn checkpoints_carry_the_time_of_the_runs_services() {
    let clock = Clock::default();
    agentgraph::checkpoint::Services::sleep(&clock, Duration::from_secs(42)).await;
    let graph = a_to_b().compile().unwrap().checkpointer(MemorySaver::new()).services(clock);
    words_of(&graph).await;
    let created = graph.state("t").await.unwrap().unwrap().created;
    assert_eq!(created, UNIX_EPOCH + Duration::from_secs(42));
}

#[tokio::test]
async fn a_failed_commit_fails_the_run_and_the_thread_proceeds_from_the_checkpoint_before() {
    let saver = NotingSaver::memory().at_once();
    let graph = a_to_b().compile().unwrap().checkpointer(saver.clone());
    for done in 0..2 {
        let thread = format!("t{done}");
        graph.invoke(Words::update()).thread(&thread).max_supersteps(done).await.unwrap();
        saver.fail_puts(1);
        let error = graph.proceed().thread(&thread).await.unwrap_err();
        assert_eq!((error.code(), error.thread()), (Code::Store, Some(&*thread)));
        let stored = graph.state(&thread).await.unwrap().unwrap();
        assert_eq!(stored.values.seen.len() as u64, done);
        assert_eq!(text(graph.proceed().thread(&thread).await.unwrap().output()), "a b");
    }
}

#[tokio::test]
async fn a_failed_first_commit_creates_no_thread() {
    let saver = NotingSaver::memory();
    let graph = a_to_b().compile().unwrap().checkpointer(saver.clone());
    saver.fail_puts(1);
    assert_eq!(graph.invoke(Words::update()).thread("t").await.unwrap_err().code(), Code::Store);
    assert!(graph.state("t").await.unwrap().is_none());
    assert_eq!(words_of(&graph).await, "a b");
}

#[tokio::test]
async fn a_pending_write_that_cannot_be_stored_fails_the_run() {
    async fn slow() -> WordsUpdate {
        crate::common::poll::pending_for(2).await;
        Words::update().seen(["slow"])
    }
    let graph =
        StateGraph::new().node("a", says("a")).node("slow", slow).edge(START, "a").edge(START, "slow");
    let saver = NotingSaver::memory();
    let graph = graph.compile().unwrap().checkpointer(saver.clone());
    saver.fail_writes(1);
    assert_eq!(graph.invoke(Words::update()).thread("t").await.unwrap_err().code(), Code::Store);
    assert_eq!(text(graph.proceed().thread("t").await.unwrap().output()), "a slow");
}

#[tokio::test]
async fn a_commit_removes_obsolete_pending_writes() {
    async fn slow() -> WordsUpdate {
        crate::common::poll::pending_for(2).await;
        Words::update().seen(["slow"])
    }
    async fn asks(ctx: Ctx) -> Result<WordsUpdate> {
        Ok(Words::update().seen([ctx.interrupt::<String>("?")?]))
    }
    let graph = StateGraph::new().node("a", says("a")).node("slow", slow).node("asks", asks);
    let graph = graph.edge(START, "a").edge(START, "slow").edge("slow", "asks");
    let saver = Arc::new(MemorySaver::new());
    let graph = graph.compile().unwrap().checkpointer(Arc::clone(&saver));
    graph.invoke(Words::update()).thread("t").await.unwrap();
    let writes = async |step| {
        saver.get(Place::root("t"), Some(CheckpointId::new(0, step))).await.unwrap().unwrap().writes
    };
    assert_eq!((writes(0).await.len(), writes(1).await.len()), (0, 1), "only the open request is left");
    graph.resume("yes").thread("t").await.unwrap();
    assert_eq!((writes(1).await.len(), writes(2).await.len()), (0, 0));
}

#[tokio::test]
async fn a_run_whose_thread_was_taken_cannot_commit() {
    let saver = Arc::new(MemorySaver::new());
    let inner = a_to_b().compile().unwrap().checkpointer(Arc::clone(&saver));
    let overtaken = move || {
        let inner = inner.clone();
        async move {
            inner.invoke(Words::update().seen(["other"])).thread("t").when_busy(WhenBusy::Replace).await?;
            Ok::<_, agentgraph::BoxError>(Words::update().seen(["mine"]))
        }
    };
    let graph =
        StateGraph::new().node("a", overtaken).edge(START, "a").compile().unwrap().checkpointer(saver);
    let error = graph.invoke(Words::update()).thread("t").await.unwrap_err();
    assert_eq!(error.code(), Code::LeaseLost);
    assert_eq!(text(&graph.state("t").await.unwrap().unwrap().values), "other a b");
}

#[tokio::test]
async fn supersteps_of_one_task_or_of_ready_tasks_store_no_pending_writes() {
    let saver = NotingSaver::memory();
    let graph = StateGraph::new().node("a", says("a")).node("b", says("b")).node("c", says("c"));
    let graph =
        graph.edge(START, "a").edge("a", "b").edge("a", "c").compile().unwrap().checkpointer(saver.clone());
    words_of(&graph).await;
    assert_eq!((saver.puts(), saver.writes().len()), (3, 0));
}

mod versions {
    //! A thread that another version of its program reads.
    use super::*;

    mod old {
        #[derive(agentgraph::State, serde::Serialize, serde::Deserialize, Clone, Debug, Default)]
        pub(super) struct Notes {
            pub title: String,
            #[reduce(append)]
            pub lines: Vec<String>,
            pub mood: String,
        }
    }

    mod new {
        #[derive(agentgraph::State, serde::Serialize, serde::Deserialize, Clone, Debug, Default)]
        pub(super) struct Notes {
            pub added: u32,
            #[reduce(append)]
            #[channel(alias = "lines")]
            pub text: Vec<String>,
            pub title: String,
        }
    }

    fn before(saver: &Arc<MemorySaver>) -> CompiledGraph<old::Notes> {
        let write = || async { old::Notes::update().title("t").lines(["one"]).mood("fine") };
        let graph = StateGraph::new().node("write", write).node("next", || async {}).edge(START, "write");
        graph.edge("write", "next").compile().unwrap().checkpointer(Arc::clone(saver))
    }

    fn after(saver: &Arc<MemorySaver>) -> CompiledGraph<new::Notes> {
        let next = |notes: Snapshot<new::Notes>| async move {
            new::Notes::update().text(["two"]).added(notes.added + 7)
        };
        let graph = StateGraph::new().node("write", || async {}).node("next", next).edge(START, "write");
        graph.edge("write", "next").drops("mood").compile().unwrap().checkpointer(Arc::clone(saver))
    }

    #[tokio::test]
    async fn channels_may_be_added_removed_moved_and_renamed_with_an_alias_between_two_supersteps() {
        let saver = Arc::new(MemorySaver::new());
        before(&saver).invoke(old::Notes::update()).thread("t").max_supersteps(1).await.unwrap();
        let outcome = after(&saver).proceed().thread("t").await.unwrap();
        let notes = outcome.output();
        assert_eq!(
            (notes.added, &notes.title[..], &notes.text[..]),
            (7, "t", &["one".to_owned(), "two".to_owned()][..])
        );
        let read = after(&saver).state("t").await.unwrap().unwrap().values;
        assert_eq!((read.added, &read.title[..], read.text.len()), (7, "t", 2));
        assert_eq!(after(&saver).history("t").await.unwrap().len(), 3, "the old checkpoints are still read");
        let back = before(&saver).state("t").await.unwrap().unwrap().values;
        assert_eq!(
            (&back.title[..], &back.mood[..], back.lines.len()),
            ("t", "", 0),
            "the old version finds neither the dropped nor the renamed channel"
        );
    }

    #[tokio::test]
    async fn a_finished_task_that_wrote_a_removed_channel_is_an_error_with_a_remedy() {
        async fn fails() -> Result<()> {
            Err("no".into())
        }
        let saver = Arc::new(MemorySaver::new());
        let write = || async { old::Notes::update().mood("fine") };
        let graph = StateGraph::new().node("write", write).node("next", fails).edge(START, "write");
        let graph = graph.edge(START, "next").compile().unwrap().checkpointer(Arc::clone(&saver));
        graph.invoke(old::Notes::update()).thread("t").await.unwrap_err();
        let graph = StateGraph::<new::Notes>::new().node("write", || async {}).node("next", || async {});
        let graph = graph.edge(START, "write").edge(START, "next").compile().unwrap().checkpointer(saver);
        let error = graph.proceed().thread("t").await.unwrap_err();
        assert_eq!((error.code(), error.thread()), (Code::GraphChanged, Some("t")));
        assert!(error.to_string().contains("there is no channel `mood`"), "{error}");
        assert!(error.to_string().contains("bring the channel back"), "{error}");
        assert_eq!(
            graph.state("t").await.unwrap().unwrap().next,
            ["next"],
            "reading the state is not refused"
        );
    }

    #[tokio::test]
    async fn another_graph_records_its_fingerprint_with_its_first_commit() {
        let saver = Arc::new(MemorySaver::new());
        before(&saver).invoke(old::Notes::update()).thread("t").max_supersteps(1).await.unwrap();
        after(&saver).proceed().thread("t").await.unwrap();
        let rows = saver.list(Place::root("t"), ListQuery::default()).await.unwrap();
        let holds =
            |record: &[u8], text: &str| record.windows(text.len()).any(|window| window == text.as_bytes());
        assert_eq!(rows[0].kind, RowKind::Full);
        assert!(holds(&rows[0].record, after(&saver).fingerprint()));
        assert!(holds(&rows[2].record, before(&saver).fingerprint()));
    }

    #[tokio::test]
    async fn proceeding_at_a_removed_node_is_an_error_that_names_it() {
        let saver = Arc::new(MemorySaver::new());
        let graph = super::a_to_b().compile().unwrap().checkpointer(Arc::clone(&saver));
        graph.invoke(Words::update()).thread("t").max_supersteps(1).await.unwrap();
        let renamed =
            StateGraph::new().node("a", says("a")).node("b2", says("b2")).edge(START, "a").edge("a", "b2");
        let renamed = renamed.compile().unwrap().checkpointer(saver);
        let error = renamed.proceed().thread("t").await.unwrap_err();
        assert_eq!((error.code(), error.thread()), (Code::GraphChanged, Some("t")));
        assert!(error.to_string().contains("waits at node `b`, which this graph does not have"), "{error}");
        assert_eq!(renamed.state("t").await.unwrap().unwrap().next, ["b"], "the state can still be read");
        assert_eq!(
            text(graph.proceed().thread("t").await.unwrap().output()),
            "a b",
            "the old graph has lost nothing"
        );
    }

    #[tokio::test]
    async fn an_error_names_a_removed_half_full_join() {
        let build = |join: bool| {
            let graph = StateGraph::new().node("a", says("a")).node("b", says("b")).node("c", says("c"));
            let graph = graph.node("j", says("j")).edge(START, "a").edge(START, "b").edge("b", "c");
            if join { graph.edge(["a", "c"], "j") } else { graph.edge(["c", "b"], "j") }
        };
        let saver = Arc::new(MemorySaver::new());
        let graph = build(true).compile().unwrap().checkpointer(Arc::clone(&saver));
        graph.invoke(Words::update()).thread("t").max_supersteps(1).await.unwrap();
        let error =
            build(false).compile().unwrap().checkpointer(saver).proceed().thread("t").await.unwrap_err();
        assert_eq!(error.code(), Code::GraphChanged);
        assert!(error.to_string().contains("the join a + c -> `j`"), "{error}");
        assert_eq!(text(graph.proceed().thread("t").await.unwrap().output()), "a b c j");
    }

    #[tokio::test]
    async fn an_abandoned_thread_needs_nothing_of_the_old_graph() {
        let saver = Arc::new(MemorySaver::new());
        let graph = super::a_to_b().compile().unwrap().checkpointer(Arc::clone(&saver));
        graph.invoke(Words::update()).thread("t").max_supersteps(1).await.unwrap();
        let other =
            StateGraph::new().node("x", says("x")).edge(START, "x").compile().unwrap().checkpointer(saver);
        let outcome = other.invoke(Words::update()).thread("t").abandon().await.unwrap();
        assert_eq!(text(outcome.output()), "a x");
    }
}

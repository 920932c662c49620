//! Edits joined with `.then()` come to the same as one edit after the other, and are one commit: a reader and
//! a dropped program find all of them or none.

use std::future::IntoFuture;

use agentgraph::prelude::*;
use agentgraph::run::StateEdit;
use agentgraph::{CheckpointId, Code, StopReason};
use proptest::prelude::*;

use crate::common::poll::at_most;
use crate::common::saver::NotingSaver;
use crate::common::words::{Words, WordsUpdate, says, text};

fn said(word: &str) -> WordsUpdate {
    Words::update().seen([word])
}

const NODES: [&str; 4] = ["a", "b", "c", "d"];

/// Two branches that join, and a way back.
fn graph(eager: bool) -> CompiledGraph<Words> {
    async fn c(ctx: Ctx) -> Result<WordsUpdate> {
        Ok(said(&ctx.interrupt::<String>("c?")?))
    }
    let graph = StateGraph::new().node("a", says("a")).node("b", says("b")).node("c", c).node("d", says("d"));
    let graph = graph.edge(START, "a").edge("a", "b").edge("a", "c").edge(["b", "c"], "d");
    let back = |words: &Words| if words.seen.len() > 12 { END } else { "a" };
    let graph = graph.branch("d", back, ["a", END]);
    let graph = if eager { graph.eager() } else { graph };
    graph.compile().unwrap().checkpointer(MemorySaver::new())
}

/// One edit, as a test makes it.
#[derive(Clone, Debug)]
enum Edit {
    Here(String),
    As(Vec<(usize, String)>),
    End(String),
}

impl Edit {
    fn apply(&self, edit: StateEdit<Words>) -> StateEdit<Words> {
        match self {
            Edit::Here(word) => edit.update(said(word)),
            Edit::As(nodes) => {
                nodes.iter().fold(edit, |edit, (node, word)| edit.as_node(NODES[*node], said(word)))
            }
            Edit::End(word) => edit.as_end(said(word)),
        }
    }
}

fn edits() -> impl Strategy<Value = Vec<Edit>> {
    let word = "[a-z]{1,3}";
    let nodes = prop::collection::btree_map(0..4_usize, word, 1..3);
    let one = prop_oneof![
        3 => word.prop_map(Edit::Here),
        6 => nodes.prop_map(|nodes| Edit::As(nodes.into_iter().collect())),
        1 => word.prop_map(Edit::End),
    ];
    prop::collection::vec(one, 1..6)
}

/// What a reader sees of a thread: its words, what is next, and what is asked.
async fn seen(graph: &CompiledGraph<Words>, thread: &str) -> (String, Vec<String>, Vec<String>) {
    let state = graph.state(thread).await.unwrap().unwrap();
    let asked = state.interrupts.iter().map(|asked| format!("{} {}", asked.node, asked.value)).collect();
    (text(&state.values), state.next, asked)
}

/// Continues a thread to its end, and returns everything that was seen on the way.
async fn continued(graph: &CompiledGraph<Words>, thread: &str) -> Vec<(String, Vec<String>, Vec<String>)> {
    let mut all = vec![seen(graph, thread).await];
    for _ in 0..8 {
        let state = graph.state(thread).await.unwrap().unwrap();
        if state.next.is_empty() {
            break;
        }
        let ids: Vec<_> =
            state.interrupts.iter().filter_map(|asked| asked.id).map(|id| (id, "yes")).collect();
        let run = if ids.is_empty() { graph.proceed() } else { graph.resume_many(ids) };
        run.thread(thread).await.unwrap();
        all.push(seen(graph, thread).await);
    }
    all
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn edits_in_one_commit_come_to_the_same_as_one_after_the_other(
        edits in edits(),
        eager in any::<bool>(),
        // How far the thread has come before: not begun, at its question, beyond it.
        begun in 0..3_u32,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let graph = graph(eager);
            for thread in ["single", "joined"] {
                if begun > 0 {
                    graph.invoke(said("i")).thread(thread).await.unwrap();
                }
                if begun > 1 {
                    graph.resume("no").thread(thread).max_supersteps(1).await.unwrap();
                }
            }
            for edit in &edits {
                edit.apply(graph.update_state("single")).await.unwrap();
            }
            let before = graph.state("joined").await.unwrap().map(|state| state.id);
            let joined = edits.iter().fold(graph.update_state("joined"), |all, one| one.apply(all.then()));
            let made = joined.await.unwrap();
            let expected = before.map_or(CheckpointId::new(0, 0), |id| CheckpointId::new(0, id.step + 1));
            assert_eq!(made, expected, "one commit, after the newest");
            assert_eq!(continued(&graph, "joined").await, continued(&graph, "single").await);
        });
    }
}

#[tokio::test]
async fn a_dropped_edit_has_made_all_of_its_changes_or_none() {
    for eager in [false, true] {
        let saver = NotingSaver::memory();
        let graph = graph(eager).checkpointer(saver.clone());
        let mut made = Vec::new();
        for polls in 1.. {
            let thread = polls.to_string();
            graph.invoke(said("i")).thread(&*thread).await.unwrap();
            let edit = graph.update_state(&*thread).update(said("x"));
            let edit = edit.then().as_node("c", said("y")).then().as_node("d", said("z"));
            let done = at_most(Box::pin(edit.into_future()), polls).await.is_some();
            let words = seen(&graph, &thread).await.0;
            // `b` has finished beside the question, and is merged with its superstep if there is one.
            let whole = if eager { "i a b x y z" } else { "i a x b y z" };
            assert!(["i a b", whole].contains(&&*words), "{words}");
            made.push(words != "i a b");
            if done {
                break;
            }
        }
        assert!(!made[0] && made[made.len() - 1] && made.is_sorted(), "{made:?}");
    }
}

#[tokio::test]
async fn an_edit_that_fails_changes_nothing() {
    let graph = graph(false);
    graph.invoke(said("i")).thread("t").await.unwrap();
    let before = (graph.state("t").await.unwrap().unwrap().id, seen(&graph, "t").await);
    let edit = || graph.update_state("t").update(said("x")).then();
    for (edit, code) in [
        (edit().as_node("nobody", said("y")), Code::UnknownTarget),
        (edit().as_start(said("y")), Code::EditRejected),
    ] {
        assert_eq!(edit.await.unwrap_err().code(), code);
        let after = (graph.state("t").await.unwrap().unwrap().id, seen(&graph, "t").await);
        assert_eq!(after, before);
    }
    // The thread is as usable as before.
    let end = graph.resume("yes").thread("t").max_supersteps(2).await.unwrap();
    assert!(matches!(end, Outcome::Stopped { reason: StopReason::Limit, .. }));
}

#[tokio::test]
async fn a_run_can_be_written_as_a_whole() {
    let graph = graph(false);
    let edit = graph.update_state("t").as_start(said("i")).then().as_node("a", said("A"));
    let edit = edit.then().as_node("b", said("B")).as_node("c", said("C")).then().as_node("d", said("D"));
    edit.then().await.unwrap();
    assert_eq!(seen(&graph, "t").await, ("i A B C D".into(), vec!["a".into()], vec![]));
    assert_eq!(graph.history("t").await.unwrap().len(), 1);
    // At an older checkpoint, all of it is on a new branch.
    graph.update_state("t").as_end(said("E")).await.unwrap();
    let id = graph.update_state("t").at(CheckpointId::new(0, 0)).update(said("x")).then().update(said("y"));
    assert_eq!(id.await.unwrap(), CheckpointId::new(1, 1));
    assert_eq!(seen(&graph, "t").await.0, "i A B C D x y");
}

//! Edited runs with a checkpointer: a process that continues such a run uses its edited graph, and the
//! next run begins without the edits.
#![cfg(feature = "sqlite")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use agentgraph::checkpoint::Retention;
use agentgraph::edit::{EditError, Edits, GraphEdit, Rejection};
use agentgraph::host::{Host, TaskCall, TaskReply};
use agentgraph::node::Node;
use agentgraph::prelude::*;
use agentgraph::{BoxError, Code, Durability, Memory, SqliteSaver};

use crate::common::words::{Words, WordsUpdate, said, text};
use crate::sqlite_folder::Folder;

async fn name(ctx: Ctx) -> WordsUpdate {
    Words::update().seen([ctx.node()])
}

async fn asks(ctx: Ctx) -> Result<WordsUpdate> {
    let answer: String = ctx.interrupt("well?")?;
    Ok(Words::update().seen([format!("{} {answer}", ctx.node())]))
}

/// Returns a node that writes its name and, if the state is still empty, edits the graph.
fn edits(edit: impl Fn(&Edits) -> Result<(), EditError> + Send + Sync + 'static) -> Node<Words> {
    let node = move |ctx: Ctx, words: Snapshot<Words>| {
        let edited = if words.seen.is_empty() { edit(&ctx.edits()) } else { Ok(()) };
        async move {
            edited?;
            Ok::<_, BoxError>(Words::update().seen([ctx.node()]))
        }
    };
    node.into_node()
}

/// Inserts `t1` and `t2` between `a` and `b`, replaces `c` by an edge from `b` to `d`, and removes `x`
/// from the join into `j`.
fn busy(edits: &Edits) -> Result<(), EditError> {
    edits.add_node("t1", "say", "one")?;
    edits.add_node("t2", "say", "two")?;
    edits.remove_edge("a", "b")?;
    edits.add_edge("a", "t1")?;
    edits.add_edge("t1", "t2")?;
    edits.add_edge("t2", "b")?;
    edits.remove_node("c")?;
    edits.add_edge("b", "d")?;
    edits.remove_edge("x", "j")
}

fn busy_graph() -> StateGraph<Words> {
    StateGraph::new()
        .node("a", edits(busy))
        .node("b", name)
        .node("c", name)
        .node("d", name)
        .node("x", name)
        .node("j", name)
        .edge(START, "a")
        .edge("a", "b")
        .edge("b", "c")
        .edge("c", "d")
        .edge(["b", "x"], "j")
        .template("say", say)
}

fn say(word: String) -> Node<Words> {
    (move |ctx: Ctx| {
        let word = word.clone();
        async move { Words::update().seen([format!("{} says {word}", ctx.node())]) }
    })
    .into_node()
}

const BUSY: &str = "a t1 says one t2 says two b d j";
const PLAIN: &str = "a b c d";

async fn start(graph: &CompiledGraph<Words>) -> Outcome<Words> {
    graph.invoke(Words::update()).thread("t").await.unwrap()
}

#[tokio::test]
async fn a_run_stopped_anywhere_continues_in_its_edited_graph_in_another_process() {
    for steps in 0..5 {
        for durability in [Durability::Sync, Durability::Exit] {
            let folder = Folder::new();
            let open = async || {
                let saver = SqliteSaver::open(folder.file("t.db")).await.unwrap();
                busy_graph().compile().unwrap().checkpointer(saver)
            };
            let first = open().await.invoke(Words::update()).thread("t").durability(durability);
            let stopped = first.max_supersteps(steps).await.unwrap();
            assert!(matches!(stopped, Outcome::Stopped { .. }), "{steps}: {stopped:?}");
            // Each process runs one superstep.
            let mut last = String::new();
            while last.is_empty() {
                match open().await.proceed().thread("t").max_supersteps(1).await.unwrap() {
                    Outcome::Finished { output, stuck, .. } => {
                        assert!(stuck.is_empty(), "{stuck:?}");
                        last = text(&output);
                    }
                    Outcome::Stopped { .. } => {}
                    other => panic!("{other:?}"),
                }
            }
            assert_eq!(last, BUSY, "stopped after {steps}");
            let graph = open().await;
            let next = graph.invoke(Words::update()).thread("t").await.unwrap();
            assert_eq!(text(next.output()), format!("{BUSY} {PLAIN}"));
        }
    }
}

#[tokio::test]
async fn an_eager_run_stopped_anywhere_continues_in_its_edited_graph_in_another_process() {
    for steps in 0..6 {
        let saver = Arc::new(MemorySaver::new());
        let open = || busy_graph().eager().compile().unwrap().checkpointer(Arc::clone(&saver));
        let first = open().invoke(Words::update()).thread("t").max_supersteps(steps).max_concurrency(1);
        assert!(matches!(first.await.unwrap(), Outcome::Stopped { .. }), "{steps}");
        let mut last = None;
        while last.is_none() {
            if let Outcome::Finished { output, stuck, .. } =
                open().proceed().thread("t").max_supersteps(1).max_concurrency(1).await.unwrap()
            {
                assert!(stuck.is_empty(), "{stuck:?}");
                last = Some(text(&output));
            }
        }
        assert_eq!(last.unwrap(), "a t1 says one t2 says two b d j", "stopped after {steps}");
        let next = open().invoke(Words::update()).thread("t").max_supersteps(0).await.unwrap();
        let topology = open().topology_at("t", next.checkpoint().unwrap()).await.unwrap().unwrap();
        assert_eq!(topology.mermaid(), open().mermaid());
    }
}

#[tokio::test]
async fn an_interrupted_run_is_resumed_in_its_edited_graph_by_another_instance_of_the_graph() {
    let saver = Arc::new(MemorySaver::new());
    let graph = || {
        let graph = StateGraph::new()
            .node(
                "a",
                edits(|edits| {
                    edits.add_node("ask#1", "ask", ())?;
                    edits.remove_edge("a", "b")?;
                    edits.add_edge("a", "ask#1")?;
                    edits.add_edge("ask#1", "b")
                }),
            )
            .node("b", name)
            .edge(START, "a")
            .edge("a", "b")
            .template("ask", |(): ()| asks);
        graph.compile().unwrap().checkpointer(Arc::clone(&saver))
    };
    let outcome = start(&graph()).await;
    assert_eq!(outcome.interrupts()[0].node, "ask#1");
    let seen = graph().state("t").await.unwrap().unwrap();
    assert_eq!((seen.next, seen.interrupts.len(), seen.edits.len()), (vec!["ask#1".to_owned()], 1, 4));
    let done = graph().resume("yes").thread("t").await.unwrap().into_finished().unwrap();
    assert_eq!(text(&done), "a ask#1 yes b");
    assert_eq!(text(start(&graph()).await.output()), "a ask#1 yes b a b");
}

#[tokio::test]
async fn pruning_keeps_edits() {
    let graph = busy_graph().compile().unwrap().checkpointer(MemorySaver::new());
    graph.invoke(Words::update()).thread("t").max_supersteps(2).await.unwrap();
    graph.prune(Retention::keep_latest_per_thread()).thread("t").await.unwrap();
    assert_eq!(graph.history("t").await.unwrap().len(), 1);
    let outcome = graph.proceed().thread("t").await.unwrap();
    assert_eq!(text(&outcome.into_finished().unwrap()), BUSY);
}

#[tokio::test]
async fn however_a_run_ends_the_next_one_has_none_of_its_edits() {
    let fails = async |words: Snapshot<Words>| match words.seen.len() {
        1..4 => Err::<WordsUpdate, BoxError>("it fails".into()),
        _ => Ok(Words::update().seen(["f"])),
    };
    let graph = || {
        let graph = StateGraph::new()
            .node(
                "a",
                edits(|edits| {
                    edits.add_node("t", "say", "hello")?;
                    edits.add_edge("a", "t")
                }),
            )
            .node("f", fails)
            .edge(START, "a")
            .edge("a", "f")
            .template("say", say);
        graph.compile().unwrap().checkpointer(MemorySaver::new())
    };
    let next = async |graph: &CompiledGraph<Words>| {
        let next = graph.invoke(Words::update().seen(["|", "|", "|"])).thread("t").abandon().await.unwrap();
        text(next.output())
    };
    let failed = graph();
    failed.invoke(Words::update()).thread("t").await.unwrap_err();
    assert_eq!(next(&failed).await, "a | | | a f");
    let limited = graph();
    limited.invoke(Words::update()).thread("t").max_supersteps(1).await.unwrap();
    assert_eq!(next(&limited).await, "a | | | a f");
    let token = agentgraph::CancellationToken::new();
    token.cancel();
    let drained = graph();
    drained.invoke(Words::update()).thread("t").max_supersteps(1).await.unwrap();
    drained.proceed().thread("t").drain(token).await.unwrap();
    assert_eq!(next(&drained).await, "a | | | a f");
    let edited = graph();
    edited.invoke(Words::update()).thread("t").max_supersteps(1).await.unwrap();
    edited.update_state("t").as_start(Words::update().seen(["|", "|", "|"])).await.unwrap();
    assert!(edited.state("t").await.unwrap().unwrap().edits.is_empty());
    assert_eq!(text(edited.proceed().thread("t").await.unwrap().output()), "a | | | a f");
}

#[tokio::test]
async fn edits_of_a_finished_sibling_of_a_failed_task_are_kept_with_its_result() {
    let saver = Arc::new(MemorySaver::new());
    let goes = async |words: Snapshot<Words>| {
        assert!(words.seen.is_empty(), "`a` runs once");
        said("a").goto("t").for_this_run(|edits| {
            edits.add_node("t", "say", "hello")?;
            edits.add_edge("t", "end")
        })
    };
    let graph = |works: bool| {
        let other = move || async move {
            if works { Ok(Words::update().seen(["b"])) } else { Err(BoxError::from("no")) }
        };
        let graph = StateGraph::new()
            .node("a", goes)
            .node("b", other)
            .node("end", name)
            .edge(START, "a")
            .edge(START, "b")
            .template("say", say);
        graph.compile().unwrap().checkpointer(Arc::clone(&saver))
    };
    graph(false).invoke(Words::update()).thread("t").await.unwrap_err();
    let done = graph(true).proceed().thread("t").await.unwrap();
    assert_eq!(text(done.output()), "a b t says hello end");
}

#[tokio::test]
async fn equal_edits_of_parallel_tasks_are_stored_once() {
    let saver = Arc::new(MemorySaver::new());
    let graph = || {
        let same = |edits: &Edits| {
            edits.add_node("t", "say", "hello")?;
            edits.add_edge("b", "t")
        };
        let graph = StateGraph::new().node("a", edits(same)).node("b", edits(same));
        let graph = graph.edge(START, "a").edge(START, "b").template("say", say);
        graph.compile().unwrap().checkpointer(Arc::clone(&saver))
    };
    graph().invoke(Words::update()).thread("t").max_supersteps(1).await.unwrap();
    assert_eq!(graph().state("t").await.unwrap().unwrap().edits.len(), 2);
    assert_eq!(text(graph().proceed().thread("t").await.unwrap().output()), "a b t says hello");
}

#[tokio::test]
async fn functions_are_refused_as_temporary_nodes_of_stored_runs() {
    let edit = |edits: &Edits| {
        let refused = edits.add_fn("t", name).unwrap_err();
        assert_eq!((refused.code(), refused.why()), (Code::NeedsTemplate, &Rejection::NeedsTemplate));
        edits.add_node("t", "say", 7).map_err(|refused| {
            assert!(matches!(refused.why(), Rejection::BadArguments(_)), "{refused}");
            refused
        })
    };
    let graph = StateGraph::new().node("a", edits(edit)).edge(START, "a").template("say", say);
    let graph = graph.compile().unwrap().checkpointer(MemorySaver::new());
    let error = graph.invoke(Words::update()).thread("t").await.unwrap_err();
    assert_eq!(error.code(), Code::EditRejected);
    let before = graph.invoke(Words::update()).thread("u").for_this_run(|edits| edits.add_fn("t", name));
    assert_eq!(before.await.unwrap_err().code(), Code::NeedsTemplate);
    let going_on = graph.proceed().thread("t").for_this_run(|edits| edits.remove_node("a"));
    assert_eq!(going_on.await.unwrap_err().code(), Code::EditRejected);
}

#[tokio::test]
async fn edits_before_a_run_are_stored_with_its_input() {
    let graph = busy_graph().compile().unwrap().checkpointer(MemorySaver::new());
    let run = graph.invoke(Words::update().seen(["i"])).thread("t").for_this_run(|edits| {
        edits.remove_edge(START, "a")?;
        edits.add_edge(START, "d")
    });
    run.max_supersteps(0).await.unwrap();
    assert_eq!(graph.state("t").await.unwrap().unwrap().edits.len(), 2);
    assert_eq!(text(graph.proceed().thread("t").await.unwrap().output()), "i d");
    assert_eq!(text(start(&graph).await.output()), "i d a b c d");
}

#[tokio::test]
async fn forks_replays_and_edited_states_inherit_the_edits_of_their_checkpoint() {
    let graph = busy_graph().compile().unwrap().checkpointer(MemorySaver::new());
    start(&graph).await;
    let history = graph.history("t").await.unwrap();
    let [.., after_t1, _, _] = &history[..] else { panic!("{history:?}") };
    assert_eq!(after_t1.next, ["t2"]);
    let replay = graph.proceed().thread("t").from(after_t1.id).await.unwrap();
    assert_eq!(text(replay.output()), BUSY);
    graph.update_state("t").at(after_t1.id).as_node("t2", Words::update().seen(["by hand"])).await.unwrap();
    let edited = graph.proceed().thread("t").await.unwrap();
    assert_eq!(text(edited.output()), "a t1 says one by hand b d j");
    graph.update_state("t").at(after_t1.id).await.unwrap();
    graph.update_state("t").update(Words::update().seen(["more"])).await.unwrap();
    let fork = graph.proceed().thread("t").await.unwrap();
    assert_eq!(text(fork.output()), "a t1 says one more t2 says two b d j");
    // A branch from a checkpoint before the edits has no edits.
    let first = history.last().unwrap();
    assert!(first.edits.is_empty());
    let again = graph.invoke(Words::update().seen(["i"])).thread("t").from(first.id).await.unwrap();
    assert_eq!(text(again.output()), "i a b c d");
}

#[tokio::test]
async fn an_error_names_the_nodes_and_templates_that_stored_edits_lack() {
    let saver = Arc::new(MemorySaver::new());
    let graph = busy_graph().compile().unwrap().checkpointer(Arc::clone(&saver));
    graph.invoke(Words::update()).thread("t").max_supersteps(2).await.unwrap();
    let bare =
        StateGraph::new().node("a", name).node("b", name).node("c", name).edge(START, "a").edge("a", "b");
    let bare = bare.compile().unwrap().checkpointer(Arc::clone(&saver));
    let error = bare.proceed().thread("t").await.unwrap_err();
    assert_eq!(error.code(), Code::GraphChanged);
    for part in ["template `say`", "node `t2`", "node `d`", "node `x`"] {
        assert!(error.to_string().contains(part), "{part}: {error}");
    }
    let id = graph.state("t").await.unwrap().unwrap().id;
    assert_eq!(bare.topology_at("t", id).await.unwrap_err().code(), Code::GraphChanged);
    // A graph that already contains an edit, and has one more node, continues the run.
    let grown = busy_graph().edge("b", "d").node("e", name).edge("d", "e").compile().unwrap();
    let done = grown.checkpointer(saver).proceed().thread("t").await.unwrap();
    assert_eq!(text(done.output()), format!("{BUSY} e"));
}

#[tokio::test]
async fn history_can_draw_the_graph_as_it_was_at_each_checkpoint() {
    let graph = busy_graph().compile().unwrap().checkpointer(MemorySaver::new());
    start(&graph).await;
    start(&graph).await;
    let mut pictures = Vec::new();
    for checkpoint in graph.history("t").await.unwrap().iter().rev() {
        pictures.push(graph.topology_at("t", checkpoint.id).await.unwrap().unwrap());
    }
    assert_eq!(pictures[0].mermaid(), graph.mermaid());
    let edited = &pictures[1];
    let nodes: Vec<(&str, bool)> = edited.nodes.iter().map(|node| (&*node.name, node.is_temporary)).collect();
    let base = ["a", "b", "d", "x", "j"].map(|node| (node, false));
    assert_eq!(nodes, [&base[..], &[("t1", true), ("t2", true)]].concat());
    let edges: Vec<String> = edited
        .edges
        .iter()
        .map(|edge| {
            let mark = if edge.is_temporary { "*" } else { "" };
            let to = edge.to.as_deref().unwrap();
            format!("{} {to}{mark}", edge.from)
        })
        .collect();
    assert_eq!(edges, ["__start__ a", "b j", "a t1*", "b d*", "t1 t2*", "t2 b*"]);
    let drawn = edited.mermaid();
    assert!(drawn.contains("class n5,n6 temporary") && drawn.contains("linkStyle 2,3,4,5 "), "{drawn}");
    // The edits hold to the end of the run, and the next run begins without them.
    let shapes: Vec<bool> = pictures.iter().map(|picture| picture == edited).collect();
    assert_eq!(shapes, [&[false][..], &[true; 5], &[false; 5]].concat());
    assert!(graph.topology_at("t", agentgraph::CheckpointId::default()).await.unwrap().is_some());
    assert!(graph.topology_at("nobody", agentgraph::CheckpointId::default()).await.unwrap().is_none());
}

/// Returns a graph in which `a` skips `b` in every run but the first. `b` counts its calls.
fn skipping(saver: &Arc<MemorySaver>, calls: &Arc<AtomicUsize>) -> CompiledGraph<Words> {
    let a = async |ctx: Ctx, words: Snapshot<Words>| {
        if !words.seen.is_empty() {
            ctx.edits().skip(["b"])?;
        }
        Ok::<_, BoxError>(Words::update().seen(["a"]))
    };
    let calls = Arc::clone(calls);
    let b = move || {
        let call = calls.fetch_add(1, Ordering::SeqCst);
        async move { said(&format!("b{call}")).goto(Dispatch::new("c", call as u32)) }
    };
    let c = async |Input(call): Input<u32>| Words::update().seen([format!("c{call}")]);
    let graph = StateGraph::new().node("a", a).node("b", b.keep_output()).node("c", c);
    graph.edge(START, "a").edge("a", "b").compile().unwrap().checkpointer(Arc::clone(saver))
}

#[tokio::test]
async fn a_later_run_in_another_process_reuses_the_kept_output_of_a_skipped_node() {
    let saver = Arc::new(MemorySaver::new());
    let calls = Arc::new(AtomicUsize::new(0));
    assert_eq!(text(start(&skipping(&saver, &calls)).await.output()), "a b0 c0");
    // The skip outlives the process and applies once.
    let stopped =
        skipping(&saver, &calls).invoke(Words::update()).thread("t").max_supersteps(1).await.unwrap();
    let graph = skipping(&saver, &calls);
    assert_eq!(graph.state("t").await.unwrap().unwrap().skips, ["b"]);
    let drawn = graph.topology_at("t", stopped.checkpoint().unwrap()).await.unwrap().unwrap();
    assert!(drawn.mermaid().contains("class n1 skipped"), "{}", drawn.mermaid());
    assert_eq!(text(graph.proceed().thread("t").await.unwrap().output()), "a b0 c0 a b0 c0");
    assert!(graph.state("t").await.unwrap().unwrap().skips.is_empty());
    assert_eq!(calls.load(Ordering::SeqCst), 1);
    // A skip that the run did not reach ends with the run.
    skipping(&saver, &calls).invoke(Words::update()).thread("t").max_supersteps(1).await.unwrap();
    let graph = skipping(&saver, &calls);
    let ended = graph.invoke(Words::update()).thread("t").abandon().max_supersteps(0).await.unwrap();
    assert!(matches!(ended, Outcome::Stopped { .. }));
    assert!(graph.state("t").await.unwrap().unwrap().skips.is_empty());
}

#[tokio::test]
async fn edits_and_kept_outputs_survive_fulls_and_segments() {
    #[derive(State, serde::Serialize, serde::Deserialize, Clone, Debug, Default)]
    struct Count {
        // Written in every round, so that the deltas soon outweigh the state.
        rounds: u32,
        #[reduce(append)]
        seen: Vec<String>,
    }
    let saver = Arc::new(MemorySaver::new());
    let graph = || {
        let first = async |ctx: Ctx, count: Snapshot<Count>| {
            if count.rounds == 0 {
                ctx.edits().add_node("t", "last", ())?;
                ctx.edits().remove_edge("again", "end")?;
                ctx.edits().add_edge("end", "t")?;
            } else if count.rounds == 2_500 {
                ctx.edits().skip(["first"])?;
            }
            Ok::<_, BoxError>(Count::update().rounds(count.rounds + 1))
        };
        let round = |count: &Count| if count.rounds.is_multiple_of(3_000) { "end" } else { "first" };
        let graph = StateGraph::new()
            .node("first", first.keep_output())
            .node("again", async || ())
            .node("end", async || ())
            .edge(START, "first")
            .edge("first", "again")
            .edge("again", "end")
            .branch("again", round, ["first", "end"])
            .template("last", |(): ()| async || Count::update().seen(["t"]));
        graph.compile().unwrap().checkpointer(Arc::clone(&saver))
    };
    let first = graph().invoke(Count::update()).thread("t").max_supersteps(2_600).await.unwrap();
    assert!(matches!(first, Outcome::Stopped { .. }));
    let edits = graph().state("t").await.unwrap().unwrap().edits;
    assert_eq!(edits.len(), 3);
    let last = graph().proceed().thread("t").max_supersteps(10_000).await.unwrap().into_finished().unwrap();
    assert_eq!((last.rounds, &last.seen[..]), (3_000, &["t".to_owned()][..]));
    // A run of the same length without edits is read back without edits.
    graph().invoke(Count::update()).thread("t").max_supersteps(2_600).await.unwrap();
    let state = graph().state("t").await.unwrap().unwrap();
    assert!(state.edits.is_empty() && state.skips.is_empty());
    let one = graph().topology_at("t", state.id).await.unwrap().unwrap();
    assert_eq!(one.mermaid(), graph().mermaid());
}

#[tokio::test]
async fn edits_inside_a_subgraph_belong_to_its_call() {
    for memory in [Memory::PerCall, Memory::PerThread] {
        let saver = Arc::new(MemorySaver::new());
        let graph = || {
            let plan = async |ctx: Ctx| {
                let edits = ctx.edits();
                // The previous call has left no edits.
                edits.add_node("ask#1", "ask", ())?;
                edits.add_edge("plan", "ask#1")?;
                Ok::<_, BoxError>(Words::update().seen(["plan"]))
            };
            let child =
                StateGraph::new().node("plan", plan).edge(START, "plan").template("ask", |(): ()| asks);
            let child = child.compile().unwrap().memory(memory);
            let again = |words: &Words| {
                if words.seen.iter().filter(|seen| *seen == "plan").count() < 2 { "child" } else { END }
            };
            let graph = StateGraph::new().node("child", child).node("next", name);
            let graph =
                graph.edge(START, "child").edge("child", "next").branch("next", again, ["child", END]);
            graph.compile().unwrap().checkpointer(Arc::clone(&saver))
        };
        start(&graph()).await;
        assert!(graph().state("t").await.unwrap().unwrap().edits.is_empty());
        let second = graph().resume("one").thread("t").await.unwrap();
        assert_eq!(second.interrupts()[0].node, "ask#1");
        let done = graph().resume("two").thread("t").await.unwrap().into_finished().unwrap();
        assert_eq!(text(&done), "plan ask#1 one next plan ask#1 two next", "{memory:?}");
    }
}

/// A host that runs tasks in another instance of the graph.
struct RemoteHost(CompiledGraph<Words>);

#[async_trait::async_trait]
impl Host for RemoteHost {
    async fn run(&self, call: TaskCall) -> Result<TaskReply, BoxError> {
        let call: TaskCall = serde_json::from_slice(&serde_json::to_vec(&call)?)?;
        Ok(self.0.run_task(call).await?)
    }
}

#[tokio::test]
async fn tasks_on_a_host_can_edit_and_temporary_nodes_run_on_the_host() {
    let far = RemoteHost(busy_graph().compile().unwrap());
    let graph = busy_graph().compile().unwrap().host(far);
    assert_eq!(text(graph.invoke(Words::update()).await.unwrap().output()), BUSY);
    let edit = |edits: &Edits| {
        assert_eq!(edits.add_fn("t", name).unwrap_err().why().clone(), Rejection::NeedsTemplate);
        edits.add_edge("a", "zebra")
    };
    let graph = || StateGraph::new().node("a", edits(edit)).edge(START, "a").compile().unwrap();
    let graph = graph().host(RemoteHost(graph()));
    let error = graph.invoke(Words::update()).await.unwrap_err();
    assert_eq!((error.code(), error.node()), (Code::EditRejected, Some("a")));
    let commands = || {
        let a = async || {
            said("a").goto("t").for_this_run(|edits| {
                edits.add_node("t", "say", "hello")?;
                edits.add_edge("t", "b")
            })
        };
        let graph = StateGraph::new().node("a", a).node("b", name).edge(START, "a").template("say", say);
        graph.compile().unwrap()
    };
    let graph = commands().host(RemoteHost(commands()));
    assert_eq!(text(graph.invoke(Words::update()).await.unwrap().output()), "a t says hello b");
}

#[tokio::test]
async fn edits_serialize_to_json_and_back() {
    let edits = [
        GraphEdit::AddNode { name: "t".into(), template: Some("say".into()), args: "hello".into() },
        GraphEdit::PrependEdge { from: "a".into(), to: "t".into() },
        GraphEdit::Skip { nodes: vec!["b".into(), "c".into()] },
    ];
    let json = serde_json::to_string(&edits).unwrap();
    assert_eq!(
        json,
        r#"[{"add_node":{"name":"t","template":"say","args":"hello"}},{"prepend_edge":{"from":"a","to":"t"}},{"skip":{"nodes":["b","c"]}}]"#
    );
    assert_eq!(serde_json::from_str::<Vec<GraphEdit>>(&json).unwrap(), edits);
    let said: Vec<String> = edits.iter().map(ToString::to_string).collect();
    assert_eq!(said, ["add node `t` of template `say`", "prepend edge `a` -> `t`", "skip `b`, `c`"]);
}

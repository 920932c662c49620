//! In an eager graph the update of a task is merged, and its successors start, as soon as the task is done.
//! Only joins wait.

use std::future::pending;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use agentgraph::graph::ProblemKind;
use agentgraph::node::IntoGoto;
use agentgraph::policy::OnEnd;
use agentgraph::prelude::*;
use agentgraph::{Code, StopReason, all, any, n_of};
use tokio::time::Instant;

use crate::common::clock::TokioClock;
use crate::common::words::{Words, WordsUpdate, said, says, text, words_of};

/// The tasks in order of their notes, each with the seconds since the test began.
#[derive(Clone)]
struct Times {
    began: Instant,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Times {
    fn new() -> Self {
        Times { began: Instant::now(), seen: Arc::default() }
    }

    fn note(&self, what: &str) {
        let at = self.began.elapsed().as_secs();
        self.seen.lock().unwrap().push(format!("{what}@{at}"));
    }

    /// Returns a node that notes its start, takes `seconds` and writes its name.
    fn node(&self, name: &'static str, seconds: u64) -> agentgraph::node::Node<Words> {
        let times = self.clone();
        let node = move || {
            let times = times.clone();
            async move {
                times.note(name);
                tokio::time::sleep(Duration::from_secs(seconds)).await;
                Words::update().seen([name])
            }
        };
        node.into_node()
    }

    fn seen(&self) -> String {
        self.seen.lock().unwrap().join(" ")
    }
}

fn eager() -> StateGraph<Words> {
    StateGraph::new().eager()
}

#[tokio::test(start_paused = true)]
async fn a_slow_branch_does_not_delay_the_next_node_of_a_fast_one() {
    let times = Times::new();
    let graph = eager()
        .node("slow", times.node("slow", 10))
        .node("fast", times.node("fast", 1))
        .node("faster", times.node("faster", 2))
        .node("after", times.node("after", 1))
        .edge(START, "slow")
        .edge(START, "fast")
        .edge("fast", "faster")
        .edge("slow", "after")
        .compile()
        .unwrap();
    assert_eq!(words_of(&graph).await, "fast faster slow after");
    assert_eq!(times.seen(), "slow@0 fast@0 faster@1 after@10");
    assert_eq!(times.began.elapsed(), Duration::from_secs(11));
}

#[tokio::test]
async fn a_node_that_is_reached_twice_runs_twice() {
    let graph = eager()
        .node("a", says("a"))
        .node("b", says("b"))
        .node("c", says("c"))
        .node("d", says("d"))
        .edge(START, "a")
        .edge("a", "b")
        .edge("a", "c")
        .edge("b", "d")
        .edge("c", "d")
        .compile()
        .unwrap();
    assert_eq!(words_of(&graph).await, "a b c d d");
}

#[tokio::test]
async fn a_join_runs_once_when_all_have_arrived() {
    let graph = eager()
        .node("a", says("a"))
        .node("b", says("b"))
        .node("c", says("c"))
        .node("d", says("d"))
        .edge(START, "a")
        .edge("a", "b")
        .edge("a", "c")
        .edge(["b", "c"], "d")
        .compile()
        .unwrap();
    assert_eq!(words_of(&graph).await, "a b c d");
}

#[tokio::test(start_paused = true)]
async fn any_and_n_of_fire_with_the_first_and_absorb_the_rest() {
    let times = Times::new();
    let graph = eager()
        .node("a", times.node("a", 3))
        .node("b", times.node("b", 1))
        .node("c", times.node("c", 2))
        .node("first", times.node("first", 0))
        .node("second", times.node("second", 0))
        .edge(START, "a")
        .edge(START, "b")
        .edge(START, "c")
        .edge(any(["a", "b", "c"]), "first")
        .edge(n_of(2, ["a", "b", "c"]), "second")
        .compile()
        .unwrap();
    assert_eq!(words_of(&graph).await, "b first c second a");
    assert_eq!(times.seen(), "a@0 b@0 c@0 first@1 second@2");
}

#[tokio::test(start_paused = true)]
async fn a_join_with_a_timeout_does_not_wait_for_the_next_merge() {
    let times = Times::new();
    let graph = eager()
        .node("quick", times.node("quick", 1))
        .node("slow", times.node("slow", 100))
        .node("answer", times.node("answer", 1))
        .edge(START, "quick")
        .edge(START, "slow")
        .edge(all(["quick", "slow"]).timeout(Duration::from_secs(5)), "answer")
        .compile()
        .unwrap()
        .services(TokioClock::default());
    assert_eq!(words_of(&graph).await, "quick answer slow");
    assert_eq!(times.seen(), "quick@0 slow@0 answer@6");
}

#[tokio::test(start_paused = true)]
async fn a_join_whose_only_arrival_an_edit_removes_has_no_deadline() {
    let times = Times::new();
    let edit = async |ctx: Ctx| -> Result<WordsUpdate> {
        tokio::time::sleep(Duration::from_secs(2)).await;
        ctx.edits().remove_node("quick")?;
        Ok(Words::update().seen(["edit"]))
    };
    let graph = eager()
        .node("quick", times.node("quick", 1))
        .node("slow", times.node("slow", 100))
        .node("edit", edit)
        .node("answer", times.node("answer", 1))
        .edge(START, "quick")
        .edge(START, "slow")
        .edge(START, "edit")
        .edge(all(["quick", "slow"]).timeout(Duration::from_secs(5)), "answer")
        .compile()
        .unwrap()
        .services(TokioClock::default());
    assert_eq!(words_of(&graph).await, "quick edit slow answer");
    assert_eq!(times.seen(), "quick@0 slow@0 answer@100");
}

#[tokio::test]
async fn a_join_fires_at_once_when_nothing_else_can_run() {
    async fn skip() -> Command<Words> {
        said("skip").goto(END)
    }
    let graph = eager()
        .node("quick", says("quick"))
        .node("skip", skip.targets([END]))
        .node("answer", says("answer"))
        .edge(START, "quick")
        .edge(START, "skip")
        .edge(all(["quick", "skip"]).timeout(Duration::from_secs(5)), "answer")
        .compile()
        .unwrap();
    assert_eq!(words_of(&graph).await, "quick skip answer");
}

#[tokio::test]
async fn joins_that_fire_together_do_so_in_order_of_declaration_not_of_their_deadlines() {
    async fn skip() -> Command<Words> {
        said("skip").goto(END)
    }
    let graph = eager()
        .node("quick", says("quick"))
        .node("skip", skip.targets([END]))
        .node("first", says("first"))
        .node("second", says("second"))
        .edge(START, "quick")
        .edge(START, "skip")
        .edge(all(["quick", "skip"]).timeout(Duration::from_secs(5)), "first")
        .edge(all(["quick", "skip"]).timeout(Duration::from_secs(3)), "second")
        .compile()
        .unwrap();
    assert_eq!(words_of(&graph).await, "quick skip first second");
}

/// Returns a graph in which `split` dispatches each of `seconds` to `work`, which takes as long.
fn group(seconds: Vec<u64>, times: &Times) -> StateGraph<Words> {
    let split = move || {
        let dispatches: Vec<_> = seconds.iter().map(|n| Dispatch::new("work", *n)).collect();
        std::future::ready(Command::<Words>::new().goto(dispatches))
    };
    let times = times.clone();
    let work = move |Input(seconds): Input<u64>| {
        let times = times.clone();
        async move {
            tokio::time::sleep(Duration::from_secs(seconds)).await;
            times.note(&format!("work{seconds}"));
            Words::update().seen([seconds.to_string()])
        }
    };
    eager().node("split", split.targets(["work"])).node("work", work).edge(START, "split")
}

#[tokio::test(start_paused = true)]
async fn the_dispatches_of_a_command_arrive_at_a_join_when_all_are_done() {
    let times = Times::new();
    let graph = group(vec![3, 1, 2], &times).node("end", times.node("end", 0)).edge(["work"], "end");
    assert_eq!(words_of(&graph.compile().unwrap()).await, "1 2 3 end");
    assert_eq!(times.seen(), "work1@1 work2@2 work3@3 end@3");
}

#[tokio::test(start_paused = true)]
async fn each_dispatch_follows_a_plain_edge_by_itself() {
    let times = Times::new();
    let graph = group(vec![3, 1, 2], &times).node("end", times.node("end", 0)).edge("work", "end");
    assert_eq!(words_of(&graph.compile().unwrap()).await, "1 end 2 end 3 end");
    assert_eq!(times.seen(), "work1@1 end@1 work2@2 end@2 work3@3 end@3");
}

#[tokio::test(start_paused = true)]
async fn two_groups_of_one_node_are_two_rounds() {
    async fn split(Input(base): Input<u64>) -> Command<Words> {
        Command::new().goto(vec![Dispatch::new("work", base), Dispatch::new("work", base + 1)])
    }
    async fn work(Input(seconds): Input<u64>) -> WordsUpdate {
        tokio::time::sleep(Duration::from_secs(seconds)).await;
        Words::update().seen([seconds.to_string()])
    }
    let graph = eager()
        .node("begin", || async {
            Command::<Words>::to(vec![Dispatch::new("split", 5_u64), Dispatch::new("split", 1)])
        })
        .node("split", split.targets(["work"]))
        .node("work", work)
        .node("end", says("end"))
        .edge(START, "begin")
        .edge(["work"], "end")
        .compile()
        .unwrap();
    assert_eq!(words_of(&graph).await, "1 2 end 5 6 end");
}

#[tokio::test]
async fn goto_replaces_edges_and_joins_and_also_goto_adds() {
    async fn jump() -> Command<Words> {
        said("jump").goto("b")
    }
    async fn more() -> Command<Words> {
        said("more").also_goto("b")
    }
    let graph = |first: agentgraph::node::Node<Words>| {
        eager()
            .node("first", first)
            .node("a", says("a"))
            .node("b", says("b"))
            .edge(START, "first")
            .node("c", says("c"))
            .edge("first", "a")
            .edge(["first"], "c")
            .compile()
            .unwrap()
    };
    assert_eq!(words_of(&graph(jump.targets(["b"]))).await, "jump b");
    assert_eq!(words_of(&graph(more.targets(["b"]))).await, "more a c b");
}

#[tokio::test]
async fn deferred_nodes_wait_until_nothing_else_can_run_and_run_once() {
    let graph = eager()
        .node("a", says("a"))
        .node("b", says("b"))
        .node("c", says("c"))
        .node("report", says("report").defer())
        .edge(START, "a")
        .edge("a", "b")
        .edge("b", "c")
        .edge("a", "report")
        .edge("b", "report")
        .compile()
        .unwrap();
    assert_eq!(words_of(&graph).await, "a b c report");
}

#[derive(State, serde::Serialize, serde::Deserialize, Debug, Default)]
struct Heavy {
    count: u64,
    #[reduce(append)]
    log: Vec<String>,
    #[channel(untracked)]
    clones: Clones,
}

#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
struct Clones {
    #[serde(skip)]
    count: Arc<AtomicUsize>,
}

impl Clone for Heavy {
    fn clone(&self) -> Self {
        self.clones.count.fetch_add(1, Ordering::Relaxed);
        Heavy { count: self.count, log: self.log.clone(), clones: self.clones.clone() }
    }
}

#[tokio::test(start_paused = true)]
async fn the_state_is_cloned_only_while_another_task_holds_the_last_one() {
    async fn slow(state: Snapshot<Heavy>) -> HeavyUpdate {
        tokio::time::sleep(Duration::from_secs(1)).await;
        Heavy::update().log([format!("slow saw {}", state.count)])
    }
    async fn fast(state: Snapshot<Heavy>) -> HeavyUpdate {
        tokio::task::yield_now().await;
        Heavy::update().count(state.count + 1)
    }
    #[derive(Route)]
    enum After {
        Fast,
        #[route(end)]
        Done,
    }
    let graph = StateGraph::new()
        .eager()
        .node("slow", slow)
        .node("fast", fast)
        .edge(START, "slow")
        .edge(START, "fast")
        .route("fast", |state: &Heavy| if state.count < 1000 { After::Fast } else { After::Done })
        .compile()
        .unwrap();
    let clones = Arc::new(AtomicUsize::new(0));
    let input = Heavy::update().clones(Clones { count: Arc::clone(&clones) });
    let heavy = graph.invoke(input).max_supersteps(1001).await.unwrap().into_finished().unwrap();
    assert_eq!((heavy.count, heavy.log), (1000, vec!["slow saw 0".to_owned()]));
    assert!(clones.load(Ordering::Relaxed) <= 2, "{clones:?}");
}

#[tokio::test(start_paused = true)]
async fn an_activation_reads_the_state_of_the_commit_that_made_it() {
    let seen = |name: &'static str, seconds: u64| {
        move |words: Snapshot<Words>| async move {
            let seen = words.seen.join("+");
            tokio::time::sleep(Duration::from_secs(seconds)).await;
            Words::update().seen([format!("{name}({seen})")])
        }
    };
    let graph = eager()
        .node("a", seen("a", 1))
        .node("b", seen("b", 2))
        .node("c", seen("c", 3))
        .edge(START, "a")
        .edge(START, "b")
        .edge("a", "c")
        .compile()
        .unwrap();
    assert_eq!(words_of(&graph).await, "a() b() c(a())");

    // The same for an activation that waits because of `max_concurrency`.
    let graph = eager()
        .node("a", seen("a", 1))
        .node("b", seen("b", 1))
        .node("c", seen("c", 1))
        .edge(START, "a")
        .edge(START, "b")
        .edge(START, "c")
        .compile()
        .unwrap();
    let outcome = graph.invoke(Words::update()).max_concurrency(1).await.unwrap();
    assert_eq!(text(outcome.output()), "a() b() c()");
}

#[derive(State, serde::Serialize, serde::Deserialize, Clone, Debug, Default)]
struct Answer {
    text: String,
    #[reduce(append)]
    notes: Vec<String>,
}

fn writes(text: &'static str, seconds: u64) -> agentgraph::node::Node<Answer> {
    let node = move || async move {
        tokio::time::sleep(Duration::from_secs(seconds)).await;
        Answer::update().text(text)
    };
    node.into_node()
}

#[tokio::test(start_paused = true)]
async fn a_channel_that_was_written_since_the_state_was_read_is_not_overwritten() {
    let graph = StateGraph::new()
        .eager()
        .node("slow", writes("slow", 2))
        .node("fast", writes("fast", 1))
        .edge(START, "slow")
        .edge(START, "fast")
        .compile()
        .unwrap();
    let error = graph.invoke(Answer::update()).await.unwrap_err();
    assert_eq!((error.code(), error.node()), (Code::ConcurrentUpdate, Some("slow")));
    assert!(error.to_string().contains("`slow` writes `text`, which `fast` has written since"), "{error}");
    assert_eq!(error.state::<Answer>().unwrap().text, "fast");
}

#[tokio::test(start_paused = true)]
async fn a_channel_that_was_written_before_the_state_was_read_is_overwritten() {
    let graph = StateGraph::new()
        .eager()
        .node("first", writes("first", 1))
        .node("second", writes("second", 1))
        .edge(START, "first")
        .edge("first", "second")
        .compile()
        .unwrap();
    let answer = graph.invoke(Answer::update().text("input")).await.unwrap().into_finished().unwrap();
    assert_eq!(answer.text, "second");
}

#[tokio::test(start_paused = true)]
async fn two_concurrent_overwrites_of_a_reduced_channel_are_an_error() {
    let overwrites = |seconds: u64| {
        move || async move {
            tokio::time::sleep(Duration::from_secs(seconds)).await;
            Answer::update().overwrite_notes(vec![seconds.to_string()])
        }
    };
    let graph = StateGraph::new()
        .eager()
        .node("slow", overwrites(2))
        .node("fast", overwrites(1))
        .edge(START, "slow")
        .edge(START, "fast")
        .compile()
        .unwrap();
    let error = graph.invoke(Answer::update()).await.unwrap_err();
    assert_eq!((error.code(), error.node()), (Code::ConcurrentUpdate, Some("slow")));
}

#[tokio::test]
async fn the_limit_is_the_exact_number_of_tasks_that_start() {
    for limit in 0..4 {
        let graph = eager()
            .node("a", says("a"))
            .node("b", says("b"))
            .edge(START, "a")
            .edge(START, "b")
            .edge("a", "a")
            .compile()
            .unwrap();
        let outcome = graph.invoke(Words::update()).max_supersteps(limit).await.unwrap();
        let Outcome::Stopped { reason: StopReason::Limit, output, .. } = outcome else {
            panic!("{outcome:?}")
        };
        assert_eq!(output.seen.len() as u64, limit);
    }
    let graph = eager().node("a", says("a")).edge(START, "a").compile().unwrap();
    let outcome = graph.invoke(Words::update()).max_supersteps(1).await.unwrap();
    assert!(matches!(outcome, Outcome::Finished { .. }), "{outcome:?}");
}

#[tokio::test]
async fn the_node_for_the_limit_runs_on_the_last_state() {
    let graph = eager()
        .node("a", says("a"))
        .node("sorry", says("sorry"))
        .edge(START, "a")
        .edge("a", "a")
        .on_limit("sorry")
        .compile()
        .unwrap();
    let outcome = graph.invoke(Words::update()).max_supersteps(2).await.unwrap();
    assert!(matches!(outcome, Outcome::Stopped { reason: StopReason::Limit, .. }), "{outcome:?}");
    assert_eq!(text(outcome.output()), "a a sorry");
}

#[tokio::test(start_paused = true)]
async fn after_a_failure_running_tasks_finish_or_are_cancelled_and_no_task_starts() {
    let graph = |policy: agentgraph::policy::Siblings| {
        let fails = || async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            Err::<(), agentgraph::BoxError>("broken".into())
        };
        eager()
            .node("fails", fails)
            .node("slow", Times::new().node("slow", 2))
            .node("after", says("after"))
            .edge(START, "fails")
            .edge(START, "slow")
            .edge("slow", "after")
            .siblings(policy)
            .compile()
            .unwrap()
    };
    let error = graph(agentgraph::policy::Siblings::Drain).invoke(Words::update()).await.unwrap_err();
    assert_eq!((error.code(), error.node()), (Code::NodeFailed, Some("fails")));
    assert_eq!(text(error.state().unwrap()), "slow");
    let error = graph(agentgraph::policy::Siblings::Cancel).invoke(Words::update()).await.unwrap_err();
    assert_eq!(text(error.state().unwrap()), "");
}

#[tokio::test]
async fn an_error_handler_takes_the_place_of_a_failed_task() {
    async fn fails() -> Result<WordsUpdate> {
        Err("broken".into())
    }
    async fn handles(failure: agentgraph::Failure, words: Snapshot<Words>) -> Command<Words> {
        assert_eq!(text(&words), "a");
        said(&format!("handled:{}", failure.node())).goto("b")
    }
    let graph = eager()
        .node("a", says("a"))
        .node("fails", fails.on_error("handles"))
        .node("handles", handles.targets(["b"]))
        .node("b", says("b"))
        .node("never", says("never"))
        .edge(START, "a")
        .edge("a", "fails")
        .edge("fails", "never")
        .compile()
        .unwrap();
    assert_eq!(words_of(&graph).await, "a handled:fails b");
}

#[tokio::test(start_paused = true)]
async fn a_token_and_a_deadline_stop_at_the_next_await() {
    let times = Times::new();
    let graph = eager()
        .node("quick", times.node("quick", 1))
        .node("slow", times.node("slow", 100))
        .edge(START, "quick")
        .edge(START, "slow")
        .compile()
        .unwrap();
    let outcome = graph.invoke(Words::update()).deadline(Duration::from_secs(5)).await.unwrap();
    assert!(matches!(outcome, Outcome::Stopped { reason: StopReason::Deadline, .. }), "{outcome:?}");
    assert_eq!((text(outcome.output()).as_str(), times.began.elapsed().as_secs()), ("quick", 5));

    let token = CancellationToken::new();
    let cancels = token.clone();
    let run = graph.invoke(Words::update()).cancel(token);
    let cancel = async {
        tokio::time::sleep(Duration::from_secs(2)).await;
        cancels.cancel();
    };
    let (outcome, ()) = tokio::join!(async { run.await.unwrap() }, cancel);
    assert!(matches!(outcome, Outcome::Stopped { reason: StopReason::Cancelled, .. }), "{outcome:?}");
}

#[tokio::test(start_paused = true)]
async fn a_drain_lets_running_tasks_finish() {
    let drains = |ctx: Ctx| async move {
        ctx.drain();
        Words::update().seen(["drains"])
    };
    let graph = eager()
        .node("drains", drains)
        .node("slow", Times::new().node("slow", 3))
        .node("after", says("after"))
        .edge(START, "slow")
        .edge(START, "drains")
        .edge("slow", "after")
        .compile()
        .unwrap();
    let outcome = graph.invoke(Words::update()).await.unwrap();
    assert!(matches!(outcome, Outcome::Stopped { reason: StopReason::Drained, .. }), "{outcome:?}");
    assert_eq!(text(outcome.output()), "drains slow");
}

#[tokio::test(start_paused = true)]
async fn a_task_that_exceeds_the_step_timeout_fails_the_run() {
    let times = Times::new();
    let graph = eager()
        .node("quick", times.node("quick", 3))
        .node("then", times.node("then", 9))
        .node("slow", times.node("slow", 4))
        .edge(START, "quick")
        .edge("quick", "then")
        .edge(START, "slow")
        .compile()
        .unwrap();
    let error = graph.invoke(Words::update()).step_timeout(Duration::from_secs(5)).await.unwrap_err();
    assert_eq!(error.code(), Code::StepTimeout);
    assert!(error.to_string().contains("`then`"), "{error}");
    assert_eq!((text(error.state().unwrap()).as_str(), times.began.elapsed().as_secs()), ("quick slow", 8));
}

#[tokio::test(start_paused = true)]
async fn detached_nodes_delay_neither_deferred_nodes_nor_the_end() {
    let times = Times::new();
    let graph = eager()
        .node("main", times.node("main", 2))
        .node("report", times.node("report", 1).defer())
        .node("quick", times.node("quick", 1).detached())
        .node("after", times.node("after", 100))
        .edge(START, "main")
        .edge("main", "report")
        .edge(START, "quick")
        .edge("quick", "after")
        .compile()
        .unwrap();
    let outcome = graph.invoke(Words::update()).await.unwrap();
    let Outcome::Finished { output, cancelled, .. } = outcome else { panic!("{outcome:?}") };
    assert_eq!((text(&output).as_str(), cancelled), ("quick main report", vec!["after".to_owned()]));
    assert_eq!(times.began.elapsed().as_secs(), 3);
}

#[tokio::test(start_paused = true)]
async fn the_end_waits_for_detached_nodes_as_long_as_their_policies_say() {
    let await_for = |seconds| OnEnd::Await(Duration::from_secs(seconds));
    let times = Times::new();
    let graph = eager()
        .node("main", times.node("main", 1))
        .node("done", times.node("done", 4).detached().on_end(await_for(5)))
        .node("then", times.node("then", 1).on_end(await_for(5)))
        .node("late", times.node("late", 9).detached().on_end(await_for(2)))
        .node("cut", times.node("cut", 2).detached())
        .edge(START, "main")
        .edge(START, "done")
        .edge(START, "late")
        .edge(START, "cut")
        .edge("done", "then")
        .compile()
        .unwrap();
    let outcome = graph.invoke(Words::update()).await.unwrap();
    let Outcome::Finished { output, cancelled, .. } = outcome else { panic!("{outcome:?}") };
    assert_eq!(text(&output), "main done then");
    assert_eq!(cancelled, ["late", "cut"]);
    assert_eq!(times.began.elapsed().as_secs(), 5);
}

/// A detached node that leads to itself starts again and again while the run waits at its end.
#[tokio::test(start_paused = true)]
async fn the_wait_at_the_end_does_not_restart_with_each_task() {
    let times = Times::new();
    let graph = eager()
        .node("main", times.node("main", 1))
        .node("tick", times.node("tick", 2).detached().on_end(OnEnd::Await(Duration::from_secs(8))))
        .edge(START, "main")
        .edge(START, "tick")
        .edge("tick", "tick")
        .compile()
        .unwrap();
    let outcome = graph.invoke(Words::update()).await.unwrap();
    let Outcome::Finished { output, cancelled, .. } = outcome else { panic!("{outcome:?}") };
    assert_eq!(text(&output), "main tick tick tick tick");
    assert_eq!(cancelled, ["tick"]);
    assert_eq!(times.began.elapsed().as_secs(), 9);
}

#[tokio::test]
async fn a_failed_detached_node_does_not_fail_the_run() {
    async fn fails() -> Result<WordsUpdate> {
        Err("broken".into())
    }
    async fn asks(ctx: Ctx) -> Result<WordsUpdate> {
        let word: String = ctx.interrupt("word?")?;
        Ok(Words::update().seen([word]))
    }
    let graph = eager()
        .node("main", says("main"))
        .node("fails", fails.detached())
        .node("asks", asks.detached())
        .edge(START, "fails")
        .edge(START, "asks")
        .edge(START, "main")
        .compile()
        .unwrap();
    let outcome = graph.invoke(Words::update()).await.unwrap();
    let Outcome::Finished { output, cancelled, .. } = outcome else { panic!("{outcome:?}") };
    assert_eq!((text(&output).as_str(), cancelled.len()), ("main", 0));
}

#[test]
fn detached_nodes_are_refused_where_the_run_would_wait_for_them() {
    let problems = |graph: StateGraph<Words>| {
        let error = graph.compile().unwrap_err();
        let of = |problem: &agentgraph::graph::Problem| match &problem.kind {
            ProblemKind::Detached { node, .. } => node.clone(),
            other => panic!("{other:?}"),
        };
        error.problems().iter().map(of).collect::<Vec<_>>()
    };
    let graph = StateGraph::new().node("a", says("a").detached()).edge(START, "a");
    assert_eq!(problems(graph), ["a"]);
    // `b` is reached through `a` only.
    let graph = |graph: StateGraph<Words>| {
        let graph = graph.node("a", says("a").detached()).node("b", says("b")).node("c", says("c"));
        graph.node("d", says("d")).edge(START, "a").edge("a", "b").edge(START, "c")
    };
    assert_eq!(problems(graph(eager()).edge(["b", "c"], "d")), ["b"]);
    assert_eq!(problems(graph(eager()).edge("c", "d").interrupt_before(["b", "d"])), ["b"]);
    assert_eq!(problems(graph(eager()).edge("c", "d").interrupt_after(["a"])), ["a"]);
    assert!(graph(eager()).edge(["a", "b"], "d").compile().is_ok());
}

#[tokio::test]
async fn branches_that_are_always_ready_give_way_to_others() {
    let graph = eager()
        .node("spins", || async {})
        .node("ticks", || async {
            tokio::task::yield_now().await;
            Words::update().seen(["tick"])
        })
        .edge(START, "spins")
        .edge("spins", "spins")
        .edge(START, "ticks")
        .compile()
        .unwrap();
    let outcome = graph.invoke(Words::update()).max_supersteps(2000).await.unwrap();
    assert_eq!(text(outcome.output()), "tick");
}

#[tokio::test]
async fn a_failed_route_keeps_the_updates_merged_before_it() {
    let graph = eager()
        .node("a", says("a"))
        .node("b", says("b"))
        .edge(START, "a")
        .edge("a", "b")
        .branch("b", |_: &Words| "nowhere".into_goto(), ["a"])
        .compile()
        .unwrap();
    let error = graph.invoke(Words::update()).await.unwrap_err();
    assert_eq!((error.code(), error.node()), (Code::UnknownTarget, Some("b")));
    assert_eq!(text(error.state().unwrap()), "a");
}

#[tokio::test]
async fn a_join_that_waits_for_ever_is_reported_as_stuck() {
    async fn leaves() -> Command<Words> {
        said("leaves").goto(END)
    }
    let graph = eager()
        .node("a", says("a"))
        .node("leaves", leaves.targets([END]))
        .node("never", says("never"))
        .edge(START, "a")
        .edge(START, "leaves")
        .edge(["a", "leaves"], "never")
        .compile()
        .unwrap();
    let outcome = graph.invoke(Words::update()).await.unwrap();
    let Outcome::Finished { stuck, .. } = outcome else { panic!("{outcome:?}") };
    assert_eq!(
        (&stuck[0].arrived[..], &stuck[0].missing[..]),
        (&["a".to_owned()][..], &["leaves".to_owned()][..])
    );
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_dropped_leaves_nothing_behind() {
    let graph = eager()
        .node("quick", says("quick"))
        .node("hangs", pending::<()>)
        .edge(START, "quick")
        .edge(START, "hangs")
        .compile()
        .unwrap();
    let run = async { graph.invoke(Words::update()).await };
    assert!(tokio::time::timeout(Duration::from_secs(1), run).await.is_err());
}

/// The defects of another traversal of tasks. Each test shows that the engine does not have one of them.
mod defects {
    use super::*;

    /// The number of living tasks.
    #[derive(Clone, Default)]
    struct Alive(Arc<AtomicUsize>);

    /// A living task; counted until it is dropped.
    struct Life(Alive);

    impl Alive {
        fn begin(&self) -> Life {
            self.0.fetch_add(1, Ordering::SeqCst);
            Life(self.clone())
        }
    }

    impl Drop for Life {
        fn drop(&mut self) {
            self.0.0.fetch_sub(1, Ordering::SeqCst);
        }
    }

    #[tokio::test]
    async fn an_unknown_start_is_found_before_the_run_or_fails_it_and_never_hangs() {
        let error = eager().node("a", says("a")).edge(START, "b").compile().unwrap_err();
        let is_unknown =
            |one: &agentgraph::graph::Problem| matches!(one.kind, ProblemKind::UnknownNode { .. });
        assert!(error.problems().iter().any(is_unknown), "{error}");
        let graph = eager().node("a", says("a")).branch(START, |_: &Words| "b".into_goto(), ["a"]);
        let error = graph.compile().unwrap().invoke(Words::update()).await.unwrap_err();
        assert_eq!(error.code(), Code::UnknownTarget);
    }

    #[tokio::test]
    async fn an_entry_is_chosen_for_each_request() {
        let graph = eager()
            .node("click", says("click"))
            .node("talk", says("talk"))
            .branch(
                START,
                |words: &Words| if words.seen.is_empty() { "talk" } else { "click" },
                ["click", "talk"],
            )
            .compile()
            .unwrap();
        assert_eq!(words_of(&graph).await, "talk");
        let clicked = graph.invoke(Words::update().seen(["button"])).await.unwrap();
        assert_eq!(text(clicked.output()), "button click");
    }

    #[tokio::test(start_paused = true)]
    async fn no_task_runs_on_after_an_error() {
        let alive = Alive::default();
        let began = Arc::new(AtomicUsize::new(0));
        let node = |seconds: u64| {
            let alive = alive.clone();
            let began = Arc::clone(&began);
            move || {
                began.fetch_add(1, Ordering::SeqCst);
                let life = alive.begin();
                async move {
                    tokio::time::sleep(Duration::from_secs(seconds)).await;
                    drop(life);
                }
            }
        };
        let fails = || async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            Err::<(), agentgraph::BoxError>("broken".into())
        };
        for policy in [agentgraph::policy::Siblings::Drain, agentgraph::policy::Siblings::Cancel] {
            let graph = eager()
                .node("fails", fails)
                .node("slow", node(5))
                .node("next", node(5))
                .edge(START, "fails")
                .edge(START, "slow")
                .edge("slow", "next")
                .siblings(policy)
                .compile()
                .unwrap();
            graph.invoke(Words::update()).await.unwrap_err();
            assert_eq!(alive.0.load(Ordering::SeqCst), 0);
            tokio::time::sleep(Duration::from_secs(60)).await;
        }
        assert_eq!(began.load(Ordering::SeqCst), 2, "`next` never begins");
    }

    #[tokio::test(start_paused = true)]
    async fn a_cancelled_run_is_not_reported_as_finished() {
        let saver = Arc::new(MemorySaver::new());
        let graph = eager().node("slow", Times::new().node("slow", 100)).node("next", says("next"));
        let graph = graph.edge(START, "slow").edge("slow", "next").compile().unwrap();
        let graph = graph.checkpointer(saver);
        let token = CancellationToken::new();
        let cancels = token.clone();
        let run = graph.invoke(Words::update()).thread("t").cancel(token);
        let cancel = async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            cancels.cancel();
        };
        let (outcome, ()) = tokio::join!(async { run.await.unwrap() }, cancel);
        assert!(matches!(outcome, Outcome::Stopped { reason: StopReason::Cancelled, .. }), "{outcome:?}");
        let state = graph.state("t").await.unwrap().unwrap();
        assert_eq!((text(&state.values).as_str(), state.next), ("", vec!["slow".to_owned()]));
    }

    #[tokio::test]
    async fn a_stream_that_is_dropped_early_leaves_no_task() {
        use futures_util::StreamExt;
        let alive = Alive::default();
        let node = |alive: &Alive| {
            let alive = alive.clone();
            move |ctx: Ctx| {
                let life = alive.begin();
                async move {
                    ctx.emit("on my way").await;
                    pending::<()>().await;
                    drop(life);
                }
            }
        };
        let graph = eager()
            .node("a", node(&alive))
            .node("b", node(&alive).detached())
            .edge(START, "a")
            .edge(START, "b")
            .compile()
            .unwrap();
        let mut events = graph.invoke(Words::update()).stream();
        assert!(matches!(events.next().await.unwrap().kind, EventKind::Custom { .. }));
        assert_eq!(alive.0.load(Ordering::SeqCst), 2);
        drop(events);
        assert_eq!(alive.0.load(Ordering::SeqCst), 0);
    }

    #[tokio::test]
    async fn a_slow_reader_of_the_stream_holds_up_the_run() {
        use futures_util::StreamExt;
        let began = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&began);
        let ticks = move || {
            counted.fetch_add(1, Ordering::SeqCst);
            std::future::ready(Words::update().seen(["tick"]))
        };
        let graph =
            eager().node("ticks", ticks).edge(START, "ticks").edge("ticks", "ticks").compile().unwrap();
        let mut events = graph.invoke(Words::update()).stream_capacity(2).stream();
        for _ in 0..5 {
            events.next().await.unwrap();
        }
        assert!(began.load(Ordering::SeqCst) <= 8, "{began:?}");
    }

    #[tokio::test]
    async fn output_that_mentions_an_error_is_not_a_failure() {
        use futures_util::StreamExt;
        let tool = |ctx: Ctx| async move {
            ctx.emit(serde_json::json!({"error": "no such sauce"})).await;
            Words::update().seen(["what to do about an error"])
        };
        let graph = eager().node("tool", tool).node("answer", says("answer"));
        let graph = graph.edge(START, "tool").edge("tool", "answer").compile().unwrap();
        let events: Vec<_> = graph.invoke(Words::update()).stream().collect().await;
        let Some(EventKind::Ended(Ok(Outcome::Finished { output, .. }))) =
            events.last().map(|event| &event.kind)
        else {
            panic!("{events:?}")
        };
        assert_eq!(output.seen, ["what to do about an error", "answer"]);
        let Some(EventKind::Custom { value, .. }) = events.first().map(|event| &event.kind) else {
            panic!("{events:?}")
        };
        assert_eq!(value["error"], "no such sauce", "an object, not its text");
    }

    /// The graph of a shop assistant: a call of a model takes four seconds, a waiting message takes one.
    #[tokio::test(start_paused = true)]
    async fn the_updates_of_a_shop_assistant_arrive_in_the_order_of_its_graph() {
        use futures_util::StreamExt;
        let times = Times::new();
        let graph = eager()
            .node("routing", times.node("routing", 4))
            .node("task_description", times.node("task_description", 1).detached())
            .node("choose_tool", times.node("choose_tool", 4))
            .node("identify_params", times.node("identify_params", 4))
            .node("execute_tool", times.node("execute_tool", 0))
            .node("widget", times.node("widget", 0).detached())
            .node("convert", times.node("convert", 4))
            .node("customer_response", times.node("customer_response", 4))
            .branch(
                START,
                |words: &Words| if text(words) == "click" { "execute_tool" } else { "routing" },
                ["routing", "execute_tool"],
            )
            .branch(
                "routing",
                |words: &Words| {
                    if text(words).contains("convert") {
                        vec!["customer_response"]
                    } else {
                        vec!["task_description", "choose_tool"]
                    }
                },
                ["task_description", "choose_tool", "customer_response"],
            )
            .edge("choose_tool", "identify_params")
            .edge("identify_params", "execute_tool")
            .edge("execute_tool", "widget")
            .edge("execute_tool", "convert")
            .edge("convert", "routing")
            .compile()
            .unwrap();
        let updated_nodes = async |input| {
            let mut nodes = Vec::new();
            let mut events = graph.invoke(input).views([View::Updates]).stream();
            while let Some(event) = events.next().await {
                match event.kind {
                    EventKind::Update { node, .. } => nodes.push(node),
                    EventKind::Ended(outcome) => drop(outcome.unwrap().into_finished().unwrap()),
                    _ => {}
                }
            }
            nodes.join(" ")
        };
        assert_eq!(
            updated_nodes(Words::update()).await,
            "routing task_description choose_tool identify_params execute_tool widget convert routing customer_response"
        );
        assert_eq!(
            updated_nodes(Words::update().seen(["click"])).await,
            "execute_tool widget convert routing customer_response"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn updates_of_side_branches_are_streamed_before_the_main_branch_is_done() {
        use futures_util::StreamExt;
        let times = Times::new();
        let graph = eager()
            .node("main", times.node("main", 10))
            .node("waiting_message", times.node("waiting_message", 1).detached())
            .node("tool", times.node("tool", 3))
            .node("widget", times.node("widget", 1).detached())
            .edge(START, "main")
            .edge(START, "waiting_message")
            .edge(START, "tool")
            .edge("tool", "widget")
            .compile()
            .unwrap();
        let mut events = graph.invoke(Words::update()).views([View::Updates, View::Tasks]).stream();
        let mut seen = Vec::new();
        let mut sequence = 0;
        let mut ends = 0;
        while let Some(event) = events.next().await {
            assert_eq!(event.seq, sequence);
            sequence += 1;
            match event.kind {
                EventKind::Update { node, .. } => {
                    assert!(event.task.is_some());
                    seen.push(format!("{node}@{}", times.began.elapsed().as_secs()));
                }
                EventKind::Ended(outcome) => {
                    assert_eq!(text(outcome.unwrap().output()), "waiting_message tool widget main");
                    ends += 1;
                }
                _ => {}
            }
        }
        assert_eq!(seen, ["waiting_message@1", "tool@3", "widget@4", "main@10"]);
        assert_eq!(ends, 1);
    }
}

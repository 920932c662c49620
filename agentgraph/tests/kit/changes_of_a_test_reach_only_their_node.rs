use std::panic::catch_unwind;
use std::time::Duration;

use agentgraph::prelude::*;
use agentgraph::testing::TestGraph;
use agentgraph::{Code, Terminal};

use crate::{Words, WordsUpdate, note, say};

fn pair(policy: RetryPolicy) -> CompiledGraph<Words> {
    StateGraph::new()
        .node("a", note.retry(policy))
        .node("b", note)
        .edge(START, "a")
        .edge("a", "b")
        .compile()
        .unwrap()
}

#[tokio::test]
async fn an_injected_failure_is_an_attempt_for_the_policies_of_the_node() {
    let test = TestGraph::of(pair(RetryPolicy::attempts(3))).fail("a", 2, || "busy");
    let trace = test.trace(Words::update()).await;
    assert_eq!((trace.ran(), trace.attempts("a"), trace.attempts("b")), (vec!["a", "b"], 3, 1));

    let trace = test.fail("a", 1, || "still busy").trace(Words::update()).await;
    let error = trace.outcome().unwrap_err();
    assert_eq!((error.code(), error.node()), (Code::NodeFailed, Some("a")));
    assert!(error.to_string().contains("still busy"), "{error}");
    assert_eq!(trace.attempts("a"), 3);
}

#[tokio::test]
async fn a_terminal_failure_is_not_retried() {
    let test = TestGraph::of(pair(RetryPolicy::attempts(3))).fail("a", 9, || Terminal::new("gone"));
    assert_eq!(test.trace(Words::update()).await.attempts("a"), 1);
}

#[tokio::test]
async fn a_handler_gets_an_injected_failure() {
    async fn handle(failure: agentgraph::Failure) -> WordsUpdate {
        say(format!("{} failed: {}", failure.node(), failure.message()))
    }
    let graph = StateGraph::new().node("a", note.on_error("handle")).node("handle", handle).edge(START, "a");
    let trace = TestGraph::of(graph.compile().unwrap()).fail("a", 1, || "busy").trace(Words::update()).await;
    assert_eq!(trace.state().said, ["a failed: busy"]);
    assert_eq!(trace.ran(), ["handle"]);
}

#[tokio::test]
async fn a_replacement_keeps_the_policies_of_the_node() {
    async fn fails() -> Result<WordsUpdate> {
        Err("no".into())
    }
    let trace =
        TestGraph::of(pair(RetryPolicy::attempts(4))).replace("a", fails).trace(Words::update()).await;
    assert_eq!((trace.attempts("a"), trace.attempts("b")), (4, 0));
}

#[tokio::test]
async fn nodes_of_subgraphs_are_named_by_their_path() {
    let inner = StateGraph::new().node("write", note).edge(START, "write").compile().unwrap();
    let middle = StateGraph::new().node("inner", inner).edge(START, "inner").compile().unwrap();
    let outer = StateGraph::new().node("middle", middle).node("write", note).edge(START, "middle");
    let outer = outer.edge("middle", "write").compile().unwrap();
    let test = TestGraph::of(outer).replace("middle/inner/write", || async { say("replaced") });
    let trace = test.trace(Words::update()).await;
    assert_eq!(trace.state().said, ["replaced", "write"]);
    assert_eq!(trace.ran(), ["middle", "write"]);
    assert_eq!(trace.ran_in("middle/inner"), ["write"]);
    assert_eq!(trace.attempts("middle/inner/write"), 1);

    let hangs = test.hang("middle/inner/write").set_up(|call| call.deadline(Duration::from_secs(60)));
    let trace = hangs.trace(Words::update()).await;
    assert!(matches!(trace.outcome(), Ok(Outcome::Stopped { .. })), "{trace:?}");
    assert_eq!(trace.elapsed(), Duration::from_secs(60));
}

#[tokio::test]
async fn the_graph_itself_is_not_changed() {
    let graph = pair(RetryPolicy::attempts(1));
    let test = TestGraph::of(graph.clone()).replace("a", || async { say("replaced") });
    assert_eq!(test.trace(Words::update()).await.state().said, ["replaced", "b"]);
    let words = graph.invoke(Words::update()).await.unwrap().into_finished().unwrap();
    assert_eq!(words.said, ["a", "b"]);
}

fn panic_of(test: impl FnOnce() + std::panic::UnwindSafe) -> String {
    let panic = catch_unwind(test).unwrap_err();
    panic
        .downcast_ref::<String>()
        .cloned()
        .unwrap_or_else(|| (*panic.downcast_ref::<&str>().unwrap()).to_owned())
}

#[test]
fn an_unknown_name_is_a_panic_that_names_the_nearest() {
    let graph = || {
        let inner = StateGraph::new().node("classify", note).edge(START, "classify").compile().unwrap();
        StateGraph::<Words>::new().node("triage", inner).edge(START, "triage").compile().unwrap()
    };
    let text = panic_of(move || drop(TestGraph::of(graph()).hang("triage/clasify")));
    assert_eq!(text, "the graph under test has no node `triage/clasify`; did you mean `triage/classify`?");
    let text = panic_of(move || drop(TestGraph::of(graph()).fail("x", 1, || "no")));
    assert_eq!(text, "the graph under test has no node `x`; its nodes are triage, triage/classify");
}

#[tokio::test]
#[should_panic(expected = "the replacement of `a` is a node over another state")]
async fn a_replacement_over_another_state_is_a_panic() {
    #[derive(State, Clone, Debug, Default)]
    struct Other {
        flag: bool,
    }
    let test = TestGraph::of(pair(RetryPolicy::attempts(1)));
    let _ = test
        .replace_in::<Other, _>("a", || async { Other::update().flag(true) })
        .trace(Words::update())
        .await;
}

#[tokio::test]
async fn a_context_of_the_call_reaches_every_call() {
    struct User(&'static str);
    async fn ask(ctx: Ctx, user: agentgraph::CallContext<User>) -> Result<WordsUpdate> {
        let yes: bool = ctx.interrupt("go on?")?;
        Ok(say(format!("{} said {yes}", user.0)))
    }
    let graph = StateGraph::new().node("ask", ask).edge(START, "ask").compile().unwrap();
    let test = TestGraph::of(graph).set_up(|call| call.context(User("Ada"))).answer(true);
    assert_eq!(test.trace(Words::update()).await.state().said, ["Ada said true"]);
    test.every_kill(Words::update()).await.assert_none();
}

//! The tree of spans: the run, its supersteps, their nodes, the attempts of a node; each with how it ended.

use std::sync::Arc;

use agentgraph::host::{Host, TaskCall, TaskReply};
use agentgraph::prelude::*;
use agentgraph::{BoxError, DependencyGraph, RetryPolicy};
use tokio_util::sync::CancellationToken;

use crate::common::clock::Clock;
use crate::common::poll::pending_for;
use crate::common::words::{Words, WordsUpdate, says};
use crate::recorded::{Trace, lines};

async fn flaky(ctx: Ctx) -> Result<WordsUpdate> {
    pending_for(1).await;
    if ctx.attempt() < 3 { Err("not yet".into()) } else { Ok(Words::update().seen(["at last"])) }
}

async fn fails() -> Result<WordsUpdate> {
    pending_for(1).await;
    Err("no".into())
}

async fn asks(ctx: Ctx) -> Result<WordsUpdate> {
    let answer: String = ctx.interrupt("well?")?;
    Ok(Words::update().seen([answer]))
}

fn retried(attempts: u32) -> RetryPolicy {
    RetryPolicy::attempts(attempts)
}

/// Runs a graph from its start, and returns the tree of its spans.
async fn trace(graph: StateGraph<Words>) -> String {
    let graph = graph.compile().unwrap().services(Clock::default()).checkpointer(MemorySaver::new());
    let trace = Trace::new();
    let _ = trace.follow(async { graph.invoke(Words::update()).thread("t").await }).await;
    trace.tree()
}

fn a_then_flaky() -> StateGraph<Words> {
    let graph = StateGraph::new().node("a", says("a")).node("flaky", flaky.retry(retried(3)));
    graph.edge(START, "a").edge("a", "flaky")
}

#[tokio::test]
async fn a_state_graph_has_supersteps() {
    let tree = "
        run finished
          superstep 1
            node a done
              attempt 1 done
          superstep 2
            node flaky done
              attempt 1 failed ERROR E_NODE_FAILED
              attempt 2 failed ERROR E_NODE_FAILED
              attempt 3 done";
    assert_eq!(trace(a_then_flaky()).await, lines(tree));

    // Without a store, steps of ready nodes may be many in one poll. They are traced all the same.
    let trace = Trace::new();
    let graph = a_then_flaky().compile().unwrap().services(Clock::default());
    trace.follow(async { graph.invoke(Words::update()).await }).await.unwrap();
    assert_eq!(trace.tree(), lines(tree));
}

#[tokio::test]
async fn an_eager_graph_has_none() {
    let tree = "
        run finished
          node a done
            attempt 1 done
          node flaky done
            attempt 1 failed ERROR E_NODE_FAILED
            attempt 2 failed ERROR E_NODE_FAILED
            attempt 3 done";
    assert_eq!(trace(a_then_flaky().eager()).await, lines(tree));
}

#[tokio::test]
async fn a_pass_has_none_and_its_synchronous_nodes_have_spans_too() {
    async fn third(ctx: Ctx) -> Result<String> {
        if ctx.attempt() < 2 { Err("not yet".into()) } else { Ok("c".into()) }
    }
    let graph = DependencyGraph::<String>::new()
        .node("a", || "a".to_owned())
        .node("b", |_: Deps<'_, String>| "b".to_owned())
        .node("c", DependencyNode::of(third).retry(retried(2)))
        .edge("a", "b")
        .edge("b", "c");
    let graph = graph.compile().unwrap().services(Clock::default());
    let trace = Trace::new();
    trace.follow(async { graph.invoke(()).await }).await.unwrap();
    let tree = "
        run finished
          node a done
            attempt 1 done
          node b done
            attempt 1 done
          node c done
            attempt 1 failed ERROR E_NODE_FAILED
            attempt 2 done";
    assert_eq!(trace.tree(), lines(tree));

    fn broken(_: Deps<'_, String>) -> Result<String> {
        Err("no".into())
    }
    let graph = DependencyGraph::<String>::new().node("broken", broken).compile().unwrap();
    let trace = Trace::new();
    trace.follow(async { graph.invoke(()).await }).await.unwrap_err();
    let tree = "
        run failed ERROR E_NODE_FAILED
          node broken failed ERROR E_NODE_FAILED
            attempt 1 failed ERROR E_NODE_FAILED";
    assert_eq!(trace.tree(), lines(tree));
}

#[tokio::test]
async fn parallel_nodes_are_in_one_superstep_and_failures_name_their_code() {
    async fn panics() -> WordsUpdate {
        pending_for(1).await;
        panic!("oh")
    }
    let graph = StateGraph::new().node("a", says("a")).node("b", fails).node("c", panics);
    let graph = graph.edge(START, "a").edge(START, "b").edge(START, "c");
    let tree = "
        run failed ERROR E_NODE_FAILED
          superstep 1 ERROR E_NODE_FAILED
            node a done
              attempt 1 done
            node b failed ERROR E_NODE_FAILED
              attempt 1 failed ERROR E_NODE_FAILED
            node c failed ERROR E_NODE_PANICKED
              attempt 1 failed ERROR E_NODE_PANICKED";
    assert_eq!(trace(graph).await, lines(tree));
}

#[tokio::test]
async fn a_failure_that_only_the_engine_sees_marks_the_node_and_not_its_attempt() {
    let graph = StateGraph::new().node("a", || async { Command::<Words>::new().goto("nobody") });
    let tree = "
        run failed ERROR E_UNKNOWN_TARGET
          superstep 1 ERROR E_UNKNOWN_TARGET
            node a failed ERROR E_UNKNOWN_TARGET
              attempt 1 done";
    assert_eq!(trace(graph.edge(START, "a")).await, lines(tree));
}

#[tokio::test]
async fn a_superstep_that_cannot_be_merged_has_an_error_and_its_nodes_have_none() {
    #[derive(State, serde::Serialize, serde::Deserialize, Clone, Debug, Default)]
    struct One {
        word: String,
    }
    let writes = || async { One::update().word("x") };
    let graph = StateGraph::new().node("a", writes).node("b", writes).edge(START, "a").edge(START, "b");
    let graph = graph.compile().unwrap();
    let trace = Trace::new();
    trace.follow(async { graph.invoke(One::update()).await }).await.unwrap_err();
    let tree = "
        run failed ERROR E_CONCURRENT_UPDATE
          superstep 1 ERROR E_CONCURRENT_UPDATE
            node a done
              attempt 1 done
            node b done
              attempt 1 done";
    assert_eq!(trace.tree(), lines(tree));
}

#[tokio::test]
async fn the_handler_of_a_failed_node_is_a_node_of_its_own() {
    for (graph, above) in [(StateGraph::new(), "  "), (StateGraph::new().eager(), "")] {
        let graph = graph.node("a", fails.retry(retried(2)).on_error("h")).node("h", says("h"));
        let tree = trace(graph.edge(START, "a")).await;
        let nodes = "
            node a failed ERROR E_NODE_FAILED
              attempt 1 failed ERROR E_NODE_FAILED
              attempt 2 failed ERROR E_NODE_FAILED
            node h done
              attempt 1 done";
        let nodes =
            lines(nodes).lines().map(|line| format!("  {above}{line}")).collect::<Vec<_>>().join("\n");
        let step = if above.is_empty() { "" } else { "  superstep 1\n" };
        assert_eq!(tree, format!("run finished\n{step}{nodes}"));
    }
}

#[tokio::test]
async fn a_question_is_no_error_and_the_resumed_run_has_the_same_id() {
    for graph in [StateGraph::new(), StateGraph::new().eager()] {
        let graph = graph.node("asks", asks.retry(retried(3))).edge(START, "asks").compile().unwrap();
        let graph = graph.checkpointer(MemorySaver::new());
        let trace = Trace::new();
        trace.follow(async { graph.invoke(Words::update()).thread("ada").await }).await.unwrap();
        let asked = trace.tree();
        assert!(asked.starts_with("run interrupted\n") && !asked.contains("ERROR"), "{asked}");
        assert!(
            asked.contains("node asks interrupted") && asked.contains("attempt 1 interrupted"),
            "{asked}"
        );

        trace.follow(async { graph.resume("so").thread("ada").await }).await.unwrap();
        let runs = trace.all("run");
        assert_eq!(runs[0]["run"], runs[1]["run"]);
        assert_eq!((runs[0]["status"].as_str(), runs[1]["status"].as_str()), ("interrupted", "finished"));
        assert!(runs.iter().all(|run| run["thread"] == "ada" && run["gen_ai.conversation.id"] == "ada"));
        assert!(runs.iter().all(|run| run["gen_ai.operation.name"] == "invoke_workflow"));
        assert_eq!(runs[0]["run"].len(), agentgraph::checkpoint::RunId::from_u128(0).to_string().len());

        // A refused answer is an error of the node, although its attempt could not go on.
        trace.follow(async { graph.invoke(Words::update()).thread("bob").await }).await.unwrap();
        trace.follow(async { graph.resume(7).thread("bob").await }).await.unwrap_err();
        let tree = trace.tree();
        assert!(tree.contains("node asks failed ERROR E_BAD_ANSWER"), "{tree}");
        assert!(tree.contains("attempt 1 failed ERROR E_BAD_ANSWER"), "{tree}");
    }
}

#[tokio::test]
async fn a_stopped_run_has_its_reason_and_a_refused_call_its_code_and_no_run() {
    let graph = a_then_flaky().compile().unwrap().checkpointer(MemorySaver::new());
    let trace = Trace::new();
    trace.follow(async { graph.invoke(Words::update()).thread("t").max_supersteps(1).await }).await.unwrap();
    let tree = "
        run stopped limit
          superstep 1
            node a done
              attempt 1 done";
    assert_eq!(trace.tree(), lines(tree));

    trace.follow(async { graph.invoke(Words::update()).thread("t").await }).await.unwrap_err();
    assert!(trace.tree().ends_with("\nrun failed ERROR E_RUN_UNFINISHED"), "{}", trace.tree());
    let runs = trace.fields("run", "run");
    assert!(runs[0].is_some() && runs[1].is_none());

    let token = CancellationToken::new();
    token.cancel();
    trace.follow(async { graph.proceed().thread("t").cancel(token).await }).await.unwrap();
    assert!(trace.tree().ends_with("\nrun stopped cancelled"), "{}", trace.tree());
}

#[tokio::test]
async fn the_spans_of_a_subgraph_are_inside_the_attempt_that_called_it() {
    let child = |discipline: StateGraph<Words>| {
        let graph = discipline.node("b", says("b")).node("asks", asks).edge(START, "b").edge("b", "asks");
        graph.compile().unwrap()
    };
    let tree = trace(StateGraph::new().node("sub", child(StateGraph::new())).edge(START, "sub")).await;
    let inside = "
        run interrupted
          superstep 1
            node sub interrupted
              attempt 1 interrupted
                superstep 1
                  node b done
                    attempt 1 done
                superstep 2
                  node asks interrupted
                    attempt 1 interrupted";
    assert_eq!(tree, lines(inside));

    let eager = StateGraph::new().eager().node("sub", child(StateGraph::new().eager())).edge(START, "sub");
    let inside = "
        run interrupted
          node sub interrupted
            attempt 1 interrupted
              node b done
                attempt 1 done
              node asks interrupted
                attempt 1 interrupted";
    assert_eq!(trace(eager).await, lines(inside));
}

/// Deep calls are polled by the run, not by their task.
#[tokio::test]
async fn the_spans_of_deep_subgraphs_are_inside_one_another() {
    async fn slow() -> WordsUpdate {
        tokio::task::yield_now().await;
        Words::update().seen(["b"])
    }
    let mut graph = StateGraph::new().node("b", slow).edge(START, "b");
    let mut tree = vec!["run finished".to_owned()];
    for level in 0..=9 {
        let node = if level == 9 { "b" } else { "sub" };
        for (below, line) in
            ["superstep 1", &format!("node {node} done"), "attempt 1 done"].iter().enumerate()
        {
            tree.push(format!("{}{line}", "  ".repeat(3 * level + below + 1)));
        }
        if level > 0 {
            graph = StateGraph::new().node("sub", graph.compile().unwrap()).edge(START, "sub");
        }
    }
    assert_eq!(trace(graph).await, tree.join("\n"));
}

#[tokio::test]
async fn an_agent_that_is_a_node_has_a_span_of_its_own() {
    let agent = |node: fn() -> StateGraph<Words>| node().compile().unwrap().agent_name("clerk");
    let graph = |node| StateGraph::new().node("sub", agent(node)).edge(START, "sub").compile().unwrap();
    let run = async |node| {
        let trace = Trace::new();
        let graph = graph(node).checkpointer(MemorySaver::new());
        let _ = trace.follow(async { graph.invoke(Words::update()).thread("ada").await }).await;
        trace
    };
    let done = run(|| StateGraph::new().node("b", says("b")).edge(START, "b")).await;
    let tree = "
        run finished
          superstep 1
            node sub done
              attempt 1 done
                agent done
                  superstep 1
                    node b done
                      attempt 1 done";
    assert_eq!(done.tree(), lines(tree));
    let fields = &done.all("agent")[0];
    for (name, value) in [
        ("otel.name", "invoke_agent clerk"),
        ("gen_ai.operation.name", "invoke_agent"),
        ("gen_ai.agent.name", "clerk"),
        ("gen_ai.conversation.id", "ada"),
    ] {
        assert_eq!(fields[name], value, "{name}");
    }

    let failed = run(|| StateGraph::new().node("b", fails).edge(START, "b")).await.tree();
    assert!(failed.contains("agent failed ERROR E_NODE_FAILED"), "{failed}");
    let asked = run(|| StateGraph::new().node("b", asks).edge(START, "b")).await.tree();
    assert!(asked.contains("agent interrupted"), "{asked}");
}

#[tokio::test]
async fn a_failure_inside_a_subgraph_is_an_error_at_every_level() {
    let child = StateGraph::new().node("b", fails).edge(START, "b").compile().unwrap();
    let tree = "
        run failed ERROR E_NODE_FAILED
          superstep 1 ERROR E_NODE_FAILED
            node sub failed ERROR E_NODE_FAILED
              attempt 1 failed ERROR E_NODE_FAILED
                superstep 1 ERROR E_NODE_FAILED
                  node b failed ERROR E_NODE_FAILED
                    attempt 1 failed ERROR E_NODE_FAILED";
    assert_eq!(trace(StateGraph::new().node("sub", child).edge(START, "sub")).await, lines(tree));
}

/// Runs tasks on the same thread, and so inside the span of the node that sends them.
struct Near(CompiledGraph<Words>);

#[async_trait::async_trait]
impl Host for Near {
    async fn run(&self, call: TaskCall) -> Result<TaskReply, BoxError> {
        Ok(self.0.run_task(call).await?)
    }
}

#[tokio::test]
async fn a_host_traces_each_attempt_of_a_task_and_the_caller_the_node() {
    let build = || a_then_flaky().compile().unwrap().services(Clock::default());
    let trace = Trace::new();
    let graph = build().host(Near(build()));
    trace.follow(async { graph.invoke(Words::update()).await }).await.unwrap();
    let tree = "
        run finished
          superstep 1
            node a done
              node a done
                attempt 1 done
          superstep 2
            node flaky done
              node flaky failed ERROR E_NODE_FAILED
                attempt 1 failed ERROR E_NODE_FAILED
              node flaky failed ERROR E_NODE_FAILED
                attempt 2 failed ERROR E_NODE_FAILED
              node flaky done
                attempt 3 done";
    assert_eq!(trace.tree(), lines(tree));
}

#[tokio::test]
async fn a_span_of_a_node_s_own_is_inside_its_attempt() {
    let traces = || async {
        pending_for(2).await;
        drop(tracing::info_span!("own"));
    };
    let tree = "
        run finished
          superstep 1
            node a done
              attempt 1 done
                own
            node b done
              attempt 1 done
                own";
    let graph = StateGraph::new().node("a", traces).node("b", traces.retry(retried(2)));
    assert_eq!(trace(graph.edge(START, "a").edge(START, "b")).await, lines(tree));
}

#[tokio::test]
async fn the_node_for_the_limit_has_its_superstep() {
    let graph = StateGraph::new().node("a", says("a")).node("rest", says("rest")).on_limit("rest");
    let graph = graph.edge(START, "a").edge("a", "a").compile().unwrap().checkpointer(MemorySaver::new());
    let trace = Trace::new();
    let run = async { graph.invoke(Words::update()).thread("t").max_supersteps(1).await };
    trace.follow(run).await.unwrap();
    let tree = "
        run stopped limit
          superstep 1
            node a done
              attempt 1 done
          superstep 2
            node rest done
              attempt 1 done";
    assert_eq!(trace.tree(), lines(tree));
}

#[tokio::test]
async fn attempts_count_from_one_again_after_a_kill() {
    let saver = Arc::new(MemorySaver::new());
    let stuck = |ctx: Ctx| async move {
        if ctx.attempt() == 2 {
            std::future::pending::<()>().await;
        }
        Err::<WordsUpdate, BoxError>("no".into())
    };
    let build = |node: agentgraph::node::Node<Words>| {
        let graph = StateGraph::new().node("a", node).edge(START, "a").compile().unwrap();
        graph.services(Clock::default()).checkpointer(Arc::clone(&saver))
    };
    let trace = Trace::new();
    let killed = build(stuck.retry(retried(3)));
    let mut run = Box::pin(trace.follow(async { killed.invoke(Words::update()).thread("t").await }));
    assert!(crate::common::poll::poll_once(&mut run).is_pending());
    drop(run);
    let again = build(flaky.retry(retried(3)));
    trace.follow(async { again.proceed().thread("t").await }).await.unwrap();
    assert_eq!(
        trace.fields("attempt", "attempt").into_iter().flatten().collect::<Vec<_>>(),
        ["1", "2", "1", "2", "3"]
    );
    let runs = trace.fields("run", "run");
    assert!(runs[0].is_some() && runs[0] == runs[1]);
}

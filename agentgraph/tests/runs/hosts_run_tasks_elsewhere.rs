//! A host runs tasks in another place through bytes alone, and the run gives the same result.

mod attempts;
mod far;
mod far_side;
mod passes;
mod sessions;
mod spending;
mod states;
mod subgraphs;

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use agentgraph::host::{Host, TaskCall, TaskReply};
use agentgraph::prelude::*;
use agentgraph::{BoxError, Code};

use crate::common::clock::Clock;
use crate::common::words::{Words, WordsUpdate, said, says, text};

/// A stand-in for another process: a graph of its own in a tokio task of its own, which receives JSON
/// and replies with JSON.
struct Elsewhere {
    graph: CompiledGraph<Words>,
    hosted_calls: Arc<AtomicU32>,
}

#[async_trait::async_trait]
impl Host for Elsewhere {
    async fn run(&self, call: TaskCall) -> Result<TaskReply, BoxError> {
        let sent = serde_json::to_vec(&call)?;
        let graph = self.graph.clone();
        self.hosted_calls.fetch_add(1, Ordering::SeqCst);
        let far = tokio::spawn(async move {
            let call: TaskCall = serde_json::from_slice(&sent)?;
            let reply = graph.run_task(call).await?;
            Ok::<_, BoxError>(serde_json::to_vec(&reply)?)
        });
        Ok(serde_json::from_slice(&far.await??)?)
    }
}

/// Compiles the same graph twice: one runs its tasks in process, one runs them on a host.
fn both(build: impl Fn() -> StateGraph<Words>) -> [CompiledGraph<Words>; 2] {
    let compiled = || build().compile().unwrap().services(Clock::default());
    let host = Elsewhere { graph: compiled(), hosted_calls: Arc::default() };
    [compiled().checkpointer(MemorySaver::new()), compiled().host(host).checkpointer(MemorySaver::new())]
}

async fn start(graph: &CompiledGraph<Words>) -> Result<Outcome<Words>, agentgraph::Error> {
    graph.invoke(Words::update().seen(["i"])).thread("t").await
}

#[tokio::test]
async fn updates_commands_dispatches_routes_and_the_context_are_the_same_on_a_host() {
    #[derive(serde::Serialize, serde::Deserialize, Clone)]
    struct Job {
        page: u32,
    }
    async fn split(ctx: Ctx, words: Snapshot<Words>) -> Command<Words> {
        let jobs = [2, 1].map(|page| Dispatch::new("work", Job { page }));
        said(&format!("{}@{} of {:?} sees {}", ctx.node(), ctx.step(), ctx.thread(), words.seen.len()))
            .also_goto(jobs)
    }
    async fn work(Input(job): Input<Job>) -> WordsUpdate {
        Words::update().seen([format!("page {}", job.page)])
    }
    let outcomes = both(|| {
        StateGraph::new()
            .node("split", split)
            .node("work", work)
            .node("beside", says("beside"))
            .node("end", says("end"))
            .edge(START, "split")
            .edge("split", "beside")
            .branch("work", |_: &Words| "end", ["end"])
            .edge(["split", "beside"], END)
    });
    for graph in outcomes {
        let outcome = start(&graph).await.unwrap();
        assert_eq!(text(outcome.output()), "i split@1 of Some(\"t\") sees 1 beside page 2 page 1 end");
    }
}

#[tokio::test]
async fn every_task_runs_on_the_host_and_none_locally() {
    let hosted_calls = Arc::new(AtomicU32::new(0));
    let far = StateGraph::new().node("a", says("far")).edge(START, "a").compile().unwrap();
    let host = Elsewhere { graph: far, hosted_calls: Arc::clone(&hosted_calls) };
    let near = StateGraph::new().node("a", says("near")).edge(START, "a").compile().unwrap().host(host);
    assert_eq!(text(near.invoke(Words::update()).await.unwrap().output()), "far");
    assert_eq!(hosted_calls.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn the_timeout_of_a_dispatch_applies_on_the_host() {
    async fn work(Input(seconds): Input<u64>) -> WordsUpdate {
        tokio::time::sleep(Duration::from_secs(seconds)).await;
        Words::update().seen(["done"])
    }
    let far = |limit: u64| {
        let build = || {
            let job = Dispatch::new("work", 5_u64).timeout(Duration::from_secs(limit));
            let split = move || std::future::ready(Command::to(job.clone()));
            let graph = StateGraph::new().node("split", split).edge(START, "split");
            graph.node("work", work.timeout(Duration::from_secs(2))).compile().unwrap()
        };
        build().host(Elsewhere { graph: build(), hosted_calls: Arc::default() })
    };
    assert_eq!(text(far(6).invoke(Words::update()).await.unwrap().output()), "done");
    let error = far(4).invoke(Words::update()).await.unwrap_err();
    assert_eq!(
        (error.code(), error.to_string().contains("no result after 4s")),
        (Code::NodeTimeout, true),
        "{error}"
    );
}

#[tokio::test]
async fn interrupts_are_asked_answered_and_refused_the_same_on_a_host() {
    async fn asks(ctx: Ctx) -> Result<WordsUpdate> {
        let name: String = ctx.interrupt("name?")?;
        let age: u8 = ctx.interrupt_with_schema("age?")?;
        Ok(Words::update().seen([format!("{name} is {age}")]))
    }
    for graph in both(|| {
        StateGraph::new().node("asks", asks).node("b", says("b")).edge(START, "asks").edge(START, "b")
    }) {
        let first = start(&graph).await.unwrap();
        assert_eq!(first.interrupts()[0].value, "name?");
        let second = graph.resume("Ada").thread("t").await.unwrap();
        assert_eq!(second.interrupts()[0].value, "age?");
        assert!(second.interrupts()[0].schema.is_some());
        let error = graph.resume("old").thread("t").await.unwrap_err();
        assert_eq!((error.code(), error.node()), (Code::BadAnswer, Some("asks")));
        assert_eq!(text(graph.resume(36).thread("t").await.unwrap().output()), "i Ada is 36 b");
    }
}

#[tokio::test]
async fn failures_have_the_same_code_and_text_on_a_host() {
    #[derive(Debug, thiserror::Error)]
    #[error("far away")]
    struct Far;
    type Build = fn() -> StateGraph<Words>;
    let builds: [(Build, Code); 4] = [
        (|| StateGraph::new().node("a", || async { Err::<(), _>(Far) }), Code::NodeFailed),
        (
            || {
                StateGraph::new().node("a", || async {
                    if true {
                        panic!("far")
                    }
                })
            },
            Code::NodePanicked,
        ),
        (
            || {
                StateGraph::new()
                    .node("a", || async { Command::<Words>::new().goto("b") })
                    .node("b", |Input(_): Input<u8>| async {})
            },
            Code::BadInput,
        ),
        (
            || StateGraph::new().node("a", || async { Command::<Words>::new().goto("nobody") }),
            Code::UnknownTarget,
        ),
    ];
    for (build, code) in builds {
        let [near, far] = both(|| build().edge(START, "a"));
        let near = start(&near).await.unwrap_err();
        let far = start(&far).await.unwrap_err();
        assert_eq!((near.code(), far.code()), (code, code), "{near} / {far}");
        assert_eq!(near.to_string(), far.to_string());
    }
}

#[tokio::test(start_paused = true)]
async fn retries_and_timeouts_happen_where_the_task_runs() {
    let slow_once = |ctx: Ctx| async move {
        if ctx.attempt() == 1 {
            tokio::time::sleep(Duration::from_secs(60)).await;
        }
        Words::update().seen([format!("attempt {}", ctx.attempt())])
    };
    let policy = RetryPolicy::attempts(2).initial(Duration::from_secs(1));
    let build = || {
        StateGraph::new()
            .node("a", slow_once.timeout(Duration::from_secs(5)).retry(policy.clone()))
            .edge(START, "a")
    };
    let host = Elsewhere { graph: build().compile().unwrap(), hosted_calls: Arc::default() };
    let graph = build().compile().unwrap().host(host);
    assert_eq!(text(graph.invoke(Words::update()).await.unwrap().output()), "attempt 2");
}

struct Broken;

#[async_trait::async_trait]
impl Host for Broken {
    async fn run(&self, _: TaskCall) -> Result<TaskReply, BoxError> {
        Err("the line is dead".into())
    }
}

#[tokio::test]
async fn a_failure_of_the_host_is_not_a_failure_of_the_node_and_the_thread_proceeds() {
    let saver = Arc::new(MemorySaver::new());
    let build = || {
        StateGraph::new()
            .node("a", says("a"))
            .edge(START, "a")
            .compile()
            .unwrap()
            .checkpointer(Arc::clone(&saver))
    };
    let error = start(&build().host(Broken)).await.unwrap_err();
    assert_eq!(error.code(), Code::Host);
    assert_eq!(
        error.to_string(),
        "E_HOST: node `a`: the host could not run the task: the line is dead (thread `t`)"
    );
    assert_eq!(text(build().proceed().thread("t").await.unwrap().output()), "i a");
}

/// Gives each call the reply of the one before.
struct Late {
    graph: CompiledGraph<Words>,
    last: Mutex<Option<TaskReply>>,
}

#[async_trait::async_trait]
impl Host for Late {
    async fn run(&self, call: TaskCall) -> Result<TaskReply, BoxError> {
        let reply = self.graph.run_task(call).await?;
        let last = self.last.lock().unwrap().replace(reply.clone());
        Ok(last.unwrap_or(reply))
    }
}

#[tokio::test]
async fn the_reply_of_another_task_is_refused_and_the_thread_proceeds() {
    let build = || {
        let graph = StateGraph::new().node("a", says("a")).node("b", says("b"));
        graph.edge(START, "a").edge("a", "b").compile().unwrap()
    };
    let saver = Arc::new(MemorySaver::new());
    let host = Late { graph: build(), last: Mutex::default() };
    let error = start(&build().checkpointer(Arc::clone(&saver)).host(host)).await.unwrap_err();
    assert_eq!((error.code(), error.node()), (Code::Host, Some("b")), "{error}");
    assert!(error.to_string().contains("the reply of another task"), "{error}");
    let end = build().checkpointer(saver).proceed().thread("t").await.unwrap();
    assert_eq!(text(end.output()), "i a b");
}

#[tokio::test]
async fn the_reply_of_another_attempt_is_refused() {
    let flaky = |ctx: Ctx| async move { if ctx.attempt() == 3 { Ok(()) } else { Err("no") } };
    let again = RetryPolicy::attempts(3).initial(Duration::ZERO);
    let build = || {
        let graph = StateGraph::<Words>::new().node("a", flaky.retry(again.clone()));
        graph.edge(START, "a").compile().unwrap()
    };
    let host = Late { graph: build(), last: Mutex::default() };
    let error = build().host(host).invoke(Words::update()).await.unwrap_err();
    assert_eq!(error.code(), Code::Host, "{error}");
    assert!(error.to_string().contains("attempt 1 of task"), "{error}");
}

#[tokio::test]
async fn a_host_graph_without_the_node_is_an_error_that_says_so() {
    let far = StateGraph::new().node("other", says("x")).edge(START, "other").compile().unwrap();
    let host = Elsewhere { graph: far, hosted_calls: Arc::default() };
    let graph = StateGraph::new().node("a", says("a")).edge(START, "a").compile().unwrap().host(host);
    let error = graph.invoke(Words::update()).await.unwrap_err();
    assert_eq!(error.code(), Code::Host);
    assert!(error.to_string().contains("`a`, which this graph does not have"), "{error}");
}

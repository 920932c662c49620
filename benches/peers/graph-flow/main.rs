//! `graph-flow`: tasks share a map of JSON values; a session names its current task.

use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use graph_flow::{
    Context, ExecutionStatus, FanOutTask, FlowRunner, Graph, GraphBuilder, InMemorySessionStorage,
    NextAction, Result, Session, SessionStorage, Task, TaskResult,
};
use harness::{ANSWER, Case, INNER, Prepared, SHORT, TEXT, at_once, repeat, thread_name};

/// A task that does `run` and then what that says.
struct Step<F> {
    name: String,
    run: F,
}

#[async_trait]
impl<F: Fn(&Context) -> Result<(Option<String>, NextAction)> + Send + Sync> Task for Step<F> {
    fn id(&self) -> &str {
        &self.name
    }

    async fn run(&self, context: Context) -> Result<TaskResult> {
        let (response, next) = (self.run)(&context)?;
        Ok(TaskResult::new(response, next))
    }
}

fn add_one(name: impl Into<String>, next: NextAction) -> Arc<dyn Task> {
    let run = move |context: &Context| {
        context.set("count", black_box(count(context)) + 1)?;
        Ok((None, next.clone()))
    };
    Arc::new(Step { name: name.into(), run })
}

fn count(context: &Context) -> u64 {
    context.get("count").expect("it is set at the start")
}

fn chain(size: u64) -> Arc<Graph> {
    let name = |at| format!("node_{at}");
    let next = |at| if at + 1 < size { NextAction::ContinueAndExecute } else { NextAction::End };
    let nodes =
        (0..size).fold(GraphBuilder::new("chain"), |graph, at| graph.add_task(add_one(name(at), next(at))));
    let graph = (1..size).fold(nodes, |graph, at| graph.add_edge(name(at - 1), name(at)));
    Arc::new(graph.set_start_task(name(0)).with_max_execution_steps(10_000).build().expect("a graph"))
}

/// With `Continue` each call of the runner does one step and stores the session.
fn looped(until: u64, work: Arc<dyn Task>) -> Arc<Graph> {
    let end = Step { name: "end".to_owned(), run: |_: &Context| Ok((None, NextAction::End)) };
    let graph = GraphBuilder::new("loop").add_task(work).add_task(Arc::new(end));
    let graph = graph.add_conditional_edge("work", move |context| count(context) < until, "work", "end");
    Arc::new(graph.with_max_execution_steps(20_000).build().expect("a graph"))
}

/// A task that runs a graph of its own in the context of the outer one.
struct Nested(Arc<Graph>);

#[async_trait]
impl Task for Nested {
    fn id(&self) -> &str {
        "work"
    }

    async fn run(&self, context: Context) -> Result<TaskResult> {
        let mut session = Session::new_from_task("inner".to_owned(), "node_0");
        session.context = context;
        self.0.execute_session(&mut session).await?;
        Ok(TaskResult::new(None, NextAction::ContinueAndExecute))
    }
}

/// Children answer with their number, which the fan-out puts under their name.
fn fan_out(size: u64) -> Arc<Graph> {
    let child = |at: u64| -> Arc<dyn Task> {
        let run = move |_: &Context| Ok((Some(black_box(at).to_string()), NextAction::End));
        Arc::new(Step { name: format!("branch_{at}"), run })
    };
    let fan = FanOutTask::new("fan", (0..size).map(child).collect())
        .with_next_action(NextAction::ContinueAndExecute);
    let join = move |context: &Context| {
        let is_there = |at: &u64| {
            let response: Option<String> = context.get(&format!("fanout.branch_{at}.response"));
            response == Some(at.to_string())
        };
        context.set("count", (0..size).filter(is_there).count() as u64)?;
        Ok((None, NextAction::End))
    };
    let join: Arc<dyn Task> = Arc::new(Step { name: "join".to_owned(), run: join });
    let graph = GraphBuilder::new("fan").add_task(fan).add_task(join).add_edge("fan", "join");
    Arc::new(graph.build().expect("a graph"))
}

fn asking() -> Arc<Graph> {
    let ask = |context: &Context| {
        let Some(answer) = context.get::<u64>("answer") else { return Ok((None, NextAction::WaitForInput)) };
        context.set("count", count(context) + answer)?;
        Ok((None, NextAction::ContinueAndExecute))
    };
    let ask: Arc<dyn Task> = Arc::new(Step { name: "ask".to_owned(), run: ask });
    let graph =
        GraphBuilder::new("ask").add_task(add_one("before", NextAction::ContinueAndExecute)).add_task(ask);
    let graph =
        graph.add_task(add_one("after", NextAction::End)).add_edge("before", "ask").add_edge("ask", "after");
    Arc::new(graph.build().expect("a graph"))
}

fn begun(thread: String, start: &str) -> Session {
    let session = Session::new_from_task(thread, start);
    session.context.set("count", 0).expect("a number");
    session.context.set("text", TEXT).expect("a text");
    session.context.set("items", Vec::<u64>::new()).expect("a list");
    session
}

async fn run(graph: Arc<Graph>, start: &'static str) -> u64 {
    let mut session = begun("thread".to_owned(), start);
    let ended = graph.execute_session(&mut session).await.expect("the run ends");
    assert!(matches!(ended.status, ExecutionStatus::Completed));
    count(&session.context)
}

async fn ask(runner: &FlowRunner, store: &InMemorySessionStorage, thread: &str) {
    store.save(begun(thread.to_owned(), "before")).await.expect("a store");
    let asked = runner.run(thread).await.expect("it asks");
    assert!(matches!(asked.status, ExecutionStatus::WaitingForInput));
}

async fn stored(graph: Arc<Graph>, steps: u64) -> u64 {
    let store = Arc::new(InMemorySessionStorage::new());
    store.save(begun("thread".to_owned(), "work")).await.expect("a store");
    let runner = FlowRunner::new(graph, store.clone());
    while !matches!(runner.run("thread").await.expect("a step").status, ExecutionStatus::Completed) {}
    let session = store.get("thread").await.expect("a store").expect("the session");
    // One more for the beginning, one for the task at the end.
    assert_eq!(session.version, steps + 2);
    count(&session.context)
}

async fn asked_and_answered(graph: Arc<Graph>) -> u64 {
    let store = Arc::new(InMemorySessionStorage::new());
    let runner = FlowRunner::new(graph, store.clone());
    ask(&runner, &store, "thread").await;
    let session = store.get("thread").await.expect("a store").expect("the session");
    session.context.set("answer", ANSWER).expect("a number");
    let ended = runner.run("thread").await.expect("the run ends");
    assert!(matches!(ended.status, ExecutionStatus::Completed));
    count(&session.context)
}

async fn all_wait(graph: Arc<Graph>, store: Arc<InMemorySessionStorage>, runs: u64) -> u64 {
    let runner = FlowRunner::new(graph, store.clone());
    for _ in 0..runs {
        ask(&runner, &store, &thread_name()).await;
    }
    runs
}

async fn prepare(case: Case, _: &Path) -> Prepared {
    match case {
        Case::Chain(size) => repeat(chain(size), |graph| run(graph, "node_0")),
        Case::Loop(steps) => {
            let work = add_one("work", NextAction::ContinueAndExecute);
            repeat(looped(steps, work), |graph| run(graph, "work"))
        }
        Case::FanOut(size) => repeat(fan_out(size), |graph| run(graph, "fan")),
        Case::Runs(size) => {
            repeat(chain(SHORT), move |graph| at_once(size, move || run(graph.clone(), "node_0")))
        }
        Case::Memory(steps) => {
            let work = add_one("work", NextAction::Continue);
            let memory = repeat(looped(steps, work), move |graph| stored(graph, steps))?;
            Ok(memory.noted("keeps only the newest state, without a copy of it"))
        }
        Case::Interrupt => repeat(asking(), asked_and_answered),
        Case::Waiting(size) => {
            let store = Arc::new(InMemorySessionStorage::new());
            repeat(asking(), move |graph| all_wait(graph, store.clone(), size))
        }
        Case::Sqlite(_) | Case::Growing(_) => Err("stores in memory and Postgres only"),
        Case::Stream(_) => Err("no streams"),
        Case::Subgraph(calls) => {
            let nested = looped(calls * INNER, Arc::new(Nested(chain(INNER))));
            Ok(repeat(nested, |graph| run(graph, "work"))?.noted("a node of ours runs the inner graph"))
        }
        Case::Dispatch(_) => Err("branches are fixed when the graph is built"),
    }
}

fn main() {
    harness::main(prepare);
}

//! A workflow is an ordinary async function. However often it is killed, interrupted or retried, its steps
//! are done once, and it returns what it would have returned without that.

use std::future::IntoFuture;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use agentgraph::policy::TimeoutKind;
use agentgraph::prelude::*;
use agentgraph::run::{StepEvent, StepKind};
use agentgraph::workflow::{NoInput, Previous, WorkflowState, WorkflowUpdate};
use agentgraph::{BoxError, Code, Timeout};
use futures_util::StreamExt;
use futures_util::future::try_join_all;
use proptest::prelude::*;

use crate::common::clock::Clock;
use crate::common::poll::{at_most, pending_for};
use crate::common::saver::NotingSaver;

/// One thing that a workflow does.
#[derive(Clone, Debug)]
enum Act {
    /// A step, which is pending for some polls before and after its effect.
    Step(u32),
    /// Steps of one name side by side, told apart by keys.
    Parallel(u32),
    /// A step that fails a number of times, and is retried.
    Retried(u32),
    Question,
    Sleep(u64),
    Version(u32),
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let act = prop_oneof![
        3 => (0..3_u32).prop_map(Act::Step),
        1 => (1..4_u32).prop_map(Act::Parallel),
        1 => (1..3_u32).prop_map(Act::Retried),
        1 => Just(Act::Question),
        1 => (1..5_u64).prop_map(Act::Sleep),
        1 => (1..4_u32).prop_map(Act::Version),
    ];
    prop::collection::vec(act, 0..7)
}

/// What an undisturbed run returns, by the meaning of each act.
fn expected(acts: &[Act]) -> Vec<String> {
    let mut returned = Vec::new();
    for (at, act) in acts.iter().enumerate() {
        match act {
            Act::Step(_) | Act::Retried(_) => returned.push(format!("<{at}.0>")),
            Act::Parallel(steps) => returned.extend((0..*steps).map(|step| format!("<{at}.{step}>"))),
            Act::Question => returned.push(format!("answer {at}")),
            Act::Sleep(_) => {}
            Act::Version(newest) => returned.push(format!("version {newest}")),
        }
    }
    returned
}

/// The world outside of a workflow: what was done, and what is stored.
#[derive(Clone)]
struct World {
    saver: NotingSaver,
    clock: Clock,
    effects: Arc<Mutex<Vec<String>>>,
    acts: Arc<Vec<Act>>,
}

impl World {
    fn new(acts: Vec<Act>) -> Self {
        let saver = NotingSaver::memory();
        World { saver, clock: Clock::default(), effects: Arc::default(), acts: Arc::new(acts) }
    }

    async fn work(&self, mark: String, polls: u32) -> Result<String> {
        pending_for(polls).await;
        assert!(!self.saver.has_stored_marked(&mark), "{mark} is done again although its result is stored");
        self.effects.lock().unwrap().push(mark.clone());
        pending_for(polls).await;
        Ok(mark)
    }

    fn count(&self, mark: &str) -> usize {
        self.effects.lock().unwrap().iter().filter(|effect| *effect == mark).count()
    }

    /// The program as a new process has it.
    fn workflow(&self) -> CompiledGraph<WorkflowState<(), Vec<String>>> {
        let world = self.clone();
        let workflow = Workflow::new("acts", move |ctx: Ctx, (): ()| {
            let world = world.clone();
            async move { world.act_all(&ctx).await }
        });
        workflow.compile().unwrap().checkpointer(self.saver.clone()).services(self.clock.clone())
    }

    async fn act_all(&self, ctx: &Ctx) -> Result<Vec<String>> {
        let mut returned = Vec::new();
        for (at, act) in self.acts.iter().enumerate() {
            match act {
                Act::Step(polls) => {
                    returned.push(ctx.once("step", self.work(format!("<{at}.0>"), *polls)).await?);
                }
                Act::Parallel(steps) => {
                    let steps = (0..*steps).map(|step| {
                        let mark = format!("<{at}.{step}>");
                        ctx.once_for("parallel", mark.clone(), self.work(mark, step))
                    });
                    returned.extend(try_join_all(steps).await?);
                }
                Act::Retried(failures) => {
                    let mut left = *failures;
                    let again = RetryPolicy::attempts(failures + 1).initial(Duration::from_secs(1));
                    let step = ctx.durable("retried").retry(again).run(|| {
                        let fails = left > 0;
                        left = left.saturating_sub(1);
                        async move {
                            if fails {
                                Err("not yet".into())
                            } else {
                                self.work(format!("<{at}.0>"), 1).await
                            }
                        }
                    });
                    returned.push(step.await?);
                }
                Act::Question => {
                    let answer: String = ctx.interrupt(format!("question {at}"))?;
                    returned.push(answer);
                }
                Act::Sleep(seconds) => ctx.sleep("sleep", Duration::from_secs(*seconds)).await?,
                Act::Version(newest) => {
                    returned.push(format!("version {}", ctx.version(format!("change {at}"), *newest).await?));
                }
            }
        }
        Ok(returned)
    }

    /// One call that goes on with the thread, dropped after a number of polls. `None` if it was dropped.
    async fn go_on(&self, polls: u32) -> Option<Outcome<WorkflowState<(), Vec<String>>>> {
        let workflow = self.workflow();
        let open = match workflow.state("t").await.unwrap() {
            None => return self.call(workflow.invoke(()), polls).await,
            Some(state) => state.interrupts,
        };
        if let Some(end) = open.iter().filter_map(|open| open.until).min() {
            use agentgraph::checkpoint::Services;
            self.clock.advance(end.duration_since(self.clock.now()).unwrap_or_default());
            return self.call(workflow.proceed(), polls).await;
        }
        match open.first() {
            None => self.call(workflow.proceed(), polls).await,
            Some(open) => {
                let number = open.value.as_str().unwrap().strip_prefix("question ").unwrap();
                self.call(workflow.resume(format!("answer {number}")), polls).await
            }
        }
    }

    async fn call<S: agentgraph::State>(
        &self,
        call: agentgraph::RunBuilder<S>,
        polls: u32,
    ) -> Option<Outcome<S>> {
        at_most(call.thread("t").into_future(), polls).await.map(|outcome| outcome.unwrap())
    }
}

/// Runs a future to its end.
fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(work)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    #[test]
    fn a_workflow_returns_the_same_however_it_is_killed(acts in acts(), kills in prop::collection::vec(0..40_u32, 0..6)) {
        block_on(async {
            let world = World::new(acts.clone());
            let mut kills = kills.into_iter();
            let mut calls = 0;
            let returned = loop {
                let outcome = world.go_on(kills.next().unwrap_or(u32::MAX)).await;
                calls += 1;
                assert!(calls < 100, "the workflow does not end");
                let finished = match outcome {
                    Some(Outcome::Finished { output, .. }) => Some(output),
                    Some(_) => None,
                    None => match world.workflow().state("t").await.unwrap() {
                        Some(state) if state.next.is_empty() => Some(state.values),
                        _ => None,
                    },
                };
                if let Some(finished) = finished {
                    break finished;
                }
            };
            assert_eq!(returned.returned(), Some(&expected(&acts)));
            let steps = acts.iter().map(|act| match act {
                Act::Parallel(steps) => *steps as usize,
                Act::Question => 0,
                Act::Step(_) | Act::Retried(_) | Act::Sleep(_) | Act::Version(_) => 1,
            });
            assert_eq!(returned.steps().len(), steps.sum::<usize>(), "{:?}", returned.steps());
            for mark in expected(&acts).iter().filter(|mark| mark.starts_with('<')) {
                assert!(world.count(mark) >= 1, "{mark} was never done");
            }
        });
    }
}

/// With no kill, nothing is done twice, whatever else happens.
#[tokio::test]
async fn without_kills_every_step_is_done_exactly_once() {
    let acts =
        vec![Act::Step(1), Act::Question, Act::Parallel(3), Act::Sleep(3), Act::Retried(2), Act::Version(2)];
    let world = World::new(acts.clone());
    let mut interrupted = 0;
    let end = loop {
        match world.go_on(u32::MAX).await.unwrap() {
            Outcome::Finished { output, .. } => break output,
            _ => interrupted += 1,
        }
    };
    assert_eq!(interrupted, 2, "a question and a sleep");
    assert_eq!(end.returned(), Some(&expected(&acts)));
    for mark in ["<0.0>", "<2.0>", "<2.1>", "<2.2>", "<4.0>"] {
        assert_eq!(world.count(mark), 1, "{mark}");
    }
}

/// The cause of an error that has this type.
fn cause<T: std::error::Error + 'static>(error: &agentgraph::Error) -> Option<&T> {
    let mut next: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        next = error.source();
    }
    None
}

async fn price(item: &str) -> Result<u32> {
    Ok(item.len() as u32)
}

/// The face of a shop: it looks a price up, asks, and charges with retries.
async fn order(ctx: Ctx, item: String) -> Result<String> {
    let price = ctx.once_for("price", &item, price(&item)).await?;
    let _: bool = ctx.interrupt(format!("pay {price}?"))?;
    let calls = AtomicU32::new(0);
    let again = RetryPolicy::attempts(3).initial(Duration::from_millis(1));
    let charged = ctx.durable("charge").retry(again).run(|| async {
        match calls.fetch_add(1, Ordering::Relaxed) {
            0 => Err("the bank is busy".into()),
            _ => Ok(format!("{price} paid")),
        }
    });
    charged.await
}

fn orders(saver: NotingSaver) -> CompiledGraph<WorkflowState<String, String>> {
    Workflow::new("order", order).compile().unwrap().checkpointer(saver).services(Clock::default())
}

#[tokio::test]
async fn state_and_history_show_its_steps_with_their_attempts() {
    let orders = orders(NotingSaver::memory());
    orders.invoke("tea".to_owned()).thread("t").await.unwrap();

    let open = orders.state("t").await.unwrap().unwrap();
    assert_eq!(open.next, ["order"]);
    let [step] = open.done_steps() else { panic!("{:?}", open.steps) };
    assert_eq!((&*step.node, &*step.name, step.key.as_deref()), ("order", "price", Some("tea")));
    assert_eq!((step.kind, step.attempts), (StepKind::Work, 1));

    let paid = orders.resume(true).thread("t").await.unwrap();
    assert_eq!(paid.into_returned().unwrap(), "3 paid");
    let end = orders.state("t").await.unwrap().unwrap();
    let shown: Vec<_> = end.done_steps().iter().map(|step| (&*step.name, step.attempts)).collect();
    assert_eq!(shown, [("price", 1), ("charge", 2)]);

    let history = orders.history("t").await.unwrap();
    assert_eq!(history[0].done_steps().len(), 2, "the checkpoint at the end");
    assert_eq!(history[1].values.input().map(String::as_str), Some("tea"));
    assert!(format!("{:?}", history[0]).contains("charge"));
}

#[tokio::test]
async fn a_drawing_shows_its_steps_and_what_it_waits_for() {
    let orders = orders(NotingSaver::memory());
    orders.invoke("\"tea\" <b>".to_owned()).thread("t").await.unwrap();
    let open = orders.state("t").await.unwrap().unwrap().mermaid();
    let expected = [
        "flowchart TD",
        "    s0([\"START\"])",
        "    s1[\"price (#quot;tea#quot; #lt;b#gt;)\"]",
        "    s2{{\"pay 9?\"}}",
        "    s0 --> s1",
        "    s1 -.-> s2",
        "",
    ];
    assert_eq!(open, expected.join("\n"));

    orders.resume(true).thread("t").await.unwrap();
    let end = orders.state("t").await.unwrap().unwrap().mermaid();
    assert!(end.contains("s2[\"charge, 2 attempts\"]\n    s3([\"END\"])"), "{end}");
    assert!(end.ends_with("    s0 --> s1\n    s1 --> s2\n    s2 --> s3\n"), "{end}");
    // The graph itself is one node.
    assert!(orders.mermaid().contains("n0[\"order\"]"), "{}", orders.mermaid());
}

/// The events of steps as text.
async fn step_events<S: agentgraph::State>(mut stream: agentgraph::EventStream<S>) -> Vec<String> {
    let mut heard = Vec::new();
    while let Some(event) = stream.next().await {
        let EventKind::Step { step, event: happened, .. } = &event.kind else { continue };
        assert!(event.task.is_some());
        let what = match happened {
            StepEvent::Started => "started".to_owned(),
            StepEvent::Done => "done".to_owned(),
            StepEvent::Found => "found".to_owned(),
            StepEvent::Failed(why) => format!("failed: {why}"),
            other => panic!("{other:?}"),
        };
        heard.push(format!("{} {} {what}", step.name, step.attempt));
    }
    heard
}

#[tokio::test]
async fn a_stream_of_tasks_shows_each_attempt_of_a_step() {
    let orders = orders(NotingSaver::memory());
    let begun = orders.invoke("tea".to_owned()).thread("t").views([View::Tasks]).stream();
    assert_eq!(step_events(begun).await, ["price 1 started", "price 1 done"]);
    let ended = orders.resume(true).thread("t").views([View::Tasks]).stream();
    let expected = [
        "price 1 found",
        "charge 1 started",
        "charge 1 failed: the bank is busy",
        "charge 2 started",
        "charge 2 done",
    ];
    assert_eq!(step_events(ended).await, expected);
}

/// Steps in a subgraph are in the parent's stream if it asks for subgraphs.
#[tokio::test]
async fn a_workflow_in_a_graph_shows_its_steps_there() {
    #[derive(agentgraph::State, serde::Serialize, serde::Deserialize, Clone, Debug, Default)]
    struct Shop {
        paid: String,
    }
    let into = |_: Snapshot<Shop>| WorkflowUpdate::from("tea".to_owned());
    let back =
        |order: WorkflowState<String, String>| Shop::update().paid(order.into_returned().unwrap_or_default());
    let orders = Workflow::new("order", order).compile().unwrap();
    let graph =
        StateGraph::new().node("shop", orders.embed(into, back)).edge(START, "shop").compile().unwrap();
    let graph = graph.checkpointer(NotingSaver::memory()).services(Clock::default());
    let asked = graph.invoke(Shop::update()).thread("t").await.unwrap();
    assert_eq!(asked.interrupts()[0].value, "pay 3?");
    let open = graph.state("t").await.unwrap().unwrap();
    assert_eq!(open.steps.len(), 1);
    assert_eq!((&*open.steps[0].node, open.steps[0].namespace.is_empty()), ("order", false));

    let stream = graph.resume(true).thread("t").views([View::Tasks]).subgraphs().stream();
    assert_eq!(step_events(stream).await.len(), 5);
    assert_eq!(graph.state("t").await.unwrap().unwrap().values.paid, "3 paid");
}

#[tokio::test]
async fn the_previous_value_is_what_the_last_finished_run_returned() {
    let sums = Workflow::new("sum", async |ctx: Ctx, Previous(sum): Previous<u32>, number: u32| {
        let sum = sum.unwrap_or(0) + number;
        let _: bool = ctx.interrupt(sum)?;
        Ok::<_, BoxError>(sum)
    });
    let sums = sums.compile().unwrap().checkpointer(NotingSaver::memory());
    for (number, sum) in [(2, 2), (3, 5)] {
        let asked = sums.invoke(number).thread("t").await.unwrap();
        let error = asked.into_returned().unwrap_err();
        assert_eq!(error.code(), Code::NotFinished);
        assert_eq!(sums.resume(true).thread("t").await.unwrap().into_returned().unwrap(), sum);
    }
    // A run that is given up has returned nothing.
    sums.invoke(100).thread("t").await.unwrap();
    sums.invoke(1).thread("t").abandon().await.unwrap();
    assert_eq!(sums.resume(true).thread("t").await.unwrap().into_returned().unwrap(), 6);
    // Another thread has its own.
    sums.invoke(1).thread("other").await.unwrap();
    assert_eq!(sums.resume(true).thread("other").await.unwrap().into_returned().unwrap(), 1);
}

#[tokio::test]
async fn an_attempt_of_a_step_that_takes_too_long_fails_with_a_timeout() {
    let limit = Duration::from_secs(5);
    let calls = Arc::new(AtomicU32::new(0));
    let seen = Arc::clone(&calls);
    let slow = Workflow::new("slow", move |ctx: Ctx, hangs: u32| {
        let calls = Arc::clone(&seen);
        async move {
            let again = RetryPolicy::attempts(2).initial(Duration::from_secs(1));
            let step = ctx.durable("ask").retry(again).timeout(limit).run(|| async {
                match calls.fetch_add(1, Ordering::SeqCst) < hangs {
                    true => std::future::pending().await,
                    false => Ok(7),
                }
            });
            step.await
        }
    });
    // The clock of the test ends every sleep at once, so a pending attempt is over its limit.
    let slow: CompiledGraph<WorkflowState<u32, u32>> = slow.compile().unwrap();
    let slow = slow.checkpointer(NotingSaver::memory()).services(Clock::default());
    assert_eq!(slow.invoke(1).thread("once").await.unwrap().into_returned().unwrap(), 7);
    assert_eq!(calls.load(Ordering::SeqCst), 2);

    calls.store(0, Ordering::SeqCst);
    let error = slow.invoke(9).thread("always").await.unwrap_err();
    let timeout = cause::<Timeout>(&error).expect("a timeout");
    assert_eq!((timeout.limit, timeout.kind), (limit, TimeoutKind::Step));
    assert_eq!(calls.load(Ordering::SeqCst), 2, "as many attempts as the step's policy has");
    // The step is done anew when the run goes on.
    calls.store(9, Ordering::SeqCst);
    assert_eq!(slow.proceed().thread("always").await.unwrap().into_returned().unwrap(), 7);
}

#[tokio::test]
async fn the_step_retries_what_its_policy_retries_and_the_node_the_rest() {
    let calls = Arc::new(AtomicU32::new(0));
    let seen = Arc::clone(&calls);
    let flow = Workflow::new("flow", move |ctx: Ctx, (): ()| {
        let calls = Arc::clone(&seen);
        async move {
            ctx.once("first", async { Ok(()) }).await?;
            let busy = RetryPolicy::attempts(9).retry_on(|error| error.to_string() == "busy");
            let step = ctx.durable("ask").retry(busy).run(|| async {
                match calls.fetch_add(1, Ordering::SeqCst) {
                    0 | 2 => Err("busy".into()),
                    1 => Err("down".into()),
                    n => Ok(n),
                }
            });
            Ok::<_, BoxError>((ctx.attempt(), step.await?))
        }
    });
    let flow = flow.retry(RetryPolicy::attempts(2)).compile().unwrap().services(Clock::default());
    assert_eq!(flow.invoke(()).await.unwrap().into_returned().unwrap(), (2, 3));
}

#[tokio::test]
async fn a_question_inside_the_work_of_a_step_is_no_failure_and_is_not_retried() {
    let calls = Arc::new(AtomicU32::new(0));
    let seen = Arc::clone(&calls);
    let flow = Workflow::new("flow", move |ctx: Ctx, (): ()| {
        let calls = Arc::clone(&seen);
        async move {
            let ask = ctx.clone();
            let step = ctx.durable("ask").retry(RetryPolicy::attempts(5)).run(|| {
                calls.fetch_add(1, Ordering::SeqCst);
                let answer = ask.interrupt::<u32>("how many?");
                async move { Ok(answer?) }
            });
            step.await
        }
    });
    let flow = flow.compile().unwrap().checkpointer(NotingSaver::memory()).services(Clock::default());
    let stream = flow.invoke(()).thread("t").views([View::Tasks]).stream();
    assert_eq!(step_events(stream).await, ["ask 1 started"]);
    assert_eq!(flow.resume(4).thread("t").await.unwrap().into_returned().unwrap(), 4);
    assert_eq!(calls.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn the_failure_of_a_step_may_be_caught() {
    let flow = Workflow::new("flow", async |ctx: Ctx, (): ()| {
        let failed = ctx.once("ask", async { Err::<u32, _>(BoxError::from("down")) }).await;
        let why = failed.unwrap_err().to_string();
        let _: bool = ctx.interrupt("go on?")?;
        Ok::<_, BoxError>(why)
    });
    let flow = flow.compile().unwrap().checkpointer(NotingSaver::memory());
    flow.invoke(()).thread("t").await.unwrap();
    let end = flow.resume(true).thread("t").await.unwrap();
    assert_eq!(end.output().steps(), [], "a failure is not stored");
    assert_eq!(end.into_returned().unwrap(), "down");
}

#[tokio::test]
async fn a_cancelled_workflow_goes_on_and_repeats_nothing() {
    let world = World::new(Vec::new());
    let cancel = CancellationToken::new();
    let inner = (world.clone(), cancel.clone());
    let flow = Workflow::new("flow", move |ctx: Ctx, (): ()| {
        let (world, cancel) = inner.clone();
        async move {
            let first = ctx.once("first", world.work("<first>".to_owned(), 1)).await?;
            if !cancel.is_cancelled() {
                cancel.cancel();
                pending_for(u32::MAX).await;
            }
            Ok::<_, BoxError>(first)
        }
    });
    let flow = flow.compile().unwrap().checkpointer(world.saver.clone());
    let stopped = flow.invoke(()).thread("t").cancel(cancel).await.unwrap();
    assert!(matches!(stopped, Outcome::Stopped { reason: StopReason::Cancelled, .. }), "{stopped:?}");
    assert_eq!(flow.proceed().thread("t").await.unwrap().into_returned().unwrap(), "<first>");
    assert_eq!(world.count("<first>"), 1);
}

#[tokio::test]
async fn dependencies_and_contexts_are_checked_as_for_nodes() {
    async fn needs(_: Dep<String>, _: CallContext<u32>, (): ()) -> Result<()> {
        Ok(())
    }
    assert!(Workflow::new("needs", needs).compile().is_err(), "the dependency is missing");
    let flow = Workflow::new("needs", needs).dep("here".to_owned()).compile().unwrap();
    assert_eq!(flow.invoke(()).await.unwrap_err().code(), Code::MissingContext);
    flow.invoke(()).context(7_u32).await.unwrap().into_returned().unwrap();
    let zero = Workflow::new("zero", async |(): ()| Ok::<_, BoxError>(())).timeout(Duration::ZERO);
    assert!(zero.compile().is_err(), "a timeout of zero");
}

#[tokio::test]
async fn a_thread_without_an_input_says_how_to_start_it() {
    let flow = Workflow::new("flow", async |input: u32| Ok::<_, BoxError>(input)).compile().unwrap();
    let flow = flow.checkpointer(NotingSaver::memory());
    flow.update_state("t").as_start(WorkflowUpdate::default()).await.unwrap();
    let error = flow.proceed().thread("t").await.unwrap_err();
    assert!(cause::<NoInput>(&error).is_some(), "{error}");
}

#[tokio::test]
async fn a_run_without_a_checkpointer_works_too() {
    let flow = Workflow::new("flow", async |ctx: Ctx, item: String| {
        let price = ctx.once("price", price(&item)).await?;
        ctx.sleep("a moment", Duration::from_secs(60)).await?;
        Ok::<_, BoxError>(price + ctx.version("tax", 1).await?)
    });
    let clock = Clock::default();
    let flow = flow.compile().unwrap().services(clock.clone());
    assert_eq!(flow.invoke("tea".to_owned()).await.unwrap().into_returned().unwrap(), 4);
    assert_eq!(
        clock.slept(),
        [Duration::from_secs(60)],
        "nothing could continue it, so the run itself waits"
    );
}

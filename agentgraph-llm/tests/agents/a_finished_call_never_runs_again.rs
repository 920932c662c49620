//! Kills: whatever was stored is not done again, and nothing is lost.

use std::future::{Future, IntoFuture};
use std::pin::pin;
use std::sync::Arc;

use agentgraph::prelude::*;
use agentgraph::testing::{Probe, TestGraph};
use agentgraph_llm::prelude::*;
use futures_util::FutureExt;
use proptest::prelude::*;
use serde_json::json;

use crate::support::{Log, Number, answer_to, results, rounds};

const CALLS: u64 = 10;

/// Two answers with five calls each, then a text. Its answers follow from the conversation.
fn model(log: &Log) -> ScriptedModel {
    let log = log.clone();
    ScriptedModel::from_fn(move |request| {
        let round = rounds(request);
        log.add(format!("model {round}"));
        if round == 2 {
            return answer_to(request, vec![Block::text("all paid")]);
        }
        let call = |n: u64| agentgraph_llm::ToolUse::new(format!("pay-{n}"), "pay", json!({ "n": n }));
        answer_to(request, (round * 5..round * 5 + 5).map(|n| call(n).into()).collect())
    })
}

/// Pays, and waits before and after, each call for another number of polls.
fn pay(log: &Log) -> FnTool {
    let log = log.clone();
    FnTool::with_call("pay", "Pays.", move |number: Number, call: ToolCall| {
        let log = log.clone();
        async move {
            for _ in 0..number.n % 3 {
                tokio::task::yield_now().await;
            }
            log.add(format!("pay {}", call.id()));
            for _ in 0..(number.n + 1) % 4 {
                tokio::task::yield_now().await;
            }
            Ok::<_, ToolError>(format!("paid {}", number.n))
        }
    })
}

fn agent(log: &Log, saver: &Arc<MemorySaver>) -> CompiledAgent {
    let agent = Agent::new(model(log)).tool(pay(log)).compile().unwrap();
    agent.checkpointer(Arc::clone(saver))
}

fn input() -> Message {
    Message::user("pay all").with_id("input")
}

/// Polls a run up to `polls` times, then drops it, which equals a kill.
async fn poll<F: Future>(run: F, polls: usize) -> Option<F::Output> {
    let mut run = pin!(run);
    for _ in 0..polls {
        if let Some(output) = run.as_mut().now_or_never() {
            return Some(output);
        }
        // The runtime wakes what the run waits for.
        tokio::task::yield_now().await;
    }
    None
}

/// Runs the agent through these kills. Calls and answers that were stored at a kill must not run again after
/// it. Returns whether a kill came before the end.
async fn run_through(kills: &[usize]) -> bool {
    let log = Log::default();
    let saver = Arc::new(MemorySaver::new());
    let mut stored = Vec::new();
    for &polls in kills {
        let agent = agent(&log, &saver);
        let ended = match agent.state("t").await.unwrap() {
            None => poll(agent.invoke(input()).thread("t").into_future(), polls).await,
            Some(checkpoint) if checkpoint.next.is_empty() => break,
            Some(_) => poll(agent.proceed().thread("t").into_future(), polls).await,
        };
        if let Some(ended) = ended {
            ended.unwrap().into_finished().unwrap();
            break;
        }
        stored.push((log.len(), done(&agent).await));
    }
    let agent = agent(&log, &saver);
    match agent.state("t").await.unwrap() {
        None => drop(agent.invoke(input()).thread("t").await.unwrap().into_finished().unwrap()),
        Some(checkpoint) if checkpoint.next.is_empty() => {}
        Some(_) => drop(agent.proceed().thread("t").await.unwrap().into_finished().unwrap()),
    }
    let state = agent.state("t").await.unwrap().unwrap().values;
    let expected: Vec<_> = (0..CALLS).map(|n| format!("pay-{n}: paid {n}")).collect();
    assert_eq!(results(&state.messages), expected);
    assert_eq!(state.messages.last().unwrap().text(), "all paid");
    let lines = log.lines();
    for (at, done) in &stored {
        for line in &lines[*at..] {
            assert!(!done.contains(line), "`{line}` was stored and ran again: {kills:?} {lines:?}");
        }
    }
    !stored.is_empty()
}

/// What the store holds of the thread: results of calls, and answers of the model.
async fn done(agent: &CompiledAgent) -> Vec<String> {
    let Some(checkpoint) = agent.state("t").await.unwrap() else { return Vec::new() };
    let messages = checkpoint.values.messages;
    let answers = messages.iter().filter(|message| message.role == Role::Assistant).count();
    let calls =
        messages.iter().flat_map(Message::results).map(|result| format!("pay {}", result.tool_use_id));
    calls.chain((0..answers).map(|round| format!("model {round}"))).collect()
}

#[tokio::test]
async fn after_a_kill_at_any_poll() {
    let mut kills = 0;
    for polls in 1..200 {
        if !run_through(&[polls]).await {
            break;
        }
        kills += 1;
    }
    assert!((6..190).contains(&kills), "{kills} kills");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn after_any_series_of_kills(kills in prop::collection::vec(0usize..5, 0..12)) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(run_through(&kills));
    }
}

/// The kit kills the run before and after each write to the store and wherever a node waits, and compares the
/// ends. The bank ignores a second call with the same key, as a tool can with the id of its call.
#[tokio::test]
async fn after_a_kill_at_any_write() {
    let pay = FnTool::with_call("pay", "Pays.", async |number: Number, call: ToolCall| {
        tokio::task::yield_now().await;
        Probe::new().idempotent("pay", call.id());
        tokio::task::yield_now().await;
        Ok::<_, ToolError>(format!("paid {}", number.n))
    });
    let log = Log::default();
    let agent = Agent::new(model(&log)).tool(pay).compile().unwrap();
    let test = TestGraph::of(agent.into_graph());
    test.every_kill(input()).await.assert_none();
    test.every_order(input()).await.assert_none();
}

#[tokio::test]
async fn an_interrupt_in_one_of_three_calls_does_not_repeat_the_others() {
    let log = Log::default();
    let ask = FnTool::with_call("ask", "", async |_: Number, call: ToolCall| {
        let yes: bool = call.ctx()?.interrupt_as(call.id(), "pay?")?;
        Ok::<_, ToolError>(format!("answered {yes}"))
    });
    let first = crate::support::calls("pay", [1])
        .and_tool_call("ask", json!({"n": 2}))
        .and_tool_call("pay", json!({"n": 3}));
    let model = ScriptedModel::new([first, Reply::text("done")]);
    let agent = Agent::new(model.clone()).tool(pay(&log)).tool(ask).compile().unwrap();
    let agent = agent.checkpointer(MemorySaver::new());
    let asked = agent.invoke("go").thread("t").await.unwrap();
    let [open] = asked.interrupts() else { panic!("{asked:?}") };
    assert_eq!((open.key.as_deref(), open.value.as_str()), (Some("call-2"), Some("pay?")));
    let mut paid = log.lines();
    paid.sort();
    assert_eq!(paid, ["pay call-1", "pay call-3"]);

    let answer = agent.resume(true).thread("t").await.unwrap().into_finished().unwrap();
    assert_eq!(log.len(), 2, "finished calls did not run again");
    assert_eq!(model.requests().len(), 2, "the model was not asked again for the calls");
    assert_eq!(
        results(&answer.state.messages),
        ["call-1: paid 1", "call-2: answered true", "call-3: paid 3"]
    );
}

#[tokio::test]
async fn a_failed_call_runs_again_alone() {
    let log = Log::default();
    let tries = Log::default();
    let count = tries.clone();
    let flaky = FnTool::new("flaky", "", move |_: Number| {
        let count = count.clone();
        async move {
            count.add("try");
            if count.len() == 1 { Err(ToolError::fatal("the disk is full")) } else { Ok("written") }
        }
    });
    let first = crate::support::calls("pay", [1]).and_tool_call("flaky", json!({"n": 2}));
    let agent = Agent::new(ScriptedModel::new([first, Reply::text("done")])).tool(pay(&log)).tool(flaky);
    let agent = agent.compile().unwrap().checkpointer(MemorySaver::new());
    let error = agent.invoke("go").thread("t").await.unwrap_err();
    assert_eq!(error.node(), Some("tools"));
    let answer = agent.proceed().thread("t").await.unwrap().into_finished().unwrap();
    assert_eq!((log.len(), tries.len(), answer.text()), (1, 2, "done".to_owned()));
}

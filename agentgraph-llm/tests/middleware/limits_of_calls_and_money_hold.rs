//! Limits of a run and of a thread are apart; at a limit the run ends as it was told to, with a complete
//! conversation.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use agentgraph::MemorySaver;
use agentgraph_llm::Usage;
use agentgraph_llm::middleware::{
    AboveLimit, AtLimit, Budget, IdempotencyKeys, ModelCallLimit, Money, Price, PriceTable, TodoList,
    ToolCallLimit,
};
use agentgraph_llm::prelude::*;
use proptest::prelude::*;
use serde_json::json;

use crate::support::block_on;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}

fn count(name: &str) -> (FnTool, Arc<AtomicU64>) {
    let count = Arc::new(AtomicU64::new(0));
    let shared = Arc::clone(&count);
    let tool = FnTool::new(name, "Counts.", move |_: Nothing| {
        shared.fetch_add(1, Ordering::Relaxed);
        async { Ok::<_, ToolError>("ok") }
    });
    (tool, count)
}

/// Calls `work` as often as each round says, and then ends the run.
fn model(rounds: Vec<usize>) -> ScriptedModel {
    let runs = move |request: &ChatRequest| {
        let round = request.messages.iter().rev().take_while(|message| message.text() != "go");
        let round = round.filter(|message| message.role == Role::Assistant).count();
        match rounds.get(round) {
            Some(calls) => {
                (0..*calls).fold(Reply::empty(), |reply, _| reply.and_tool_call("work", json!({})))
            }
            None => Reply::text("done"),
        }
    };
    ScriptedModel::from_fn(move |request| runs(request).with_usage(Usage::new(1_000_000, 0)))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(30))]

    #[test]
    fn exactly_the_allowed_calls_run(
        rounds in prop::collection::vec(1_usize..4, 0..4),
        run in 0_u64..5,
        thread in 5_u64..12,
        runs in 1_usize..4,
    ) {
        let (tool, ran) = count("work");
        let limit = ToolCallLimit::new(Some(thread), Some(run)).unwrap();
        let model = model(rounds.clone());
        let agent = Agent::new(model.clone()).tool(tool).middleware(limit).compile().unwrap();
        let agent = agent.checkpointer(MemorySaver::new());
        block_on(async {
            for _ in 0..runs {
                agent.invoke("go").thread("t").await.unwrap().into_finished().unwrap();
            }
        });
        let wanted = rounds.iter().sum::<usize>() as u64;
        let expected = (0..runs).fold(0, |total, _| total + wanted.min(run).min(thread - total));
        prop_assert_eq!(ran.load(Ordering::Relaxed), expected);
        // Every call has its result.
        let last = model.requests().pop().unwrap();
        let calls = last.messages.iter().flat_map(Message::tool_uses).count();
        prop_assert_eq!(calls, last.messages.iter().flat_map(Message::results).count());
    }
}

#[tokio::test]
async fn a_tool_call_limit_fails_or_ends() {
    let (tool, ran) = count("work");
    let limit = || ToolCallLimit::per_run(1).unwrap().tool("work");
    let agent = |limit| Agent::new(model(vec![2])).tool(tool.clone()).middleware(limit).compile().unwrap();
    let error = agent(limit().above_limit(AboveLimit::Error)).invoke("go").await.unwrap_err();
    assert!(format!("{error:?}").contains("E_LLM_CALL_LIMIT"), "{error:?}");

    let ended =
        agent(limit().above_limit(AboveLimit::End)).invoke("go").await.unwrap().into_finished().unwrap();
    assert!(ended.text().contains("limit of 1 calls of `work` per run"), "{}", ended.text());
    assert_eq!(ran.load(Ordering::Relaxed), 0);
    let results: Vec<_> = ended.state.messages.iter().flat_map(Message::results).collect();
    assert!(results.len() == 2 && results.iter().all(|result| result.is_error));
}

#[tokio::test]
async fn a_model_call_limit_of_a_run_and_of_a_thread() {
    let model = model(vec![1, 1, 1, 1]);
    let (tool, _) = count("work");
    let limit = ModelCallLimit::new(Some(5), Some(3)).unwrap();
    let agent = Agent::new(model.clone()).tool(tool).middleware(limit).compile().unwrap();
    let agent = agent.checkpointer(MemorySaver::new());
    for (asked, text) in
        [(3, "3 model calls per run"), (5, "5 model calls per thread"), (5, "5 model calls per thread")]
    {
        let answer = agent.invoke("go").thread("t").await.unwrap().into_finished().unwrap();
        assert_eq!(model.requests().len(), asked);
        assert!(answer.text().contains(text), "{}", answer.text());
    }
}

#[tokio::test]
async fn a_budget_counts_every_answer_and_stops_the_next() {
    // 10 units for a million tokens: each answer of the model costs 10.
    let prices = || PriceTable::new().with("scripted", Price::new(10, 0));
    let run = |budget: Budget| async move {
        let model = model(vec![1; 8]);
        let (tool, _) = count("work");
        let agent = Agent::new(model.clone()).tool(tool).middleware(budget).compile().unwrap();
        let agent = agent.checkpointer(MemorySaver::new());
        let mut asked = Vec::new();
        for _ in 0..3 {
            let ended = agent.invoke("go").thread("t").abandon().await;
            asked.push((model.requests().len(), ended.is_ok()));
        }
        asked
    };
    let per_run = Budget::new(prices()).per_run(Money::units(25)).at_limit(AtLimit::End);
    assert_eq!(run(per_run).await, [(3, true), (6, true), (9, true)]);
    let both = Budget::new(prices()).per_run(Money::units(25)).per_thread(Money::units(50));
    assert_eq!(run(both).await, [(3, false), (5, false), (5, false)]);
    let unknown = Budget::new(PriceTable::new());
    assert!(!run(unknown).await[0].1, "a model without a price is an error");
}

#[tokio::test]
async fn keys_are_the_same_when_a_call_runs_again_and_differ_otherwise() {
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Payment {
        idempotency_key: String,
    }
    let keys = Arc::new(std::sync::Mutex::new(Vec::new()));
    let seen = Arc::clone(&keys);
    let pay = FnTool::new("pay", "Pays.", move |payment: Payment| {
        let mut keys = seen.lock().unwrap();
        keys.push(payment.idempotency_key);
        // The first attempt takes effect, and then the process fails.
        let fails = keys.len() == 1;
        async move { if fails { Err(ToolError::fatal("lost")) } else { Ok("paid") } }
    });
    let forged = json!({"idempotency_key": "mine"});
    let calls = Reply::tool_call("pay", forged.clone()).and_tool_call("pay", forged);
    let model = ScriptedModel::new([calls, Reply::text("done")]);
    let agent = Agent::new(model).tool(pay).middleware(IdempotencyKeys::new(["pay"])).compile().unwrap();
    let agent = agent.checkpointer(MemorySaver::new());
    agent.invoke("go").thread("t").await.unwrap_err();
    agent.proceed().thread("t").await.unwrap().into_finished().unwrap();
    let keys = keys.lock().unwrap().clone();
    let distinct: std::collections::BTreeSet<_> = keys.iter().collect();
    assert_eq!(distinct.len(), 2, "{keys:?}");
    assert!(keys.iter().all(|key| key.len() == 32));
    assert_eq!(keys.iter().filter(|key| **key == keys[0]).count(), 2, "the failed call again");
}

/// A server that numbers the calls of each answer from 0 must not make the second payment a repetition.
#[tokio::test]
async fn keys_differ_in_another_answer_whose_calls_have_the_same_ids() {
    let keys = Arc::new(std::sync::Mutex::new(Vec::new()));
    let seen = Arc::clone(&keys);
    let pay = FnTool::with_call(
        "pay",
        "Pays.",
        move |_: serde_json::Map<String, serde_json::Value>, call: ToolCall| {
            seen.lock().unwrap().push(agentgraph_llm::middleware::idempotency_key(&call));
            async { Ok::<_, ToolError>("paid") }
        },
    );
    let call = || agentgraph_llm::ToolUse::new("call_0", "pay", json!({}));
    let answer = || {
        let message = Message::new(Role::Assistant, [call()]);
        agentgraph_llm::ChatResponse::new(message, agentgraph_llm::StopReason::ToolUse)
    };
    let replies = || [Reply::from(answer()), Reply::from(answer()), Reply::text("done")];
    let agent = Agent::new(ScriptedModel::new(replies())).tool(pay.clone()).compile().unwrap();
    agent.invoke("go").await.unwrap().into_finished().unwrap();
    ToolLoop::new(&ScriptedModel::new(replies())).tool(&pay).run(ChatRequest::user("go")).await.unwrap();
    let keys = keys.lock().unwrap().clone();
    let distinct: std::collections::BTreeSet<_> = keys.iter().collect();
    assert_eq!(distinct.len(), 4, "{keys:?}");
}

/// A number that no machine type holds, and a key that the model wrote twice.
#[tokio::test]
async fn a_key_leaves_the_other_arguments_as_the_model_wrote_them() {
    use agentgraph_llm::middleware::NextTool;
    let pay = FnTool::with_call(
        "pay",
        "Pays.",
        async |_: serde_json::Map<String, serde_json::Value>, call: ToolCall| {
            Ok::<_, ToolError>(call.input().get().to_owned())
        },
    );
    let input = r#"{"idempotency_key":"a","n":1180591620717411303424,"b":1.0,"a":2,"idempotency_key":"b"}"#;
    let call = ToolCall::detached("call-1", "pay").with_input(RawJson::parse_text(input).unwrap());
    let next = NextTool::of(pay).unwrap();
    let output = IdempotencyKeys::new(["pay"]).wrap_tool(&call, next).await.unwrap();
    let key = agentgraph_llm::middleware::idempotency_key(&call);
    let expected = format!(r#"{{"n":1180591620717411303424,"b":1.0,"a":2,"idempotency_key":"{key}"}}"#);
    assert_eq!(output, ToolOutput::text(expected));
}

#[tokio::test]
async fn a_todo_list_is_offered_and_kept() {
    let input =
        json!({"todos": [{"content": "a", "status": "completed"}, {"content": "b", "status": "pending"}]});
    let model = ScriptedModel::new([Reply::tool_call("write_todos", input), Reply::text("done")]);
    let agent = Agent::new(model.clone()).system("Be brief.").middleware(TodoList::new()).compile().unwrap();
    agent.invoke("go").await.unwrap().into_finished().unwrap();
    let [first, second] = &model.requests()[..] else { panic!("two requests") };
    assert_eq!(first.tools[0].name, "write_todos");
    assert!(first.system.as_ref().unwrap().starts_with("Be brief.\n\n"));
    let results: Vec<_> =
        second.messages.iter().flat_map(Message::results).map(ToolResult::as_text).collect();
    assert_eq!(results, ["The list has 2 tasks; 1 are completed."]);
}

//! Limits of answers and tokens over the agents of a team.

use agentgraph::prelude::*;
use agentgraph::{Budget, StopReason};
use agentgraph_llm::middleware::{Budget as Purse, Money, Price, PriceTable};
use agentgraph_llm::prelude::*;
use agentgraph_llm::{LoopEnd, Usage};
use serde_json::json;

use crate::teams::support::{Nothing, agent, seen, task};

#[tokio::test]
async fn agents_that_hand_over_for_ever_end_at_the_limit_of_the_run() {
    let to = |name: &'static str| {
        ScriptedModel::from_fn(move |_| Reply::tool_call(format!("transfer_to_{name}"), json!({})))
    };
    let (alice, bob) = (to("bob"), to("alice"));
    let both = hand_off([agent("alice", &alice).max_rounds(5), agent("bob", &bob).max_rounds(5)]).unwrap();
    let both = both.checkpointer(MemorySaver::new());
    for run in 1..=2 {
        let answer = both.invoke("go").thread("t").await.unwrap().into_finished().unwrap();
        assert_eq!((answer.end(), answer.rounds()), (LoopEnd::LimitReached, 5));
        assert_eq!(alice.requests().len() + bob.requests().len(), 5 * run);
    }
    let last = seen(if alice.requests().len() > 5 { &alice } else { &bob });
    assert!(last.iter().any(|message| message.contains("not run: the limit of 5 answers")), "{last:?}");
}

fn spender() -> ScriptedModel {
    ScriptedModel::from_fn(|_| Reply::tool_call("add", json!({})).with_usage(Usage::new(10, 0)))
}

fn add() -> FnTool {
    FnTool::new("add", "Adds.", async |_: Nothing| Ok::<_, ToolError>("5"))
}

#[tokio::test]
async fn the_tokens_of_workers_count_for_their_supervisor() {
    let worker = agent("maths", &spender()).tool(add()).max_rounds(3).compile().unwrap();
    let first =
        task("maths", "one").and_tool_call("maths", json!({ "task": "two" })).with_usage(Usage::new(100, 0));
    let model = ScriptedModel::new([first, Reply::text("done").with_usage(Usage::new(100, 0))]);
    let lead = supervisor(agent("lead", &model), [worker]).unwrap();
    let answer = lead.invoke("go").await.unwrap().into_finished().unwrap();
    assert_eq!((answer.rounds(), answer.usage().total()), (2, 260));
    assert_eq!(answer.state.thread_record.usage.total(), 260);
}

#[tokio::test]
async fn the_money_of_workers_is_that_of_their_supervisor() {
    let paid = Usage::new(1_000_000, 0);
    let prices = PriceTable::new().with("lead", Price::new(1, 0)).with("maths", Price::new(10, 0));
    // The supervisor asks three times, the worker once.
    for (money, is_enough) in [(11, false), (13, true)] {
        let maths = ScriptedModel::new([Reply::text("5").with_usage(paid)]).named("maths");
        let worker = agent("maths", &maths).compile().unwrap();
        let first = task("maths", "2 + 3").with_usage(paid);
        let second = Reply::tool_call("add", json!({})).with_usage(paid);
        let model = ScriptedModel::new([first, second, Reply::text("done").with_usage(paid)]).named("lead");
        let purse = Purse::new(prices.clone()).per_run(Money::units(money));
        let lead = agent("lead", &model).tool(add()).middleware(purse);
        let outcome = supervisor(lead, [worker]).unwrap().invoke("go").await;
        match outcome {
            Ok(outcome) => assert!(is_enough && outcome.into_finished().is_ok()),
            Err(error) => assert!(!is_enough && error.to_string().contains("E_LLM_BUDGET"), "{error}"),
        }
    }
}

#[tokio::test]
async fn a_budget_of_the_run_stops_workers_in_their_middle() {
    for (unit, limit) in [("tokens", 25), ("rounds", 4)] {
        let maths = spender();
        let worker = agent("maths", &maths).tool(add()).compile().unwrap();
        let model = ScriptedModel::new([task("maths", "one")]);
        let lead = supervisor(agent("lead", &model), [worker]).unwrap().checkpointer(MemorySaver::new());
        let outcome = lead.invoke("go").thread("t").budget(Budget::new().units(unit, limit)).await.unwrap();
        assert!(matches!(outcome, Outcome::Stopped { reason: StopReason::Budget, .. }), "{outcome:?}");
        assert_eq!(maths.requests().len(), 3);
    }
}

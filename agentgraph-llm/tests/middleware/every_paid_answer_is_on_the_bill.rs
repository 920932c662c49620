//! Whatever an agent pays is counted once, whoever asked for it: the agent, a summary, the choice of tools,
//! or a wrap that asks several times. What was not paid is not counted.

use std::sync::Arc;
use std::time::Duration;

use agentgraph::MemorySaver;
use agentgraph::store::MemoryStore;
use agentgraph_llm::agent::CompiledAgent;
use agentgraph_llm::middleware::{
    Bill, Budget, Extent, ModelFallback, ModelRetry, Money, Price, PriceTable, RateLimitedModel, RateLimiter,
    ResponseCache, Summarization, ToolSelector,
};
use agentgraph_llm::*;
use serde_json::json;

use crate::support::{Take, Takes, TestClock};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}

fn tool(name: &str) -> FnTool {
    FnTool::new(name, "Does it.", async |_: Nothing| Ok::<_, ToolError>("done"))
}

fn million() -> Usage {
    Usage::new(1_000_000, 0)
}

/// One call, then a text. Each answer costs ten.
fn large() -> ScriptedModel {
    let answer = |request: &ChatRequest| match request.messages.last().unwrap().results().next() {
        None => Reply::tool_call("work", json!({})),
        Some(_) => Reply::text("done"),
    };
    ScriptedModel::from_fn(move |request| answer(request).with_usage(million())).named("large")
}

/// Chooses a tool, or summarises. Each answer costs one.
fn small() -> ScriptedModel {
    let answer = |request: &ChatRequest| match request.tools.is_empty() {
        true => Reply::text("They worked."),
        false => Reply::tool_call("Selection", json!({"tools": ["work"]})),
    };
    ScriptedModel::from_fn(move |request| answer(request).with_usage(million())).named("small")
}

fn prices() -> PriceTable {
    PriceTable::new().with("large", Price::new(10, 0)).with("small", Price::new(1, 0))
}

/// Pays for two choices, a summary before the second round, and two answers: 23.
fn agent(budget: Budget, models: &[ScriptedModel; 2], saver: &Arc<MemorySaver>) -> CompiledAgent {
    let small: Arc<dyn ChatModel> = Arc::new(models[1].clone());
    let summary = Summarization::new(Arc::clone(&small), Extent::Messages(3))
        .keep(Extent::Messages(1))
        .keep_task(false);
    let agent = Agent::new(models[0].clone()).tool(tool("work")).tool(tool("rest"));
    let agent = agent.middleware(budget).middleware(summary).middleware(ToolSelector::new(small, 1));
    agent.compile().unwrap().checkpointer(Arc::clone(saver))
}

#[tokio::test]
async fn summaries_and_choices_of_tools_are_counted() {
    let (models, saver) = ([large(), small()], Arc::new(MemorySaver::new()));
    let budget = Budget::new(prices()).per_run(Money::units(23));
    let ended =
        agent(budget, &models, &saver).invoke("go").thread("t").await.unwrap().into_finished().unwrap();
    let bill = &ended.state.thread_record.bill;
    assert_eq!((bill.of("large").input_total, bill.of("small").input_total), (2_000_000, 3_000_000));
    assert_eq!(*bill, ended.state.run_record.bill);
    assert_eq!(prices().cost(bill).unwrap(), Money::units(23));
    assert_eq!(bill.total().total(), 5_000_000);
    assert_eq!(ended.state.thread_record.usage.total(), 2_000_000, "the usage is that of the answers");
}

#[tokio::test]
async fn a_choice_of_tools_may_use_up_the_budget() {
    let (models, saver) = ([large(), small()], Arc::new(MemorySaver::new()));
    // The first round costs eleven. The budget comes first, so no summary is paid at the limit.
    let budget = |units| Budget::new(prices()).per_run(Money::units(units));
    let error = agent(budget(11), &models, &saver).invoke("go").thread("t").await.unwrap_err();
    assert!(format!("{error:?}").contains("(11 spent)"), "{error:?}");
    assert_eq!((models[0].requests().len(), models[1].requests().len()), (1, 1));
    // With a higher limit it goes on, and what was paid before still counts.
    let ended =
        agent(budget(12), &models, &saver).proceed().thread("t").await.unwrap().into_finished().unwrap();
    assert_eq!(prices().cost(&ended.state.run_record.bill).unwrap(), Money::units(23));
}

#[tokio::test]
async fn the_bill_of_a_thread_outlives_its_runs_and_the_process() {
    let (models, saver) = ([large(), small()], Arc::new(MemorySaver::new()));
    let budget = |units| Budget::new(prices()).per_thread(Money::units(units));
    agent(budget(24), &models, &saver).invoke("go").thread("t").await.unwrap().into_finished().unwrap();
    let error = agent(budget(23), &models, &saver).invoke("go").thread("t").abandon().await.unwrap_err();
    assert!(format!("{error:?}").contains("(23 spent)"), "{error:?}");
    assert_eq!(models[0].requests().len(), 2);
}

#[tokio::test]
async fn a_model_without_a_price_is_an_error_that_adding_one_mends() {
    let (models, saver) = ([large(), small()], Arc::new(MemorySaver::new()));
    let only_large =
        Budget::new(PriceTable::new().with("large", Price::new(10, 0))).per_run(Money::units(99));
    let error = agent(only_large, &models, &saver).invoke("go").thread("t").await.unwrap_err();
    assert!(format!("{error:?}").contains("no price for the model `small`"), "{error:?}");
    let all = Budget::new(prices()).per_run(Money::units(99));
    agent(all, &models, &saver).proceed().thread("t").await.unwrap().into_finished().unwrap();
}

/// The bill of a run of one round.
async fn bill(model: impl ChatModel + 'static, middleware: impl Middleware + 'static) -> Bill {
    let agent = Agent::new(model).middleware(middleware).compile().unwrap();
    agent.invoke("go").await.unwrap().into_finished().unwrap().state.run_record.bill
}

/// Asks twice, and gives the second answer.
struct Twice;

#[async_trait::async_trait]
impl Middleware for Twice {
    fn name(&self) -> &str {
        "twice"
    }

    fn hooks(&self) -> Hooks {
        Hooks::NONE
    }

    async fn wrap_model(&self, request: ModelRequest, next: NextModel<'_>) -> Result<ChatStream> {
        next.clone().run(request.clone()).await?.into_response().await?;
        next.run(request).await
    }
}

#[tokio::test]
async fn an_answer_that_a_wrap_throws_away_was_paid() {
    let model = ScriptedModel::from_fn(|_| Reply::text("so").with_usage(Usage::new(3, 4)));
    let bill = bill(model, Twice).await;
    assert_eq!(bill.iter().collect::<Vec<_>>(), [("scripted", Usage::new(6, 8))]);
}

#[tokio::test]
async fn the_model_that_answered_is_billed() {
    let broken = Takes::new("first", [Take { pieces: vec!["so".into()], breaks: true }]);
    let second: Arc<dyn ChatModel> =
        Arc::new(ScriptedModel::new([Reply::text("ok").with_usage(Usage::new(3, 4))]).named("second"));
    let bill = bill(broken, ModelFallback::new([second])).await;
    assert_eq!(bill.iter().collect::<Vec<_>>(), [("second", Usage::new(3, 4))]);
}

#[tokio::test]
async fn a_retry_is_billed_once_and_an_answer_from_a_cache_never() {
    let failed = Reply::error(Error::new(Code::Overloaded, "busy"));
    let model = ScriptedModel::new([failed, Reply::text("ok").with_usage(Usage::new(3, 4))]);
    let retried = bill(model, ModelRetry::new().clock(TestClock::new())).await;
    assert_eq!(retried.total(), Usage::new(3, 4));

    // What the provider said before an answer failed was paid, too.
    let failed = Reply::error(Error::new(Code::Server, "down").with_usage(Usage::new(1, 1)));
    let model = ScriptedModel::new([failed, Reply::text("ok").with_usage(Usage::new(3, 4))]);
    let retried = bill(model, ModelRetry::new().clock(TestClock::new())).await;
    assert_eq!(retried.total(), Usage::new(4, 5));

    let cache = ResponseCache::new(Arc::new(MemoryStore::new()));
    let model = ScriptedModel::new([Reply::text("ok").with_usage(Usage::new(3, 4))]);
    assert_eq!(bill(model.clone(), cache.clone()).await.total(), Usage::new(3, 4));
    assert!(bill(model, cache).await.is_empty());
}

/// The models that middleware asks share the limit of the agent if they stand behind the same limiter.
#[tokio::test]
async fn the_choice_of_tools_waits_for_the_shared_limiter() {
    let clock = TestClock::new();
    let limiter = RateLimiter::new().clock(clock.clone()).requests_per_minute(2);
    let small: Arc<dyn ChatModel> = Arc::new(RateLimitedModel::new(small(), limiter.clone()));
    let agent = Agent::new(large()).tool(tool("work")).tool(tool("rest")).middleware(limiter);
    let agent = agent.middleware(ToolSelector::new(small, 1)).compile().unwrap();
    // Four requests: two in the first minute, two in the second.
    agent.invoke("go").await.unwrap().into_finished().unwrap();
    assert_eq!(clock.waits(), [Duration::from_secs(60)]);
}

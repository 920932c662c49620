//! The order of frames: as measured in the original, and in every other order that the rules allow.

use std::sync::Arc;
use std::time::Duration;

use agentgraph_llm::ModelInfo;
use agentgraph_llm::prelude::*;
use async_trait::async_trait;
use futures_util::StreamExt;
use serde_json::{Value, json};
use shopify_agent::agent::{Item, Limits};
use shopify_agent::offline::OfflineModel;
use shopify_agent::wire::RunRequest;

use crate::support::{World, add};

/// The offline model, each of whose answers takes a time of its own.
struct Slow<F>(F);

#[async_trait]
impl<F: Fn(&str) -> u64 + Send + Sync> ChatModel for Slow<F> {
    fn info(&self) -> ModelInfo {
        OfflineModel.info()
    }

    async fn stream(&self, request: ChatRequest) -> agentgraph_llm::Result<ChatStream> {
        let system = request.system.clone().unwrap_or_default();
        let task = system.lines().find_map(|line| line.strip_prefix("# Task: ")).unwrap_or_default();
        tokio::time::sleep(Duration::from_millis((self.0)(task))).await;
        OfflineModel.stream(request).await
    }
}

async fn slow(delay: impl Fn(&str) -> u64 + Send + Sync + 'static) -> World {
    World::with(Arc::new(Slow(delay)), Limits::default()).await
}

/// The times with which the original was measured, a tenth of them.
fn measured(task: &str) -> u64 {
    if task == "TaskDescriptionResponse" { 5 } else { 20 }
}

#[tokio::test]
async fn a_question_has_the_measured_order() {
    let world = slow(measured).await;
    let turn = world.client().says("what's on the menu").await;
    let expected = [
        "Routing",
        "TaskDescriptionResponse",
        "ChooseTool",
        "IdentifyToolParams",
        "ExecuteTool",
        "Widget",
        "ConvertNaturalLanguage",
        "Routing",
        "CustomerResponse",
    ];
    assert_eq!(turn.nodes(), expected);
}

#[tokio::test]
async fn a_click_begins_at_the_tool() {
    let world = slow(measured).await;
    let turn = world.client().clicks("get_cart_summary", json!({})).await;
    assert_eq!(
        turn.nodes(),
        ["ExecuteTool", "Widget", "ConvertNaturalLanguage", "Routing", "CustomerResponse"]
    );
}

/// Numbers that look random and are the same in each run.
fn drawn(seed: u64, step: u64) -> u64 {
    let mut x = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ step.wrapping_mul(0xD1B5_4A32_D192_ED03);
    x ^= x >> 29;
    x = x.wrapping_mul(0xBF58_476D_1CE4_E5B9);
    (x ^ (x >> 32)) % 30
}

#[tokio::test]
async fn whatever_takes_long_the_answer_is_last_and_each_frame_has_the_newest_cart() {
    for seed in 0..12 {
        let step = std::sync::atomic::AtomicU64::new(0);
        let world = slow(move |_| drawn(seed, step.fetch_add(1, std::sync::atomic::Ordering::Relaxed))).await;
        let mut client = world.client();
        client.says("what wings do you have").await;
        let turn = client.says("I'll get 6 lemon garlic and 12 hot buffalo").await;
        let nodes = turn.nodes();

        // The main branch keeps its order, with two rounds of tools.
        let side = ["TaskDescriptionResponse", "Widget"];
        let main: Vec<_> = nodes.iter().filter(|node| !side.contains(node)).copied().collect();
        let round = ["Routing", "ChooseTool", "IdentifyToolParams", "ExecuteTool", "ConvertNaturalLanguage"];
        let expected: Vec<_> =
            round.iter().chain(&round).chain(&["Routing", "CustomerResponse"]).copied().collect();
        assert_eq!(main, expected, "seed {seed}: {nodes:?}");
        assert_eq!(nodes.iter().filter(|node| **node == "Widget").count(), 2, "seed {seed}");
        assert_eq!(nodes.last(), Some(&"CustomerResponse"), "seed {seed}");
        let position = |wanted: &str| nodes.iter().position(|node| *node == wanted).unwrap();
        assert!(position("Widget") > position("ExecuteTool"), "seed {seed}");

        // Once there is a cart, no frame is without it.
        let carts: Vec<bool> = turn.frames().map(|frame| json!(frame.session)["cart_id"].is_u64()).collect();
        let first = carts.iter().position(|has| *has).unwrap();
        assert!(carts[first..].iter().all(|has| *has), "seed {seed}: {carts:?}");
        assert_eq!(first, position("ExecuteTool"), "seed {seed}");
    }
}

#[tokio::test]
async fn a_waiting_sentence_that_comes_too_late_is_not_said() {
    let world = slow(|task| if task == "TaskDescriptionResponse" { 20_000 } else { 1 }).await;
    let turn = world.client().says("what's on the menu").await;
    assert_eq!(turn.shown(), ["[shopify-product-list]", "Any of these look good to you?"]);
}

#[tokio::test]
async fn a_failed_waiting_sentence_does_not_fail_the_turn() {
    let model = ScriptedModel::from_fn(|request| {
        let system = request.system.clone().unwrap_or_default();
        match system.contains("# Task: TaskDescriptionResponse") {
            true => Reply::error(agentgraph_llm::Error::new(agentgraph_llm::Code::Overloaded, "busy")),
            false => Reply::text(offline(request.clone())),
        }
    });
    let world = World::with(Arc::new(model), Limits::default()).await;
    let turn = world.client().says("what's on the menu").await;
    assert_eq!(turn.shown(), ["[shopify-product-list]", "Any of these look good to you?"]);
}

fn offline(request: ChatRequest) -> String {
    futures_util::FutureExt::now_or_never(OfflineModel.chat(request)).unwrap().unwrap().message.text()
}

#[tokio::test]
async fn a_text_with_the_word_error_ends_nothing() {
    let world = World::new().await;
    let turn = world.client().says("what trial and error wings do you have").await;
    assert!(turn.items.iter().all(|item| matches!(item, Item::Frame(_))), "{:?}", turn.items);
    let products =
        world.client().says("do you have error wings").await.details("shopify-product-list").unwrap();
    let titles: Vec<_> = products.as_object().unwrap().values().map(|p| p["product_title"].clone()).collect();
    assert_eq!(titles, [json!("Trial and Error Wings")]);
}

#[tokio::test]
async fn the_history_has_the_tools_and_the_answer() {
    let world = World::new().await;
    let mut client = world.client();
    let turn = client.says("show my cart").await;
    let last = turn.frames().last().unwrap();
    let message = "### Tools Used Before Responding to Customer\n* get_cart_summary: The cart has nothing; its total is $0.00\n\
                   ### Audio Response to Customer\nYour cart is empty. What would you like?";
    assert_eq!(last.messages.len(), 1);
    assert_eq!(last.messages[0].content, message);
}

#[tokio::test]
async fn unknown_fields_of_the_session_return_in_every_frame() {
    let world = World::new().await;
    let mut client = world.client();
    client.session =
        shopify_agent::session::ShopSession::read(&json!({"guid": "g-1", "theme": {"dark": true}}));
    let turn = client.clicks("add_item_to_cart", add(world.variant("Cola"), 1)).await;
    for frame in turn.frames() {
        let session = json!(frame.session);
        assert_eq!((&session["guid"], &session["theme"]), (&json!("g-1"), &json!({"dark": true})));
    }
}

#[tokio::test]
async fn requests_of_the_orchestrator_work_whatever_their_history() {
    let world = World::new().await;
    let requests: Vec<Value> =
        serde_json::from_str(include_str!("../fixtures/orchestrator_requests.json")).unwrap();
    for request in requests {
        let request = RunRequest::read(request["body"].to_string().as_bytes()).unwrap();
        let frames: Vec<Item> = world.agent.start(request).await.frames.collect().await;
        let last = frames.last().unwrap();
        assert!(matches!(last, Item::Frame(frame) if frame.node == "CustomerResponse"), "{last:?}");
    }
}

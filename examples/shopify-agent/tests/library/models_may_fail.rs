//! A model that gives broken JSON, unknown tools, errors or nothing: the customer hears words or the client
//! gets an error frame, and the cart is as it was.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use agentgraph_llm::prelude::*;
use agentgraph_llm::{Capabilities, ModelInfo};
use async_trait::async_trait;
use futures_util::FutureExt;
use serde_json::json;
use shopify_agent::agent::{Item, Limits, TaskStatus};
use shopify_agent::offline::OfflineModel;

use crate::support::{Turn, World, add, cart_of};

/// The offline model, but for the answers that `instead` gives for a task.
fn spoiled(instead: impl Fn(&str) -> Option<Reply> + Send + 'static) -> ScriptedModel {
    ScriptedModel::from_fn(move |request| {
        let system = request.system.clone().unwrap_or_default();
        let task = system.lines().find_map(|line| line.strip_prefix("# Task: ")).unwrap_or_default();
        instead(task).unwrap_or_else(|| {
            let answer = OfflineModel.chat(request.clone()).now_or_never().unwrap().unwrap();
            Reply::text(answer.message.text())
        })
    })
}

fn error_of(turn: &Turn) -> (&str, bool) {
    match turn.items.last().unwrap() {
        Item::Error(frame) => (&frame.code, frame.retry),
        frame => panic!("no error: {frame:?}"),
    }
}

#[tokio::test]
async fn broken_json_is_asked_for_again_with_the_error() {
    let count = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&count);
    let model = spoiled(move |task| {
        let is_first = task == "Routing" && seen.fetch_add(1, Ordering::Relaxed) == 0;
        is_first.then(|| Reply::text("{\"next-action\": \"call-to"))
    });
    let world = World::with(Arc::new(model.clone()), Limits::default()).await;
    let turn = world.client().says("what's on the menu").await;
    assert_eq!(turn.answer(), "Any of these look good to you?");
    let repair = &model.requests()[1];
    assert!(repair.messages.last().unwrap().text().contains("JSON"), "{:?}", repair.messages);
}

#[tokio::test]
async fn json_that_stays_broken_ends_in_one_error_frame_and_the_cart_is_kept() {
    let world = World::with(
        Arc::new(spoiled(|task| (task == "Routing").then(|| Reply::text("hm")))),
        Limits::default(),
    )
    .await;
    let mut client = world.client();
    let turn = client.clicks("add_item_to_cart", add(world.variant("Cola"), 2)).await;
    assert_eq!(error_of(&turn), ("E_NODE_FAILED", false));
    assert_eq!(turn.items.iter().filter(|item| matches!(item, Item::Error(_))).count(), 1);
    assert_eq!(turn.cart(), cart_of(&[("Cola", 2)]), "the last good frame has the cart");
    assert_eq!(world.agent.status(&turn.id).await.unwrap(), Some(TaskStatus::FinishedWithError));
}

#[tokio::test]
async fn the_words_of_an_error_name_neither_model_nor_path() {
    let world =
        World::with(Arc::new(spoiled(|_| Some(Reply::text("secret-host:1234 broke")))), Limits::default())
            .await;
    let turn = world.client().says("hello").await;
    let Some(Item::Error(frame)) = turn.items.last() else { panic!("{:?}", turn.items) };
    assert_eq!(frame.error, "Something went wrong on our side. Please try again.");
}

#[tokio::test]
async fn an_unknown_tool_is_refused_with_the_known_ones() {
    let count = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&count);
    let model = spoiled(move |task| {
        let is_first = task == "ChooseTool" && seen.fetch_add(1, Ordering::Relaxed) == 0;
        is_first.then(|| Reply::text(json!({"tool": "hack_shop"}).to_string()))
    });
    let world = World::with(Arc::new(model.clone()), Limits::default()).await;
    assert_eq!(world.client().says("what's on the menu").await.answer(), "Any of these look good to you?");
    let said: Vec<String> =
        model.requests().iter().filter_map(|request| Some(request.messages.last()?.text())).collect();
    assert!(
        said.iter().any(|text| text.contains("no tool `hack_shop`") && text.contains("get_cart_summary")),
        "{said:?}"
    );
}

#[tokio::test]
async fn a_click_on_an_unknown_tool_and_one_with_wrong_parameters_get_words() {
    let world = World::new().await;
    let mut client = world.client();
    for (tool, parameters) in [
        ("hack_shop", json!({})),
        ("get_product_details", json!({})),
        ("get_product_details", json!({"product_id": [1]})),
    ] {
        let turn = client.clicks(tool, parameters.clone()).await;
        assert!(turn.answer().starts_with("Sorry: "), "{tool} {parameters}: {}", turn.answer());
        assert!(!turn.nodes().contains(&"Widget"));
    }
}

#[tokio::test]
async fn a_model_that_never_stops_is_stopped_at_the_limit_and_still_answers() {
    let model = spoiled(|task| match task {
        "Routing" => Some(Reply::text(json!({"next-action": "call-tool"}).to_string())),
        "ChooseTool" => Some(Reply::text(json!({"tool": "get_cart_summary"}).to_string())),
        _ => None,
    });
    let world = World::with(Arc::new(model), Limits { nodes: 40, ..Limits::default() }).await;
    let turn = world.client().says("show my cart").await;
    // The nodes of the limit, and the spoken end.
    assert_eq!(turn.items.len(), 41);
    assert_eq!(turn.answer(), "Your cart is empty. What would you like?");
    assert_eq!(world.agent.status(&turn.id).await.unwrap(), Some(TaskStatus::FinishedWithSuccess));
}

/// A model that never answers.
struct Silent;

#[async_trait]
impl ChatModel for Silent {
    fn info(&self) -> ModelInfo {
        ModelInfo::new("test", "silent").with(Capabilities::default())
    }

    async fn stream(&self, _: ChatRequest) -> agentgraph_llm::Result<ChatStream> {
        std::future::pending().await
    }
}

#[tokio::test]
async fn a_model_that_does_not_answer_in_time_is_an_error_that_may_be_tried_again() {
    let limits = Limits { node_time: Duration::from_millis(50), ..Limits::default() };
    let turn = World::with(Arc::new(Silent), limits).await.client().says("hello").await;
    assert_eq!(error_of(&turn), ("E_NODE_TIMEOUT", true));
    let limits = Limits { turn_time: Duration::from_millis(50), ..Limits::default() };
    let turn = World::with(Arc::new(Silent), limits).await.client().says("hello").await;
    assert_eq!(error_of(&turn), ("deadline", true));
}

#[tokio::test]
async fn nothing_of_a_failed_turn_runs_on() {
    let calls = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&calls);
    let model = spoiled(move |task| {
        seen.fetch_add(1, Ordering::Relaxed);
        (task == "ChooseTool").then(|| Reply::text("broken"))
    });
    let world = World::with(Arc::new(model), Limits::default()).await;
    let turn = world.client().says("what's on the menu").await;
    assert_eq!(error_of(&turn).0, "E_NODE_FAILED");
    let after = calls.load(Ordering::Relaxed);
    assert_eq!(world.shop.mutations(), 0);
    for _ in 0..50 {
        tokio::task::yield_now().await;
    }
    assert_eq!(calls.load(Ordering::Relaxed), after);
}

//! A cache answers a request that a model cannot tell from an earlier one, and no other.

use std::sync::Arc;
use std::time::Duration;

use agentgraph::store::MemoryStore;
use agentgraph_llm::middleware::ResponseCache;
use agentgraph_llm::*;
use serde_json::json;

use crate::support::{events, stored};

fn model(replies: usize) -> ScriptedModel {
    ScriptedModel::new(
        (0..replies).map(|number| Reply::text(format!("answer {number}")).with_usage(Usage::new(5, 5))),
    )
}

async fn ask(cache: &ResponseCache, model: &ScriptedModel, request: ChatRequest) -> ChatResponse {
    let events = events(cache, Arc::new(model.clone()), request).await;
    match events.into_iter().last() {
        Some(Ok(ChatEvent::Finished(response))) => response,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn an_equal_request_is_answered_from_the_store() {
    let (cache, model) = (ResponseCache::new(Arc::new(MemoryStore::new())), model(1));
    let first = ask(&cache, &model, ChatRequest::user("hi")).await;
    let again = ask(&cache, &model, ChatRequest::user("hi")).await;
    assert_eq!((first.message.text(), again.message.text()), ("answer 0".into(), "answer 0".into()));
    assert_eq!((first.usage.total(), again.usage.total()), (10, 0));
    assert_ne!(first.message.id, again.message.id, "a thread keeps both");
}

#[tokio::test]
async fn what_a_model_can_tell_apart_is_asked_for() {
    let changes: [fn(&mut ChatRequest); 12] = [
        |_| {},
        |request| request.system = Some("Be brief.".into()),
        |request| request.messages[0] = Message::user("ho"),
        |request| request.messages.push(Message::assistant("ho")),
        |request| request.tools.push(ToolSpec::new("t", "d", json!({"type": "object"}))),
        |request| request.tool_choice = ToolChoice::none(),
        |request| request.max_tokens = Some(1),
        |request| request.temperature = Some(0.5),
        |request| request.top_p = Some(0.5),
        |request| request.stop.push("x".into()),
        |request| request.effort = Some(Effort::Low),
        |request| request.extra.insert("x", json!(1)),
    ];
    let (cache, model) = (ResponseCache::new(Arc::new(MemoryStore::new())), model(changes.len() + 1));
    for change in changes {
        let mut request = ChatRequest::user("hi");
        change(&mut request);
        ask(&cache, &model, request).await;
    }
    assert_eq!(model.requests().len(), changes.len());

    let other = model.clone().named("other");
    ask(&cache, &other, ChatRequest::user("hi")).await;
    assert_eq!(model.requests().len(), changes.len() + 1, "another model answers for itself");
}

#[tokio::test]
async fn answers_that_ended_badly_are_not_kept() {
    let cut = || Reply::text("half").with_stop(StopReason::MaxTokens);
    let refused = || Reply::text("no").with_stop(StopReason::Refusal);
    let failed = || Reply::error(Error::new(Code::Server, "down"));
    let model = ScriptedModel::new([cut(), refused(), failed(), Reply::text("good")]);
    let cache = ResponseCache::new(Arc::new(MemoryStore::new()));
    let mut texts = Vec::new();
    for _ in 0..5 {
        texts.push(stored(&events(&cache, Arc::new(model.clone()), ChatRequest::user("hi")).await));
    }
    assert_eq!(
        texts,
        ["half", "no", "", "good", "good"].map(|text| Some(text.to_owned()).filter(|it| !it.is_empty()))
    );
}

#[tokio::test]
async fn namespaces_are_caches_of_their_own() {
    let store = Arc::new(MemoryStore::new());
    let model = model(2);
    let one = ResponseCache::new(store.clone()).namespace(["one"]).lifetime(Duration::from_secs(3600));
    let two = ResponseCache::new(store).namespace(["two"]);
    for cache in [&one, &two, &one, &two] {
        ask(cache, &model, ChatRequest::user("hi")).await;
    }
    assert_eq!(model.remaining(), 0);
}

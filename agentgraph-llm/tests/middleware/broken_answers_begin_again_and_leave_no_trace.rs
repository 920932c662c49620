//! An answer that breaks off is asked for again, from the same model or the next. A listener that heeds
//! `Restarted` and the stored message have the last answer alone.

use std::sync::Arc;
use std::time::Duration;

use agentgraph_llm::middleware::{Middleware, ModelFallback, ModelRetry, OnFailure};
use agentgraph_llm::*;
use proptest::prelude::*;
use serde_json::json;

use crate::support::{Take, Takes, TestClock, block_on, events, heard, stored};

fn take() -> impl Strategy<Value = Take> {
    (prop::collection::vec("[a-z]{1,3}", 0..4), any::<bool>())
        .prop_map(|(pieces, breaks)| Take { pieces, breaks })
}

/// Checks the events of attempts at an answer, of which at most `allowed` are made.
fn check(takes: &[Take], allowed: usize, events: &[Result<ChatEvent>]) -> Result<(), TestCaseError> {
    let made = takes.iter().position(|take| !take.breaks).map_or(takes.len(), |at| at + 1).min(allowed);
    let last = &takes[made - 1];
    let began = takes[..made - 1].iter().filter(|take| !take.pieces.is_empty()).count();
    let restarts = events.iter().filter(|event| matches!(event, Ok(ChatEvent::Restarted {}))).count();
    if last.breaks {
        prop_assert!(matches!(events.last(), Some(Err(_))));
    } else {
        prop_assert_eq!(stored(events), Some(last.pieces.concat()));
        prop_assert_eq!(heard(events), last.pieces.concat());
        // One for each attempt of which something was heard.
        prop_assert_eq!(restarts, began);
    }
    Ok(())
}

proptest! {
    #[test]
    fn a_retry_begins_again(takes in prop::collection::vec(take(), 1..6), retries in 0_u32..4) {
        let model = Takes::new("one", takes.clone());
        let retry = ModelRetry::new().max_retries(retries).clock(TestClock::new());
        let events = block_on(events(&retry, model.clone(), ChatRequest::user("hi")));
        let asked = model.requests.lock().unwrap().len();
        prop_assert!(asked <= retries as usize + 1);
        if takes.len() > retries as usize {
            check(&takes, retries as usize + 1, &events)?;
        }
    }

    #[test]
    fn a_fallback_begins_again(takes in prop::collection::vec(take(), 1..6)) {
        let mut models = takes.iter().map(|take| Takes::new("m", [take.clone()]) as Arc<dyn ChatModel>);
        let first = models.next().unwrap();
        let fallback = ModelFallback::new(models);
        check(&takes, takes.len(), &block_on(events(&fallback, first, ChatRequest::user("hi"))))?;
    }
}

fn broken() -> Take {
    Take { pieces: Vec::new(), breaks: true }
}

#[tokio::test]
async fn waits_double_from_a_second_and_two_retries_are_made() {
    let clock = TestClock::new();
    let model = Takes::new("one", vec![broken(); 5]);
    let events =
        events(&ModelRetry::new().clock(clock.clone()), model.clone(), ChatRequest::user("hi")).await;
    assert_eq!(events[0].as_ref().unwrap_err().code(), Code::Overloaded);
    assert_eq!(clock.waits(), [1, 2].map(Duration::from_secs));
    assert_eq!(model.requests.lock().unwrap().len(), 3);
}

#[tokio::test]
async fn a_provider_that_asks_for_a_wait_is_never_asked_earlier() {
    let failure = |seconds| {
        let error = Error::new(Code::RateLimited, "slow down").with_retry_after(Duration::from_secs(seconds));
        ScriptedModel::new([Reply::error(error), Reply::text("hello")])
    };
    let clock = TestClock::new();
    let retry = ModelRetry::new().clock(clock.clone());
    let answered = events(&retry, Arc::new(failure(59)), ChatRequest::user("hi")).await;
    assert_eq!((stored(&answered).as_deref(), clock.waits()), (Some("hello"), vec![Duration::from_secs(59)]));

    let refused = events(&retry, Arc::new(failure(61)), ChatRequest::user("hi")).await;
    assert_eq!(refused[0].as_ref().unwrap_err().retry_after(), Some(Duration::from_secs(61)));
    assert_eq!(clock.waits().len(), 1);
}

#[tokio::test]
async fn errors_that_a_retry_cannot_help_are_not_retried() {
    for (code, asked) in [(Code::Auth, 1), (Code::Billing, 1), (Code::BadRequest, 1), (Code::Server, 2)] {
        let model = ScriptedModel::new([Reply::error(Error::new(code, "")), Reply::text("hello")]);
        events(&ModelRetry::new().clock(TestClock::new()), Arc::new(model.clone()), ChatRequest::user("hi"))
            .await;
        assert_eq!(model.requests().len(), asked, "{code}");
    }
    // Unless you say so.
    let model = ScriptedModel::new([Reply::error(Error::new(Code::BadRequest, "")), Reply::text("hello")]);
    let retry = ModelRetry::new().clock(TestClock::new()).retry_on(|error| error.code() == Code::BadRequest);
    assert_eq!(
        stored(&events(&retry, Arc::new(model), ChatRequest::user("hi")).await).as_deref(),
        Some("hello")
    );
}

#[tokio::test]
async fn a_failure_may_become_the_answer() {
    let retry = ModelRetry::new().max_retries(0).on_failure(OnFailure::Continue);
    let events = events(&retry, Takes::new("one", [broken()]), ChatRequest::user("hi")).await;
    assert!(stored(&events).unwrap().contains("E_LLM_OVERLOADED"));
}

#[tokio::test]
async fn another_model_gets_no_signatures_of_the_first() {
    let first = Takes::new("one", [broken()]);
    let mut call = ToolUse::new("c1", "t", json!({}));
    call.extra.insert("thoughtSignature", json!("s"));
    let answer = Message::new(
        Role::Assistant,
        [Block::from(Thinking::new("hm", Some("signed".into()))), Block::text("so"), call.into()],
    );
    let request = ChatRequest::new([answer.with_origin(&first.info())]);

    let second = Takes::new("two", [Take { pieces: vec!["ok".into()], breaks: false }]);
    let fallback = ModelFallback::new([second.clone() as Arc<dyn ChatModel>]);
    let events = events(&fallback, first.clone(), request.clone()).await;
    assert_eq!(stored(&events).as_deref(), Some("ok"));
    assert_eq!(first.requests.lock().unwrap()[0], request);
    let expected = [Block::text("so"), ToolUse::new("c1", "t", json!({})).into()];
    assert_eq!(second.requests.lock().unwrap()[0].messages[0].content, expected);
}

#[tokio::test]
async fn no_fallback_is_asked_if_the_first_model_answers() {
    let spare = ScriptedModel::new([Reply::text("never")]);
    let fallback = ModelFallback::new([Arc::new(spare.clone()) as Arc<dyn ChatModel>]);
    assert_eq!(fallback.name(), "model_fallback");
    let events = events(&fallback, Arc::new(ScriptedModel::new(["hello"])), ChatRequest::user("hi")).await;
    assert_eq!((stored(&events).as_deref(), spare.requests().len()), (Some("hello"), 0));
}

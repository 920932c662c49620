//! The scripted model, as a user's test uses it.

use agentgraph_llm::StopReason;
use agentgraph_llm::prelude::*;
use agentgraph_llm::{ChatResponse, Code, Error, MessageIds, Origin};
use futures_util::{StreamExt, stream};
use serde_json::json;

#[tokio::test]
async fn a_stream_gives_small_pieces_and_then_the_same_answer_as_a_call() {
    let script = || {
        [Reply::thinking("Two steps.", "sig")
            .and_text("Let me see.")
            .and_tool_call("add", json!({"a": 1}))
            .and_raw_tool_call("add", "{\"b\":")]
    };
    let model = || ScriptedModel::new(script()).message_ids(MessageIds::sequence("m"));
    let called = model().chat(ChatRequest::user("hi")).await.unwrap();
    let events: Vec<_> = model().stream(ChatRequest::user("hi")).await.unwrap().collect().await;
    let shown: Vec<_> = events
        .iter()
        .map(|event| match event.as_ref().unwrap() {
            ChatEvent::TextDelta { index, text } => format!("{index} text {text}"),
            ChatEvent::ThinkingDelta { index, thinking } => format!("{index} thinking {thinking}"),
            ChatEvent::ToolUseStarted { index, id, name } => format!("{index} {id} {name}"),
            ChatEvent::ToolInputDelta { index, json } => format!("{index} input {json}"),
            ChatEvent::Finished(response) => {
                assert_eq!(*response, called);
                "finished".to_owned()
            }
            other => format!("{other:?}"),
        })
        .collect();
    let expected = [
        "0 thinking Two ",
        "0 thinking steps.",
        "1 text Let ",
        "1 text me ",
        "1 text see.",
        "2 call-1 add",
        "2 input {\"a\":",
        "2 input 1}",
        "3 call-2 add",
        "3 input {\"b\":",
        "finished",
    ];
    assert_eq!(shown, expected);
}

#[tokio::test]
async fn a_function_answers_from_the_request_and_a_response_is_given_as_it_is() {
    let model = ScriptedModel::from_fn(|request| match request.messages.len() {
        1 => Reply::text("one"),
        _ => Reply::error(Error::new(Code::RateLimited, "too many")),
    });
    assert_eq!(model.chat(ChatRequest::user("hi")).await.unwrap().message.text(), "one");
    let two = ChatRequest::user("hi").with_message(Message::user("there"));
    assert!(model.stream(two).await.unwrap_err().is_rate_limited());
    assert_eq!(model.requests().len(), 2);

    let message = Message::assistant("as it is").with_origin(Origin::new("other", "model"));
    let response = ChatResponse::new(message, StopReason::PauseTurn);
    let given = ScriptedModel::new([response.clone()]).chat(ChatRequest::user("hi")).await.unwrap();
    assert_eq!(given, response);
}

#[tokio::test]
async fn clones_share_the_script_and_the_records() {
    let model = ScriptedModel::new(["one", "two"]).named("stub");
    let other = model.clone();
    assert_eq!(other.chat(ChatRequest::user("a")).await.unwrap().message.text(), "one");
    assert_eq!(model.chat(ChatRequest::user("b")).await.unwrap().message.text(), "two");
    assert_eq!((model.remaining(), other.requests().len(), model.info().model.as_str()), (0, 2, "stub"));
    let error = other.chat(ChatRequest::user("c")).await.unwrap_err();
    assert_eq!(error.code(), Code::ScriptExhausted);
    assert!(!error.is_retryable(), "a node that retries would hide the mistake");
}

#[tokio::test]
async fn a_stream_without_a_last_event_is_truncated_and_later_events_are_dropped() {
    let piece = || Ok(ChatEvent::TextDelta { index: 0, text: "a".to_owned() });
    let finished =
        || Ok(ChatEvent::Finished(ChatResponse::new(Message::assistant("a"), StopReason::EndTurn)));
    let cut: Vec<_> = ChatStream::new(stream::iter([piece()])).collect().await;
    assert_eq!(cut.len(), 2);
    assert_eq!(cut[1].as_ref().unwrap_err().code(), Code::Truncated);
    let long: Vec<_> =
        ChatStream::new(stream::iter([piece(), finished(), piece(), finished()])).collect().await;
    assert_eq!(long.len(), 2);
    let failed = Err(Error::new(Code::Server, "no"));
    let failed: Vec<_> = ChatStream::new(stream::iter([failed, finished()])).collect().await;
    assert_eq!(failed.len(), 1);
}

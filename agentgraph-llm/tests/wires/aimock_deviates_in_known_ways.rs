//! Where `aimock` does not do what the provider does. If a test fails here, `aimock` has changed: the claim
//! goes, and the table of behaviours gets the case if it can now be asked.

use agentgraph::store::Embedder as _;
use agentgraph_llm::openai::OpenAiEmbedder;
use agentgraph_llm::prelude::*;
use agentgraph_llm::{Code, GeminiEmbedder, OutputSpec, StopReason, ToolInput};
use serde_json::{Value, json};

use crate::wires::aimock::{Aimock, find, fixture, in_pieces};
use crate::wires::anthropic_messages::AnthropicMessages;
use crate::wires::gemini::Gemini;
use crate::wires::openai_chat::OpenAiChat;
use crate::wires::openai_responses::OpenAiResponses;
use crate::wires::wire::{KEY, WIRES, Wire};

/// The body of the answer to a POST, whatever its status.
async fn post(url: &str, body: Value) -> String {
    let request = reqwest::Client::new().post(url).header("content-type", "application/json");
    request.body(body.to_string()).send().await.unwrap().text().await.unwrap()
}

/// Anthropic and Gemini send arguments as they are; a model's broken JSON is not in the answer at all.
#[tokio::test]
#[ignore = "needs aimock: run `.ci/aimock`"]
async fn broken_arguments_become_an_empty_object_on_two_wires() {
    let calls = json!([{"id": "call_1", "name": "find", "arguments": "{\"path\": "}]);
    let aimock = Aimock::start("broken_arguments", &[fixture("Look", json!({"toolCalls": calls}))]);
    let wires: [(&dyn Wire, &str); 4] = [
        (&AnthropicMessages, "{}"),
        (&Gemini, "{}"),
        (&OpenAiChat, "{\"path\": "),
        (&OpenAiResponses, "{\"path\": "),
    ];
    for (wire, arguments) in wires {
        let response = aimock.model(wire).chat(ChatRequest::user("Look")).await.unwrap();
        let call = response.message.tool_uses().next().unwrap();
        assert_eq!(call.input.text(), arguments, "{}", wire.name());
        assert_eq!(matches!(call.input, ToolInput::Json(_)), arguments == "{}", "{}", wire.name());
    }
}

/// Gemini says `STOP` after calls, too, and knows no such reason.
#[tokio::test]
#[ignore = "needs aimock: run `.ci/aimock`"]
async fn gemini_ends_a_call_with_a_reason_of_its_own() {
    let calls = json!([{"id": "call_1", "name": "find", "arguments": "{}"}]);
    let aimock = Aimock::start("finish_reason", &[fixture("Look", json!({"toolCalls": calls}))]);
    let url = format!("{}/v1beta/models/m:generateContent", aimock.url);
    let body = post(&url, json!({"contents": [{"role": "user", "parts": [{"text": "Look"}]}]})).await;
    assert!(body.contains("\"finishReason\":\"FUNCTION_CALL\""), "{body}");
}

/// No provider is known to cut a character in two, since none counts in UTF-16.
#[tokio::test]
#[ignore = "needs aimock: run `.ci/aimock`"]
async fn characters_are_cut_between_their_units() {
    let aimock = Aimock::start("halves", &[in_pieces("Hello", json!({"content": "🦀"}))]);
    let url = format!("{}/v1/chat/completions", aimock.url);
    let body =
        post(&url, json!({"model": "m", "stream": true, "messages": [{"role": "user", "content": "Hello"}]}));
    let body = body.await;
    assert!(body.contains(r#""content":"\ud83e""#) && body.contains(r#""content":"\udd80""#), "{body}");
}

/// OpenAI's newer models are instructed by the role `developer`.
#[tokio::test]
#[ignore = "needs aimock: run `.ci/aimock`"]
async fn instructions_of_the_role_developer_are_not_read() {
    let mut answer = fixture("Hello", json!({"content": "Hi"}));
    answer["match"]["systemMessage"] = json!("Be brief");
    let aimock = Aimock::start("developer", &[answer]);
    for wire in WIRES {
        let request = ChatRequest::user("Hello").with_system("Be brief");
        let answer = aimock.model(*wire).chat(request).await;
        match wire.name() {
            "OpenAI Chat Completions" => assert_eq!(answer.unwrap_err().code(), Code::NotFound),
            name => assert_eq!(answer.unwrap().message.text(), "Hi", "{name}"),
        }
    }
}

/// The form of an answer is a field of each wire.
#[tokio::test]
#[ignore = "needs aimock: run `.ci/aimock`"]
async fn the_form_of_an_answer_is_read_on_chat_completions_only() {
    let mut answer = fixture("Where", json!({"content": "{}"}));
    answer["match"]["responseFormat"] = json!("json_schema");
    let aimock = Aimock::start("form_match", &[answer]);
    for wire in WIRES {
        let schema = json!({"type": "object", "properties": {}});
        let request = ChatRequest::user("Where").with_output(OutputSpec::new("place", schema));
        let answer = aimock.model(*wire).chat(request).await;
        match wire.name() {
            "OpenAI Chat Completions" => assert!(answer.is_ok(), "{answer:?}"),
            name => assert_eq!(answer.unwrap_err().code(), Code::NotFound, "{name}"),
        }
    }
}

/// Three providers count tokens.
#[tokio::test]
#[ignore = "needs aimock: run `.ci/aimock`"]
async fn no_wire_counts_tokens() {
    let aimock = Aimock::start("count", &[fixture("Hello", json!({"content": "Hi"}))]);
    for wire in WIRES {
        // The server has no such path, so this is our estimate.
        let count = aimock.model(*wire).count_tokens(&ChatRequest::user("Hello")).await;
        assert!(!count.unwrap().is_exact, "{}", wire.name());
    }
}

/// The providers always report usage. aimock guesses it on Chat Completions and says 0 elsewhere.
#[tokio::test]
#[ignore = "needs aimock: run `.ci/aimock`"]
async fn usage_is_zero_unless_it_is_set() {
    let aimock = Aimock::start("usage", &[fixture("Hello", json!({"content": "Hi"}))]);
    for wire in WIRES {
        let response = aimock.model(*wire).chat(ChatRequest::user("Hello")).await.unwrap();
        let is_guessed = wire.name() == "OpenAI Chat Completions";
        assert_eq!(response.usage.total() > 0, is_guessed, "{}: {:?}", wire.name(), response.usage);
    }
}

/// The id is in OpenAI's header on every wire, so that Anthropic's and Gemini's own are missing.
#[tokio::test]
#[ignore = "needs aimock: run `.ci/aimock`"]
async fn requests_have_an_id_in_the_header_of_openai_only() {
    let aimock = Aimock::start("request_id", &[fixture("Hello", json!({"content": "Hi"}))]);
    for wire in WIRES {
        let response = aimock.model(*wire).chat(ChatRequest::user("Hello")).await.unwrap();
        assert_eq!(response.request_id.is_some(), wire.request_id() == "x-request-id", "{}", wire.name());
        assert!(response.limits.is_none(), "{}", wire.name());
    }
}

/// Anthropic's errors have a `type` at the top, and their money in `details`; Gemini's quota is in `details`.
#[tokio::test]
#[ignore = "needs aimock: run `.ci/aimock`"]
async fn errors_have_no_details() {
    let details = json!({"error_code": "enforced_spend_limit_reached"});
    let error = json!({"message": "no more", "type": "rate_limit_error", "details": details});
    let aimock = Aimock::start("details", &[fixture("Hello", json!({"error": error, "status": 429}))]);
    let settings = crate::wires::wire::Settings { max_retries: 0, ..aimock.settings(&AnthropicMessages) };
    let model = AnthropicMessages.model(&settings).unwrap();
    assert_eq!(model.chat(ChatRequest::user("Hello")).await.unwrap_err().code(), Code::RateLimited);

    let body = json!({"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "Unknown"}]});
    let body = post(&format!("{}/v1/messages", aimock.url), body).await;
    let body: Value = serde_json::from_str(&body).unwrap();
    assert_eq!((&body["type"], &body["error"]["message"]), (&Value::Null, &json!("No fixture matched")));
}

/// The providers refuse a result without its call, and Anthropic a request without `max_tokens`.
#[tokio::test]
#[ignore = "needs aimock: run `.ci/aimock`"]
async fn requests_are_not_checked() {
    let aimock = Aimock::start("checks", &[json!({"match": {}, "response": {"content": "Hi"}})]);
    for wire in WIRES {
        let orphan = Message::tool_results([ToolResult::text("call_of_nobody", "none")]);
        let request = ChatRequest::new([Message::user("Hello"), orphan]).with_tools([find()]);
        let response = aimock.model(*wire).chat(request).await.unwrap();
        assert_eq!(response.stop, StopReason::EndTurn, "{}", wire.name());
    }
    let body = json!({"messages": [{"role": "user", "content": "Hello"}], "model": "m"});
    let body = post(&format!("{}/v1/messages", aimock.url), body).await;
    assert!(body.contains("\"role\":\"assistant\""), "{body}");
}

/// A signature is a secret of the provider; this one is the same for every text.
#[tokio::test]
#[ignore = "needs aimock: run `.ci/aimock`"]
async fn only_anthropics_thinking_is_signed_and_always_alike() {
    let aimock = Aimock::start("signatures", &[fixture("Think", json!({"content": "a", "reasoning": "b"}))]);
    for wire in WIRES {
        let response = aimock.model(*wire).chat(ChatRequest::user("Think")).await.unwrap();
        let Block::Thinking(thinking) = &response.message.content[0] else { panic!("{response:?}") };
        let signature = (wire.name() == "Anthropic Messages").then_some("aimock-placeholder-signature");
        assert_eq!(thinking.signature.as_deref(), signature, "{}", wire.name());
    }
}

/// OpenAI sends one vector for each text. aimock answers for all with the vector of their joined text.
#[tokio::test]
#[ignore = "needs aimock: run `.ci/aimock`"]
async fn texts_of_one_request_have_the_same_vector() {
    let vector =
        |text: &str, value: f32| json!({"match": {"inputText": text}, "response": {"embedding": [value]}});
    let aimock = Aimock::start("one_vector", &[vector("cat", 1.0), vector("dog", 2.0)]);
    let embedder = OpenAiEmbedder::builder().api_key(KEY).model("m").dimensions(1).base_url(&aimock.url);
    let vectors = embedder.build().unwrap().embed(&["cat".to_owned(), "dog".to_owned()]).await.unwrap();
    assert_eq!(vectors, [[1.0], [1.0]]);
}

/// It has Gemini's `embedContent`, but not the method for several texts.
#[tokio::test]
#[ignore = "needs aimock: run `.ci/aimock`"]
async fn gemini_has_no_vectors_for_several_texts() {
    let answer = json!({"match": {"inputText": "cat"}, "response": {"embedding": [1.0]}});
    let aimock = Aimock::start("gemini_vectors", &[answer]);
    let embedder = GeminiEmbedder::builder().api_key(KEY).model("m").dimensions(1).base_url(&aimock.url);
    let error = embedder.build().unwrap().embed(&["cat".to_owned()]).await.unwrap_err();
    let error = error.downcast_ref::<agentgraph_llm::Error>().unwrap();
    assert_eq!(error.code(), Code::NotFound, "{error}");
}

//! A real engine, the server of llama.cpp, and our client. `.ci/llama` starts it with a model of random
//! weights, which rarely ends a text: requests limit their tokens.

use agentgraph::store::Embedder as _;
use agentgraph_llm::openai::{OpenAiChatModel, OpenAiEmbedder, OpenAiModel, Profile};
use agentgraph_llm::prelude::*;
use agentgraph_llm::{AnthropicModel, Code, OutputSpec, StopReason, ToolInput};
use futures_util::StreamExt as _;
use serde_json::{Value, json};

use crate::talk::KEY;

fn address(variable: &str) -> String {
    std::env::var(variable).expect("run `.ci/llama`, which sets the addresses of the servers")
}

fn model() -> OpenAiChatModel {
    at("LLAMA_CPP", Profile::llama_cpp())
}

/// The same engine, with a model that opens a call wherever the grammar allows it.
fn caller() -> OpenAiChatModel {
    at("LLAMA_CPP_CALLS", Profile::llama_cpp())
}

fn at(variable: &str, profile: Profile) -> OpenAiChatModel {
    let model = OpenAiChatModel::builder().profile(profile).model("random").api_key(KEY);
    model.base_url(address(variable)).temperature(0.0).max_retries(0).build().unwrap()
}

fn tools() -> [ToolSpec; 2] {
    let weather = json!({"type": "object", "properties": {"city": {"enum": ["Oslo", "Rome"]}},
        "required": ["city"], "additionalProperties": false});
    let clock = json!({"type": "object", "properties": {}, "additionalProperties": false});
    [ToolSpec::new("clock", "The time.", clock), ToolSpec::new("weather", "The weather.", weather)]
}

fn call(choice: ToolChoice) -> ChatRequest {
    ChatRequest::user("Hi").with_tools(tools()).with_tool_choice(choice).with_max_tokens(120)
}

fn is_weather(input: &ToolInput) -> bool {
    let ToolInput::Json(input) = input else { return false };
    let input: Value = serde_json::from_str(input.get()).unwrap();
    input == json!({"city": "Oslo"}) || input == json!({"city": "Rome"})
}

#[tokio::test]
#[ignore = "needs an engine: run `.ci/llama`"]
async fn text_is_streamed_up_to_the_limit() {
    let request = ChatRequest::user("Hi").with_system("Be brief").with_max_tokens(24);
    let mut stream = model().stream(request.clone()).await.unwrap();
    let (mut deltas, mut response) = (Vec::new(), None);
    while let Some(event) = stream.next().await {
        match event.unwrap() {
            ChatEvent::TextDelta { text, .. } => deltas.push(text),
            ChatEvent::Finished(finished) => response = Some(finished),
            other => panic!("{other:?}"),
        }
    }
    let response = response.unwrap();
    assert!(deltas.len() > 5, "{deltas:?}");
    assert_eq!(deltas.concat(), response.message.text());
    assert_eq!((response.stop, response.usage.output_total), (StopReason::MaxTokens, 24));
    assert_eq!(response.model, "random");

    let again = model().chat(request).await.unwrap();
    assert_eq!(again.message.text(), response.message.text());
    assert_eq!(again.usage.input_total, response.usage.input_total);
    assert!(again.usage.input_cached_read > 0, "{:?}", again.usage);
}

#[tokio::test]
#[ignore = "needs an engine: run `.ci/llama`"]
async fn tokens_are_counted_as_they_are_used() {
    let counted = model().count_tokens(&call(ToolChoice::any())).await.unwrap();
    let used = model().chat(call(ToolChoice::any()).with_max_tokens(1)).await.unwrap().usage;
    assert_eq!((counted.tokens, counted.is_exact), (used.input_total, true));
    assert!(model().info().capabilities.token_count);
}

#[tokio::test]
#[ignore = "needs an engine: run `.ci/llama`"]
async fn a_forced_call_is_bound_by_the_grammar() {
    let mut stream = caller().stream(call(ToolChoice::tool("weather"))).await.unwrap();
    let (mut pieces, mut response) = (Vec::new(), None);
    while let Some(event) = stream.next().await {
        match event.unwrap() {
            ChatEvent::ToolInputDelta { index: 0, json } => pieces.push(json),
            ChatEvent::Finished(finished) => response = Some(finished),
            _ => {}
        }
    }
    let response = response.unwrap();
    let calls: Vec<_> = response.message.tool_uses().collect();
    assert!(pieces.len() > 3, "{pieces:?}");
    assert_eq!(pieces.concat(), calls[0].input.text());
    assert!(calls.iter().all(|call| call.name == "weather" && !call.id.is_empty()), "{calls:?}");
    // The last one was cut by the limit.
    let (_, complete) = calls.split_last().unwrap();
    assert!(!complete.is_empty() && complete.iter().all(|call| is_weather(&call.input)), "{calls:?}");
}

/// The server takes `tool_choice` with a name, and lets the model call another tool. So the profile sends
/// the named tool alone. If this fails, the server has learned it, and the profile changes.
#[tokio::test]
#[ignore = "needs an engine: run `.ci/llama`"]
async fn the_server_itself_does_not_force_a_tool_by_name() {
    let mut profile = Profile::llama_cpp();
    profile.names_forced_tool = true;
    let model = at("LLAMA_CPP_CALLS", profile);
    for name in ["clock", "weather"] {
        let response = model.chat(call(ToolChoice::tool(name))).await.unwrap();
        let calls: Vec<_> = response.message.tool_uses().map(|call| call.name.clone()).collect();
        assert!(calls.iter().all(|call| call == &calls[0]), "{calls:?}");
        if name != calls[0] {
            return;
        }
    }
    panic!("both tools were called as they were asked for");
}

#[tokio::test]
#[ignore = "needs an engine: run `.ci/llama`"]
async fn results_of_calls_are_taken_even_if_the_last_call_was_cut() {
    let request = call(ToolChoice::tool("weather"));
    let mut limits = 10..60;
    let cut = loop {
        let limit = limits.next().expect("a limit that cuts a call");
        let response = caller().chat(request.clone().with_max_tokens(limit)).await.unwrap();
        assert!(response.stop.is_truncated(), "{response:?}");
        if response.message.tool_uses().any(|call| matches!(call.input, ToolInput::Malformed(_))) {
            break response;
        }
    };
    let call = cut.message.tool_uses().next().unwrap().clone();
    let result = ToolResult::error(&call.id, "the arguments are no JSON");
    let next = request.with_message(cut.message).with_message(Message::tool_results([result]));
    let next = next.with_tool_choice(ToolChoice::auto()).with_max_tokens(5);
    assert_eq!(model().chat(next).await.unwrap().usage.output_total, 5);
}

#[tokio::test]
#[ignore = "needs an engine: run `.ci/llama`"]
async fn an_answer_has_the_form_of_the_schema() {
    let schema = json!({"type": "object", "properties": {"kind": {"enum": ["a", "b"]}, "n": {"type": "boolean"}},
        "required": ["kind", "n"], "additionalProperties": false});
    let request = ChatRequest::user("Hi").with_output(OutputSpec::new("place", schema)).with_max_tokens(200);
    let response = model().chat(request).await.unwrap();
    let value: Value = serde_json::from_str(&response.message.text()).unwrap();
    assert!(["a", "b"].contains(&value["kind"].as_str().unwrap()) && value["n"].is_boolean(), "{value}");
    assert_eq!(response.stop, StopReason::EndTurn);
}

#[tokio::test]
#[ignore = "needs an engine: run `.ci/llama`"]
async fn a_dropped_stream_frees_the_server() {
    let url = format!("{}/slots", address("LLAMA_CPP"));
    let busy = async || {
        let slots =
            reqwest::Client::new().get(&url).bearer_auth(KEY).send().await.unwrap().text().await.unwrap();
        slots.matches("\"is_processing\":true").count()
    };
    let long = || ChatRequest::user("Tell").with_max_tokens(900);
    for _ in 0..3 {
        let mut first = model().stream(long()).await.unwrap();
        let mut second = model().stream(long()).await.unwrap();
        first.next().await.unwrap().unwrap();
        second.next().await.unwrap().unwrap();
        drop((first, second));
    }
    while busy().await > 0 {}
    model().chat(ChatRequest::user("Hi").with_max_tokens(1)).await.unwrap();
}

#[tokio::test]
#[ignore = "needs an engine: run `.ci/llama`"]
async fn refusals_have_their_codes() {
    let refused = async |model: OpenAiChatModel, request: ChatRequest| {
        model.chat(request.with_max_tokens(5)).await.unwrap_err().code()
    };
    let long = ChatRequest::user("word ".repeat(1000));
    assert_eq!(refused(model(), long).await, Code::TooLarge);
    let form = OutputSpec::new("strange", json!({"type": "strange"}));
    assert_eq!(refused(model(), ChatRequest::user("Hi").with_output(form)).await, Code::BadRequest);
    let stranger =
        OpenAiChatModel::builder().profile(Profile::llama_cpp()).model("random").api_key("sk-wrong");
    let stranger = stranger.base_url(address("LLAMA_CPP")).build().unwrap();
    assert_eq!(refused(stranger, ChatRequest::user("Hi")).await, Code::Auth);

    let embedder = OpenAiEmbedder::builder().model("random").dimensions(64).api_key(KEY);
    let error = embedder.base_url(address("LLAMA_CPP")).build().unwrap().embed(&["a".to_owned()]).await;
    let error = error.unwrap_err();
    assert_eq!(error.downcast_ref::<agentgraph_llm::Error>().unwrap().code(), Code::BadRequest, "{error}");
}

#[tokio::test]
#[ignore = "needs an engine: run `.ci/llama`"]
async fn texts_become_vectors() {
    let embedder = OpenAiEmbedder::builder().model("random").dimensions(64).api_key(KEY);
    let embedder = embedder.base_url(address("LLAMA_CPP_VECTORS")).build().unwrap();
    let texts = ["cat", "dog", "cat"].map(str::to_owned);
    let vectors = embedder.embed(&texts).await.unwrap();
    let product = |a: usize, b: usize| vectors[a].iter().zip(&vectors[b]).map(|(a, b)| a * b).sum::<f32>();
    assert!(product(0, 2) > 0.999 && product(0, 1) < 0.99, "{vectors:?}");
    assert_eq!(embedder.embed_query("dog").await.unwrap().len(), 64);
}

/// The engine speaks these wires, too: without `input` at the start of a call, without indexes and sequence
/// numbers in the events of Responses.
#[tokio::test]
#[ignore = "needs an engine: run `.ci/llama`"]
async fn the_other_wires_of_the_server_are_read() {
    for variable in ["LLAMA_CPP", "LLAMA_CPP_CALLS"] {
        let url = address(variable);
        let messages = AnthropicModel::builder().model("random").api_key(KEY).base_url(&url).build().unwrap();
        let responses = OpenAiModel::builder().model("random").api_key(KEY).base_url(&url).build().unwrap();
        let models: [&dyn ChatModel; 2] = [&messages, &responses];
        for model in models {
            let name = model.info().provider;
            let request = match variable {
                "LLAMA_CPP" => ChatRequest::user("Hi").with_max_tokens(9),
                _ => call(ToolChoice::any()).with_temperature(0.0),
            };
            let limit = u64::from(request.max_tokens.unwrap());
            let counted = model.count_tokens(&request).await.unwrap();
            let response = model.chat(request.clone()).await.unwrap();
            let used = (response.usage.input_total, response.usage.output_total);
            assert_eq!(used, (counted.tokens, limit), "{name}");
            let calls: Vec<_> = response.message.tool_uses().collect();
            assert_eq!(calls.is_empty(), request.tools.is_empty(), "{name}: {response:?}");
            assert!(
                calls.iter().all(|call| !call.id.is_empty() && !call.name.is_empty()),
                "{name}: {calls:?}"
            );
        }
    }
}

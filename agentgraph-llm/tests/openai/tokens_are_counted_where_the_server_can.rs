//! Chat Completions has no way to count tokens, but some of its servers do.

use agentgraph_llm::TokenCount;
use agentgraph_llm::openai::{OpenAiChatModel, Profile};
use agentgraph_llm::prelude::*;
use serde_json::{Value, json};

use crate::server::{Reply, Server};
use crate::talk::KEY;

fn model(server: &Server, profile: Profile) -> OpenAiChatModel {
    let model = OpenAiChatModel::builder().profile(profile).model("m").api_key(KEY).max_retries(0);
    model.base_url(&server.url).build().unwrap()
}

#[tokio::test]
async fn the_path_of_the_profile_is_asked() {
    let server = Server::start([Reply::json(200, "", r#"{"input_tokens": 19, "object": "o"}"#)]).await;
    let model = model(&server, Profile::llama_cpp());
    assert!(model.info().capabilities.token_count);
    let count = model.count_tokens(&ChatRequest::user("Hi")).await.unwrap();
    assert_eq!(count, TokenCount::exact(19));
    let request = &server.requests()[0];
    assert!(request.head.starts_with("post /v1/chat/completions/input_tokens "), "{}", request.head);
    let body: Value = serde_json::from_str(&request.body).unwrap();
    assert_eq!(body, json!({"model": "m", "messages": [{"role": "user", "content": "Hi"}]}));
}

#[tokio::test]
async fn a_server_without_the_path_is_no_failure() {
    let server = Server::start([
        Reply::json(
            404,
            "",
            r#"{"error": {"code": 404, "message": "File Not Found", "type": "not_found_error"}}"#,
        ),
        Reply::json(
            401,
            "",
            r#"{"error": {"code": 401, "message": "Invalid API Key", "type": "authentication_error"}}"#,
        ),
    ])
    .await;
    let model = model(&server, Profile::llama_cpp());
    let request = ChatRequest::user("Hi");
    assert_eq!(model.count_tokens(&request).await.unwrap(), TokenCount::estimate(&request));
    assert!(model.count_tokens(&request).await.unwrap_err().is_auth());
}

#[tokio::test]
async fn other_profiles_estimate() {
    let server = Server::start([]).await;
    for profile in [Profile::openai(), Profile::ollama(), Profile::vllm()] {
        let model = model(&server, profile);
        assert!(!model.info().capabilities.token_count);
        assert!(!model.count_tokens(&ChatRequest::user("Hi")).await.unwrap().is_exact);
    }
    assert!(server.requests().is_empty());
}

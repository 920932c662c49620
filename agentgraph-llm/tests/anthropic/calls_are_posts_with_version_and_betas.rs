//! The requests on the wire: paths, headers and bodies.

use agentgraph_llm::prelude::*;
use agentgraph_llm::{AnthropicModel, AnthropicModelBuilder, Code};

use crate::server::{Reply, Server, Waits};

const DONE: &str = r#"{"content":[{"type":"text","text":"done"}],"stop_reason":"end_turn","usage":{}}"#;

fn builder(server: &Server) -> AnthropicModelBuilder {
    let builder = AnthropicModel::builder().api_key("sk-hunter2-hunter2").model("claude-test");
    builder.base_url(&server.url).clock(Waits::default())
}

fn has_line(head: &str, line: &str) -> bool {
    head.lines().any(|got| got == line)
}

#[tokio::test]
async fn a_call_is_one_post_with_version_betas_and_defaults() {
    let server = Server::start([Reply::json(200, "", DONE), Reply::json(200, "", DONE)]).await;
    let model = builder(&server).beta("a-1").beta("b-2").temperature(0.5).max_tokens(9).build().unwrap();
    model.chat(ChatRequest::user("hi")).await.unwrap();
    model.chat(ChatRequest::user("hi").with_temperature(0.0)).await.unwrap();

    let requests = server.requests();
    assert_eq!(requests.len(), 2);
    let head = &requests[0].head;
    assert!(head.starts_with("post /v1/messages http/1.1\r\n"), "{head}");
    for line in ["anthropic-version: 2026-10-21", "anthropic-beta: a-1,b-2", "content-type: application/json"]
    {
        assert!(has_line(head, line), "{line} in {head}");
    }
    let turns = r#""messages":[{"role":"user","content":[{"type":"text","text":"hi"}]}]"#;
    for (request, temperature) in requests.iter().zip(["0.5", "0.0"]) {
        let expected = format!(
            r#"{{"model":"claude-test","max_tokens":9,{turns},"temperature":{temperature},"stream":true}}"#
        );
        assert_eq!(request.body, expected);
    }
}

#[tokio::test]
async fn the_version_of_the_api_can_be_set() {
    let server = Server::start([Reply::json(200, "", DONE)]).await;
    let model = builder(&server).api_version("2023-06-01").build().unwrap();
    model.chat(ChatRequest::user("hi")).await.unwrap();
    let head = server.requests().remove(0).head;
    assert!(has_line(&head, "anthropic-version: 2023-06-01") && !head.contains("anthropic-beta"), "{head}");
    assert_eq!(builder(&server).api_version("a\nb").build().unwrap_err().code(), Code::Config);
    assert_eq!(builder(&server).header("a b", "c").build().unwrap_err().code(), Code::Config);
}

#[tokio::test]
async fn the_server_counts_tokens() {
    let replies = [
        Reply::json(200, "", r#"{"input_tokens": 14}"#),
        Reply::json(500, "", ""),
        Reply::json(200, "", r#"{"input_tokens": 15}"#),
        Reply::json(200, "", r#"{"input_tokens": "many"}"#),
        Reply::json(200, "", r#"{"type": "error", "error": {"type": "not_found_error"}}"#),
    ];
    let server = Server::start(replies).await;
    let model = builder(&server).build().unwrap();
    let request = ChatRequest::user("hi").with_temperature(0.5).with_max_tokens(7).with_system("brief");
    for expected in [14, 15] {
        let count = model.count_tokens(&request).await.unwrap();
        assert_eq!((count.tokens, count.is_exact), (expected, true));
    }
    for code in [Code::Decode, Code::NotFound] {
        assert_eq!(model.count_tokens(&request).await.unwrap_err().code(), code);
    }
    let sent = server.requests().remove(0);
    assert!(sent.head.starts_with("post /v1/messages/count_tokens http/1.1\r\n"), "{}", sent.head);
    let turns = r#""messages":[{"role":"user","content":[{"type":"text","text":"hi"}]}]"#;
    assert_eq!(sent.body, format!(r#"{{"model":"claude-test","system":"brief",{turns}}}"#));
    assert!(model.info().capabilities.token_count);
}

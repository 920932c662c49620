use std::process::{Command, Stdio};
use std::time::Duration;

use agentgraph::CancellationToken;
use agentgraph_llm::mcp::{McpClient, McpProtocol, McpServer};
use agentgraph_llm::prelude::*;
use agentgraph_llm::{Code, Error};
use serde_json::json;
use tokio::net::TcpListener;

use crate::call;
use crate::scripted_server::Script;

fn code(error: ToolError) -> Code {
    let ToolError::Fatal(error) = error else { panic!("expected a fatal error, got {error:?}") };
    error.downcast_ref::<Error>().unwrap().code()
}

#[tokio::test]
async fn a_server_that_exits_during_a_call_is_a_typed_error() {
    let client = Script::with_tool("look").read().client().connect().await.unwrap();
    let tool = &client.tools().await.unwrap()[0];
    assert_eq!(code(call(tool, json!({})).await.unwrap_err()), Code::Connection);
    // The same for every later call.
    assert_eq!(code(call(tool, json!({})).await.unwrap_err()), Code::Connection);
    let error = client.tools().await.unwrap_err();
    assert!(error.code() == Code::Connection && !error.is_retryable(), "{error}");
}

#[tokio::test]
async fn after_a_restart_the_error_says_what_to_do_and_a_new_client_goes_on() {
    let server =
        || Script::with_tool("look").answer(json!({"content": [{"type": "text", "text": "ok"}]})).read();
    let client = server().client().connect().await.unwrap();
    let tool = &client.tools().await.unwrap()[0];
    assert!(call(tool, json!({})).await.is_ok());
    let gone = call(tool, json!({})).await.unwrap_err();
    assert!(gone.to_string().contains("connect again, with a new `McpClient`"), "{gone}");
    let client = server().client().connect().await.unwrap();
    assert!(call(&client.tools().await.unwrap()[0], json!({})).await.is_ok());
}

#[tokio::test]
async fn an_http_server_that_restarts_is_reached_by_the_same_client() {
    for protocol in [McpProtocol::Stateless, McpProtocol::Handshake] {
        let stop = CancellationToken::new();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = |stop: &CancellationToken| McpServer::new("echo", "1").tool(echo()).stop(stop.clone());
        let first = tokio::spawn(server(&stop).serve_http_on(listener));
        let client =
            McpClient::http(format!("http://{address}/mcp")).protocol(protocol).connect().await.unwrap();
        let tool = &client.tools().await.unwrap()[0];
        assert!(call(tool, json!({})).await.is_ok());

        stop.cancel();
        first.await.unwrap().unwrap();
        let refused = call(tool, json!({})).await.unwrap_err();
        assert_eq!(code(refused), Code::Connection);

        let listener = TcpListener::bind(address).await.unwrap();
        tokio::spawn(server(&CancellationToken::new()).serve_http_on(listener));
        assert_eq!(call(tool, json!({})).await.unwrap(), ToolOutput::text("ok"), "{protocol:?}");
    }
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}

fn echo() -> FnTool {
    FnTool::new("echo", "", async |_: Nothing| Ok::<_, ToolError>("ok"))
}

#[tokio::test]
async fn a_closed_client_is_a_typed_error() {
    let client = Script::with_tool("look").hang().client().connect().await.unwrap();
    let tool = &client.tools().await.unwrap()[0];
    client.close().await;
    assert!(client.is_closed());
    assert_eq!(code(call(tool, json!({})).await.unwrap_err()), Code::Connection);
}

#[tokio::test]
async fn a_call_without_an_answer_ends_with_its_timeout() {
    let hanging = Script::with_tool("look").hang().client().timeout(Duration::from_millis(300));
    let client = hanging.connect().await.unwrap();
    let tool = &client.tools().await.unwrap()[0];
    let late = call(tool, json!({})).await;
    assert!(matches!(&late, Err(ToolError::Failed(why)) if why.contains("longer than 300ms")), "{late:?}");
    assert_eq!(client.tools().await.unwrap_err().code(), Code::Timeout);
}

#[tokio::test]
async fn a_server_that_says_nothing_ends_with_the_connect_timeout() {
    for protocol in [McpProtocol::Auto, McpProtocol::Handshake, McpProtocol::Stateless] {
        let silent =
            Script::empty().hang().client().protocol(protocol).connect_timeout(Duration::from_millis(300));
        let error = silent.connect().await.unwrap_err();
        let asked = if protocol == McpProtocol::Handshake { "`initialize`" } else { "`server/discover`" };
        assert_eq!(error.code(), Code::Timeout);
        assert!(
            error.message().contains(asked) && error.message().contains("`connect_timeout(..)`"),
            "{error}"
        );
    }
}

#[tokio::test]
async fn a_server_that_cannot_start_is_a_typed_error() {
    let missing = McpClient::command(Command::new("/no/such/program")).connect().await.unwrap_err();
    assert!(missing.code() == Code::Config && missing.message().contains("/no/such/program"), "{missing}");
    let ended = Script::empty().client().connect().await.unwrap_err();
    assert_eq!(ended.code(), Code::Connection, "{ended}");
    let mut command = Command::new("sh");
    command.args(["-c", "echo usage: none; echo more >&2; exit 1"]);
    let no_server = McpClient::command(command).stderr(Stdio::null()).connect().await.unwrap_err();
    assert_eq!(no_server.code(), Code::Connection, "{no_server}");
}

#[tokio::test]
async fn an_address_without_a_server_is_a_typed_error() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap();
    drop(free);
    let builder = McpClient::http(format!("http://{address}/mcp?key=in-the-url"));
    let error = builder.bearer("a-secret").header("x-key", "another".to_owned()).connect().await.unwrap_err();
    assert_eq!(error.code(), Code::Connection, "{error}");
    for secret in ["in-the-url", "a-secret", "another"] {
        assert!(!error.to_string().contains(secret) && !format!("{error:?}").contains(secret), "{error:?}");
    }
    let error = McpClient::http("not an address").connect().await.unwrap_err();
    assert_eq!(error.code(), Code::Config, "{error}");
}

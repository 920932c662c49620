use agentgraph_llm::mcp::{McpClient, McpProtocol, McpServer};
use agentgraph_llm::prelude::*;
use futures_util::FutureExt;
use serde_json::json;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use crate::scripted_server::Script;
use crate::{call, served};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}

/// Reports the end of what holds it.
struct Reports(UnboundedSender<&'static str>);

impl Drop for Reports {
    fn drop(&mut self) {
        let _ = self.0.send("ended");
    }
}

/// A tool that never answers.
fn endless(says: UnboundedSender<&'static str>) -> FnTool {
    FnTool::new("endless", "", move |_: Nothing| {
        let says = says.clone();
        async move {
            let _reports = Reports(says.clone());
            let _ = says.send("began");
            std::future::pending::<()>().await;
            Ok::<_, ToolError>("")
        }
    })
}

#[tokio::test]
async fn a_tool_ends_when_its_caller_stops_waiting() {
    for protocol in [McpProtocol::Handshake, McpProtocol::Stateless] {
        let (says, mut hears) = unbounded_channel();
        let url = served(McpServer::new("endless", "1").tool(endless(says))).await;
        let client = McpClient::http(url).protocol(protocol).connect().await.unwrap();
        let tool = client.tools().await.unwrap().remove(0);
        let waiting = tokio::spawn(async move { call(&tool, json!({})).await });
        assert_eq!(hears.recv().await, Some("began"));
        waiting.abort();
        assert_eq!(hears.recv().await, Some("ended"), "{protocol:?}");
    }
}

#[tokio::test]
async fn a_program_is_told_that_its_caller_stops_waiting() {
    // The answer to the second call says what the server has read between the calls.
    let server = Script::with_tool("look")
        .read()
        .run(r#"read -r line; case "$line" in *notifications/cancelled*requestId*) ;; *) exit ;; esac"#)
        .answer(json!({"content": [{"type": "text", "text": "it was cancelled"}]}))
        .hang();
    let client = server.client().connect().await.unwrap();
    let tool = client.tools().await.unwrap().remove(0);
    // Polled until the call is sent, and dropped.
    let mut abandoned = Box::pin(call(&tool, json!({})));
    for _ in 0..100 {
        assert!((&mut abandoned).now_or_never().is_none());
        tokio::task::yield_now().await;
    }
    drop(abandoned);
    tokio::task::yield_now().await;
    let second = call(&tool, json!({})).await.unwrap();
    assert_eq!(second, ToolOutput::text("it was cancelled"));
}

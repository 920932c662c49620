//! The reference servers of the protocol's authors. `.ci/mcp-peers` installs them and runs these tests.

use std::process::Command;

use agentgraph_llm::mcp::{McpClient, McpProtocol, McpTool};
use agentgraph_llm::prelude::*;
use serde_json::json;

use crate::call;

fn peer(variable: &str) -> Command {
    let line = std::env::var(variable).expect("run `.ci/mcp-peers`, which sets the commands of the servers");
    let mut words = line.split(' ');
    let mut command = Command::new(words.next().unwrap_or_default());
    command.args(words);
    command
}

fn find<'a>(tools: &'a [McpTool], name: &str) -> &'a McpTool {
    let found = tools.iter().find(|tool| tool.server_name() == name);
    found.unwrap_or_else(|| {
        panic!("no `{name}` among {:?}", tools.iter().map(McpTool::name).collect::<Vec<_>>())
    })
}

#[tokio::test]
#[ignore = "needs a server from npm: run `.ci/mcp-peers`"]
async fn the_server_with_everything() {
    for protocol in [McpProtocol::Auto, McpProtocol::Handshake] {
        let client = McpClient::command(peer("MCP_EVERYTHING")).prefix("all").protocol(protocol);
        let client = client.connect().await.unwrap();
        eprintln!("everything speaks {:?}", client.protocol_version());
        let tools = client.tools().await.unwrap();
        let names: Vec<_> = tools.iter().map(McpTool::name).collect();
        eprintln!("{} tools: {names:?}", tools.len());

        let sum = call(find(&tools, "get-sum"), json!({"a": 2, "b": 3})).await.unwrap();
        assert!(sum.content[0].as_text().unwrap().contains('5'), "{sum:?}");
        let image = call(find(&tools, "get-tiny-image"), json!({})).await.unwrap();
        assert!(image.content.iter().any(|block| matches!(block, Block::Image(_))), "{image:?}");
        let weather =
            call(find(&tools, "get-structured-content"), json!({"location": "New York"})).await.unwrap();
        assert!(
            weather.artifact.as_ref().is_some_and(|value| value["temperature"].is_number()),
            "{weather:?}"
        );
        let links = call(find(&tools, "get-resource-links"), json!({"count": 2})).await.unwrap();
        assert!(
            links
                .content
                .iter()
                .any(|block| block.as_text().is_some_and(|text| text.contains("resource_link")))
        );
        let wrong = call(find(&tools, "get-sum"), json!({"a": "two"})).await;
        assert!(matches!(wrong, Err(ToolError::Failed(_) | ToolError::InvalidArguments(_))), "{wrong:?}");
        client.close().await;
        assert!(client.is_closed());
    }
}

#[tokio::test]
#[ignore = "needs a server from PyPI: run `.ci/mcp-peers`"]
async fn the_python_library_over_stdio_and_http() {
    let mut http = peer("MCP_PYTHON");
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let _http = Killed(http.arg(port.to_string()).spawn().unwrap());
    for (protocol, version) in [
        (McpProtocol::Auto, "2026-07-28"),
        (McpProtocol::Stateless, "2026-07-28"),
        (McpProtocol::Handshake, "2025-11-25"),
    ] {
        let stdio = McpClient::command(peer("MCP_PYTHON")).protocol(protocol).connect().await.unwrap();
        check_python(stdio, version).await;
        check_python(reached(port, protocol).await, version).await;
    }
}

/// A process that ends with the test, however it ends.
struct Killed(std::process::Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Connects once the server listens.
async fn reached(port: u16, protocol: McpProtocol) -> McpClient {
    loop {
        match McpClient::http(format!("http://127.0.0.1:{port}/mcp")).protocol(protocol).connect().await {
            Ok(client) => return client,
            Err(error) if error.code() == agentgraph_llm::Code::Connection => tokio::task::yield_now().await,
            Err(error) => panic!("{error}"),
        }
    }
}

async fn check_python(client: McpClient, version: &str) {
    assert_eq!(client.protocol_version().as_deref(), Some(version));
    let tools = client.tools().await.unwrap();
    let sum = call(find(&tools, "add"), json!({"a": 2, "b": 3})).await.unwrap();
    assert_eq!(sum.content, [Block::text("5")]);
    assert_eq!(sum.artifact, Some(json!({"result": 5})));
    let failed = call(find(&tools, "fail"), json!({})).await;
    assert!(
        matches!(&failed, Err(ToolError::Failed(why)) if why.contains("Error executing tool fail")),
        "{failed:?}"
    );
    client.close().await;
}

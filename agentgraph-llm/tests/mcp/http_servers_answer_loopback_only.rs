use agentgraph_llm::mcp::McpServer;
use serde_json::json;
use tokio::net::TcpListener;

/// The status of a request with this header.
async fn status(server: McpServer, name: &str, value: &str) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(server.serve_http_on(listener));
    let request = agentgraph_llm::http_client_builder()
        .build()
        .unwrap()
        .post(format!("http://{address}/mcp"))
        .header("accept", "application/json, text/event-stream")
        .header(name, value)
        .json(&json!({
            "jsonrpc": "2.0", "id": 0, "method": "initialize",
            "params": {
                "protocolVersion": "2025-11-25", "capabilities": {},
                "clientInfo": {"name": "test", "version": "1"},
            },
        }));
    request.send().await.unwrap().status().as_u16()
}

#[tokio::test]
async fn a_foreign_host_is_refused_unless_it_is_allowed() {
    let server = || McpServer::new("local", "1");
    assert_eq!(status(server(), "host", "localhost").await, 200);
    assert_eq!(status(server(), "host", "evil.example").await, 403);
    assert_eq!(status(server().allow_host("tools.example"), "host", "tools.example").await, 200);
    assert_eq!(status(server().allow_host("tools.example"), "host", "evil.example").await, 403);
}

#[tokio::test]
async fn a_web_page_is_refused_unless_it_is_allowed() {
    let server = || McpServer::new("local", "1");
    assert_eq!(status(server(), "origin", "https://evil.example").await, 403);
    let allowed = server().allow_origin("https://app.example:443");
    assert_eq!(status(allowed, "origin", "https://app.example").await, 200);
}

#[tokio::test]
async fn serving_ends_with_its_token() {
    let stop = agentgraph::CancellationToken::new();
    let serving = tokio::spawn(McpServer::new("local", "1").stop(stop.clone()).serve_http(0));
    stop.cancel();
    serving.await.unwrap().unwrap();
}

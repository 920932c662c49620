use std::fs::File;
use std::process::Command;

use agentgraph_llm::mcp::{McpClient, McpProtocol, McpServer};
use agentgraph_llm::prelude::*;
use serde_json::json;
use tokio::net::TcpListener;

use crate::{call, served};

/// Adds two numbers.
#[tool]
async fn add(
    /// The first number.
    a: i64,
    b: i64,
) -> Result<ToolOutput, ToolError> {
    let sum = a.checked_add(b).ok_or_else(|| ToolError::failed("the sum is too large"))?;
    Ok(ToolOutput::text(sum.to_string()).with_artifact(json!({"secret": "for the program"})))
}

#[tool(name = "draw-dot")]
fn draw() -> ToolOutput {
    let dot = Media::base64("image/png", "ZG90");
    ToolOutput::new([Block::text("a dot"), Block::Image(dot.clone()), Block::Document(dot)])
}

#[tool]
fn read_file(path: String) -> Result<String, std::io::Error> {
    std::fs::read_to_string(path)
}

#[tool]
fn explode() -> String {
    panic!("the tool has a fault")
}

fn server() -> McpServer {
    McpServer::new("calculator", "1.2.3")
        .instructions("Add.")
        .tool(add)
        .tool(draw)
        .tool(read_file)
        .tool(explode)
}

async fn over_http() -> String {
    served(server()).await
}

/// The program of the stdio tests: this test, run as a process of its own. The harness writes to the standard
/// output, so the protocol goes to a third stream.
#[tokio::test]
async fn serve_as_a_process() {
    if std::env::var_os("SERVE_MCP").is_none() {
        return;
    }
    let output = File::options().write(true).open("/dev/fd/3").unwrap();
    let output = tokio::net::unix::pipe::Sender::from_file(output).unwrap();
    server().serve_over((tokio::io::stdin(), output)).await.unwrap();
}

fn as_a_process() -> Command {
    let mut command = Command::new("sh");
    command.env("SERVE_MCP", "1").args(["-c", r#"exec "$0" --exact "$1" 3>&1 >/dev/null"#]);
    command.arg(std::env::current_exe().unwrap()).arg("served_tools_are_plain_tools::serve_as_a_process");
    command
}

async fn check(client: McpClient) {
    assert_eq!(client.instructions().as_deref(), Some("Add."));
    let tools = client.tools().await.unwrap();
    let names: Vec<_> = tools.iter().map(|tool| tool.name()).collect();
    assert_eq!(names, ["calc_add", "calc_draw-dot", "calc_explode", "calc_read_file"]);
    let spec = tools[0].spec();
    assert_eq!(spec.description, "Adds two numbers.");
    assert_eq!(spec.input_schema, add().spec().input_schema);

    let sum = call(&tools[0], json!({"a": 2, "b": 3})).await.unwrap();
    assert_eq!(sum.content, [Block::text("5")]);
    assert_eq!(sum.artifact, None, "the artifact of a served tool stays in its program");
    for (input, why) in [
        (json!({"a": 2}), "invalid arguments: `b` is missing"),
        (json!({"a": i64::MAX, "b": 1}), "the sum is too large"),
    ] {
        let failed = call(&tools[0], input).await;
        assert!(matches!(&failed, Err(ToolError::Failed(text)) if text == why), "{failed:?}");
    }

    let dot = Media::base64("image/png", "ZG90");
    let drawn = call(&tools[1], json!({})).await.unwrap();
    assert_eq!(drawn.content, [Block::text("a dot"), Block::Image(dot.clone()), Block::Image(dot)]);

    for (tool, input) in [(&tools[2], json!({})), (&tools[3], json!({"path": "/no/such/secret/file"}))] {
        let failed = call(tool, input).await;
        let Err(ToolError::Failed(why)) = &failed else { panic!("{failed:?}") };
        assert!(why.contains("failed; its server has logged why") && !why.contains("No such file"), "{why}");
    }
    client.close().await;
}

#[tokio::test]
async fn over_http_without_a_handshake() {
    let client = McpClient::http(over_http().await).prefix("calc").connect().await.unwrap();
    assert_eq!(client.protocol_version().as_deref(), Some("2026-07-28"));
    check(client).await;
}

#[tokio::test]
async fn over_http_with_a_handshake() {
    let client = McpClient::http(over_http().await).prefix("calc").protocol(McpProtocol::Handshake);
    let client = client.connect().await.unwrap();
    assert_eq!(client.protocol_version().as_deref(), Some("2025-11-25"));
    check(client).await;
}

#[tokio::test]
async fn over_stdio_in_both_eras() {
    for (protocol, version) in [
        (McpProtocol::Auto, "2026-07-28"),
        (McpProtocol::Stateless, "2026-07-28"),
        (McpProtocol::Handshake, "2025-11-25"),
    ] {
        let client =
            McpClient::command(as_a_process()).prefix("calc").protocol(protocol).connect().await.unwrap();
        assert_eq!(client.protocol_version().as_deref(), Some(version));
        check(client).await;
    }
}

#[tokio::test]
async fn a_loop_calls_them_like_any_tool() {
    let client = McpClient::http(over_http().await).connect().await.unwrap();
    let model =
        ScriptedModel::new([Reply::tool_call("add", json!({"a": 2, "b": 3})), Reply::text("It is 5.")]);
    let tools = client.tools().await.unwrap();
    let outcome = ToolLoop::new(&model).tools(tools).run(ChatRequest::user("2 + 3?")).await.unwrap();
    assert_eq!(outcome.messages[1].results().next().unwrap().as_text(), "5");
}

#[tokio::test]
async fn calls_run_side_by_side() {
    let client = McpClient::http(over_http().await).connect().await.unwrap();
    let tools = client.tools().await.unwrap();
    let calls = (0..100).map(|number| call(&tools[0], json!({"a": number, "b": 1})));
    for (number, output) in futures_util::future::join_all(calls).await.into_iter().enumerate() {
        assert_eq!(output.unwrap().content, [Block::text((number + 1).to_string())]);
    }
}

#[tokio::test]
async fn two_clients_at_once_get_their_own_answers() {
    let url = over_http().await;
    let sums = async |protocol, offset: i64| {
        let client = McpClient::http(&*url).protocol(protocol).connect().await.unwrap();
        let tools = client.tools().await.unwrap();
        let calls = (0..50).map(|number| call(&tools[0], json!({"a": number, "b": offset})));
        for (number, output) in futures_util::future::join_all(calls).await.into_iter().enumerate() {
            assert_eq!(output.unwrap(), ToolOutput::text((number as i64 + offset).to_string()));
        }
    };
    tokio::join!(sums(McpProtocol::Handshake, 1000), sums(McpProtocol::Stateless, 2000));
}

#[tokio::test]
async fn a_huge_result_comes_whole_or_is_cut_by_its_limit() {
    #[tool]
    fn letters(count: usize) -> String {
        "x".repeat(count)
    }
    const MANY: usize = 8 << 20;
    let client =
        McpClient::http(served(McpServer::new("huge", "1").tool(letters)).await).connect().await.unwrap();
    let letters = client.tools().await.unwrap().remove(0);
    let whole = call(&letters, json!({"count": MANY})).await.unwrap();
    assert!(whole.content[0].as_text().unwrap() == "x".repeat(MANY));
    let limited = letters.max_result_bytes(100);
    let input = json!({"count": MANY}).into();
    let cut = limited.call(&input, &ToolCall::detached("1", "letters")).await;
    assert!(format!("{cut:?}").len() < 1000);
}

#[tokio::test]
async fn an_unknown_tool_is_named_with_the_known_ones() {
    let other = McpServer::new("other", "1").tool(draw);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(other.serve_http_on(listener));
    let body = json!({
        "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": "erase", "arguments": {}, "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        }},
    });
    let request = agentgraph_llm::http_client_builder()
        .build()
        .unwrap()
        .post(format!("http://{address}/mcp"))
        .header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", "tools/call")
        .header("mcp-name", "erase")
        .json(&body);
    let answer = request.send().await.unwrap().text().await.unwrap();
    assert!(answer.contains("there is no tool `erase`; there are `draw-dot`"), "{answer}");
}

#[tokio::test]
async fn two_tools_of_one_name_are_refused() {
    let error = McpServer::new("twins", "1").tool(add).tool(add()).into_router().unwrap_err();
    assert_eq!(error.code(), agentgraph_llm::Code::BadTool);
}

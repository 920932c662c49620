use agentgraph_llm::Code;
use agentgraph_llm::mcp::McpProtocol;
use agentgraph_llm::prelude::*;
use serde_json::json;

use crate::scripted_server::Script;

#[tokio::test]
async fn names_schema_and_advice_are_the_servers() {
    let schema = json!({
        "type": "object",
        "properties": {"city": {"type": "string", "minLength": 1, "x-custom": true}},
        "required": ["city"],
        "$schema": "https://json-schema.org/draft/2020-12/schema",
    });
    let tool = json!({
        "name": "read.weather",
        "title": "Weather",
        "description": "Reads the weather.",
        "inputSchema": schema,
        "annotations": {"readOnlyHint": true},
    });
    let server = Script::started().answer(json!({"tools": [tool]})).hang();
    let client = server.client().prefix("sky").connect().await.unwrap();
    assert_eq!(client.instructions().as_deref(), Some("Be gentle."));
    assert_eq!(client.protocol_version().as_deref(), Some("2025-11-25"));
    let tools = client.tools().await.unwrap();
    let spec = tools[0].spec();
    assert_eq!((&*spec.name, &*spec.description), ("sky_read_weather", "Reads the weather."));
    assert_eq!(spec.input_schema, schema);
    assert_eq!(tools[0].server_name(), "read.weather");
    assert_eq!(tools[0].definition()["annotations"]["readOnlyHint"], true);
}

#[tokio::test]
async fn every_page_of_the_list_is_read() {
    let tool = |name| json!({"name": name, "inputSchema": {"type": "object"}});
    let server = Script::started()
        .answer(json!({"tools": [tool("a")], "nextCursor": "2"}))
        .answer(json!({"tools": [tool("b")]}))
        .hang();
    let client = server.client().connect().await.unwrap();
    let tools = client.tools().await.unwrap();
    assert_eq!(tools.iter().map(|tool| tool.name()).collect::<Vec<_>>(), ["a", "b"]);
}

#[tokio::test]
async fn a_changed_list_is_announced_and_read_anew() {
    let server = Script::with_tool("a").notify("notifications/tools/list_changed").list(&["a", "b"]).hang();
    let mut client = server.client().connect().await.unwrap();
    assert_eq!(client.tools().await.unwrap().len(), 1);
    client.tools_changed().await.unwrap();
    assert_eq!(client.tools().await.unwrap().len(), 2);
}

#[tokio::test]
async fn a_changed_list_is_announced_without_a_handshake() {
    // The client asks for announcements. They belong to that request by its id.
    let announced = concat!(
        r#"{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":$id},"notifications":{"toolsListChanged":true}}}"#,
        "\n",
        r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":$id}}}"#,
    );
    let listed = r#"{"jsonrpc":"2.0","id":$id,"result":{"resultType":"complete","ttlMs":0,"cacheScope":"private","tools":[{"name":"a","inputSchema":{"type":"object"}}]}}"#;
    let server = Script::stateless(&[("subscriptions/listen", announced), ("tools/list", listed)]);
    let mut client = server.client().protocol(McpProtocol::Stateless).connect().await.unwrap();
    assert_eq!(client.protocol_version().as_deref(), Some("2026-07-28"));
    client.tools_changed().await.unwrap();
    assert_eq!(client.tools().await.unwrap().len(), 1);
}

#[tokio::test]
async fn two_servers_with_one_prefix_are_refused_where_their_tools_meet() {
    let client = async || {
        let server = Script::with_tool("read").hang();
        server.client().prefix("files").connect().await.unwrap().tools().await.unwrap()
    };
    let (one, other) = (client().await, client().await);
    let model = ScriptedModel::new([Reply::text("")]);
    let error = Agent::new(model).tools(one).tools(other).compile().unwrap_err();
    assert!(error.to_string().contains("files_read"), "{error}");
}

#[tokio::test]
async fn waiting_for_a_change_ends_with_the_server() {
    let mut client = Script::started().client().connect().await.unwrap();
    assert_eq!(client.tools_changed().await.unwrap_err().code(), Code::Connection);
}

#[tokio::test]
async fn two_tools_of_one_name_are_an_error() {
    let client = Script::started().list(&["a.b", "a/b"]).hang().client().connect().await.unwrap();
    let error = client.tools().await.unwrap_err();
    assert!(error.code() == Code::BadTool && error.message().contains("a.b"), "{error}");
}

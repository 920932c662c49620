use agentgraph::prelude::*;
use agentgraph_llm::mcp::{McpClient, McpServer};
use agentgraph_llm::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::net::TcpListener;

use crate::call;

#[derive(State, Serialize, Deserialize, Clone, Debug, Default)]
struct Order {
    article: String,
    said: String,
}

#[derive(Deserialize, JsonSchema)]
struct Wish {
    article: String,
}

async fn take(ctx: Ctx, order: Snapshot<Order>) -> Result<OrderUpdate> {
    match &*order.article {
        "yacht" => {
            let _: bool = ctx.interrupt("a yacht?")?;
            Ok(Order::update())
        }
        "secret" => Err(std::io::Error::other("the key is 1234"))?,
        article => Ok(Order::update().said(format!("one {article}"))),
    }
}

#[tokio::test]
async fn each_call_is_a_run() {
    let graph = StateGraph::new().node("take", take).edge(START, "take").compile().unwrap();
    let graph = graph.checkpointer(MemorySaver::new());
    let wish = |wish: Wish| Order::update().article(wish.article);
    let server =
        McpServer::new("shop", "1").graph("order", "Orders.", graph, wish, |order: Order| order.said);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(server.serve_http_on(listener));

    let client = McpClient::http(format!("http://{address}/mcp")).connect().await.unwrap();
    let order = &client.tools().await.unwrap()[0];
    assert_eq!(order.spec().input_schema["required"], json!(["article"]));
    for article in ["tea", "milk"] {
        let output = call(order, json!({"article": article})).await.unwrap();
        assert_eq!(output.content, [Block::text(format!("one {article}"))]);
    }
    let asked = call(order, json!({"article": "yacht"})).await;
    assert!(matches!(&asked, Err(ToolError::Failed(why)) if why.contains("question")), "{asked:?}");
    let failed = call(order, json!({"article": "secret"})).await;
    assert!(matches!(&failed, Err(ToolError::Failed(why)) if !why.contains("1234")), "{failed:?}");
}

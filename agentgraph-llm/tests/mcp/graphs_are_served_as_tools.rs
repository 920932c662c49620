use agentgraph::prelude::*;
use agentgraph::{CompiledGraph, MemorySaver};
use agentgraph_llm::Code;
use agentgraph_llm::mcp::{McpClient, McpServer};
use agentgraph_llm::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::net::TcpListener;

use crate::{call, served};

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

#[derive(State, Serialize, Deserialize, Clone, Debug, Default)]
struct Basket {
    #[reduce(append)]
    articles: Vec<String>,
}

#[derive(Deserialize, JsonSchema)]
struct Put {
    customer: String,
    article: String,
}

async fn weigh(basket: Snapshot<Basket>, ctx: Ctx) -> Result<BasketUpdate> {
    if basket.articles.last().is_some_and(|article| article == "yacht") {
        let _: bool = ctx.interrupt("a yacht?")?;
    }
    Ok(Basket::update())
}

fn baskets() -> CompiledGraph<Basket> {
    StateGraph::new().node("weigh", weigh).edge(START, "weigh").compile().unwrap()
}

#[tokio::test]
async fn a_thread_keeps_what_its_calls_have_put_in() {
    let graph = baskets().checkpointer(MemorySaver::new());
    let server = McpServer::new("shop", "1").graph_on_threads(
        "put",
        "",
        graph.clone(),
        |put: &Put| put.customer.clone(),
        |put: Put| Basket::update().articles([put.article]),
        |basket: Basket| basket.articles.join(" "),
    );
    let url = served(server).await;
    let put = async |customer: &str, article: &str| {
        // A client of its own for each call: a thread is not a session.
        let client = McpClient::http(&*url).connect().await.unwrap();
        call(&client.tools().await.unwrap()[0], json!({"customer": customer, "article": article})).await
    };
    assert_eq!(put("ada", "tea").await.unwrap(), ToolOutput::text("tea"));
    assert_eq!(put("bob", "milk").await.unwrap(), ToolOutput::text("milk"));
    assert_eq!(put("ada", "rice").await.unwrap(), ToolOutput::text("tea rice"));

    let asked = put("ada", "yacht").await;
    assert!(matches!(&asked, Err(ToolError::Failed(why)) if why.contains("stopped to ask")), "{asked:?}");
    graph.resume(true).thread("ada").await.unwrap().into_finished().unwrap();
    assert_eq!(put("ada", "salt").await.unwrap(), ToolOutput::text("tea rice yacht salt"));
}

#[tokio::test]
async fn a_graph_that_does_not_fit_is_refused_before_a_client_comes() {
    let input = |put: Put| Basket::update().articles([put.article]);
    let output = |basket: Basket| basket.articles.join(" ");
    let stored = baskets().checkpointer(MemorySaver::new());
    let without = McpServer::new("shop", "1").graph("put", "", stored, input, output);
    let error = without.into_router().unwrap_err();
    assert!(error.code() == Code::Config && error.message().contains("`graph_on_threads`"), "{error}");

    let thread = |put: &Put| put.customer.clone();
    let with = McpServer::new("shop", "1").graph_on_threads("put", "", baskets(), thread, input, output);
    let error = with.serve_http(0).await.unwrap_err();
    assert!(error.code() == Code::Config && error.message().contains("checkpointer"), "{error}");
}

#[tokio::test]
async fn each_call_is_a_run() {
    let graph = StateGraph::new().node("take", take).edge(START, "take").compile().unwrap();
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
    assert!(matches!(&asked, Err(ToolError::Failed(_))), "{asked:?}");
    let failed = call(order, json!({"article": "secret"})).await;
    assert!(matches!(&failed, Err(ToolError::Failed(why)) if !why.contains("1234")), "{failed:?}");
}

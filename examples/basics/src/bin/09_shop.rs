//! A shop assistant that responds to its customer at once: branches without a barrier. A waiting message is
//! said while the tool is chosen and called. A widget shows the result while it is put into words. Then the
//! answer comes.
//!
//! Models are simulated: a node that would call one sleeps and returns a fixed text.

use std::time::Duration;

use agentgraph::policy::OnEnd;
use agentgraph::prelude::*;
use futures_util::StreamExt;
use serde::{Deserialize, Serialize};

#[derive(State, Clone, Debug, Default)]
struct Shop {
    /// The words of the customer; empty after a click.
    question: String,
    click: Option<String>,
    /// The results of the tools so far, in words.
    #[reduce(append)]
    found: Vec<String>,
    tool: String,
    result: String,
    answer: String,
}

/// Session data of the run, for tools. No node passes it on.
#[derive(Default, Serialize, Deserialize)]
struct Cart {
    items: Vec<String>,
}

#[derive(Route)]
enum Entry {
    Routing,
    ExecuteTool,
}

#[derive(Route)]
enum AfterRouting {
    TaskDescription,
    ChooseTool,
    CustomerResponse,
}

async fn model<T>(milliseconds: u64, says: T) -> T {
    tokio::time::sleep(Duration::from_millis(milliseconds)).await;
    says
}

async fn routing() {
    model(20, ()).await;
}

/// Says that the answer takes a moment, at most once a turn.
async fn task_description() -> Result<()> {
    model(5, "One sec, I'll check.").await;
    Ok(())
}

async fn choose_tool() -> ShopUpdate {
    Shop::update().tool(model(20, "get_products").await)
}

async fn execute_tool(shop: Snapshot<Shop>, cart: Session<Cart>) -> ShopUpdate {
    let result = match &shop.click {
        Some(item) => {
            let items = cart.with(|cart| {
                cart.items.push(item.clone());
                cart.items.len()
            });
            format!("the cart has {items}")
        }
        None => model(20, "lemon garlic, hot buffalo".to_owned()).await,
    };
    Shop::update().result(result)
}

/// Shows the result on the screen, and writes nothing to the state.
async fn widget(ctx: Ctx, shop: Snapshot<Shop>) {
    ctx.emit(format!("[{}]", shop.result)).await;
}

async fn convert(shop: Snapshot<Shop>) -> ShopUpdate {
    Shop::update().found([model(20, format!("I found {}", shop.result)).await])
}

async fn customer_response(shop: Snapshot<Shop>) -> ShopUpdate {
    Shop::update().answer(model(20, format!("{}. Anything else?", shop.found.join(". "))).await)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let patient = OnEnd::Await(Duration::from_secs(1));
    let graph = StateGraph::new()
        .eager()
        .session::<Cart>("cart")
        .node("routing", routing)
        .node("task_description", task_description.detached())
        .node("choose_tool", choose_tool)
        .node("execute_tool", execute_tool)
        .node("widget", widget.detached().on_end(patient))
        .node("convert", convert)
        .node("customer_response", customer_response)
        .route(START, |shop: &Shop| if shop.click.is_some() { Entry::ExecuteTool } else { Entry::Routing })
        .route("routing", |shop: &Shop| {
            if shop.found.is_empty() {
                vec![AfterRouting::TaskDescription, AfterRouting::ChooseTool]
            } else {
                vec![AfterRouting::CustomerResponse]
            }
        })
        .edge("choose_tool", "execute_tool")
        .edge("execute_tool", "widget")
        .edge("execute_tool", "convert")
        .edge("convert", "routing")
        .compile()?;

    let says = |text: &str| Shop::update().question(text);
    let asked = watch(&graph, says("What kind of wing sauces do you have?")).await?;
    let expected = [
        "routing",
        "task_description",
        "choose_tool",
        "execute_tool",
        "[lemon garlic, hot buffalo]",
        "widget",
        "convert",
        "routing",
        "customer_response",
        "I found lemon garlic, hot buffalo. Anything else?",
    ];
    assert_eq!(asked, expected);

    // A click carries no words: the run starts at the tool.
    let clicked = watch(&graph, says("").click(Some("6 lemon garlic".to_owned()))).await?;
    let expected = [
        "execute_tool",
        "[the cart has 1]",
        "widget",
        "convert",
        "routing",
        "customer_response",
        "I found the cart has 1. Anything else?",
    ];
    assert_eq!(clicked, expected);
    Ok(())
}

/// Runs the graph, and returns its nodes, emitted values and answer in order.
async fn watch(graph: &CompiledGraph<Shop>, input: ShopUpdate) -> Result<Vec<String>> {
    let mut lines = Vec::new();
    let mut events = graph.invoke(input).stream();
    while let Some(event) = events.next().await {
        let line = match event.kind {
            EventKind::Update { node, .. } => node,
            EventKind::Custom { value, .. } => value.as_str().unwrap_or_default().to_owned(),
            EventKind::Ended(outcome) => outcome?.into_finished()?.answer,
            _ => continue,
        };
        println!("{line}");
        lines.push(line);
    }
    Ok(lines)
}

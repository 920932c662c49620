use agentgraph::prelude::*;
use agentgraph_llm::BoxError;
use agentgraph_llm::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::call;

#[tool]
fn say_text() -> &'static str {
    "plain"
}

#[tool]
async fn say_value() -> Value {
    json!({"a": 1})
}

#[tool]
async fn say_block() -> Block {
    Block::Image(Media::bytes("image/png", b"png"))
}

#[tool]
async fn say_all() -> ToolOutput {
    ToolOutput::text("shown").with_artifact(json!({"hidden": true})).returned_directly()
}

type MyResult<T> = std::result::Result<T, ToolError>;

#[tool]
fn parsed(text: String) -> std::result::Result<String, std::num::ParseIntError> {
    Ok((text.parse::<i64>()? + 1).to_string())
}

#[tool]
async fn told(why: String) -> MyResult<String> {
    Err(ToolError::failed(why))
}

#[tokio::test]
async fn every_form_of_output_is_converted() {
    assert_eq!(call(&say_text(), "{}").await.unwrap(), ToolOutput::text("plain"));
    assert_eq!(call(&say_value(), "{}").await.unwrap(), ToolOutput::text(r#"{"a":1}"#));
    let image = Block::Image(Media::bytes("image/png", b"png"));
    assert_eq!(call(&say_block(), "{}").await.unwrap(), ToolOutput::new([image]));
    let output = call(&say_all(), "{}").await.unwrap();
    assert!(output.return_direct && output.artifact == Some(json!({"hidden": true})));
}

#[tokio::test]
async fn errors_keep_their_kind() {
    assert_eq!(call(&parsed(), r#"{"text": "41"}"#).await.unwrap(), ToolOutput::text("42"));
    let Err(ToolError::Fatal(error)) = call(&parsed(), r#"{"text": "x"}"#).await else { panic!() };
    assert!(error.is::<std::num::ParseIntError>());
    let failed = call(&told(), r#"{"why": "closed"}"#).await;
    assert!(matches!(failed, Err(ToolError::Failed(why)) if why == "closed"));
}

#[derive(State, Serialize, Deserialize, Clone, Debug, Default)]
struct Shop {
    paid: String,
}

/// Pays.
#[tool]
async fn pay(ctx: Ctx, euros: u32) -> std::result::Result<String, ToolError> {
    let yes: bool = ctx.interrupt(format!("pay {euros} euros?"))?;
    Ok(if yes { "paid" } else { "refused" }.to_owned())
}

async fn checkout(ctx: Ctx) -> std::result::Result<ShopUpdate, BoxError> {
    let call = ToolCall::detached("call-1", "pay").with_ctx(ctx);
    match pay().call(&json!({"euros": 5}).into(), &call).await {
        Ok(output) => Ok(Shop::update().paid(output.content[0].as_text().unwrap_or_default())),
        Err(error) => {
            assert!(error.is_interrupt());
            let ToolError::Fatal(error) = error else { panic!("{error}") };
            Err(error)
        }
    }
}

#[tokio::test]
async fn a_question_in_a_tool_stops_the_run_and_gets_its_answer() {
    let graph = StateGraph::new().node("checkout", checkout).edge(START, "checkout").compile().unwrap();
    let graph = graph.checkpointer(MemorySaver::new());
    let asked = graph.invoke(Shop::update()).thread("t").await.unwrap();
    assert_eq!(asked.interrupts()[0].value, "pay 5 euros?");
    let shop = graph.resume(true).thread("t").await.unwrap().into_finished().unwrap();
    assert_eq!(shop.paid, "paid");
}

/// A helper of a program, with the prelude's `Result`.
async fn transfer(euros: u32) -> agentgraph::Result<String> {
    if euros > 100 {
        return Err(Terminal::new("the bank is closed").into());
    }
    if euros > 10 {
        return Err("no such account".into());
    }
    Ok(format!("sent {euros}"))
}

/// Pays once.
#[tool]
async fn send(ctx: Ctx, euros: u32) -> std::result::Result<String, ToolError> {
    let reference: u32 = ctx.once("reference", async { Ok("7".parse::<u32>()?) }).await?;
    let yes: bool = ask(&ctx, euros)?;
    if !yes {
        return Err(ToolError::failed("a person said no"));
    }
    let sent = transfer(euros).await?;
    Ok(format!("{sent}, reference {reference}"))
}

fn ask(ctx: &Ctx, euros: u32) -> agentgraph::Result<bool> {
    Ok(ctx.interrupt(format!("send {euros}?"))?)
}

#[tool]
async fn sent_with_the_preludes_result(euros: u32) -> agentgraph::Result<String> {
    transfer(euros).await
}

/// The answers of a run of `send`, or its error.
async fn sent(euros: u32, answer: bool) -> std::result::Result<String, agentgraph::Error> {
    let node = move |ctx: Ctx| async move {
        let call = ToolCall::detached("call-1", "send").with_ctx(ctx);
        match send().call(&json!({"euros": euros}).into(), &call).await {
            Ok(output) => Ok(Shop::update().paid(output.content[0].as_text().unwrap_or_default())),
            Err(ToolError::Fatal(error)) => Err(error),
            Err(error) => Ok(Shop::update().paid(error.to_string())),
        }
    };
    let graph = StateGraph::new()
        .node("send", node.retry(RetryPolicy::attempts(3).initial(std::time::Duration::ZERO)))
        .edge(START, "send");
    let graph = graph.compile().unwrap().checkpointer(MemorySaver::new());
    let asked = graph.invoke(Shop::update()).thread("t").await?;
    assert_eq!(asked.interrupts()[0].value, format!("send {euros}?"), "an interrupt behind `?` interrupts");
    Ok(graph.resume(answer).thread("t").await?.into_finished()?.paid)
}

#[tokio::test]
async fn errors_of_the_prelude_pass_with_their_type() {
    assert_eq!(sent(5, true).await.unwrap(), "sent 5, reference 7");
    assert_eq!(sent(5, false).await.unwrap(), "a person said no");
    let text = sent(50, true).await.unwrap_err();
    assert!(text.failures()[0].message().contains("no such account"), "{text}");
    assert_eq!(text.failures()[0].attempt(), 3, "it may be retried");
    let closed = sent(500, true).await.unwrap_err();
    assert!(closed.to_string().contains("the bank is closed"), "{closed}");
    assert_eq!(closed.failures()[0].attempt(), 1, "a `Terminal` stays one");

    let boxed = call(&sent_with_the_preludes_result(), r#"{"euros": 500}"#).await;
    assert!(matches!(boxed, Err(ToolError::Fatal(error)) if error.is::<Terminal>()));
}

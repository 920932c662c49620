//! An agent with tools: a graph in which the model calls tools until it has its answer. The text of the model
//! is streamed, tools report what they do, and the thread keeps the conversation: each answer of the model
//! and each finished call is stored. The model is a script; use an `AnthropicModel` in its place.

use agentgraph::prelude::*;
use agentgraph_llm::prelude::*;
use futures_util::StreamExt;
use serde_json::json;

/// The weather of a city today.
#[tool]
async fn weather(ctx: Ctx, city: String) -> Result<&'static str, ToolError> {
    ctx.emit(format!("looking at {city}")).await;
    match city.as_str() {
        "Oslo" => Ok("snow, -4 degrees"),
        // The model reads this text and continues.
        _ => Err(ToolError::failed("there is no station; ask for Oslo")),
    }
}

/// Sends a message and returns the streamed output: text of the model, and lines of tools in brackets.
async fn say(agent: &CompiledAgent, text: &str) -> Result<String> {
    let mut events = agent.invoke(text).thread("ada").views([View::Messages, View::Custom]).stream();
    let mut heard = String::new();
    while let Some(event) = events.next().await {
        heard += event.text().unwrap_or_default();
        if let Some(line) = event.custom::<String>() {
            heard += &format!("[{line}] ");
        }
        if let Some(outcome) = event.into_outcome() {
            outcome?.into_finished()?;
        }
    }
    println!("> {text}\n{heard}");
    Ok(heard)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let model = ScriptedModel::new([
        Reply::tool_call("weather", json!({"city": "Bergen"}))
            .and_tool_call("weather", json!({"city": "Oslo"})),
        Reply::text("Take a coat: it snows in Oslo."),
        Reply::text("Yes, and gloves."),
    ]);
    let agent = Agent::new(model.clone())
        .tool(weather())
        .system("Answer in one sentence.")
        .max_rounds(5)
        .compile()?
        .checkpointer(MemorySaver::new());

    let heard = say(&agent, "Do I need a coat?").await?;
    assert_eq!(heard, "[looking at Bergen] [looking at Oslo] Take a coat: it snows in Oslo.");
    assert_eq!(say(&agent, "And a hat?").await?, "Yes, and gloves.");

    // The model gets the whole conversation, with the results of tools.
    let second = &model.requests()[1].messages;
    let results: Vec<_> = second.iter().flat_map(Message::results).map(ToolResult::as_text).collect();
    assert_eq!(results, ["there is no station; ask for Oslo", "snow, -4 degrees"]);
    let third = &model.requests()[2].messages;
    assert_eq!(third.last().map(Message::text).as_deref(), Some("And a hat?"));
    Ok(())
}

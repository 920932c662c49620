//! An agent with tools: a graph in which the model calls tools until it has its answer. The text of the model
//! is streamed, tools report what they do, and the thread keeps the conversation: each answer of the model
//! and each finished call is stored. The model is a script; `--model anthropic:claude-...` names another one.

use std::sync::Arc;

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
    // A turn that failed or was cut off is given up: without `abandon`, the next message would be refused.
    let turn = agent.invoke(text).thread("ada").abandon();
    let mut events = turn.views([View::Messages, View::Custom]).stream();
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
    let script = ScriptedModel::new([
        Reply::tool_call("weather", json!({"city": "Bergen"}))
            .and_tool_call("weather", json!({"city": "Oslo"})),
        Reply::text("Take a coat: it snows in Oslo."),
        Reply::text("Yes, and gloves."),
    ]);
    let named = example_model::from_args()?;
    let is_script = named.is_none();
    let agent = Agent::new(named.unwrap_or_else(|| Arc::new(script.clone())))
        .tool(weather())
        .system("Answer in one sentence.")
        .max_rounds(5)
        .compile()?
        .checkpointer(MemorySaver::new());

    let first = say(&agent, "Do I need a coat?").await?;
    let second = say(&agent, "And a hat?").await?;
    if is_script {
        assert_eq!(first, "[looking at Bergen] [looking at Oslo] Take a coat: it snows in Oslo.");
        assert_eq!(second, "Yes, and gloves.");
        the_model_got_everything(&script.requests());
    }
    Ok(())
}

/// The model gets the whole conversation, with the results of tools.
fn the_model_got_everything(requests: &[ChatRequest]) {
    let results: Vec<_> =
        requests[1].messages.iter().flat_map(Message::results).map(ToolResult::as_text).collect();
    assert_eq!(results, ["there is no station; ask for Oslo", "snow, -4 degrees"]);
    assert_eq!(requests[2].messages.last().map(Message::text).as_deref(), Some("And a hat?"));
}

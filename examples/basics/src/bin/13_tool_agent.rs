//! An agent with tools: a graph of one node, in which the model calls tools until it has its answer. The
//! text of the model is streamed, tools report what they do, and the thread keeps the conversation. The
//! model is a script; use an `AnthropicModel` in its place.

use std::sync::Arc;

use agentgraph::prelude::*;
use agentgraph_llm::prelude::*;
use futures_util::StreamExt;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

/// The conversation: a message with a known id replaces the old one, any other is appended.
#[derive(State, Clone, Debug, Default)]
struct Chat {
    #[reduce(by_id)]
    messages: Vec<Message>,
}

#[derive(Deserialize, JsonSchema)]
struct Place {
    city: String,
}

fn weather(ctx: Ctx) -> FnTool {
    FnTool::new("weather", "The weather of a city today.", move |place: Place| {
        let ctx = ctx.clone();
        async move {
            ctx.emit(format!("looking at {}", place.city)).await;
            match place.city.as_str() {
                "Oslo" => Ok("snow, -4 degrees"),
                // The model reads this text and continues.
                _ => Err(ToolError::failed("there is no station; ask for Oslo")),
            }
        }
    })
}

async fn agent(ctx: Ctx, chat: Snapshot<Chat>, model: Dep<Arc<dyn ChatModel>>) -> Result<ChatUpdate> {
    let request = ChatRequest::new(chat.messages.iter().cloned()).with_system("Answer in one sentence.");
    // A call of the model or of a tool that is done is not done again when the node runs again.
    let agent = ToolLoop::new(&*model).durable(&ctx, "agent").tool(weather(ctx.clone())).max_rounds(5);
    let outcome = agent.run(request).await?;
    Ok(Chat::update().messages(outcome.messages))
}

/// Sends a message and returns the streamed output: text of the model, and lines of tools in brackets.
async fn say(graph: &CompiledGraph<Chat>, text: &str) -> Result<String> {
    let input = Chat::update().messages([Message::user(text)]);
    let mut events = graph.invoke(input).thread("ada").views([View::Messages, View::Custom]).stream();
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
    let graph = StateGraph::new()
        .node("agent", agent.retry(RetryPolicy::attempts(3)))
        .edge(START, "agent")
        .dep::<Arc<dyn ChatModel>>(Arc::new(model.clone()))
        .compile()?
        .checkpointer(MemorySaver::new());

    let heard = say(&graph, "Do I need a coat?").await?;
    assert_eq!(heard, "[looking at Bergen] [looking at Oslo] Take a coat: it snows in Oslo.");
    assert_eq!(say(&graph, "And a hat?").await?, "Yes, and gloves.");

    // The model gets the whole conversation, with the results of tools.
    let roles = |request: &ChatRequest| request.messages.iter().map(|m| m.role).collect::<Vec<_>>();
    use Role::{Assistant, User};
    assert_eq!(roles(&model.requests()[2]), [User, Assistant, User, Assistant, User]);
    let results: Vec<_> = model.requests()[1].messages[2].results().map(|result| result.as_text()).collect();
    assert_eq!(results, ["there is no station; ask for Oslo", "snow, -4 degrees"]);
    Ok(())
}

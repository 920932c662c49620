//! An agent with tools: a graph of one node, in which the model calls tools until it has its answer. Its
//! words are streamed as they come, tools say what they do meanwhile, and the conversation is kept by its
//! thread. The model is a script; put an `AnthropicModel` in its place.

use std::sync::Arc;

use agentgraph::prelude::*;
use agentgraph_llm::prelude::*;
use futures_util::StreamExt;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

/// What is said adds up; a message that comes again under its id takes the place of the old one.
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
                _ => Err(ToolError::failed("there is no station; ask for Oslo")), // the model reads it and goes on
            }
        }
    })
}

async fn agent(ctx: Ctx, chat: Snapshot<Chat>, model: Dep<Arc<dyn ChatModel>>) -> Result<ChatUpdate> {
    let request = ChatRequest::new(chat.messages.iter().cloned()).with_system("Answer in one sentence.");
    let outcome = ToolLoop::new(&*model).tool(weather(ctx)).max_rounds(5).run(request).await?;
    Ok(Chat::update().messages(outcome.messages))
}

/// Says something in a thread and gives what was heard: words of the model, and lines of tools in brackets.
async fn say(graph: &CompiledGraph<Chat>, text: &str) -> Result<String> {
    let input = Chat::update().messages([Message::user(text)]);
    let mut events = graph.invoke(input).thread("ada").views([View::Messages, View::Custom]).stream();
    let mut heard = String::new();
    while let Some(event) = events.next().await {
        match event.kind {
            EventKind::Message { piece, .. } => {
                if let ChatEvent::TextDelta { text, .. } = serde_json::from_value(piece)? {
                    heard += &text;
                }
            }
            EventKind::Custom { value, .. } => heard += &format!("[{}] ", value.as_str().unwrap_or_default()),
            EventKind::Ended(outcome) => drop(outcome?.into_finished()?),
            _ => {}
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

    // The model was asked with what was said before, results of tools included.
    let roles = |request: &ChatRequest| request.messages.iter().map(|m| m.role).collect::<Vec<_>>();
    use Role::{Assistant, User};
    assert_eq!(roles(&model.requests()[2]), [User, Assistant, User, Assistant, User]);
    let results: Vec<_> = model.requests()[1].messages[2].results().map(|result| result.as_text()).collect();
    assert_eq!(results, ["there is no station; ask for Oslo", "snow, -4 degrees"]);
    Ok(())
}

//! A supervisor: an agent whose model gives tasks to other agents. Each worker starts with its task alone,
//! and its answer is the result of the supervisor's call. Two workers of one answer run side by side, and the
//! question of one of them reaches the caller. The models are scripts; use an `AnthropicModel` in their
//! place.

use agentgraph::prelude::*;
use agentgraph_llm::prelude::*;
use serde_json::json;

/// The trains between two cities.
#[tool]
async fn trains(from: String, to: String) -> String {
    format!("08:00 from {from}, at 14:30 in {to}")
}

/// Books a hotel. A person agrees first.
#[tool]
async fn book_hotel(ctx: Ctx, call: ToolCall, city: String) -> Result<String, ToolError> {
    let yes: bool = ctx.interrupt_as(call.id(), format!("Book a room in {city}?"))?;
    Ok(if yes { format!("a room in {city} is booked") } else { "the person said no".to_owned() })
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let travel = ScriptedModel::new([
        Reply::tool_call("trains", json!({"from": "Oslo", "to": "Bergen"})),
        Reply::text("Take the train at 08:00."),
    ]);
    let hotels = ScriptedModel::new([
        Reply::tool_call("book_hotel", json!({"city": "Bergen"})),
        Reply::text("You have a room in Bergen."),
    ]);
    let workers = [
        Agent::new(travel.clone()).name("travel").description("Knows trains.").tool(trains).compile()?,
        Agent::new(hotels).name("hotels").description("Books rooms.").tool(book_hotel).compile()?,
    ];

    let lead = ScriptedModel::new([
        Reply::tool_call("travel", json!({"task": "Find the first train from Oslo to Bergen."}))
            .and_tool_call("hotels", json!({"task": "Book a room in Bergen."})),
        Reply::text("The train leaves at 08:00, and your room is booked."),
    ]);
    let agent = supervisor(Agent::new(lead.clone()).system("Give each part to a worker."), workers)?;
    let agent = agent.checkpointer(MemorySaver::new());
    println!("{}", agent.graph().mermaid());

    let asked = agent.invoke("A weekend in Bergen, please.").thread("ada").await?;
    assert_eq!(asked.interrupts()[0].value, "Book a room in Bergen?");

    let answer = agent.resume(true).thread("ada").finish().await?;
    println!("{}", answer.text());
    assert_eq!(answer.text(), "The train leaves at 08:00, and your room is booked.");

    // The worker that did not ask was not asked again, and the supervisor reads only the answers.
    assert_eq!(travel.requests().len(), 2);
    let results: Vec<_> =
        answer.state.messages.iter().flat_map(Message::results).map(ToolResult::as_text).collect();
    assert_eq!(results, ["Take the train at 08:00.", "You have a room in Bergen."]);
    Ok(())
}

//! Agents that hand one conversation to each other: a desk that greets, and a shop that sells. The agent that
//! has the conversation at the end of a turn also has it in the next. The models are scripts; use an
//! `AnthropicModel` in their place.

use agentgraph::prelude::*;
use agentgraph_llm::prelude::*;
use serde_json::json;

/// The price of a tea, in euros.
#[tool]
async fn price(tea: String) -> Result<&'static str, ToolError> {
    match tea.as_str() {
        "assam" => Ok("9"),
        _ => Err(ToolError::failed("there is no such tea; there is assam")),
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let desk = ScriptedModel::new([
        Reply::text("Hello! What can I do for you?"),
        Reply::tool_call("transfer_to_shop", json!({})),
    ]);
    let shop = ScriptedModel::new([
        Reply::tool_call("price", json!({"tea": "assam"})),
        Reply::text("Assam is 9 euros. Shall I send it?"),
        Reply::text("It is on its way."),
    ]);
    let agent = hand_off([
        Agent::new(desk.clone()).name("desk").description("Greets, and finds who can help."),
        Agent::new(shop.clone()).name("shop").description("Sells tea.").system("Be brief.").tool(price),
    ])?;
    let agent = agent.checkpointer(MemorySaver::new());
    println!("{}", agent.graph().mermaid());

    let turns = [
        ("Hello.", "Hello! What can I do for you?", "desk"),
        ("I want some assam.", "Assam is 9 euros. Shall I send it?", "shop"),
        ("Yes.", "It is on its way.", "shop"),
    ];
    for (said, expected, who) in turns {
        let answer = agent.invoke(said).thread("ada").finish().await?;
        println!("> {said}\n{}", answer.text());
        assert_eq!(answer.text(), expected);
        assert_eq!(answer.state.thread_record.active.as_deref().unwrap_or("desk"), who);
    }

    // The shop reads the whole conversation, under its own instructions.
    let request = &shop.requests()[0];
    assert_eq!((request.system.as_deref(), request.messages.len()), (Some("Be brief."), 5));
    assert_eq!(request.messages[0].text(), "Hello.");
    assert_eq!(desk.requests().len(), 2);
    Ok(())
}

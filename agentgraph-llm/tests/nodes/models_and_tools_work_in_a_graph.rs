//! Model, tools and messages inside a graph: a node's messages are stored by id and survive a checkpoint, and
//! an interrupt in a tool stops the run and continues with the answer.

use std::sync::Arc;

use agentgraph::prelude::*;
use agentgraph_llm::prelude::*;
use agentgraph_llm::{ToolUse, anthropic};
use futures_util::StreamExt;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

#[derive(State, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
struct Chat {
    #[reduce(by_id)]
    messages: Vec<Message>,
}

#[derive(Deserialize, JsonSchema)]
struct Order {
    item: String,
}

/// Asks a person inside the tool.
fn buy(ctx: Ctx) -> FnTool {
    FnTool::new("buy", "Buys an item.", move |order: Order| {
        let ctx = ctx.clone();
        async move {
            let yes: bool = ctx.interrupt_as(&*order.item, format!("buy {}?", order.item))?;
            Ok::<_, ToolError>(if yes { "bought" } else { "not bought" })
        }
    })
}

async fn agent(ctx: Ctx, chat: Snapshot<Chat>, model: Dep<ScriptedModel>) -> Result<ChatUpdate> {
    let request = ChatRequest::new(chat.messages.iter().cloned());
    let outcome = ToolLoop::new(&*model).tool(buy(ctx)).run(request).await?;
    Ok(Chat::update().messages(outcome.messages))
}

/// Returns a turn that a provider accepts back only if it is unchanged.
fn fragile_turn() -> Reply {
    let mut call =
        ToolUse::new("call-1", "buy", RawJson::parse_text(r#"{"item": "tea",  "n": 1.0}"#).unwrap());
    call.extra.insert("caller", json!({"type": "direct"}));
    let unknown = RawJson::parse_text(r#"{"type": "brand_new", "b": 1e400, "a": "\u00e6"}"#).unwrap();
    Reply::thinking("tea it is", "EqQBCg==").and_block(Block::Unknown(unknown)).and_block(call)
}

#[tokio::test]
async fn parallel_calls_that_interrupt_get_their_own_answers_in_any_order() {
    let calls = |items: [&str; 2]| {
        items.into_iter().fold(Reply::thinking("both", "EqQBCg=="), |reply, item| {
            let arguments = RawJson::parse_text(json!({ "item": item }).to_string()).unwrap();
            reply.and_block(ToolUse::new(format!("call-{item}"), "buy", arguments))
        })
    };
    let model = ScriptedModel::new([
        calls(["tea", "a yacht"]),
        // When the node runs again, the model makes the calls in the other order.
        calls(["a yacht", "tea"]),
        Reply::text("Enjoy your tea."),
    ]);
    let graph = StateGraph::new().node("agent", agent).edge(START, "agent").dep(model).compile().unwrap();
    let graph = graph.checkpointer(MemorySaver::new());

    let input = Chat::update().messages([Message::user("Tea and a yacht, please.")]);
    let asked = graph.invoke(input).thread("t").await.unwrap();
    let open: Vec<_> = asked.interrupts().iter().map(|one| one.value.clone()).collect();
    assert_eq!(open, ["buy tea?", "buy a yacht?"], "both are open");
    let answers = asked.interrupts().iter().map(|one| (one.id.unwrap(), one.value == "buy tea?"));
    let chat = graph.resume_many(answers).thread("t").await.unwrap().into_finished().unwrap();
    let results: Vec<_> = chat.messages[2].results().map(|result| result.as_text()).collect();
    assert_eq!(results, ["not bought", "bought"], "the results of the yacht and of the tea");
}

#[tokio::test]
async fn an_interrupt_in_a_tool_stops_the_run_and_the_answer_goes_to_the_tool() {
    let model = ScriptedModel::new([
        fragile_turn(),
        fragile_turn(),
        Reply::text("Enjoy your tea."),
        "You are welcome.".into(),
    ]);
    let graph = StateGraph::new()
        .node("agent", agent)
        .edge(START, "agent")
        .dep(model.clone())
        .compile()
        .unwrap()
        .checkpointer(MemorySaver::new());

    let input = Chat::update().messages([Message::user("Tea, please.")]);
    match graph.invoke(input).thread("t").await.unwrap() {
        Outcome::Interrupted { interrupts, .. } => assert_eq!(interrupts.len(), 1),
        other => panic!("{other:?}"),
    }
    let Outcome::Finished { .. } = graph.resume(true).thread("t").await.unwrap() else {
        panic!("not finished")
    };
    let said = Chat::update().messages([Message::user("Thank you.")]);
    let chat: Chat = graph.invoke(said).thread("t").await.unwrap().into_finished().unwrap();

    let texts: Vec<_> = chat.messages.iter().map(Message::text).collect();
    assert_eq!(texts, ["Tea, please.", "", "", "Enjoy your tea.", "Thank you.", "You are welcome."]);
    assert_eq!(chat.messages[2].results().next().unwrap().as_text(), "bought");

    // The request of the last turn after a checkpoint equals the one without a checkpoint.
    let mut request = model.requests()[3].clone();
    // As if the model of the wire had written the messages of the scripted one.
    request.messages.iter_mut().for_each(|message| message.origin = None);
    let sent = anthropic::encode("m", &request, false);
    for part in [
        r#"{"type":"thinking","thinking":"tea it is","signature":"EqQBCg=="}"#,
        r#"{"type": "brand_new", "b": 1e400, "a": "\u00e6"}"#,
        r#"{"type":"tool_use","id":"call-1","name":"buy","input":{"item": "tea",  "n": 1.0},"caller":{"type":"direct"}}"#,
    ] {
        assert!(sent.get().contains(part), "{part} in {sent}");
    }
}

#[tokio::test]
async fn a_shared_model_is_a_dependency_without_its_type() {
    async fn answer(chat: Snapshot<Chat>, model: Dep<Arc<dyn ChatModel>>) -> Result<ChatUpdate> {
        let response = model.chat(ChatRequest::new(chat.messages.iter().cloned())).await?;
        Ok(Chat::update().messages([response.message]))
    }
    let model: Arc<dyn ChatModel> = Arc::new(ScriptedModel::new(["Hello."]));
    let graph = StateGraph::new().node("answer", answer).edge(START, "answer").dep(model).compile().unwrap();
    let chat =
        graph.invoke(Chat::update().messages([Message::user("hi")])).await.unwrap().into_finished().unwrap();
    assert_eq!(chat.messages[1].text(), "Hello.");
}

#[tokio::test]
async fn events_of_the_model_can_be_streamed_by_the_graph() {
    async fn answer(ctx: Ctx, chat: Snapshot<Chat>, model: Dep<ScriptedModel>) -> Result<ChatUpdate> {
        let request = ChatRequest::new(chat.messages.iter().cloned());
        let outcome = ToolLoop::new(&*model).on_event(|event| ctx.emit(event)).run(request).await?;
        Ok(Chat::update().messages(outcome.messages))
    }
    let model = ScriptedModel::new(["Hello to you."]);
    let graph = StateGraph::new().node("answer", answer).edge(START, "answer").dep(model).compile().unwrap();
    let mut events =
        graph.invoke(Chat::update().messages([Message::user("hi")])).views([View::Custom]).stream();
    let mut seen = Vec::new();
    while let Some(event) = events.next().await {
        if let EventKind::Custom { value, .. } = event.kind {
            seen.push(serde_json::from_value::<ChatEvent>(value).unwrap());
        }
    }
    let text = |event: &ChatEvent| match event {
        ChatEvent::TextDelta { text, .. } => text.clone(),
        ChatEvent::Finished(response) => format!("= {}", response.message.text()),
        other => format!("{other:?}"),
    };
    assert_eq!(seen.iter().map(text).collect::<Vec<_>>(), ["Hello ", "to ", "you.", "= Hello to you."]);
}

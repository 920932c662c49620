//! The run's messages contain the output of chat models in nodes, without any code in the node.

use std::sync::Arc;

use agentgraph::prelude::*;
use agentgraph::{Event, RunBuilder};
use agentgraph_llm::StopReason;
use agentgraph_llm::prelude::*;
use agentgraph_llm::{ChatEvent, ChatStream, Result as ChatResult};
use futures_util::StreamExt;
use serde::{Deserialize, Serialize};
use serde_json::json;

#[derive(State, Serialize, Deserialize, Clone, Debug, Default)]
struct Talk {
    #[reduce(append)]
    said: Vec<String>,
}

type Model = Arc<dyn ChatModel>;

#[derive(Deserialize, schemars::JsonSchema)]
struct Nothing {}

async fn asks(model: Dep<Model>) -> agentgraph::Result<TalkUpdate> {
    Ok(Talk::update().said([model.chat(ChatRequest::user("hi")).await?.message.text()]))
}

async fn reads(model: Dep<Model>) -> agentgraph::Result<TalkUpdate> {
    let response = model.stream(ChatRequest::user("hi")).await?.into_response().await?;
    Ok(Talk::update().said([response.message.text()]))
}

fn talking<M>(model: impl ChatModel + 'static, node: impl IntoNode<Talk, M>) -> CompiledGraph<Talk> {
    let graph = StateGraph::new().dep::<Model>(Arc::new(model)).node("a", node).edge(START, "a");
    graph.compile().unwrap()
}

/// Returns the pieces of text in the messages, and the number of finished responses.
async fn collect_messages(run: RunBuilder<Talk>) -> (Vec<String>, usize) {
    let events: Vec<Event<Talk>> = run.views([View::Messages]).stream().collect().await;
    let mut pieces = Vec::new();
    let mut finished = 0;
    for event in events {
        match event.kind {
            EventKind::Message { node, piece } => match serde_json::from_value(piece).unwrap() {
                ChatEvent::TextDelta { text, .. } => {
                    assert_eq!((node.as_str(), event.task.unwrap().attempt), ("a", 1));
                    pieces.push(text);
                }
                ChatEvent::Finished(_) => finished += 1,
                _ => {}
            },
            EventKind::Ended(outcome) => drop(outcome.unwrap()),
            other => panic!("{other:?}"),
        }
    }
    (pieces, finished)
}

/// A model without a stream of its own.
struct Whole;

#[async_trait::async_trait]
impl ChatModel for Whole {
    fn info(&self) -> ModelInfo {
        ModelInfo::new("test", "whole")
    }

    async fn stream(&self, _: ChatRequest) -> ChatResult<ChatStream> {
        let response = ChatResponse::new(Message::assistant("one two three"), StopReason::EndTurn);
        Ok(ChatStream::from_response(response))
    }
}

/// A model that wraps another model's stream in a new one, like a model with retries.
struct Wrapped<M>(M);

#[async_trait::async_trait]
impl<M: ChatModel> ChatModel for Wrapped<M> {
    fn info(&self) -> ModelInfo {
        self.0.info()
    }

    async fn stream(&self, request: ChatRequest) -> ChatResult<ChatStream> {
        Ok(ChatStream::new(self.0.stream(request).await?))
    }
}

#[tokio::test]
async fn every_piece_is_streamed_once_however_the_model_is_called() {
    let (pieces, finished) =
        collect_messages(talking(ScriptedModel::new(["one two three"]), reads).invoke(Talk::update())).await;
    assert!(pieces.len() > 1, "the text comes in pieces: {pieces:?}");
    assert_eq!((pieces.concat().as_str(), finished), ("one two three", 1));
    for graph in [
        talking(ScriptedModel::new(["one two three"]), asks),
        talking(Whole, asks),
        talking(Whole, reads),
        talking(Wrapped(ScriptedModel::new(["one two three"])), asks),
        talking(Wrapped(Wrapped(ScriptedModel::new(["one two three"]))), reads),
        talking(Arc::new(Arc::new(Whole)), asks),
    ] {
        let (pieces, finished) = collect_messages(graph.invoke(Talk::update())).await;
        assert_eq!((pieces.concat().as_str(), finished), ("one two three", 1));
    }
}

#[tokio::test]
async fn a_tool_loop_is_streamed_round_by_round() {
    async fn looping(model: Dep<Model>) -> agentgraph::Result<TalkUpdate> {
        let tool = FnTool::new("now", "The time.", async |_: Nothing| Ok::<_, ToolError>("noon"));
        let outcome = ToolLoop::new(&**model).tool(tool).run(ChatRequest::user("time?")).await?;
        Ok(Talk::update().said([outcome.text()]))
    }
    let replies = || ScriptedModel::new([Reply::tool_call("now", json!({})), Reply::text("It is noon.")]);
    let (pieces, finished) = collect_messages(talking(replies(), looping).invoke(Talk::update())).await;
    assert_eq!((pieces.concat().as_str(), finished), ("It is noon.", 2));
}

#[tokio::test]
async fn a_run_without_the_messages_view_has_the_same_results_and_no_messages() {
    for node in [asks.into_node(), reads.into_node()] {
        let graph = talking(ScriptedModel::new(["one", "two"]), node);
        let alone = graph.invoke(Talk::update()).await.unwrap();
        let events: Vec<Event<Talk>> = graph.invoke(Talk::update()).stream().collect().await;
        assert_eq!(alone.output().said, ["one"]);
        assert!(
            !events.iter().any(|event| matches!(event.kind, EventKind::Message { .. })),
            "messages come only in their view"
        );
        let EventKind::Ended(Ok(outcome)) = &events.last().unwrap().kind else { panic!() };
        assert_eq!(outcome.output().said, ["two"]);
    }
}

#[tokio::test]
async fn a_model_is_not_read_faster_than_the_stream() {
    let words = "word ".repeat(500);
    let graph = talking(ScriptedModel::new([words.clone()]), reads);
    let mut events = graph.invoke(Talk::update()).views([View::Messages]).stream_capacity(2).stream();
    let mut text = String::new();
    let mut most = 0;
    while let Some(event) = events.next().await {
        if let EventKind::Message { piece, .. } = event.kind
            && let Ok(ChatEvent::TextDelta { text: piece, .. }) = serde_json::from_value(piece)
        {
            text += &piece;
            most = most.max(events.unread());
        }
    }
    assert_eq!(text, words);
    assert!(most <= 2, "{most} were waiting");
}

#[tokio::test]
async fn parallel_nodes_are_streamed_under_their_own_names() {
    async fn named(ctx: Ctx, model: Dep<Model>) -> agentgraph::Result<TalkUpdate> {
        let response = model.chat(ChatRequest::user(ctx.node())).await?;
        Ok(Talk::update().said([response.message.text()]))
    }
    let model = ScriptedModel::from_fn(|request| Reply::text(request.messages[0].text()));
    let graph = StateGraph::new().dep::<Model>(Arc::new(model)).node("left", named).node("right", named);
    let graph = graph.edge(START, "left").edge(START, "right").compile().unwrap();
    let events: Vec<Event<Talk>> =
        graph.invoke(Talk::update()).views([View::Messages]).stream().collect().await;
    let mut count = 0;
    for event in events {
        if let EventKind::Message { node, piece } = event.kind
            && let Ok(ChatEvent::TextDelta { text, .. }) = serde_json::from_value(piece)
        {
            assert!(node.starts_with(text.trim()) || node.contains(&text), "{node} said {text}");
            count += 1;
        }
    }
    assert!(count >= 2);
}

#[tokio::test]
async fn the_text_of_an_event_is_the_text_of_the_model_and_nothing_else() {
    // A message with every kind of piece: thinking, text, a call of a tool, and the whole at the end.
    let reply = Reply::thinking("hidden", "signature").and_text("Take a coat.");
    let model = ScriptedModel::new([reply.and_tool_call("weather", json!({ "text": "Oslo" }))]);
    let graph = talking(model, reads);
    let events: Vec<Event<Talk>> =
        graph.invoke(Talk::update()).views([View::Messages]).stream().collect().await;
    let mut kinds = std::collections::BTreeSet::new();
    for event in &events {
        let EventKind::Message { piece, .. } = &event.kind else {
            assert_eq!(event.text(), None);
            continue;
        };
        let piece: ChatEvent = serde_json::from_value(piece.clone()).unwrap();
        let text = match &piece {
            ChatEvent::TextDelta { text, .. } => Some(text.as_str()),
            _ => None,
        };
        assert_eq!(event.text(), text, "{piece:?}");
        kinds.insert(format!("{piece:?}").split([' ', '(']).next().unwrap().to_owned());
    }
    assert_eq!(kinds.len(), 5, "{kinds:?}");
    let text: String = events.iter().filter_map(Event::text).collect();
    assert_eq!(text, "Take a coat.");
}

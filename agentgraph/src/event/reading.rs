//! What the reader of a stream asks of an event, without a match on its kind.

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{Event, EventKind};
use crate::error::Error;
use crate::state::State;
use crate::words::Outcome;

/// The text of a message's piece, if it is text: the rule of [`Event::text`].
pub fn text_of_piece(piece: &Value) -> Option<&str> {
    match piece {
        Value::String(text) => Some(text),
        Value::Object(fields) => match (fields.get("text"), fields.values().next()) {
            (Some(text), _) => text.as_str(),
            (None, Some(variant)) if fields.len() == 1 => variant.get("text")?.as_str(),
            (None, _) => None,
        },
        _ => None,
    }
}

impl<S: State> Event<S> {
    /// The node that the event is about; `None` for events of the run.
    ///
    /// ```
    /// # use agentgraph::prelude::*;
    /// # use futures_util::StreamExt;
    /// # #[derive(State, Clone, Debug, Default)]
    /// # #[state(volatile)]
    /// # struct Note { text: String }
    /// # async fn plan() {}
    /// # async fn write() -> NoteUpdate { Note::update().text("done") }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// # let graph = StateGraph::new().node("plan", plan).node("write", write).edge(START, "plan").edge("plan", "write").compile()?;
    /// let events: Vec<_> = graph.invoke(Note::update()).stream().collect().await;
    /// let nodes: Vec<_> = events.iter().map(|event| event.node()).collect();
    /// assert_eq!(nodes, [Some("plan"), Some("write"), None]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn node(&self) -> Option<&str> {
        match &self.kind {
            EventKind::Update { node, .. }
            | EventKind::UpdateInside { node, .. }
            | EventKind::TaskStarted { node, .. }
            | EventKind::TaskEnded { node, .. }
            | EventKind::AttemptStarted { node }
            | EventKind::AttemptFailed { node, .. }
            | EventKind::Step { node, .. }
            | EventKind::AnswerVoided { node, .. }
            | EventKind::Message { node, .. }
            | EventKind::Edited { by: node, .. }
            | EventKind::EditRejected { by: node, .. }
            | EventKind::Custom { node, .. } => Some(node),
            EventKind::EditDropped(dropped) => Some(&dropped.by),
            EventKind::Values(_)
            | EventKind::ValuesInside(_)
            | EventKind::Checkpoint { .. }
            | EventKind::ReplayDiverged { .. }
            | EventKind::Ended(_) => None,
        }
    }

    /// The text of a [message](EventKind::Message)'s piece: what a program prints while a model writes.
    /// `None` for every other event, and for pieces that are not text.
    ///
    /// A piece is text if it is a string, or an object with the string `text`, plain or in the variant of an
    /// enum, as serde writes it: `{"text_delta": {"text": "Hel"}}`. The models of `agentgraph-llm` send such
    /// pieces; their thinking and the arguments of tools are not text.
    ///
    /// ```
    /// # use agentgraph::prelude::*;
    /// # use agentgraph::View;
    /// # use futures_util::StreamExt;
    /// # #[derive(State, Clone, Debug, Default)]
    /// # #[state(volatile)]
    /// # struct Note { text: String }
    /// async fn write(ctx: Ctx) {
    ///     ctx.message("Hel");
    ///     ctx.message(serde_json::json!({ "text_delta": { "index": 0, "text": "lo!" } }));
    ///     ctx.message(serde_json::json!({ "thinking_delta": { "index": 0, "thinking": "Hm." } }));
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// # let graph = StateGraph::<Note>::new().node("write", write).edge(START, "write").compile()?;
    /// let mut events = graph.invoke(Note::update()).views([View::Messages]).stream();
    /// let mut answer = String::new();
    /// while let Some(event) = events.next().await {
    ///     answer += event.text().unwrap_or_default();
    /// }
    /// assert_eq!(answer, "Hello!");
    /// # Ok(())
    /// # }
    /// ```
    pub fn text(&self) -> Option<&str> {
        match &self.kind {
            EventKind::Message { piece, .. } => text_of_piece(piece),
            _ => None,
        }
    }

    /// The value of a [custom](EventKind::Custom) event, if it is a `T`. `None` for every other event, and
    /// for values of another shape.
    ///
    /// ```
    /// # use agentgraph::prelude::*;
    /// # use futures_util::StreamExt;
    /// # use serde::{Deserialize, Serialize};
    /// # #[derive(State, Clone, Debug, Default)]
    /// # #[state(volatile)]
    /// # struct Note { text: String }
    /// #[derive(Serialize, Deserialize, Debug, PartialEq)]
    /// struct Progress {
    ///     percent: u8,
    /// }
    ///
    /// async fn write(ctx: Ctx) {
    ///     ctx.emit(Progress { percent: 50 }).await;
    ///     ctx.emit("half of it").await;
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// # let graph = StateGraph::<Note>::new().node("write", write).edge(START, "write").compile()?;
    /// let events: Vec<_> = graph.invoke(Note::update()).stream().collect().await;
    /// let progress: Vec<Progress> = events.iter().filter_map(|event| event.custom()).collect();
    /// assert_eq!(progress, [Progress { percent: 50 }]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn custom<T: DeserializeOwned>(&self) -> Option<T> {
        match &self.kind {
            EventKind::Custom { value, .. } => T::deserialize(value).ok(),
            _ => None,
        }
    }

    /// The result of the call, in the [last](EventKind::Ended) event; `None` before.
    ///
    /// ```
    /// # use agentgraph::prelude::*;
    /// # use futures_util::StreamExt;
    /// # #[derive(State, Clone, Debug, Default)]
    /// # #[state(volatile)]
    /// # struct Note { text: String }
    /// # async fn write() -> NoteUpdate { Note::update().text("done") }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// # let graph = StateGraph::<Note>::new().node("write", write).edge(START, "write").compile()?;
    /// let mut events = graph.invoke(Note::update()).stream();
    /// while let Some(event) = events.next().await {
    ///     if let Some(Ok(outcome)) = event.outcome() {
    ///         assert_eq!(outcome.output().text, "done");
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn outcome(&self) -> Option<Result<&Outcome<S>, &Error>> {
        match &self.kind {
            EventKind::Ended(outcome) => Some(outcome.as_ref()),
            _ => None,
        }
    }

    /// [`outcome`](Event::outcome), owned.
    ///
    /// ```
    /// # use agentgraph::prelude::*;
    /// # use futures_util::StreamExt;
    /// # #[derive(State, Clone, Debug, Default)]
    /// # #[state(volatile)]
    /// # struct Note { text: String }
    /// # async fn write() -> NoteUpdate { Note::update().text("done") }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// # let graph = StateGraph::<Note>::new().node("write", write).edge(START, "write").compile()?;
    /// let events: Vec<_> = graph.invoke(Note::update()).stream().collect().await;
    /// let outcome = events.into_iter().find_map(|event| event.into_outcome());
    /// assert_eq!(outcome.unwrap()?.into_finished()?.text, "done");
    /// # Ok(())
    /// # }
    /// ```
    pub fn into_outcome(self) -> Option<Result<Outcome<S>, Error>> {
        match self.kind {
            EventKind::Ended(outcome) => Some(outcome),
            _ => None,
        }
    }
}

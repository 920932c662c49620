//! A turn as a stream of events.

use std::pin::Pin;
use std::task::{Context, Poll};

use futures_util::stream::{self, BoxStream, Stream, StreamExt};
use serde_json::Value;

use super::place::{RunEnd, RunEvent};
use super::under_way::UnderWay;
use super::{AgentError, Turn, UpgradeAgent};

/// An event of a turn.
#[derive(Debug)]
#[non_exhaustive]
pub enum TurnEvent {
    /// The reply of an unfinished turn, which was ended first. It precedes all other events and is in
    /// [`Turn::recovered`] too.
    Recovered(String),
    /// A node has started.
    Node(String),
    /// A piece of the reply. All pieces joined are the reply.
    Text(String),
    /// The progress of a long action. A later event with the same label replaces it.
    Progress {
        /// The name of the action.
        label: String,
        /// The amount done.
        done: u64,
        /// The total amount.
        total: u64,
    },
    /// The end of the turn: exactly one event, and the last.
    Done(Result<Turn, AgentError>),
}

/// The events of a turn. The turn runs while the stream is polled, and stops when it is dropped.
#[must_use = "a turn makes progress only while its stream is polled"]
pub struct TurnStream(Pin<Box<dyn Stream<Item = TurnEvent> + Send>>);

impl TurnStream {
    pub(super) fn new(agent: UpgradeAgent, thread: String, text: String, shown: Option<u64>) -> Self {
        let arrival = agent.threads.arrive(&thread);
        let begin = async move {
            match agent.begin(arrival, &thread, &text, shown).await {
                Err(error) => stream::iter([TurnEvent::Done(Err(error))]).boxed(),
                Ok((call, recovered, held)) => {
                    let first = recovered.clone().map(TurnEvent::Recovered);
                    let events = agent.place.stream(call, &thread);
                    let under_way = Some(UnderWay::new(&agent.place, &thread, held));
                    let rest = stream::unfold(
                        RunningTurn { agent, thread, events, recovered, under_way },
                        RunningTurn::next,
                    );
                    stream::iter(first).chain(rest).boxed()
                }
            }
        };
        TurnStream(stream::once(begin).flatten().boxed())
    }
}

impl Stream for TurnStream {
    type Item = TurnEvent;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<TurnEvent>> {
        self.0.as_mut().poll_next(cx)
    }
}

struct RunningTurn {
    agent: UpgradeAgent,
    thread: String,
    events: BoxStream<'static, RunEvent>,
    recovered: Option<String>,
    /// `None` after the end of the turn.
    under_way: Option<UnderWay>,
}

impl RunningTurn {
    async fn next(mut self) -> Option<(TurnEvent, Self)> {
        loop {
            let event = match self.events.next().await? {
                RunEvent::Custom(value) => read(&value),
                RunEvent::Ended(outcome) => Some(TurnEvent::Done(self.done(*outcome))),
            };
            if let Some(event) = event {
                return Some((event, self));
            }
        }
    }

    fn done(&mut self, end: RunEnd) -> Result<Turn, AgentError> {
        let turn = end.map_err(AgentError::from).and_then(|end| self.agent.ended(end));
        let turn = turn.map(|turn| self.agent.given(&self.thread, turn.recovering(self.recovered.take())));
        if let Some(under_way) = self.under_way.take() {
            under_way.end();
        }
        turn
    }
}

fn read(value: &Value) -> Option<TurnEvent> {
    let text = |field: &str| value.get(field)?.as_str().map(str::to_owned);
    let said = text("node").map(TurnEvent::Node).or_else(|| text("text").map(TurnEvent::Text));
    said.or_else(|| progress(value.get("progress")?))
}

fn progress(value: &Value) -> Option<TurnEvent> {
    let count = |field: &str| value.get(field)?.as_u64();
    let label = value.get("label")?.as_str()?.to_owned();
    Some(TurnEvent::Progress { label, done: count("done")?, total: count("total")? })
}

//! The chat for programs: one message per input line, events as lines of JSON.

use std::collections::HashMap;
use std::process::ExitCode;

use futures_util::StreamExt;
use serde::{Deserialize, Serialize};
use upgrade_agent::agent::{AgentError, Turn, TurnEvent};
use upgrade_agent::state::PendingSummary;

use super::answer::{self, Answer};
use super::failure::Failure;
use super::interrupts::Interrupts;
use super::keyboard::{Keyboard, KeyboardInput};
use super::screen::Screen;
use super::world::World;
use crate::config::Config;

/// One line of the output.
#[derive(Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum Event<'a> {
    /// The chat is open; the first line.
    Ready {
        thread: &'a str,
        /// The reply of an unfinished turn, which was ended first.
        recovered: Option<String>,
        pending: Option<PendingSummary>,
        suggested: Vec<String>,
    },
    Node {
        name: &'a str,
    },
    Text {
        text: &'a str,
    },
    Progress {
        label: &'a str,
        done: u64,
        total: u64,
    },
    /// The turn has ended.
    Turn(Answer<'a>),
    /// There is no turn; the chat continues.
    Error {
        thread: &'a str,
        code: &'a str,
        message: String,
    },
}

/// A message as a JSON object.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct InputMessage {
    text: String,
    /// The conversation; by default the one of the command line.
    thread: Option<String>,
}

struct Feed {
    world: World,
    thread: String,
    screen: Screen,
    broken: bool,
    /// The thread of the running turn.
    under_way: Option<String>,
    /// The last turn of each thread whose reply was printed here.
    shown: HashMap<String, u64>,
}

/// Runs until the input ends, or an interrupt.
pub(super) async fn run(config: &Config, thread: String, screen: Screen) -> Result<ExitCode, Failure> {
    let mut interrupts = Interrupts::listen()?;
    let world = World::open(config).await?;
    let mut feed = Feed { world, thread, screen, broken: false, under_way: None, shown: HashMap::new() };
    let end = tokio::select! {
        end = feed.run() => end,
        () = interrupts.next() => {
            tokio::select! {
                biased;
                () = feed.stop() => {}
                () = interrupts.next() => {}
            }
            Ok(())
        }
    };
    feed.world.close().await;
    end.map(|()| answer::exit_code(feed.broken))
}

impl Feed {
    async fn run(&mut self) -> Result<(), Failure> {
        self.ready().await?;
        let mut lines = Keyboard::plain();
        while let KeyboardInput::Line(line) = lines.line().await {
            match read(&line, &self.thread) {
                None => {}
                Some(Ok(said)) => self.turn(said).await?,
                Some(Err(why)) => self.failed(&self.thread.clone(), "E_CHAT_LINE", &why),
            }
        }
        Ok(())
    }

    /// An interrupted turn has not ended; a plan, however, is ended.
    async fn stop(&mut self) {
        let Some(thread) = self.under_way.take() else { return };
        self.broken = true;
        if let Some(turn) = self.world.end_plan(&thread).await {
            answer::print(self.screen, &Event::Turn(Answer::of(&thread, &turn)));
        }
    }

    async fn ready(&mut self) -> Result<(), Failure> {
        let told = |error| Failure::Turn(self.world.failure_text(&error, &self.thread));
        self.world.restore_others(&self.thread, self.screen).await;
        self.world.meet(&self.thread, self.screen).await.map_err(told)?;
        let recovered = self.world.agent.recover(&self.thread).await.map_err(told)?.map(|turn| turn.reply);
        let state = self.world.agent.conversation(&self.thread).await.map_err(told)?.unwrap_or_default();
        let pending = state.pending.summary();
        let suggested = if pending.is_some() { state.suggested } else { Vec::new() };
        answer::print(self.screen, &Event::Ready { thread: &self.thread, recovered, pending, suggested });
        let thread = self.thread.clone();
        self.heard(&thread, state.turns).await
    }

    /// Marks a printed question as delivered, for this process and for those that have printed nothing yet. A
    /// question that could not be printed is not marked.
    async fn heard(&mut self, thread: &str, turn: u64) -> Result<(), Failure> {
        if self.screen.has_lost() {
            return Err(Failure::Output);
        }
        self.shown.insert(thread.to_owned(), turn);
        // If the mark cannot be stored, another process asks again; this process remembers it.
        let _ = self.world.agent.heard(thread, turn).await;
        Ok(())
    }

    async fn turn(&mut self, said: InputMessage) -> Result<(), Failure> {
        let thread = said.thread.as_deref().unwrap_or(&self.thread).to_owned();
        if let Err(error) = self.world.is_ready(&thread).await {
            self.failed(&thread, error.code(), &error.to_string());
            return Ok(());
        }
        self.under_way = Some(thread.clone());
        let told = self.stream_turn(&thread, &said.text).await;
        self.under_way = None;
        match told {
            Ok(turn) => {
                self.broken |= answer::is_broken(&turn);
                answer::print(self.screen, &Event::Turn(Answer::of(&thread, &turn)));
                self.heard(&thread, turn.number).await?;
            }
            Err(error) => self.failed(&thread, error.code(), &self.world.failure_text(&error, &thread)),
        }
        Ok(())
    }

    async fn stream_turn(&self, thread: &str, text: &str) -> Result<Turn, AgentError> {
        let shown = self.shown.get(thread).copied().unwrap_or_default();
        let mut events = self.world.agent.turn_stream_after(thread, shown, text);
        while let Some(event) = events.next().await {
            match &event {
                TurnEvent::Node(name) => answer::print(self.screen, &Event::Node { name }),
                TurnEvent::Text(text) => answer::print(self.screen, &Event::Text { text }),
                TurnEvent::Progress { label, done, total } => {
                    answer::print(self.screen, &Event::Progress { label, done: *done, total: *total });
                }
                _ => {}
            }
            if let TurnEvent::Done(end) = event {
                return end;
            }
        }
        Err(AgentError::NoEnd)
    }

    fn failed(&mut self, thread: &str, code: &str, message: &str) {
        self.broken = true;
        answer::print(self.screen, &Event::Error { thread, code, message: message.to_owned() });
    }
}

/// A line that is a JSON object is decoded; any other line is the text of a message. `None` for a blank line.
fn read(line: &str, thread: &str) -> Option<Result<InputMessage, String>> {
    if line.is_empty() {
        return None;
    }
    let is_object = serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(line).is_ok();
    if !is_object {
        return Some(Ok(InputMessage { text: line.to_owned(), thread: Some(thread.to_owned()) }));
    }
    let wrong = |why| format!("E_CHAT_LINE: {why}: an object has a `text`, and a `thread` if it is another");
    let said = serde_json::from_str::<InputMessage>(line).map_err(|error| wrong(error.to_string()));
    Some(said.and_then(|said| match said.thread.as_deref().map(super::thread_name) {
        Some(Err(why)) => Err(wrong(why)),
        Some(Ok(name)) => Ok(InputMessage { thread: Some(name), ..said }),
        None => Ok(said),
    }))
}

//! Shows one turn of the chat as it runs.

use std::time::Duration;

use futures_util::StreamExt;
use tokio::time::{MissedTickBehavior, interval};
use unicode_width::UnicodeWidthStr;
use upgrade_agent::agent::{AgentError, Turn, TurnEvent};

use super::super::chart;
use super::super::escape::escape_line;
use super::super::screen::{Screen, Style};
use super::super::status::Status;
use super::super::wrap::{Wrap, wrapped};
use super::{Chat, recovered, wants_a_word};

/// The period of the spinner.
const TICK: Duration = Duration::from_millis(100);

impl Chat {
    /// One turn. Dropping it stops the turn.
    pub(super) async fn turn(&mut self, text: &str) {
        let mut shown = TurnView::new(self.screen);
        match self.shown_turn(text, &mut shown).await {
            Ok(turn) => {
                shown.end(&turn);
                if let Some(chart) = chart::below(&turn, self.screen) {
                    self.screen.line(&format!("\n{chart}"));
                }
                self.settle(&turn);
                self.heard(turn.number).await;
            }
            Err(TurnFault::Unasked(error)) => {
                drop(shown);
                self.screen.warn(&format!("{error}\nYour answer was not given: the question is still open."));
            }
            Err(TurnFault::Agent(error)) => {
                drop(shown);
                self.screen.warn(&self.world.failure_text(&error, &self.thread));
            }
        }
    }

    /// The state that the turn leaves.
    pub(super) fn settle(&mut self, turn: &Turn) {
        self.expect_yes(turn.asks_for_a_yes());
        self.offer(if wants_a_word(turn.pending.as_ref()) { Vec::new() } else { turn.suggested.clone() });
    }

    /// Ends a plan that was stopped.
    pub(super) async fn end_plan(&mut self) {
        if let Some(turn) = self.world.end_plan(&self.thread).await {
            self.screen.line(&wrapped(&turn.reply, self.screen.width()));
        }
    }

    /// The turn itself ends an unfinished turn, and then knows that its message came before that reply.
    async fn shown_turn(&self, text: &str, shown: &mut TurnView) -> Result<Turn, TurnFault> {
        if self.waits_for_yes {
            let ready = self.world.is_ready(&self.thread).await;
            ready.map_err(|error| TurnFault::Unasked(error.to_string()))?;
        }
        let mut events = self.world.agent.turn_stream_after(&self.thread, self.shown, text);
        let mut ticks = interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        loop {
            let event = tokio::select! {
                event = events.next() => event,
                _ = ticks.tick(), if self.screen.is_watched() => {
                    shown.status.tick();
                    continue;
                }
            };
            match event {
                Some(TurnEvent::Done(end)) => return Ok(end?),
                Some(event) => shown.event(event),
                None => return Err(AgentError::NoEnd.into()),
            }
        }
    }
}

/// The reason for which there is no turn.
enum TurnFault {
    /// The server is unreachable, and the agent did not get the message.
    Unasked(String),
    Agent(AgentError),
}

impl From<AgentError> for TurnFault {
    fn from(error: AgentError) -> Self {
        TurnFault::Agent(error)
    }
}

/// The part of a turn that is on the screen.
struct TurnView {
    screen: Screen,
    status: Status,
    text: String,
    wrap: Wrap,
}

impl TurnView {
    fn new(screen: Screen) -> Self {
        TurnView { screen, status: Status::new(screen), text: String::new(), wrap: Wrap::new(screen.width()) }
    }

    fn event(&mut self, event: TurnEvent) {
        match event {
            // Below a started reply there is no place for the status line.
            TurnEvent::Node(name) if self.text.is_empty() => self.status.node(&name),
            TurnEvent::Progress { label, done, total } if self.text.is_empty() => {
                self.status.progress(&label, done, total);
            }
            TurnEvent::Text(piece) => self.piece(&piece),
            TurnEvent::Recovered(reply) => {
                self.status.clear();
                self.screen.line(&wrapped(&recovered(&reply), self.screen.width()));
            }
            _ => {}
        }
    }

    fn piece(&mut self, piece: &str) {
        self.status.clear();
        self.text.push_str(piece);
        let ready = self.wrap.push(piece);
        self.screen.piece(&ready);
    }

    /// Prints the rest of the reply, or all of it if the pieces do not match its beginning.
    fn end(mut self, turn: &Turn) {
        self.status.clear();
        match turn.reply.strip_prefix(self.text.as_str()) {
            Some(rest) => {
                let rest = self.wrap.push(rest) + &self.wrap.end();
                self.screen.line(&rest);
            }
            None => {
                let rest = self.wrap.end();
                self.screen.line(&format!("{rest}\n{}", wrapped(&turn.reply, self.screen.width())));
            }
        }
    }
}

/// The line stays for later output.
impl Drop for TurnView {
    fn drop(&mut self) {
        self.status.clear();
        let rest = self.wrap.end();
        self.screen.piece(&rest);
    }
}

/// The suggested answers with their numbers: on one line if they fit, otherwise on one line each.
pub(in crate::cli) fn numbered(answers: &[String], screen: Screen) -> String {
    let plain: Vec<String> = answers.iter().map(|answer| escape_line(answer).into_owned()).collect();
    let line = |(at, answer): (usize, &String)| {
        format!("{} {answer}", screen.paint(Style::Accent, &format!("{})", at + 1)))
    };
    let columns: usize = plain.iter().map(|answer| answer.width() + 3 + 3).sum();
    let between = if screen.width().is_some_and(|width| columns > width) { "\n" } else { "   " };
    let lines: Vec<String> = plain.iter().enumerate().map(line).collect();
    lines.join(between) + "\n"
}

//! The chat: lines in, turns out, until the input ends.

use std::io::{IsTerminal, stdin};

use agentgraph_llm::{Message, Role};
use futures_util::StreamExt;
use tokio::signal::ctrl_c;
use upgrade_agent::agent::{AgentError, Turn, TurnEvent};
use upgrade_agent::state::ConversationState;

use super::failure::Failure;
use super::keyboard::Keyboard;
use super::screen;
use super::world::World;
use crate::config::Config;

const HELP: &str = "\
Say what you want in plain words. Quick answers can be chosen by their number.
/threads        list the conversations
/thread NAME    go on with another conversation, or begin one
/help           this text
/quit           leave (or end the input)";

pub(super) async fn run(config: &Config, thread: String) -> Result<(), Failure> {
    let world = World::open(config).await?;
    let mut chat = Chat { world, thread, answers: Vec::new(), typed: stdin().is_terminal() };
    let end = chat.run().await;
    chat.world.close().await;
    end
}

/// The sentence before the reply of a turn that an earlier process did not end.
pub(super) fn recovered(reply: &str) -> String {
    format!("The last turn on this thread had not ended; it has now:\n{reply}\n")
}

struct Chat {
    world: World,
    thread: String,
    /// Quick answers to the last reply.
    answers: Vec<String>,
    typed: bool,
}

/// What follows a line.
enum Then {
    GoOn,
    Leave,
}

impl Chat {
    async fn run(&mut self) -> Result<(), Failure> {
        screen::line(&self.world.introduction);
        screen::line("Say /help for help, /quit to leave.");
        if let Err(error) = self.world.client.connect().await {
            screen::warn(&format!("The UpGrade server does not answer: {error}"));
        }
        self.open_thread().await;
        let mut keyboard = Keyboard::new();
        loop {
            if self.typed {
                screen::piece("\n> ");
            }
            let line = tokio::select! {
                line = keyboard.line() => line,
                _ = interrupted() => None,
            };
            let Some(line) = line else { break };
            if matches!(self.take(&line).await, Then::Leave) {
                break;
            }
        }
        Ok(())
    }

    async fn take(&mut self, line: &str) -> Then {
        match line.split_once(' ').unwrap_or((line, "")) {
            ("", _) => {}
            ("/quit" | "/exit", _) => return Then::Leave,
            ("/help", _) => screen::line(HELP),
            ("/threads", _) => self.list_threads().await,
            ("/thread", name) => self.change_thread(name.trim()).await,
            (command, _) if command.starts_with('/') => {
                screen::line(&format!("There is no command {command}; /help lists them."));
            }
            _ => {
                let text = self.chosen(line).unwrap_or(line).to_owned();
                self.turn(&text).await;
            }
        }
        Then::GoOn
    }

    /// The quick answer with this number.
    fn chosen(&self, line: &str) -> Option<&str> {
        let number: usize = line.parse().ok()?;
        self.answers.get(number.checked_sub(1)?).map(String::as_str)
    }

    async fn list_threads(&self) {
        match self.world.thread_names().await {
            Ok(names) if names.is_empty() => screen::line("There are no conversations yet."),
            Ok(names) => {
                for name in names {
                    let here = if name == self.thread { " (this one)" } else { "" };
                    screen::line(&format!("{name}{here}"));
                }
            }
            Err(error) => screen::warn(&error.to_string()),
        }
    }

    async fn change_thread(&mut self, name: &str) {
        match super::thread_name(name) {
            Ok(name) => {
                self.thread = name;
                self.open_thread().await;
            }
            Err(_) => {
                screen::line(&format!("This is the thread {}. Say /thread NAME for another.", self.thread))
            }
        }
    }

    /// Ends an unfinished turn, and shows where the conversation stands.
    async fn open_thread(&mut self) {
        self.answers.clear();
        match self.world.agent.recover(&self.thread).await {
            Ok(Some(turn)) => {
                screen::line(&format!("Thread {}.", self.thread));
                screen::line(&recovered(&turn.reply));
                return self.offer(turn.suggested);
            }
            Ok(None) => {}
            Err(error) => return screen::warn(&error.to_string()),
        }
        match self.world.agent.conversation(&self.thread).await {
            Ok(Some(state)) => self.show_last(&state),
            Ok(None) => screen::line(&format!("Thread {}, a new one.", self.thread)),
            Err(error) => screen::warn(&error.to_string()),
        }
    }

    fn show_last(&mut self, state: &ConversationState) {
        screen::line(&format!("Thread {}, where we were:", self.thread));
        for message in last_exchange(&state.history) {
            let who = if message.role == Role::User { "you" } else { "agent" };
            screen::line(&format!("[{who}] {}", message.text()));
        }
        if state.pending.summary().is_some() {
            screen::line("That question is still open.");
            self.offer(state.suggested.clone());
        }
    }

    fn offer(&mut self, answers: Vec<String>) {
        if !answers.is_empty() {
            screen::line(&screen::numbered(&answers));
        }
        self.answers = answers;
    }

    /// One turn, shown as it happens. An interrupt stops it; what was done stays done.
    async fn turn(&mut self, text: &str) {
        let mut shown = Shown::default();
        let end = tokio::select! {
            end = self.shown_turn(text, &mut shown) => end,
            () = interrupted() => return screen::line("\nStopped. That turn is ended first when you go on."),
        };
        match end {
            Ok(turn) => self.finish(turn, shown),
            Err(error) => screen::warn(&error.to_string()),
        }
    }

    /// An unfinished turn is ended before, so that its reply stands before this one's.
    async fn shown_turn(&self, text: &str, shown: &mut Shown) -> Result<Turn, AgentError> {
        if let Some(turn) = self.world.agent.recover(&self.thread).await? {
            screen::line(&recovered(&turn.reply));
        }
        let mut events = self.world.agent.turn_stream(&self.thread, text);
        while let Some(event) = events.next().await {
            match event {
                TurnEvent::Node(name) => shown.node(&name),
                TurnEvent::Text(piece) => shown.piece(&piece),
                TurnEvent::Done(end) => return end,
                _ => {}
            }
        }
        Err(AgentError::Endless)
    }

    fn finish(&mut self, turn: Turn, shown: Shown) {
        if let Some(reply) = &turn.recovered {
            screen::line(&recovered(reply));
        }
        shown.end(&turn.reply);
        self.offer(turn.suggested);
    }
}

/// What of a reply is on the screen already.
#[derive(Default)]
struct Shown {
    text: String,
}

impl Shown {
    /// Progress, for a person only.
    fn node(&self, name: &str) {
        if screen::is_watched() {
            screen::warn(&format!("  · {name}"));
        }
    }

    fn piece(&mut self, piece: &str) {
        screen::piece(piece);
        self.text.push_str(piece);
    }

    /// The rest of the reply. Pieces that were no beginning of it are followed by the whole.
    fn end(self, reply: &str) {
        match reply.strip_prefix(self.text.as_str()) {
            Some(rest) => screen::line(rest),
            None => screen::line(&format!("\n{reply}")),
        }
    }
}

/// The person's last message and the reply to it.
fn last_exchange(history: &[Message]) -> &[Message] {
    let said = history.iter().rposition(|message| message.role == Role::User);
    said.map_or(&[], |at| &history[at..])
}

/// Resolves on Ctrl-C. Without signals nothing interrupts.
async fn interrupted() {
    if ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
}

//! The interactive chat: reads lines and shows turns until the input ends.
//!
//! This file contains the commands and the prompt; `turn.rs` shows a running turn.

pub(super) mod turn;

use std::time::SystemTime;

use agentgraph_llm::{Message, Role};
use upgrade_agent::reply::{Verdict, read};
use upgrade_agent::state::{ConfirmKind, ConversationState, Pending, PendingSummary};

use super::failure::Failure;
use super::interrupts::Interrupts;
use super::keyboard::{Keyboard, KeyboardInput, Questions};
use super::screen::{Screen, Style};
use super::threads;
use super::world::World;
use super::wrap::wrapped;
use crate::config::Config;

const HELP: &str = "\
Say what you want in plain words. Quick answers can be chosen by their number.
/threads        list the conversations
/thread NAME    go on with another conversation, or begin one; a number of the list will do
/delete NAME    delete a conversation, after a yes
/help           this text
/quit           leave (or end the input); without the stroke, too";

pub(super) async fn run(config: &Config, thread: String, screen: Screen) -> Result<(), Failure> {
    let interrupts = Interrupts::listen()?;
    let world = World::open(config).await?;
    let keyboard = Keyboard::open(screen, &config.history_file());
    let mut chat = Chat {
        world,
        thread,
        screen,
        answers: Vec::new(),
        listed: Vec::new(),
        waits_for_yes: false,
        shown: 0,
        questions: keyboard.questions(),
        deleting: None,
        is_unread: false,
    };
    chat.run(keyboard, interrupts).await;
    chat.world.close().await;
    if chat.is_unread { Err(Failure::Output) } else { Ok(()) }
}

/// The sentence before the reply of a turn that an earlier process did not end.
pub(super) fn recovered(reply: &str) -> String {
    format!("The last turn on this thread had not ended; it has now:\n{reply}\n")
}

struct Chat {
    world: World,
    thread: String,
    screen: Screen,
    /// The suggested answers to the last reply.
    answers: Vec<String>,
    /// The conversations of the last listing.
    listed: Vec<String>,
    /// Whether the next message may be a yes.
    waits_for_yes: bool,
    /// The last turn of the thread whose reply is on this screen. Another process may have continued since.
    shown: u64,
    questions: Questions,
    /// The conversation that a yes deletes.
    deleting: Option<String>,
    /// Whether printing a reply failed.
    is_unread: bool,
}

/// The effect of a line on the chat.
enum ChatFlow {
    GoOn,
    Leave,
}

impl Chat {
    async fn run(&mut self, mut keyboard: Keyboard, mut interrupts: Interrupts) {
        tokio::select! {
            biased;
            () = self.begin() => {}
            () = interrupts.next() => return,
        }
        let mut hints = 0;
        while !self.is_unread {
            match self.typed(&mut keyboard, &mut interrupts).await {
                KeyboardInput::Line(line) => {
                    hints = 0;
                    if matches!(self.take_or_stop(&line, &mut interrupts).await, ChatFlow::Leave) {
                        return;
                    }
                }
                KeyboardInput::Interrupt if hints == 0 => {
                    hints = 1;
                    self.screen.styled(Style::Faint, "Ctrl-C again, Ctrl-D or /quit leaves.");
                }
                KeyboardInput::Interrupt | KeyboardInput::End => return,
            }
        }
    }

    async fn begin(&mut self) {
        self.screen.styled(Style::Faint, &wrapped(&self.world.introduction, self.screen.width()));
        self.screen.styled(Style::Faint, "Say /help for help, /quit to leave.");
        if let Some(client) = &self.world.client
            && let Err(error) = client.connect().await
        {
            self.screen.warn(&format!("The UpGrade server does not answer: {error}"));
        }
        self.world.restore_others(&self.thread, self.screen).await;
        match self.world.meet(&self.thread, self.screen).await {
            Ok(()) => self.open_thread().await,
            Err(error) => self.screen.warn(&self.world.failure_text(&error, &self.thread)),
        }
    }

    /// Where Ctrl-C is a signal and not a key, it ends the chat. A line that was read already comes first,
    /// and the interrupt is for its turn.
    async fn typed(&self, keyboard: &mut Keyboard, interrupts: &mut Interrupts) -> KeyboardInput {
        let edited = keyboard.is_edited();
        if edited {
            self.screen.raw("\n");
        }
        let waits_for_yes = self.waits_for_yes;
        let mut line = std::pin::pin!(async {
            if waits_for_yes { keyboard.answer().await } else { keyboard.line().await }
        });
        loop {
            tokio::select! {
                biased;
                typed = &mut line => return typed,
                // The editor owns the terminal until it returns a line, so the chat waits for it.
                () = interrupts.next() => if !edited { return KeyboardInput::End },
            }
        }
    }

    /// An interrupt stops the turn; finished actions stay done.
    async fn take_or_stop(&mut self, line: &str, interrupts: &mut Interrupts) -> ChatFlow {
        tokio::select! {
            biased;
            then = self.take(line) => return then,
            () = interrupts.next() => {}
        }
        self.answers.clear();
        self.screen.line("\nStopped. That turn is ended first when you go on.");
        tokio::select! {
            biased;
            () = self.end_plan() => {}
            () = interrupts.next() => {}
        }
        ChatFlow::GoOn
    }

    async fn take(&mut self, line: &str) -> ChatFlow {
        if let Some(name) = self.deleting.take() {
            match read(line, ConfirmKind::YesNo) {
                Verdict::Yes => self.delete_thread(&name).await,
                _ => self.screen.line(&format!("Thread {name} is kept.")),
            }
            return ChatFlow::GoOn;
        }
        match line.split_once(' ').unwrap_or((line, "")) {
            ("", _) => {}
            ("/quit" | "/exit", _) | ("quit" | "exit", "") => return ChatFlow::Leave,
            ("/help", _) => self.screen.line(HELP),
            ("/threads", _) => self.list_threads().await,
            ("/thread", name) => self.change_thread(name.trim()).await,
            ("/delete", name) => self.ask_to_delete(name.trim()).await,
            (command, _) if command.starts_with('/') => {
                self.screen.line(&format!("There is no command {command}; /help lists them."));
            }
            _ => {
                let text = self.chosen(line).unwrap_or(line).to_owned();
                self.turn(&text).await;
            }
        }
        ChatFlow::GoOn
    }

    /// The suggested answer with this number.
    fn chosen(&self, line: &str) -> Option<&str> {
        nth(&self.answers, line)
    }

    async fn list_threads(&mut self) {
        match threads::all(&self.world.agent, &self.world.store).await {
            Ok(all) if all.is_empty() => self.screen.line("There are no conversations yet."),
            Ok(all) => {
                threads::print_numbered(&all, &self.thread, self.screen, SystemTime::now());
                self.listed = all.into_iter().map(|thread| thread.name).collect();
            }
            Err(error) => self.screen.warn(&error.to_string()),
        }
    }

    async fn change_thread(&mut self, name: &str) {
        let name = if self.listed.iter().any(|listed| listed == name) {
            name.to_owned()
        } else {
            nth(&self.listed, name).unwrap_or(name).to_owned()
        };
        match super::thread_name(&name) {
            Ok(name) => {
                self.thread = name;
                self.open_thread().await;
            }
            Err(_) => self
                .screen
                .line(&format!("This is the thread {}. Say /thread NAME for another.", self.thread)),
        }
    }

    async fn ask_to_delete(&mut self, name: &str) {
        match threads::check_exists(&self.world.agent, &self.world.store, name).await {
            Ok(()) => {
                self.screen.line(&format!("Delete thread {name} with all its messages? Answer yes or no."));
                self.deleting = Some(name.to_owned());
            }
            Err(error) => self.screen.warn(&error.to_string()),
        }
    }

    async fn delete_thread(&mut self, name: &str) {
        match threads::delete(&self.world.agent, &self.world.store, name).await {
            Ok(()) => self.screen.line(&format!("Thread {name} is deleted.")),
            Err(error) => return self.screen.warn(&error.to_string()),
        }
        self.listed.clear();
        if name == self.thread {
            self.open_thread().await;
        }
    }

    /// Ends an unfinished turn, and shows the state of the conversation.
    async fn open_thread(&mut self) {
        self.answers.clear();
        self.waits_for_yes = false;
        self.shown = 0;
        match self.world.agent.recover(&self.thread).await {
            Ok(Some(turn)) => {
                self.screen.line(&format!("Thread {}.", self.thread));
                self.screen.line(&wrapped(&recovered(&turn.reply), self.screen.width()));
                self.settle(&turn);
                return self.heard(turn.number).await;
            }
            Ok(None) => {}
            Err(error) => return self.screen.warn(&self.world.failure_text(&error, &self.thread)),
        }
        match self.world.agent.conversation(&self.thread).await {
            Ok(Some(state)) => {
                self.show_last(&state);
                self.heard(state.turns).await;
            }
            Ok(None) => self.screen.styled(Style::Faint, &format!("Thread {}, a new one.", self.thread)),
            Err(error) => self.screen.warn(&self.world.failure_text(&error, &self.thread)),
        }
    }

    fn show_last(&mut self, state: &ConversationState) {
        self.screen.styled(Style::Faint, &format!("Thread {}, where we were:", self.thread));
        for message in last_exchange(&state.history) {
            let who = if message.role == Role::User { "you" } else { "agent" };
            self.screen.line(&wrapped(&format!("[{who}] {}", message.text()), self.screen.width()));
        }
        if state.pending.summary().is_some() {
            self.screen.line("That question is still open.");
            self.expect_yes(matches!(state.pending, Pending::Confirm(_)));
            if !wants_a_word(state.pending.summary().as_ref()) {
                self.offer(state.suggested.clone());
            }
        }
    }

    /// Marks the questions so far as delivered: a yes is accepted here, and in every process that has shown
    /// nothing yet.
    async fn heard(&mut self, turn: u64) {
        self.is_unread |= self.screen.has_lost();
        self.shown = turn;
        if self.waits_for_yes && !self.is_unread {
            // If the mark cannot be stored, another process asks again; this process remembers it.
            let _ = self.world.agent.heard(&self.thread, turn).await;
        }
    }

    /// The question can be read now; suggested answers follow.
    fn expect_yes(&mut self, waits_for_yes: bool) {
        self.waits_for_yes = waits_for_yes;
        if waits_for_yes {
            self.questions.put();
        }
    }

    fn offer(&mut self, answers: Vec<String>) {
        if !answers.is_empty() {
            self.screen.raw(&turn::numbered(&answers, self.screen));
        }
        self.answers = answers;
    }
}

/// Whether the answer is a word to type. It is not offered with a number, and a number does not select it.
pub(super) fn wants_a_word(pending: Option<&PendingSummary>) -> bool {
    matches!(pending, Some(PendingSummary::Confirmation { answer: ConfirmKind::TypeDelete, .. }))
}

/// The item with this number, counted from 1.
pub(super) fn nth<'a>(items: &'a [String], number: &str) -> Option<&'a str> {
    let number: usize = number.parse().ok()?;
    items.get(number.checked_sub(1)?).map(String::as_str)
}

/// The person's last message and the reply to it.
fn last_exchange(history: &[Message]) -> &[Message] {
    let said = history.iter().rposition(|message| message.role == Role::User);
    said.map_or(&[], |at| &history[at..])
}

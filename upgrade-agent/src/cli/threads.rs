//! The stored conversations: listing and deletion.

use std::time::{Duration, SystemTime};

use agentgraph_llm::{Message, Role};
use futures_util::{StreamExt, stream};
use serde::Serialize;
use upgrade_agent::agent::UpgradeAgent;
use upgrade_agent::state::{ConversationState, PendingSummary};

use super::answer;
use super::clock::{ago, rfc3339};
use super::escape::escape_line;
use super::failure::Failure;
use super::screen::{Screen, Style};
use super::store::Store;
use super::world::Threads;
use super::wrap::cut;
use crate::config::Config;

/// The width of a list if the terminal does not report one.
const WIDTH: usize = 100;
const INDENT: &str = "    ";
/// The conversations that are read at the same time.
const AT_ONCE: usize = 8;

/// A conversation in a list. Its JSON is stable; fields may be added.
#[derive(Debug, Serialize)]
pub(super) struct ThreadLine {
    pub(super) name: String,
    /// The time of the last message.
    last: Option<String>,
    turns: u64,
    /// The person's first words.
    first: Option<String>,
    pending: Option<PendingSummary>,
    /// Whether the last turn was interrupted.
    unfinished: bool,
    /// The error, if the conversation cannot be read.
    error: Option<String>,
    #[serde(skip)]
    time: Option<SystemTime>,
}

/// `threads`: prints all of them.
pub(super) async fn list(config: &Config, json: bool, screen: Screen) -> Result<(), Failure> {
    let threads = Threads::open(config).await?;
    let all = all(&threads.agent, &threads.store).await?;
    if json {
        for thread in &all {
            answer::print(screen, thread);
        }
    } else if all.is_empty() {
        screen.line("There are no conversations yet.");
    } else {
        all.iter().for_each(|thread| print(thread, "", screen, SystemTime::now()));
    }
    Ok(())
}

/// `threads delete`.
pub(super) async fn remove(config: &Config, name: &str, screen: Screen) -> Result<(), Failure> {
    let threads = Threads::open(config).await?;
    delete(&threads.agent, &threads.store, name).await?;
    screen.line(&format!("Thread {name} is deleted."));
    Ok(())
}

/// Fails if there is no conversation of this name.
pub(super) async fn must_exist(config: &Config, name: &str) -> Result<(), Failure> {
    let threads = Threads::open(config).await?;
    check_exists(&threads.agent, &threads.store, name).await
}

/// Deletes a conversation, which must exist.
pub(super) async fn delete(agent: &UpgradeAgent, store: &Store, name: &str) -> Result<(), Failure> {
    check_exists(agent, store, name).await?;
    // A conversation that cannot be read can be deleted all the same.
    let state = agent.conversation(name).await.ok().flatten();
    if let Some(experiment) = state.as_ref().and_then(ConversationState::owes_a_restore) {
        return Err(Failure::OwesRestore { name: name.to_owned(), experiment: experiment.to_owned() });
    }
    store.delete(name).await
}

pub(super) async fn check_exists(agent: &UpgradeAgent, store: &Store, name: &str) -> Result<(), Failure> {
    if store.has(agent, name).await? {
        return Ok(());
    }
    // Without a list the message has no suggestion.
    let names = store.names().await.unwrap_or_default();
    Err(Failure::NoThread { name: name.to_owned(), near: nearest(name, &names) })
}

fn nearest(wrong: &str, names: &[String]) -> Option<String> {
    let distance = |name: &str| strsim::damerau_levenshtein(&wrong.to_lowercase(), &name.to_lowercase());
    let near = names.iter().map(|name| (distance(name), name));
    let limit = (wrong.chars().count() / 3).max(1);
    near.filter(|(distance, _)| *distance <= limit).min().map(|(_, name)| name.clone())
}

/// All conversations, the latest first. An unreadable one is listed with its error.
pub(super) async fn all(agent: &UpgradeAgent, store: &Store) -> Result<Vec<ThreadLine>, Failure> {
    let names = store.names().await?.into_iter();
    let lines = stream::iter(names.map(|name| line(agent, name))).buffered(AT_ONCE);
    let mut lines: Vec<ThreadLine> = lines.collect().await;
    lines.sort_by(|one, other| other.time.cmp(&one.time).then_with(|| one.name.cmp(&other.name)));
    Ok(lines)
}

async fn line(agent: &UpgradeAgent, name: String) -> ThreadLine {
    let empty = ThreadLine {
        name,
        last: None,
        turns: 0,
        first: None,
        pending: None,
        unfinished: false,
        error: None,
        time: None,
    };
    match agent.last(&empty.name).await {
        Ok(Some(found)) => ThreadLine {
            last: Some(rfc3339(found.time)),
            time: Some(found.time),
            turns: found.values.turns,
            unfinished: found.unfinished,
            first: first_words(&found.values),
            pending: found.values.pending.summary(),
            ..empty
        },
        Ok(None) => empty,
        Err(error) => ThreadLine { error: Some(error.to_string()), ..empty },
    }
}

fn first_words(state: &ConversationState) -> Option<String> {
    state.history.iter().find(|message| message.role == Role::User).map(Message::text)
}

/// The list with numbers, and a mark on the open conversation.
pub(super) fn print_numbered(all: &[ThreadLine], here: &str, screen: Screen, now: SystemTime) {
    for (at, thread) in all.iter().enumerate() {
        let mark = if thread.name == here { " (this one)" } else { "" };
        screen.raw(&format!("{} ", screen.paint(Style::Accent, &format!("{})", at + 1))));
        print(thread, mark, screen, now);
    }
}

/// A line with the name, one with the first words, and one with the pending question.
fn print(thread: &ThreadLine, mark: &str, screen: Screen, now: SystemTime) {
    let width = screen.width().unwrap_or(WIDTH).saturating_sub(INDENT.len());
    let beside = |text: &str| {
        let text = cut(&escape_line(text), width);
        screen.styled(Style::Faint, &format!("{INDENT}{text}"));
    };
    screen.line(&format!("{}{mark}{}", thread.name, activity(thread, now)));
    if let Some(first) = &thread.first {
        beside(first);
    }
    if let Some(open) = open(thread) {
        beside(&open);
    }
}

fn activity(thread: &ThreadLine, now: SystemTime) -> String {
    let Some(time) = thread.time else { return String::new() };
    let turns = if thread.turns == 1 { "1 turn".to_owned() } else { format!("{} turns", thread.turns) };
    format!("   {turns}, {}", ago(now.duration_since(time).unwrap_or(Duration::ZERO)))
}

fn open(thread: &ThreadLine) -> Option<String> {
    if let Some(error) = &thread.error {
        return Some(format!("cannot be read: {error}"));
    }
    if thread.unfinished {
        return Some("its last turn was cut off, and is ended when you go on".to_owned());
    }
    Some(match thread.pending.as_ref()? {
        PendingSummary::Parameters { missing, .. } if missing.is_empty() => {
            "waits for what is to be changed".to_owned()
        }
        PendingSummary::Parameters { missing, .. } => format!("waits for: {}", missing.join(", ")),
        PendingSummary::Confirmation { message, .. } => format!("waits for an answer: {message}"),
    })
}

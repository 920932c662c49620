//! Writes the reply. A preset text of another node is used as it is. Otherwise a model writes the reply, and
//! if it fails, the facts are listed plainly.
//!
//! A streamed turn gets the reply in pieces, which joined are the reply.

mod claims;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use agentgraph::{Ctx, Dep, Snapshot};
use agentgraph_llm::{ChatEvent, ChatRequest, Message, Role, ToolLoop};
use serde_json::json;

use super::{begin, failure};
use crate::agent::Settings;
use crate::prompts;
use crate::state::{
    Confirmation, ConversationState, ConversationStateUpdate, Intent, LogStatus, Pending, ResponseKind,
    TurnError,
};
use crate::tools::StoredData;

const ROUNDS: usize = 6;

/// The separator between the parts of a reply.
const GAP: &str = "\n\n";

/// The limit of characters of the facts that are listed without a model.
const PLAIN_FACTS: usize = 4000;

pub(crate) async fn run(
    state: Snapshot<ConversationState>,
    settings: Dep<Settings>,
    ctx: Ctx,
) -> ConversationStateUpdate {
    let update = begin(&ctx).await;
    let mut reply = ReplyWriter { ctx: &ctx, text: String::new() };
    let open = open_confirmation(&state, &settings);
    if let Some(dropped) = state.dropped.as_ref().filter(|_| open.is_none()) {
        reply
            .part(&format!(
                "I have set aside the question whether to {}; nothing was changed.",
                dropped.title
            ))
            .await;
    }
    for note in &state.notes {
        reply.part(note).await;
    }
    let (kind, error) = match &state.preset {
        Some(preset) => {
            reply.part(&preset.text).await;
            (preset.kind, None)
        }
        None => write(&state, &settings, &mut reply).await,
    };
    let mut suggested = state.suggested.clone();
    if let (None, Pending::Missing(missing)) = (&state.preset, &state.pending) {
        // A reply in between leaves the question open.
        reply.part(&missing.question).await;
        suggested.clone_from(&missing.options);
    }
    let mut update = update;
    let mut is_open = !matches!(state.pending, Pending::Nothing);
    if let Some(asked) = open {
        reply.part(&asked.reminder()).await;
        suggested = asked.suggested();
        update = update.pending(Pending::Confirm(Box::new(asked.asked_again(state.turns))));
    } else if is_stale(&state) {
        is_open = false;
        update = update.pending(Pending::Nothing);
    }
    let further = state.further.after(&state.user_input, is_open);
    if let Some(text) = further.text(is_open, state.turns) {
        reply.part(&text).await;
    }
    if further.offered {
        suggested.clone_from(&further.requests);
    }
    update = update.further(further);
    let text = reply.text;
    update
        .history([Message::assistant(&text)])
        .reply(Some(text))
        .kind(kind)
        .suggested(suggested)
        .errors(error)
}

/// Whether the open confirmation is of an earlier turn and was not answered.
fn is_stale(state: &ConversationState) -> bool {
    state.dropped.is_some()
        && matches!(&state.pending, Pending::Confirm(asked) if asked.asked_turn() < state.turns)
}

/// The confirmation that this turn leaves open: it was asked for in an earlier one, and the message was none
/// or only a question.
fn open_confirmation<'s>(state: &'s ConversationState, settings: &Settings) -> Option<&'s Confirmation> {
    let Pending::Confirm(asked) = &state.pending else { return None };
    let is_question = state.analysis.as_ref().is_some_and(|analysis| {
        matches!(analysis.intent, Intent::DirectAnswer | Intent::NeedsInfo)
            && analysis.confidence >= settings.confidence
            && state.preset.as_ref().is_none_or(|preset| preset.kind == ResponseKind::Answer)
    });
    let is_earlier = asked.asked_turn() < state.turns;
    let stays = if is_earlier { state.dropped.is_none() || is_question } else { state.user_input.is_empty() };
    stays.then_some(asked)
}

/// Lets the model write the reply, and sets the kind of the reply.
async fn write(
    state: &Snapshot<ConversationState>,
    settings: &Settings,
    reply: &mut ReplyWriter<'_>,
) -> (ResponseKind, Option<TurnError>) {
    let stored = StoredData::new(state.clone());
    let request = prompts::responder(state, settings);
    let writing = ToolLoop::new(&settings.model).tools(stored.tools()).max_rounds(ROUNDS);
    let before = reply.text.len();
    let failed = if reply.ctx.has_listener() {
        stream_reply(writing, request, reply).await
    } else {
        write_at_once(writing, request, reply).await
    };
    if reply.text.get(before..).is_some_and(|text| is_false(text, state)) {
        reply.part(claims::NOTHING_DONE).await;
    }
    let error = failed.map(|error| failure::of_model(&error, reply.ctx.node()));
    if error.is_some() || reply.text.len() == before {
        reply.part(&reply_without_model(state, error.as_ref())).await;
    }
    let kind = if stored.read_the_log() { ResponseKind::Report } else { state.kind };
    (kind, error)
}

/// Whether the model claims an action in a turn that had none.
fn is_false(text: &str, state: &ConversationState) -> bool {
    let succeeded = state.execution_log.iter().filter(|entry| entry.status == LogStatus::Success);
    let done: Vec<_> = succeeded
        .map(|entry| (entry.action.kind(), entry.experiment.as_ref().map(|about| about.name.clone())))
        .collect();
    state.executed().next().is_none() && claims::claims_a_deed(text, &done)
}

async fn write_at_once(
    writing: ToolLoop<'_>,
    request: ChatRequest,
    reply: &mut ReplyWriter<'_>,
) -> Option<agentgraph_llm::Error> {
    match writing.run(request).await {
        Ok(outcome) => {
            for message in outcome.messages.iter().filter(|message| message.role == Role::Assistant) {
                reply.part(&message.text()).await;
            }
            None
        }
        Err(error) => Some(error),
    }
}

/// The streamed form, which forwards each piece.
async fn stream_reply(
    writing: ToolLoop<'_>,
    request: ChatRequest,
    reply: &mut ReplyWriter<'_>,
) -> Option<agentgraph_llm::Error> {
    let said = Mutex::new(std::mem::take(&mut reply.text));
    let voice = Arc::new(Voice { said, silent: AtomicBool::new(true) });
    let ctx = reply.ctx.clone();
    let voiced = Arc::clone(&voice);
    let say = move |event| {
        let piece = voiced.piece_of(event);
        let ctx = ctx.clone();
        async move {
            if let Some(piece) = piece {
                ctx.emit(json!({ "text": piece })).await;
            }
        }
    };
    let written = writing.on_event(say).run(request).await;
    reply.text = std::mem::take(&mut *voice.said.lock().unwrap_or_else(PoisonError::into_inner));
    written.err()
}

/// The text so far, with a gap between the texts of two rounds.
struct Voice {
    said: Mutex<String>,
    /// Whether the present round has produced no text yet.
    silent: AtomicBool,
}

impl Voice {
    /// The piece to forward, if the event has one.
    fn piece_of(&self, event: ChatEvent) -> Option<String> {
        let text = match event {
            ChatEvent::TextDelta { text, .. } if !text.is_empty() => text,
            ChatEvent::Finished(_) => {
                self.silent.store(true, Ordering::Relaxed);
                return None;
            }
            _ => return None,
        };
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        let begins = self.silent.swap(false, Ordering::Relaxed);
        let gap = if begins && !said.is_empty() { GAP } else { "" };
        let piece = format!("{gap}{text}");
        said.push_str(&piece);
        Some(piece)
    }
}

/// The reply in progress, and the context that streams it.
struct ReplyWriter<'a> {
    ctx: &'a Ctx,
    text: String,
}

impl ReplyWriter<'_> {
    /// Adds a preset part.
    async fn part(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        let gap = if self.text.is_empty() { "" } else { GAP };
        let piece = format!("{gap}{text}");
        self.text.push_str(&piece);
        if self.ctx.has_listener() {
            self.ctx.emit(json!({ "text": piece })).await;
        }
    }
}

/// The reply without a model.
fn reply_without_model(state: &ConversationState, error: Option<&TurnError>) -> String {
    let excuse = error.map(|error| format!("The language model did not answer. {}", error.message));
    let facts = match state.kind {
        ResponseKind::Clarification => {
            Some("I am not sure what you mean. Could you say it in other words?".to_owned())
        }
        _ if state.gathered_info.is_empty() => None,
        _ => {
            let facts = serde_json::to_string_pretty(&state.gathered_info).unwrap_or_default();
            let shown: String = facts.chars().take(PLAIN_FACTS).collect();
            Some(format!("This is what I found:\n```json\n{shown}\n```"))
        }
    };
    let parts: Vec<String> = [excuse, facts].into_iter().flatten().collect();
    if parts.is_empty() {
        "I have nothing to say to that. Could you say it in other words?".to_owned()
    } else {
        parts.join(GAP)
    }
}

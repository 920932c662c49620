//! Asks for a confirmation and reads the answer. No model takes part.
//!
//! Approvals are created only in this file and its child, and only from the person's next message after the
//! question, as [`crate::reply`] reads it.

mod approval;

use agentgraph::{Ctx, Dep, Snapshot};

use super::begin;
use crate::actions::{self, Action, Proposal};
use crate::agent::Settings;
use crate::plan::EarlyEnd;
use crate::reply::{self, ConfirmKind, DELETE_WORD, Verdict};
use crate::state::{
    ConversationState, ConversationStateUpdate, DroppedAction, IncompleteAction, Pending, PlanRun,
    PresetReply, ResponseKind,
};
pub use approval::{Approval, Confirmation};

pub(crate) async fn run(
    state: Snapshot<ConversationState>,
    settings: Dep<Settings>,
    ctx: Ctx,
) -> ConversationStateUpdate {
    let update = begin(&ctx).await;
    match (&state.proposal, &state.pending) {
        (Some(proposal), _) => ask(update, proposal, state.turns),
        (None, Pending::Confirm(asked)) => settle(update, asked, &state, &settings),
        (None, _) => update.preset(Some(nothing_open())),
    }
}

/// Asks the question.
fn ask(update: ConversationStateUpdate, proposal: &Proposal, turn: u64) -> ConversationStateUpdate {
    let asked = Confirmation::ask(proposal.clone(), turn);
    let preset = PresetReply::new(ResponseKind::Confirmation, asked.text());
    let suggested = asked.suggested();
    update.preset(Some(preset)).suggested(suggested).pending(Pending::Confirm(Box::new(asked)))
}

/// The verdict of the message on the question.
fn verdict(asked: &Confirmation, state: &ConversationState) -> Verdict {
    if state.turns == asked.asked_turn().saturating_add(1) {
        reply::read(&state.user_input, asked.kind())
    } else {
        Verdict::Other
    }
}

/// Asks the question again, after the reason.
fn ask_again(
    update: ConversationStateUpdate,
    asked: &Confirmation,
    turn: u64,
    text: String,
) -> ConversationStateUpdate {
    let again = asked.asked_again(turn);
    let suggested = again.suggested();
    update
        .preset(Some(PresetReply::new(ResponseKind::Confirmation, text)))
        .suggested(suggested)
        .pending(Pending::Confirm(Box::new(again)))
}

/// The reason for which a yes is not accepted: the person may not have read the question.
fn unread_reason(asked: &Confirmation, state: &ConversationState) -> Option<String> {
    let elsewhere = state.read_up_to.is_some_and(|turn| turn < asked.asked_turn());
    let why = if state.said_early {
        "I asked that after your message came in, so I have not taken it as a yes."
    } else if elsewhere {
        "This was asked elsewhere and not here, so I have not taken your message as a yes."
    } else if state.heard < asked.asked_turn() {
        "My question may not have reached you before, so I have not taken your message as a yes."
    } else {
        return None;
    };
    Some(format!("{why}\n{}", asked.text()))
}

/// The reply to a doubt: "why?", "are you sure?".
fn reassurance(asked: &Confirmation) -> String {
    let warned = if asked.proposal().warnings.is_empty() {
        "I see nothing that speaks against it, but that is for you to judge."
    } else {
        "What speaks against it stands below; that is for you to judge."
    };
    format!(
        "You asked for this, and I ask before I change anything on the server. Nothing has been done yet. {warned}\n{}",
        asked.text()
    )
}

/// Reads the answer. Only the next message after the question can be one.
fn settle(
    update: ConversationStateUpdate,
    asked: &Confirmation,
    state: &ConversationState,
    settings: &Settings,
) -> ConversationStateUpdate {
    if let Some(going) = &state.plan {
        return settle_step(update, going, asked, state, settings);
    }
    let title = actions::title(asked.proposal());
    let verdict = verdict(asked, state);
    if verdict == Verdict::Yes
        && let Some(text) = unread_reason(asked, state)
    {
        return ask_again(update, asked, state.turns, text);
    }
    match verdict {
        Verdict::Yes => {
            let approved = Approval::new(asked.proposal().clone(), (settings.ids)());
            update.approved(Some(approved)).pending(Pending::Nothing)
        }
        Verdict::No => {
            let text = format!("All right, I did not {title}. Nothing was changed.");
            update.preset(Some(PresetReply::new(ResponseKind::Answer, text))).pending(Pending::Nothing)
        }
        Verdict::Modify => ask_what_to_change(update, asked, &title),
        Verdict::NotTheWord => {
            let text = format!(
                "To {title} for good, type the word {DELETE_WORD} in capitals and nothing else; to keep it, say cancel."
            );
            ask_again(update, asked, state.turns, text)
        }
        Verdict::Doubt => ask_again(update, asked, state.turns, reassurance(asked)),
        // A mere question leaves it open, which shows at the end of the turn.
        Verdict::Other => {
            let action = &asked.proposal().action;
            let dropped = DroppedAction { action: action.kind(), params: action.params(), title };
            update.dropped(Some(dropped))
        }
    }
}

/// Reads the answer about a step of a running plan. Only a yes continues the plan; anything else ends it.
fn settle_step(
    update: ConversationStateUpdate,
    going: &PlanRun,
    asked: &Confirmation,
    state: &ConversationState,
    settings: &Settings,
) -> ConversationStateUpdate {
    let verdict = verdict(asked, state);
    if verdict == Verdict::Yes
        && let Some(text) = unread_reason(asked, state)
    {
        return ask_again(update, asked, state.turns, text);
    }
    if verdict == Verdict::Doubt {
        return ask_again(update, asked, state.turns, reassurance(asked));
    }
    let update = update.pending(Pending::Nothing);
    match verdict {
        Verdict::Yes => update.approved(Some(Approval::new(asked.proposal().clone(), (settings.ids)()))),
        Verdict::No => update.plan(Some(going.ending(EarlyEnd::Declined))),
        _ => {
            let note = "I ended what was under way first: please say again what you want now.".to_owned();
            update.plan(Some(going.ending(EarlyEnd::Declined))).notes([note])
        }
    }
}

fn ask_what_to_change(
    update: ConversationStateUpdate,
    asked: &Confirmation,
    title: &str,
) -> ConversationStateUpdate {
    let question = format!("What should I change before I {title}?");
    let action = &asked.proposal().action;
    let missing = IncompleteAction {
        action: Some(action.kind()),
        params: action.params(),
        missing: Vec::new(),
        question: question.clone(),
        options: vec!["Cancel".to_owned()],
    };
    update
        .preset(Some(PresetReply::new(ResponseKind::Question, question)))
        .suggested(missing.options.clone())
        .pending(Pending::Missing(missing))
}

fn nothing_open() -> PresetReply {
    PresetReply::new(ResponseKind::Clarification, "There is nothing to confirm. What would you like to do?")
}

/// The kind of confirmation that this action needs.
fn kind_of(action: &Action) -> ConfirmKind {
    match action {
        Action::DeleteExperiment(_) => ConfirmKind::TypeDelete,
        _ => ConfirmKind::YesNo,
    }
}

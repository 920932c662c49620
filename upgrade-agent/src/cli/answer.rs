//! The output for programs: one JSON object per line. Names and meanings are stable; fields may be added.

use std::process::ExitCode;

use serde::Serialize;
use upgrade_agent::agent::Turn;
use upgrade_agent::balance::BalanceReport;
use upgrade_agent::state::{ErrorClass, PendingSummary, ResponseKind, TurnError};

use super::escape::escape_json;
use super::screen::Screen;

/// A turn.
#[derive(Debug, Serialize)]
pub(super) struct Answer<'a> {
    thread: &'a str,
    reply: &'a str,
    kind: ResponseKind,
    suggested: &'a [String],
    path: &'a [String],
    errors: &'a [TurnError],
    /// The split of students that the turn looked at.
    balance: Option<&'a BalanceReport>,
    pending: Option<&'a PendingSummary>,
    recovered: Option<&'a str>,
}

impl<'a> Answer<'a> {
    pub(super) fn of(thread: &'a str, turn: &'a Turn) -> Self {
        Answer {
            thread,
            reply: &turn.reply,
            kind: turn.kind,
            suggested: &turn.suggested,
            path: &turn.path,
            errors: &turn.errors,
            balance: turn.balance.as_deref(),
            pending: turn.pending.as_ref(),
            recovered: turn.recovered.as_deref(),
        }
    }
}

/// Prints a value as one line.
pub(super) fn print(screen: Screen, value: &impl Serialize) {
    // Texts, lists and words can always be written as JSON.
    let line = serde_json::to_string(value).unwrap_or_default();
    screen.raw(&format!("{}\n", escape_json(&line)));
}

/// Whether the server or a model failed in the turn. A request that makes no sense is answered and does not
/// count.
pub(super) fn is_broken(turn: &Turn) -> bool {
    let broken =
        |error: &TurnError| matches!(error.class, ErrorClass::Api | ErrorClass::Auth | ErrorClass::Unknown);
    turn.errors.iter().any(broken)
}

/// The exit code of the turn.
pub(super) fn exit_code(is_broken: bool) -> ExitCode {
    if is_broken { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

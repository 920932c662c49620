//! One turn: a text in, a reply or a line of JSON out.

use std::process::ExitCode;

use serde::Serialize;
use upgrade_agent::agent::Turn;
use upgrade_agent::state::{ErrorClass, PendingSummary, ResponseKind, TurnError};

use super::failure::Failure;
use super::screen;
use super::world::World;
use crate::config::Config;

/// What `--json` prints. Names and meanings do not change; fields may be added.
#[derive(Serialize)]
struct Answer<'a> {
    thread: &'a str,
    reply: &'a str,
    kind: ResponseKind,
    suggested: &'a [String],
    path: &'a [String],
    errors: &'a [TurnError],
    pending: Option<&'a PendingSummary>,
    recovered: Option<&'a str>,
}

pub(super) async fn run(config: &Config, thread: &str, text: &str, json: bool) -> Result<ExitCode, Failure> {
    let world = World::open(config).await?;
    let turn = turn(&world, thread, text).await;
    if config.model.is_none() && !json {
        screen::warn(upgrade_agent::offline::INTRODUCTION);
    }
    world.close().await;
    let turn = turn?;
    if json {
        print_json(thread, &turn)
    } else {
        print_text(&turn)
    }
    Ok(code(&turn))
}

/// The server is asked first: a yes that cannot be carried out now is better given later.
async fn turn(world: &World, thread: &str, text: &str) -> Result<Turn, Failure> {
    world.client.connect().await?;
    Ok(world.agent.turn(thread, text).await?)
}

fn print_json(thread: &str, turn: &Turn) {
    let answer = Answer {
        thread,
        reply: &turn.reply,
        kind: turn.kind,
        suggested: &turn.suggested,
        path: &turn.path,
        errors: &turn.errors,
        pending: turn.pending.as_ref(),
        recovered: turn.recovered.as_deref(),
    };
    // Texts, lists and words: their writing cannot fail.
    screen::line(&serde_json::to_string(&answer).unwrap_or_default());
}

fn print_text(turn: &Turn) {
    if let Some(reply) = &turn.recovered {
        screen::line(&super::chat::recovered(reply));
    }
    screen::line(&turn.reply);
    if !turn.suggested.is_empty() {
        screen::line(&format!("({})", turn.suggested.join(" / ")));
    }
}

/// A server or a model that failed makes a failure; a request that made no sense was answered.
fn code(turn: &Turn) -> ExitCode {
    let broken =
        |error: &TurnError| matches!(error.class, ErrorClass::Api | ErrorClass::Auth | ErrorClass::Unknown);
    if turn.errors.iter().any(broken) { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

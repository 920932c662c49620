//! The command `ask`: runs one turn with a text and prints the reply or a line of JSON.

use std::process::ExitCode;

use upgrade_agent::agent::Turn;

use super::answer::{self, Answer};
use super::chart;
use super::chat::turn::numbered;
use super::chat::{nth, wants_a_word};
use super::failure::Failure;
use super::screen::Screen;
use super::world::World;
use super::wrap::wrapped;
use crate::config::Config;

pub(super) async fn run(
    config: &Config,
    thread: &str,
    text: &str,
    json: bool,
    screen: Screen,
) -> Result<ExitCode, Failure> {
    let world = World::open(config).await?;
    let said = run_turn(&world, thread, text, screen).await;
    if config.model.is_none() && config.restate.ingress.is_none() && !json {
        screen.warn(upgrade_agent::offline::INTRODUCTION);
    }
    let told = match said {
        Ok(turn) => print_turn(&world, thread, &turn, json, screen).await,
        Err(failure) => Err(failure),
    };
    world.close().await;
    told
}

/// Prints the turn, and marks it as delivered if all of it was printed.
async fn print_turn(
    world: &World,
    thread: &str,
    turn: &Turn,
    json: bool,
    screen: Screen,
) -> Result<ExitCode, Failure> {
    if json {
        answer::print(screen, &Answer::of(thread, turn))
    } else {
        print_text(turn, screen)
    }
    if screen.has_lost() {
        return Err(Failure::Output);
    }
    let heard = world.agent.heard(thread, turn.number).await;
    heard.map_err(|error| Failure::Turn(world.failure_text(&error, thread)))?;
    Ok(answer::exit_code(answer::is_broken(turn)))
}

async fn run_turn(world: &World, thread: &str, text: &str, screen: Screen) -> Result<Turn, Failure> {
    let failed = |error| Failure::Turn(world.failure_text(&error, thread));
    world.restore_others(thread, screen).await;
    world.meet(thread, screen).await.map_err(failed)?;
    world.is_ready(thread).await?;
    let last = world.agent.conversation(thread).await.map_err(failed)?.unwrap_or_default();
    let offered = if wants_a_word(last.pending.summary().as_ref()) { &[][..] } else { &last.suggested };
    world.agent.turn(thread, nth(offered, text.trim()).unwrap_or(text)).await.map_err(failed)
}

fn print_text(turn: &Turn, screen: Screen) {
    if let Some(reply) = &turn.recovered {
        screen.line(&wrapped(&super::chat::recovered(reply), screen.width()));
    }
    screen.line(&wrapped(&turn.reply, screen.width()));
    if let Some(chart) = chart::below(turn, screen) {
        screen.line(&format!("\n{chart}"));
    }
    if wants_a_word(turn.pending.as_ref()) {
        screen.line(&format!("({})", turn.suggested.join(" / ")));
    } else if !turn.suggested.is_empty() {
        screen.raw(&numbered(&turn.suggested, screen));
    }
}

//! The command line: what can be asked for, and what each command prints.
//!
//! Exit codes: 0 when it was done; 1 when it was not, or when a turn met a server or a model that failed; 2
//! for a command or a setting that cannot be used.

mod advice;
mod answer;
mod ask;
mod chart;
mod chat;
mod clock;
mod escape;
mod failure;
mod feed;
mod interrupts;
mod keyboard;
mod occupant;
mod patience;
mod restate;
mod screen;
mod serve;
mod settings;
mod simulator;
mod status;
mod store;
mod threads;
mod world;
mod wrap;

use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::FmtSpan;
use upgrade_agent::agent;

use crate::config::{Config, Flags, truth};
use failure::Failure;
use screen::{Colors, Screen};

/// What `DEBUG` asks for.
const DEBUG: &str = "upgrade_agent=debug,upgrade_simulator=debug,agentgraph=debug,agentgraph_llm=debug";

/// A chat with an agent for UpGrade, the A/B-testing platform. Without a command it opens the chat.
#[derive(Debug, Parser)]
#[command(name = "upgrade-agent", version, about, max_term_width = 110)]
struct Cli {
    #[command(flatten)]
    flags: Flags,
    /// The conversation to go on with
    #[arg(long, global = true, value_name = "NAME", default_value = "default", value_parser = thread_name)]
    thread: String,
    /// When to use colours
    #[arg(long, global = true, alias = "colour", value_name = "WHEN", value_enum, default_value_t)]
    color: Colors,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Open the chat (the default)
    Chat {
        /// For programs: messages as lines in, events as lines of JSON out
        #[arg(long)]
        json: bool,
    },
    /// Say one thing and print the answer
    Ask {
        /// What to say
        text: String,
        /// Print the whole turn as one line of JSON
        #[arg(long)]
        json: bool,
    },
    /// Print a drawing of the agent's graph
    Graph {
        /// The form of the drawing
        #[arg(long, value_enum, default_value_t)]
        form: DrawingForm,
    },
    /// Serve the agent to web clients and browsers, on loopback
    Serve(serve::Options),
    /// Run the embedded UpGrade server alone, on loopback
    Simulator(simulator::Options),
    /// Run the turns of a Restate server, for chats with --restate
    Worker(restate::WorkerOptions),
    /// Carry pieces of replies from workers to chats with --relay
    Relay(restate::RelayOptions),
    /// List the conversations, go on with one, or delete one
    Threads {
        /// Print the list as lines of JSON
        #[arg(long)]
        json: bool,
        #[command(subcommand)]
        command: Option<ThreadsCommand>,
    },
    /// Print the settings and where each comes from; secrets are not shown
    Config {
        /// Print them as one line of JSON
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Subcommand)]
enum ThreadsCommand {
    /// Go on with a conversation in the chat
    Resume {
        /// Its name
        #[arg(value_parser = thread_name)]
        name: String,
    },
    /// Delete a conversation
    Delete {
        /// Its name
        #[arg(value_parser = thread_name)]
        name: String,
    },
}

/// Runs the program.
pub(crate) fn main() -> ExitCode {
    let cli = Cli::from_arg_matches(&command().get_matches()).unwrap_or_else(|error| error.exit());
    let screen = Screen::new(cli.color);
    log_if_asked();
    let runtime = match tokio::runtime::Runtime::new() {
        Ok(runtime) => runtime,
        Err(error) => return Failure::from(error).report(screen),
    };
    let code = runtime.block_on(run(cli, screen)).unwrap_or_else(|failure| failure.report(screen));
    // A thread may still wait for the next line of the keyboard.
    runtime.shutdown_background();
    code
}

/// The command line. The help of a command leaves out the settings that mean nothing to it.
fn command() -> clap::Command {
    let mut command = Cli::command();
    command.build();
    for name in ["simulator", "relay"] {
        command = command.mut_subcommand(name, |command| {
            command.mut_args(|arg| if arg.is_global_set() { arg.hide(true) } else { arg })
        });
    }
    command = command.mut_subcommand("serve", |serve| {
        serve.mut_args(|arg| if arg.get_id() == "thread" { arg.hide(true) } else { arg })
    });
    command.mut_subcommand("worker", |worker| {
        worker.mut_args(|arg| match arg.get_id().as_str() {
            "thread" | "restate" => arg.hide(true),
            "url" => arg.help("The API of the UpGrade server that all workers call [env: UPGRADE_API_URL]"),
            _ => arg,
        })
    })
}

/// The forms of the graph's drawing.
#[derive(Clone, Copy, Debug, Default, clap::ValueEnum)]
enum DrawingForm {
    /// For a terminal
    #[default]
    Text,
    /// For a browser
    Svg,
    /// A flowchart for Mermaid
    Mermaid,
}

async fn run(cli: Cli, screen: Screen) -> Result<ExitCode, Failure> {
    match cli.command {
        Some(Command::Graph { form }) => screen.line(&match form {
            DrawingForm::Text => agent::text(),
            DrawingForm::Svg => agent::svg(),
            DrawingForm::Mermaid => agent::mermaid(),
        }),
        Some(Command::Serve(options)) => serve::run(&config(&cli.flags)?, options, screen).await?,
        Some(Command::Simulator(options)) => simulator::run(options, screen).await?,
        Some(Command::Worker(options)) => restate::work(&config(&cli.flags)?, options, screen).await?,
        Some(Command::Relay(options)) => restate::relay(&config(&cli.flags)?, options, screen).await?,
        Some(Command::Threads { json, command }) => {
            on_threads(&config(&cli.flags)?, json, command, screen).await?;
        }
        Some(Command::Config { json }) => settings::print(&config(&cli.flags)?, json, screen),
        Some(Command::Ask { text, json }) => {
            return ask::run(&config(&cli.flags)?, &cli.thread, &text, json, screen).await;
        }
        Some(Command::Chat { json: true }) => {
            return feed::run(&config(&cli.flags)?, cli.thread, screen).await;
        }
        Some(Command::Chat { json: false }) | None => {
            chat::run(&config(&cli.flags)?, cli.thread, screen).await?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

async fn on_threads(
    config: &Config,
    json: bool,
    command: Option<ThreadsCommand>,
    screen: Screen,
) -> Result<(), Failure> {
    match command {
        None => threads::list(config, json, screen).await,
        Some(ThreadsCommand::Resume { name }) => {
            threads::must_exist(config, &name).await?;
            chat::run(config, name, screen).await
        }
        Some(ThreadsCommand::Delete { name }) => threads::remove(config, &name, screen).await,
    }
}

fn config(flags: &Flags) -> Result<Config, Failure> {
    Ok(Config::collect(flags, &|name| std::env::var(name).ok())?)
}

/// A thread's name is shown on a line of its own.
fn thread_name(name: &str) -> Result<String, String> {
    let name = name.trim();
    if name.is_empty() || name.chars().any(char::is_control) {
        Err("a thread's name has at least one letter, and no line breaks or the like".to_owned())
    } else {
        Ok(name.to_owned())
    }
}

/// Traces go to standard error, and only if `RUST_LOG` asks for them, or `DEBUG`, as with UpGrade's own
/// agent.
fn log_if_asked() {
    let debug = std::env::var("DEBUG").ok().and_then(|word| truth(&word)).unwrap_or(false);
    let filter = match std::env::var_os("RUST_LOG") {
        Some(_) => EnvFilter::from_default_env(),
        None if debug => EnvFilter::new(DEBUG),
        None => return,
    };
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(false)
        // Runs, nodes and calls of the model are spans: their ends tell how long each took.
        .with_span_events(FmtSpan::CLOSE)
        .init();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_of_the_command_line_is_valid() {
        Cli::command().debug_assert();
    }

    #[test]
    fn settings_are_accepted_before_and_after_the_command() {
        let before = Cli::parse_from(["upgrade-agent", "--thread", "t", "--offline", "ask", "hi"]);
        let after = Cli::parse_from(["upgrade-agent", "ask", "hi", "--thread", "t", "--offline"]);
        assert!(before.flags.offline && after.flags.offline);
        assert_eq!((before.thread.as_str(), after.thread.as_str()), ("t", "t"));
    }

    #[test]
    fn blank_thread_names_and_those_with_line_breaks_are_refused() {
        assert!(Cli::try_parse_from(["upgrade-agent", "--thread", "  "]).is_err());
        assert!(Cli::try_parse_from(["upgrade-agent", "--thread", "a\nb"]).is_err());
    }
}

//! The command line.
//!
//! Exit codes: 0 when it was done; 1 when it was not, or only in part; 2 for a command or a setting that
//! cannot be used.

mod ask;
mod cache;
mod failure;
mod page;
mod run;
mod screen;
mod setup;
mod show;
mod status;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};

use crate::config::{Config, Flags};
use failure::Failure;
use screen::Screen;

/// An agent for the questions of the GAIA benchmark.
#[derive(Debug, Parser)]
#[command(name = "gaia-agent", version, about, max_term_width = 110)]
struct Cli {
    #[command(flatten)]
    flags: Flags,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Answer the questions of an evaluation server or of a file; goes on with the last run if that has not
    /// ended
    Run(RunOptions),
    /// Answer one question
    Ask(AskOptions),
    /// Print every step of a question: calls, arguments, results, errors, tokens
    Show {
        /// The id of the question, or a whole thread such as ask/...
        task: String,
        /// The run; the newest if not given
        #[arg(long)]
        run: Option<String>,
        /// Print one JSON object a step
        #[arg(long)]
        json: bool,
    },
    /// Compare the answers of a run with the truth, by the benchmark's rule
    Score {
        /// The run; the newest if not given
        #[arg(long)]
        run: Option<String>,
    },
    /// Print the figures of a run
    Report {
        /// The run; the newest if not given
        #[arg(long)]
        run: Option<String>,
        /// Write a page with charts as well
        #[arg(long, value_name = "FILE")]
        html: Option<PathBuf>,
    },
    /// Look at the kept answers, or remove them
    Cache {
        #[command(subcommand)]
        command: CacheCommand,
    },
    /// Run a page for runs and the embedded evaluation server, on loopback, until it is interrupted
    Serve {
        /// The questions of the page: the address of an evaluation server, or a file [default: the embedded
        /// server]
        #[arg(long, value_name = "FILE|URL")]
        questions: Option<String>,
    },
}

#[derive(Debug, Subcommand)]
enum CacheCommand {
    /// Print the kept answers
    Show,
    /// Remove all of them
    Clear,
}

#[derive(Debug, Default, Args, serde::Deserialize)]
#[serde(default)]
struct RunOptions {
    /// The most questions
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// Only questions of this level
    #[arg(long, value_name = "1|2|3", value_parser = clap::value_parser!(u8).range(1..=3))]
    level: Option<u8>,
    /// The address of an evaluation server, or a file of questions as the benchmark has it [default: the
    /// embedded server]
    #[arg(long, value_name = "FILE|URL")]
    questions: Option<String>,
    /// How many questions are worked on at once
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..))]
    concurrency: u16,
    /// How often each question is run; several runs vote on the answer
    #[arg(long, value_name = "1..9", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=9))]
    runs: u8,
    /// Begin a new run, also if the last one has not ended
    #[arg(long)]
    new: bool,
    /// Write the answers to this file, a JSON line each, as the leaderboard takes them
    #[arg(long, value_name = "FILE")]
    export: Option<PathBuf>,
    /// Submit the answers at the end
    #[arg(long)]
    submit: bool,
    /// Submit answers that were submitted before, or may have been
    #[arg(long)]
    again: bool,
    /// The name on the list of results [env: HF_USERNAME]
    #[arg(long, value_name = "NAME")]
    username: Option<String>,
    /// The address of the agent's code, which the server asks for
    #[arg(long, value_name = "URL")]
    agent_code: Option<String>,
}

#[derive(Debug, Args)]
struct AskOptions {
    /// The question
    #[arg(required_unless_present = "random")]
    text: Option<String>,
    /// A file that it is about
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// How often the question is run; several runs vote on the answer
    #[arg(long, value_name = "1..9", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=9))]
    runs: u8,
    /// Print the model's answers as they come
    #[arg(long, conflicts_with = "runs")]
    stream: bool,
    /// Take a random question from the evaluation server, in the place of a text
    #[arg(long, conflicts_with_all = ["text", "file"])]
    random: bool,
    /// The evaluation server for --random [default: the embedded server]
    #[arg(long, value_name = "URL", requires = "random")]
    questions: Option<String>,
}

/// Runs the program.
pub(crate) fn main() -> ExitCode {
    let cli = Cli::parse();
    let screen = Screen::new();
    let runtime = match tokio::runtime::Runtime::new() {
        Ok(runtime) => runtime,
        Err(error) => return Failure::from(error).report(screen),
    };
    let code = runtime.block_on(command(cli, screen)).unwrap_or_else(|failure| failure.report(screen));
    // A thread may still read a file.
    runtime.shutdown_background();
    code
}

async fn command(cli: Cli, screen: Screen) -> Result<ExitCode, Failure> {
    let config = || -> Result<Config, Failure> {
        let folder = std::env::current_dir()?;
        Ok(Config::collect(&cli.flags, &|name| std::env::var(name).ok(), &folder)?)
    };
    match cli.command {
        Command::Run(options) => run::run(&config()?, &options, screen).await,
        Command::Ask(options) => ask::run(&config()?, &options, screen).await,
        Command::Show { task, run, json } => {
            show::steps(&config()?, &task, run.as_deref(), json, screen).await
        }
        Command::Score { run } => show::score(&config()?, run.as_deref(), screen).await,
        Command::Report { run, html } => {
            show::report(&config()?, run.as_deref(), html.as_deref(), screen).await
        }
        Command::Cache { command: CacheCommand::Show } => cache::show(&config()?, screen),
        Command::Cache { command: CacheCommand::Clear } => cache::clear(&config()?, screen),
        Command::Serve { questions } => page::serve(config()?, questions, screen).await,
    }
}

#[cfg(test)]
mod tests;

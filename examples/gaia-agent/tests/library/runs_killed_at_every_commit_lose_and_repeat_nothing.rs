//! Runs of real processes that are killed (SIGKILL) at their commits. The next process goes on; no question
//! is answered twice, and no call whose result was stored runs again.
//!
//! The child is this program: it runs the twenty questions over its own server, with a store that kills the
//! process.
#![cfg(unix)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::UNIX_EPOCH;

use agentgraph::checkpoint::{Checkpointer, Put, StoreError, delegate};
use agentgraph::{MemorySaver, SqliteSaver};
use agentgraph_llm::{
    Block, ChatRequest, ChatResponse, Message, Reply, Role, ScriptedModel, StopReason, ToolUse,
};
use gaia_agent::agent::{AnswerKind, GaiaAgent, Task};
use gaia_agent::cache::AnswerCache;
use gaia_agent::log::Log;
use gaia_agent::offline::OfflineModel;
use gaia_agent::run::{FileSource, Plan, Run, RunBook, Runner};
use gaia_agent::score::is_right;
use gaia_agent::world::{World, WorldServer};
use serde_json::json;

use crate::common::Folder;
use crate::support::{Scene, plan};

const FOLDER: &str = "GAIA_RUN_OF_A_KILLED_PROCESS";
const PLAN: &str = "GAIA_KILLS_OF_THAT_PROCESS";
const CHILD: &str = "runs_killed_at_every_commit_lose_and_repeat_nothing::in_the_process_that_is_killed";

/// Kills the process before or after so many commits.
struct Deadly<C> {
    saver: C,
    left: AtomicU64,
    is_before: bool,
}

impl<C> Deadly<C> {
    /// Whether this commit is the last one.
    fn is_last(&self) -> bool {
        self.left.fetch_sub(1, Ordering::SeqCst) == 1
    }
}

fn die() {
    let own = rustix::process::getpid();
    rustix::process::kill_process(own, rustix::process::Signal::KILL).unwrap();
    std::thread::park();
}

#[async_trait::async_trait]
impl<C: Checkpointer> Checkpointer for Deadly<C> {
    async fn put(&self, put: Put<'_>) -> Result<(), StoreError> {
        let is_last = self.is_last();
        if is_last && self.is_before {
            die();
        }
        let stored = self.saver.put(put).await;
        if is_last {
            die();
        }
        stored
    }

    delegate!(self => &self.saver; get, row, put_writes, list, threads, delete_thread, outlives_its_process);
    delegate!(self => &self.saver; keeps_secrets, leases, catalog, upkeep);
}

/// How a child is killed.
#[derive(Clone, Copy, Debug)]
struct Kill {
    /// The commit of the process; 0 to let it live.
    at: u64,
    is_before: bool,
    concurrency: usize,
    /// With several, the run has three questions.
    runs: u8,
}

/// The run of a folder, which the first process begins.
async fn run_of(folder: &Path, server: &WorldServer, runs: u8) -> Run {
    let book = RunBook::new(folder.join("runs"));
    match book.latest().unwrap() {
        Some(run) => run,
        None => {
            let client = gaia_agent::evaluation::EvaluationClient::new(server.url()).unwrap();
            let mut questions = client.questions().await.unwrap();
            questions.truncate(if runs > 1 { 3 } else { 20 });
            book.begin(Plan { runs: (runs > 1).then_some(runs), ..plan() }, questions, UNIX_EPOCH).unwrap()
        }
    }
}

/// Does nothing unless it is started by another test.
#[tokio::test(flavor = "multi_thread")]
async fn in_the_process_that_is_killed() {
    let Ok(folder) = std::env::var(FOLDER) else { return };
    let kill = std::env::var(PLAN).unwrap();
    let [at, is_before, concurrency, runs] = kill.split(' ').collect::<Vec<_>>()[..] else {
        panic!("{kill}")
    };
    let folder = Path::new(&folder);
    let server = WorldServer::start(World::new()).await.unwrap();
    let saver = SqliteSaver::open(folder.join("threads.db")).await.unwrap();
    let left = match at.parse().unwrap() {
        0 => u64::MAX,
        at => at,
    };
    let deadly = Deadly { saver, left: AtomicU64::new(left), is_before: is_before == "true" };
    let log = Log::create(folder, UNIX_EPOCH, Default::default()).unwrap();
    let addresses = gaia_agent::settings::Addresses::on(server.url()).unwrap();
    let media =
        agentgraph_llm::GeminiModel::builder().api_key("k").model("eyes").base_url(server.media_url());
    let agent = GaiaAgent::builder(OfflineModel::new())
        .folder(folder)
        .addresses(addresses, true)
        .tavily_key("tvly-embedded".into())
        .media(Arc::new(media.build().unwrap()))
        .guard(gaia_agent::net::Guard::new().trusted(server.url().parse().unwrap()))
        .cache(AnswerCache::new(folder.join("agent_cache.json")))
        .checkpointer(deadly)
        .log(log.clone())
        .build()
        .unwrap();
    let client = gaia_agent::evaluation::EvaluationClient::new(server.url()).unwrap();
    let runner = Runner {
        agent,
        files: FileSource::Server(client),
        concurrency: concurrency.parse().unwrap(),
        drain: agentgraph::CancellationToken::new(),
        log,
    };
    let run = run_of(folder, &server, runs.parse().unwrap()).await;
    let end = runner.run(&run, |_| {}).await;
    let all = run.questions.len();
    assert_eq!((end.solutions.len(), end.errors.len(), end.stopped), (all, 0, 0), "{end:?}");
    println!("is done");
}

/// Starts a process, and waits for its end. Returns whether it came to the end of the run.
fn start(folder: &Folder, kill: Kill) -> bool {
    let output = Command::new(std::env::current_exe().unwrap())
        .args([CHILD, "--exact", "--nocapture"])
        .env(FOLDER, folder.path())
        .env(PLAN, format!("{} {} {} {}", kill.at, kill.is_before, kill.concurrency, kill.runs))
        .stderr(Stdio::piped())
        .output()
        .unwrap();
    let is_done = String::from_utf8_lossy(&output.stdout).contains("is done");
    let is_killed = std::os::unix::process::ExitStatusExt::signal(&output.status) == Some(9);
    assert!(
        is_done || is_killed,
        "{}\n{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    is_done
}

/// How often each thing is in the logs: answers of the model, and calls of tools, by task.
fn counted(folder: &Folder) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for line in folder.logs().lines() {
        let Some((_, event)) = line.split_once("Z [") else { continue };
        let is_work = ["] model: ", "] tool: "].iter().any(|kind| event.contains(kind));
        if is_work {
            *counts.entry(event.to_owned()).or_default() += 1;
        }
    }
    counts
}

/// A reader of the threads.
async fn reader(folder: &Folder) -> GaiaAgent {
    let saver = SqliteSaver::open(folder.file("threads.db")).await.unwrap();
    GaiaAgent::builder(OfflineModel::new()).folder(folder.path()).checkpointer(saver).build().unwrap()
}

/// Asserts that all questions are answered, once.
async fn check(folder: &Folder) {
    let (agent, world) = (reader(folder).await, World::new());
    let run = RunBook::new(folder.file("runs")).latest().unwrap().unwrap();
    let mut right = 0;
    for question in &run.questions {
        let solution = agent.finished(&run.thread(&question.task_id)).await.unwrap().expect("it is done");
        right += u64::from(is_right(&solution.answer, &world.truths[&question.task_id]));
        let state = agent.graph().state(&run.thread(&question.task_id)).await.unwrap().unwrap().values;
        let ends = state.messages.iter().filter(|message| message.text().contains("FINAL ANSWER")).count();
        // The instructions name the form of the answer.
        assert_eq!(ends, 2, "{}: one answer", question.task_id);
    }
    assert_eq!(right, 19);
    assert_eq!(RunBook::new(folder.file("runs")).ids().unwrap().len(), 1, "all processes worked on one run");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_killed_right_after_each_commit_of_twenty_questions_repeats_no_work() {
    let undisturbed = Folder::new();
    assert!(start(&undisturbed, Kill { at: 0, is_before: false, concurrency: 1, runs: 1 }));
    let expected = counted(&undisturbed);
    assert!(expected.values().all(|count| *count == 1) && expected.len() > 60, "{expected:#?}");

    let folder = Folder::new();
    let mut kills = 0;
    while !start(&folder, Kill { at: 1, is_before: false, concurrency: 1, runs: 1 }) {
        kills += 1;
        assert!(kills < 500, "the run does not come to its end");
    }
    assert!(kills > 100, "one process for each commit: {kills}");
    check(&folder).await;
    assert_eq!(counted(&folder), expected, "every request and every call was made once");
}

#[tokio::test(flavor = "multi_thread")]
async fn among_runs_that_vote_nothing_that_was_stored_is_done_again() {
    let undisturbed = Folder::new();
    assert!(start(&undisturbed, Kill { at: 0, is_before: false, concurrency: 1, runs: 3 }));
    let expected = counted(&undisturbed);
    assert!(expected.values().all(|count| *count == 3) && expected.len() > 4, "each run once: {expected:#?}");

    // A kill interrupts the other runs of the question before their own commit.
    let folder = Folder::new();
    let mut kills = 0;
    while !start(&folder, Kill { at: 1, is_before: false, concurrency: 1, runs: 3 }) {
        kills += 1;
        assert!(kills < 200, "the run does not come to its end");
    }
    assert!(kills > 20, "one process for each commit: {kills}");
    let (agent, world) = (reader(&folder).await, World::new());
    let run = RunBook::new(folder.file("runs")).latest().unwrap().unwrap();
    for question in &run.questions {
        let thread = run.thread(&question.task_id);
        let solution = agent.finished(&thread).await.unwrap().expect("it is done");
        assert!(is_right(&solution.answer, &world.truths[&question.task_id]));
        assert_eq!(solution.votes.map(|votes| (votes.agree, votes.runs)), Some((3, 3)));
        for run in agent.runs_of(&thread).await.unwrap() {
            let messages = agent.graph().state(&run).await.unwrap().unwrap().values.messages;
            let ends = messages.iter().filter(|message| message.text().contains("FINAL ANSWER")).count();
            assert_eq!(ends, 2, "{run}: one answer beside the instructions");
        }
        assert_eq!(solution.figures.rounds % 3, 0, "each run is counted once");
    }
    // An ended run is in no later log: `finished` is all that is asked of it.
    let text = folder.logs();
    for question in &run.questions {
        let answers = format!("[{}] answer: ", question.task_id);
        assert!(text.matches(&answers).count() <= 4, "three runs and a vote: {text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_killed_before_a_commit_repeats_the_work_of_that_commit_alone() {
    let folder = Folder::new();
    // The second commit of each process is lost, and made by the next one.
    let mut kills = 0;
    while !start(&folder, Kill { at: 2, is_before: true, concurrency: 1, runs: 1 }) {
        kills += 1;
        assert!(kills < 500, "the run does not come to its end");
    }
    assert!(kills > 100, "{kills}");
    check(&folder).await;
    let counts = counted(&folder);
    assert!(counts.values().all(|count| *count <= 2), "{counts:#?}");
    assert!(counts.values().filter(|count| **count == 2).count() > 60, "{counts:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn among_questions_side_by_side_nothing_that_was_stored_is_done_again() {
    let folder = Folder::new();
    let mut stored: Vec<(usize, BTreeSet<String>)> = Vec::new();
    let mut kills = 0;
    while !start(&folder, Kill { at: 5, is_before: kills % 2 == 0, concurrency: 4, runs: 1 }) {
        kills += 1;
        assert!(kills < 200, "the run does not come to its end");
        let (agent, run) =
            (reader(&folder).await, RunBook::new(folder.file("runs")).latest().unwrap().unwrap());
        let mut done = BTreeSet::new();
        for question in &run.questions {
            let Some(found) = agent.graph().state(&run.thread(&question.task_id)).await.unwrap() else {
                continue;
            };
            let messages = found.values.messages;
            let results: BTreeSet<_> =
                messages.iter().flat_map(Message::results).map(|result| &*result.tool_use_id).collect();
            for call in
                messages.iter().flat_map(Message::tool_uses).filter(|call| results.contains(&*call.id))
            {
                done.insert(format!("{}] tool: {} {}", question.task_id, call.name, call.input.text()));
            }
            let rounds = messages.iter().filter(|message| message.origin.is_some()).count();
            // A request has the instructions, the question, and two messages for each round before.
            done.extend((0..rounds).map(|round| {
                format!(
                    "{}] model: offline/offline is asked, with {} messages",
                    question.task_id,
                    2 + 2 * round
                )
            }));
        }
        stored.push((folder.logs().lines().count(), done));
    }
    assert!(kills > 20, "{kills}");
    check(&folder).await;
    let logs = folder.logs();
    let all = logs.lines().count();
    for (at, done) in &stored {
        // Lines without an event are further lines of one; the part of the log after the kill is the end of
        // it.
        let later: Vec<_> = logs
            .lines()
            .skip(*at)
            .filter_map(|line| line.split_once("Z ["))
            .map(|(_, event)| event)
            .collect();
        let again: Vec<_> = later.iter().filter(|event| done.contains(**event)).collect();
        assert!(again.is_empty(), "stored at line {at} of {all} and done again: {again:?}");
    }
}

#[tokio::test]
async fn a_question_killed_at_any_point_ends_with_the_same_answer() {
    use agentgraph::testing::TestGraph;
    let scene = Scene::new().await;
    // Ids follow from the conversation, so that two runs are the same.
    let call = |id: &str, tool: &str, input| Block::from(ToolUse::new(id, tool, input));
    let reply = move |request: &ChatRequest| {
        let count = request.messages.len();
        let blocks = match count {
            2 => vec![
                call("a", "calculator", json!({ "expression": "6 * 7" })),
                call("b", "wikipedia", json!({ "query": "Varnhavn" })),
            ],
            4 => vec![call("c", "read_file", json!({ "path": "missing" }))],
            _ => vec![Block::text("FINAL ANSWER: 42")],
        };
        let stop = if count < 6 { StopReason::ToolUse } else { StopReason::EndTurn };
        let message = Message::new(Role::Assistant, blocks).with_id(format!("answer-{count}"));
        ChatResponse::new(message, stop).into()
    };
    let agent = scene.builder(ScriptedModel::from_fn(reply)).build().unwrap();
    let services = agent.clone();
    let test = TestGraph::of(agent.graph().clone())
        .hold_time_for_io()
        .set_up(move |call| services.set_up(call, &Task::ask("What is six times seven?")).unwrap());
    test.every_kill(agent.input(&Task::ask("What is six times seven?"))).await.assert_none();
}

#[tokio::test]
async fn a_drained_run_ends_after_what_is_under_way_and_goes_on_later() {
    let scene = Scene::new().await;
    let model = ScriptedModel::from_fn(|request| match request.messages.len() {
        2 => Reply::tool_call("calculator", json!({ "expression": "6 * 7" })),
        _ => Reply::text("FINAL ANSWER: 42"),
    });
    let agent = scene.builder(model.clone()).checkpointer(MemorySaver::new()).build().unwrap();
    let mut run = scene.begin().await;
    run.questions.truncate(6);
    let mut runner = scene.runner(&agent);
    runner.concurrency = 2;
    let drain = runner.drain.clone();
    let mut solved = 0;
    let end = runner
        .run(&run, |_| {
            solved += 1;
            if solved == 2 {
                drain.cancel();
            }
        })
        .await;
    assert!(end.stopped > 0 && end.solutions.len() + end.stopped == 6 && end.errors.is_empty(), "{end:?}");
    let before = model.requests().len();
    let end = scene.runner(&agent).run(&run, |_| {}).await;
    assert_eq!((end.solutions.len(), end.stopped), (6, 0));
    assert!(
        end.solutions.iter().all(|solution| solution.answer == "42" && solution.kind == AnswerKind::Final)
    );
    assert_eq!(model.requests().len(), 12, "two requests a question, {before} of them before the drain");
}

#[tokio::test]
async fn a_drain_stops_a_question_after_the_step_that_is_under_way() {
    let scene = Scene::new().await;
    let drain = agentgraph::CancellationToken::new();
    let told = drain.clone();
    let model = ScriptedModel::from_fn(move |request| match request.messages.len() {
        2 => {
            told.cancel();
            Reply::tool_call("calculator", json!({ "expression": "6 * 7" }))
        }
        _ => Reply::text("FINAL ANSWER: 42"),
    });
    let agent = scene.builder(model.clone()).checkpointer(MemorySaver::new()).build().unwrap();
    let mut run = scene.begin().await;
    run.questions.truncate(2);
    let mut runner = scene.runner(&agent);
    (runner.concurrency, runner.drain) = (1, drain);
    let end = runner.run(&run, |_| {}).await;
    assert_eq!((end.solutions.len(), end.stopped, model.requests().len()), (0, 2, 1));
    let end = scene.runner(&agent).run(&run, |_| {}).await;
    assert_eq!(
        (end.solutions.len(), end.stopped, model.requests().len()),
        (2, 0, 4),
        "nothing is asked again"
    );
}

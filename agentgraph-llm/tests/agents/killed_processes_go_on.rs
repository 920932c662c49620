//! A process that is killed in the middle of a call, and another one that goes on from the file.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command as Process, Stdio};

use agentgraph::prelude::*;
use agentgraph_llm::prelude::*;
use serde_json::json;

use crate::support::{Number, answer_to, results, rounds};

const FOLDER: &str = "AGENT_OF_A_KILLED_PROCESS";

fn note(folder: &Path, line: &str) {
    let mut log = OpenOptions::new().create(true).append(true).open(folder.join("log")).unwrap();
    writeln!(log, "{line}").unwrap();
}

/// One call after another. In the process that is to be killed, call 5 never ends.
async fn agent(folder: PathBuf, hangs: bool) -> CompiledAgent {
    let model = ScriptedModel::from_fn(move |request| match rounds(request) {
        10 => answer_to(request, vec![Block::text("all paid")]),
        n => answer_to(
            request,
            vec![agentgraph_llm::ToolUse::new(format!("pay-{n}"), "pay", json!({"n": n})).into()],
        ),
    });
    let saver = SqliteSaver::open(folder.join("threads.db")).await.unwrap();
    let pay = FnTool::new("pay", "Pays.", move |number: Number| {
        let folder = folder.clone();
        async move {
            note(&folder, &format!("pay {}", number.n));
            if hangs && number.n == 5 {
                println!("hangs");
                std::future::pending::<()>().await;
            }
            Ok::<_, ToolError>(format!("paid {}", number.n))
        }
    });
    Agent::new(model).tool(pay).compile().unwrap().checkpointer(saver)
}

/// Does nothing unless it is started by the other test.
#[tokio::test]
async fn in_the_process_that_is_killed() {
    let Ok(folder) = std::env::var(FOLDER) else { return };
    let agent = agent(folder.into(), true).await;
    let _ = agent.invoke(Message::user("pay").with_id("input")).thread("t").await;
}

#[tokio::test]
async fn another_process_goes_on_from_the_file() {
    let folder = std::env::temp_dir().join(format!("agent-kill-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let name = "agents::killed_processes_go_on::in_the_process_that_is_killed";
    let mut child = Process::new(std::env::current_exe().unwrap())
        .args([name, "--exact", "--nocapture"])
        .env(FOLDER, &folder)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let output = std::io::BufReader::new(child.stdout.take().unwrap());
    let hangs = std::io::BufRead::lines(output).any(|line| line.unwrap().contains("hangs"));
    assert!(hangs, "the child ended before its call");
    child.kill().unwrap();
    child.wait().unwrap();

    let agent = agent(folder.clone(), false).await;
    let answer = agent.proceed().thread("t").await.unwrap().into_finished().unwrap();
    assert_eq!(answer.text(), "all paid");
    assert_eq!(results(&answer.state.messages).len(), 10);
    let log = std::fs::read_to_string(folder.join("log")).unwrap();
    let lines: Vec<_> = log.lines().collect();
    let expected: Vec<_> = [0, 1, 2, 3, 4, 5, 5, 6, 7, 8, 9].map(|n| format!("pay {n}")).into();
    assert_eq!(lines, expected, "only the call that was not stored ran twice");
    std::fs::remove_dir_all(&folder).unwrap();
}

const RANDOM_FOLDER: &str = "AGENT_OF_PROCESSES_KILLED_AT_RANDOM";

/// Two answers with five calls each, then a text. Answers and calls write themselves into the log.
async fn agent_of_ten_calls(folder: &Path) -> CompiledAgent {
    let log = folder.to_owned();
    let model = ScriptedModel::from_fn(move |request| {
        let round = rounds(request);
        note(&log, &format!("model {round}"));
        if round == 2 {
            return answer_to(request, vec![Block::text("all paid")]);
        }
        let call = |n: u64| agentgraph_llm::ToolUse::new(format!("pay-{n}"), "pay", json!({ "n": n }));
        answer_to(request, (round * 5..round * 5 + 5).map(|n| call(n).into()).collect())
    });
    let log = folder.to_owned();
    let pay = FnTool::new("pay", "Pays.", move |number: Number| {
        let folder = log.clone();
        async move {
            // Work takes its time, so that a kill finds some calls done and others not.
            tokio::time::sleep(std::time::Duration::from_millis(number.n % 5 * 7)).await;
            note(&folder, &format!("pay pay-{}", number.n));
            Ok::<_, ToolError>(format!("paid {}", number.n))
        }
    });
    let saver = SqliteSaver::open(folder.join("threads.db")).await.unwrap();
    Agent::new(model).tool(pay).compile().unwrap().checkpointer(saver)
}

/// Does nothing unless it is started by the test below.
#[tokio::test]
async fn in_a_process_that_is_killed_at_random() {
    let Ok(folder) = std::env::var(RANDOM_FOLDER) else { return };
    let agent = agent_of_ten_calls(folder.as_ref()).await;
    println!("begins");
    let stored = agent.state("t").await.unwrap();
    let run = match stored {
        None => agent.invoke(Message::user("pay").with_id("input")).thread("t").await,
        Some(checkpoint) if checkpoint.next.is_empty() => return println!("was done"),
        Some(_) => agent.proceed().thread("t").await,
    };
    run.unwrap().into_finished().unwrap();
    println!("is done");
}

/// What the file has of the thread: answers of the model, and results of calls.
async fn stored(agent: &CompiledAgent) -> Vec<String> {
    let Some(checkpoint) = agent.state("t").await.unwrap() else { return Vec::new() };
    let messages = checkpoint.values.messages;
    let answers = messages.iter().filter(|message| message.role == Role::Assistant).count();
    let calls =
        messages.iter().flat_map(Message::results).map(|result| format!("pay {}", result.tool_use_id));
    calls.chain((0..answers).map(|round| format!("model {round}"))).collect()
}

fn lines(folder: &Path) -> Vec<String> {
    let log = std::fs::read_to_string(folder.join("log")).unwrap_or_default();
    log.lines().map(str::to_owned).collect()
}

/// Starts a process and kills it after this time, unless it ends before.
fn start_and_kill(folder: &Path, after: std::time::Duration) {
    let name = "agents::killed_processes_go_on::in_a_process_that_is_killed_at_random";
    let mut child = Process::new(std::env::current_exe().unwrap())
        .args([name, "--exact", "--nocapture"])
        .env(RANDOM_FOLDER, folder)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let output = std::io::BufReader::new(child.stdout.take().unwrap());
    let begins = std::io::BufRead::lines(output).any(|line| line.unwrap().contains("begins"));
    assert!(begins, "the child ended before its run");
    std::thread::sleep(after);
    child.kill().unwrap();
    child.wait().unwrap();
}

/// Kills at random times, again and again. What was in the file at a kill is not done again after it.
#[tokio::test]
async fn after_kills_at_random_nothing_that_is_stored_is_done_again() {
    let mut seed = u64::from(std::process::id());
    for thread in 0..4 {
        let folder = std::env::temp_dir().join(format!("agent-kills-{}-{thread}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let mut kept = Vec::new();
        for _ in 0..8 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            start_and_kill(&folder, std::time::Duration::from_millis((seed >> 33) % 40));
            kept.push((lines(&folder).len(), stored(&agent_of_ten_calls(&folder).await).await));
        }
        let agent = agent_of_ten_calls(&folder).await;
        match agent.state("t").await.unwrap() {
            None => drop(agent.invoke(Message::user("pay").with_id("input")).thread("t").await.unwrap()),
            Some(checkpoint) if checkpoint.next.is_empty() => {}
            Some(_) => drop(agent.proceed().thread("t").await.unwrap()),
        }
        let messages = agent.state("t").await.unwrap().unwrap().values.messages;
        let expected: Vec<_> = (0..10).map(|n| format!("pay-{n}: paid {n}")).collect();
        assert_eq!(results(&messages), expected);
        assert_eq!(messages.last().unwrap().text(), "all paid");
        let log = lines(&folder);
        for (at, done) in &kept {
            let again: Vec<_> = log[*at..].iter().filter(|line| done.contains(line)).collect();
            assert!(again.is_empty(), "stored and done again: {again:?} in {log:?}");
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }
}

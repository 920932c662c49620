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

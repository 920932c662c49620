//! A question to a person outlives the process that asked it, an answer that does not fit, and the process
//! that took the answer: four processes, three of them killed, one file.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command as Process, Stdio};

use agentgraph::checkpoint::{PendingWrite, Place};
use agentgraph::prelude::*;
use agentgraph::run::InterruptId;
use agentgraph_llm::ToolUse;
use agentgraph_llm::middleware::{HumanInTheLoop, Question, ToolPolicy, Verdict};
use agentgraph_llm::prelude::*;
use serde_json::json;

use crate::support::{Number, answer_to, results, rounds};

const FOLDER: &str = "AGENT_THAT_ASKS_A_PERSON";
const PART: &str = "PART_OF_AN_AGENT_THAT_ASKS";

fn note(folder: &Path, line: &str) {
    let mut log = OpenOptions::new().create(true).append(true).open(folder.join("log")).unwrap();
    writeln!(log, "{line}").unwrap();
}

/// Six calls, of which one needs no person. If `hangs`, call 5 never ends.
async fn agent(folder: &Path, hangs: bool) -> CompiledAgent {
    let saver = SqliteSaver::open(folder.join("threads.db")).await.unwrap();
    let home = folder.to_owned();
    let model = ScriptedModel::from_fn(move |request| {
        let round = rounds(request);
        note(&home, &format!("model {round}"));
        if round > 0 {
            return answer_to(request, vec![Block::text("all done")]);
        }
        let tool = |n| if n == 4 { "free" } else { "ask" };
        let call = |n: u64| ToolUse::new(format!("c-{n}"), tool(n), json!({ "n": n }));
        answer_to(request, (0..6).map(|n| call(n).into()).collect())
    });
    let tool = |name: &str| {
        let home = folder.to_owned();
        FnTool::new(name, "Does it.", move |number: Number| {
            let home = home.clone();
            async move {
                note(&home, &format!("did {}", number.n));
                if hangs && number.n == 5 {
                    println!("ready");
                    std::future::pending::<()>().await;
                }
                Ok::<_, ToolError>(format!("did {}", number.n))
            }
        })
    };
    let human = HumanInTheLoop::new().tool("ask", ToolPolicy::new());
    let agent = Agent::new(model).tool(tool("ask")).tool(tool("free")).middleware(human);
    agent.compile().unwrap().checkpointer(saver)
}

/// The open question, read from the file.
async fn open(agent: &CompiledAgent) -> (InterruptId, Question) {
    let checkpoint = agent.state("t").await.unwrap().unwrap();
    let [open] = &checkpoint.interrupts[..] else { panic!("one question: {:?}", checkpoint.interrupts) };
    (open.id.unwrap(), serde_json::from_value(open.value.clone()).unwrap())
}

fn verdicts() -> [Verdict; 5] {
    [
        Verdict::Approve,
        Verdict::edit(json!({"n": 11})),
        Verdict::reject("no"),
        Verdict::respond("by hand"),
        Verdict::Approve,
    ]
}

/// None of these answers is taken, and after each the question is open.
async fn answer_wrongly(agent: &CompiledAgent) {
    let (id, question) = open(agent).await;
    let mut stale = question.answer(verdicts());
    stale.decisions[0].call = "a-call-of-yesterday".to_owned();
    let error = question.check(&stale).unwrap_err();
    assert_eq!(error.code(), agentgraph_llm::Code::AnswerMismatch);

    let again = agent.resume(stale).thread("t").await.unwrap();
    assert_eq!(again.interrupts().len(), 1);
    let (now, asked) = open(agent).await;
    assert_eq!((&asked.problem, &asked.calls), (&Some(error.to_string()), &question.calls));

    // The question that was answered is another one.
    let late = agent.resume_many([(id, question.answer(verdicts()))]).thread("t").await.unwrap_err();
    assert_eq!((late.code(), now == id), (agentgraph::Code::UnknownInterrupt, false), "{late}");
    let unreadable = agent.resume("yes").thread("t").await.unwrap_err();
    assert_eq!(unreadable.code(), agentgraph::Code::BadAnswer, "{unreadable}");
    assert_eq!(open(agent).await.1, asked);
}

/// Does nothing unless it is started by the other test.
#[tokio::test]
async fn in_a_process_that_is_killed() {
    let Ok(folder) = std::env::var(FOLDER) else { return };
    let part = std::env::var(PART).unwrap();
    let agent = agent(Path::new(&folder), part == "answers").await;
    match part.as_str() {
        "asks" => drop(agent.invoke(Message::user("go").with_id("input")).thread("t").await.unwrap()),
        "answers wrongly" => answer_wrongly(&agent).await,
        _ => {
            let (_, question) = open(&agent).await;
            let _ = agent.resume(question.answer(verdicts())).thread("t").await;
        }
    }
    println!("ready");
    std::future::pending::<()>().await;
}

/// Starts a part in a process, and waits until it is ready to be killed.
fn start(folder: &Path, part: &str) -> Child {
    let name = "agents::people_answer_across_killed_processes::in_a_process_that_is_killed";
    let mut child = Process::new(std::env::current_exe().unwrap())
        .args([name, "--exact", "--nocapture"])
        .env(FOLDER, folder)
        .env(PART, part)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let output = BufReader::new(child.stdout.take().unwrap());
    let is_ready = output.lines().any(|line| line.unwrap().contains("ready"));
    assert!(is_ready, "the process that {part} ended too early");
    child
}

fn kill(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

/// Waits until the results of the calls that ended are stored, in a superstep that has not ended.
async fn until_stored(folder: &Path, outputs: &[&str]) {
    let saver = SqliteSaver::open(folder.join("threads.db")).await.unwrap();
    let has = |write: &PendingWrite, text: &str| {
        let mut windows = write.bytes.windows(text.len());
        write.slot < PendingWrite::SPECIAL && windows.any(|bytes| bytes == text.as_bytes())
    };
    loop {
        let tail = saver.get(Place::root("t"), None).await.unwrap().unwrap();
        if outputs.iter().all(|text| tail.writes.iter().any(|write| has(write, text))) {
            return;
        }
        tokio::task::yield_now().await;
    }
}

fn counts(folder: &Path) -> BTreeMap<String, usize> {
    let log = std::fs::read_to_string(folder.join("log")).unwrap();
    log.lines().fold(BTreeMap::new(), |mut counts, line| {
        *counts.entry(line.to_owned()).or_default() += 1;
        counts
    })
}

fn expected<const N: usize>(lines: [(&str, usize); N]) -> BTreeMap<String, usize> {
    lines.map(|(line, count)| (line.to_owned(), count)).into()
}

#[tokio::test]
async fn a_question_its_answer_and_its_calls_outlive_their_processes() {
    let folder = std::env::temp_dir().join(format!("agent-asks-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    for part in ["asks", "answers wrongly"] {
        kill(start(&folder, part));
        assert_eq!(counts(&folder), expected([("model 0", 1)]), "nothing runs before the answer");
    }
    let answers = start(&folder, "answers");
    until_stored(&folder, &["did 0", "did 11", "did 4"]).await;
    kill(answers);
    let ran = [("did 0", 1), ("did 11", 1), ("did 4", 1), ("did 5", 1), ("model 0", 1)];
    assert_eq!(counts(&folder), expected(ran));

    let agent = agent(&folder, false).await;
    let answer = agent.proceed().thread("t").await.unwrap().into_finished().unwrap();
    assert_eq!(answer.text(), "all done");
    // Call 5 alone was not stored. The model was paid for its two answers, once each.
    let ran = [("did 0", 1), ("did 11", 1), ("did 4", 1), ("did 5", 2), ("model 0", 1), ("model 1", 1)];
    assert_eq!(counts(&folder), expected(ran));
    let mut results = results(&answer.state.messages);
    results.sort();
    let expected = [
        "c-0: did 0",
        "c-1: A person changed this call before it ran, to `ask` with {\"n\":11}.did 11",
        "c-2: A person rejected this call; it did not run. The reason: no",
        "c-3: by hand",
        "c-4: did 4",
        "c-5: did 5",
    ];
    assert_eq!(results, expected);
    std::fs::remove_dir_all(&folder).unwrap();
}

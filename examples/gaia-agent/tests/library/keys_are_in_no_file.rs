//! Keys are in no log, cache, checkpoint or error, also if a service repeats them.

use std::sync::Arc;

use agentgraph::SqliteSaver;
use agentgraph_llm::{Code, Error, OpenAiModel, Reply, ScriptedModel};
use axum::Router;
use axum::extract::Request;
use axum::http::StatusCode;
use gaia_agent::agent::Task;
use gaia_agent::cache::AnswerCache;
use gaia_agent::log::{Log, Secrets};
use gaia_agent::settings::{Addresses, Settings};
use serde_json::json;
use tokio::net::TcpListener;

use crate::support::Scene;

const KEYS: [&str; 4] =
    ["sk-openai-0123456789", "tvly-tavily-0123456789", "gemini-0123456789", "hf_token-0123456789"];

fn secrets() -> Secrets {
    Secrets::new(KEYS.map(Into::into))
}

/// A server that repeats the headers and the body of each request.
async fn echo(status: StatusCode) -> String {
    let routes = Router::new().fallback(move |request: Request| async move {
        let (head, body) = request.into_parts();
        let body = axum::body::to_bytes(body, 1 << 20).await.unwrap();
        (status, format!("{head:?} {}", String::from_utf8_lossy(&body)))
    });
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, routes).await });
    url
}

#[tokio::test]
async fn whatever_services_files_and_models_repeat() {
    let scene = Scene::new().await;
    scene.folder.write("here/keys.txt", KEYS.join("\n"));
    let url = echo(StatusCode::UNAUTHORIZED).await;
    let model = ScriptedModel::new([
        Reply::tool_call("tavily_search", json!({ "query": "x" }))
            .and_tool_call("read_file", json!({ "path": "keys.txt" })),
        Reply::text("FINAL ANSWER: 7"),
    ]);
    let log = Log::create(scene.folder.path(), std::time::UNIX_EPOCH, secrets()).unwrap();
    let saver = SqliteSaver::open(scene.folder.file("threads.db")).await.unwrap();
    let agent = scene
        .builder(model)
        .addresses(Addresses::on(&url).unwrap(), true)
        .tavily_key(KEYS[1].into())
        .cache(AnswerCache::new(scene.folder.file("agent_cache.json")))
        .checkpointer(saver)
        .log(log)
        .build()
        .unwrap();
    agent.solve("t", &Task::ask("What?")).await.unwrap();
    assert!(format!("{agent:?}").contains("GaiaAgent"));

    // A real wire whose server repeats the key in its error.
    let openai =
        OpenAiModel::builder().api_key(KEYS[0]).model("m").base_url(&url).max_retries(0).build().unwrap();
    let mut settings = Settings::default();
    settings.max_retries = 0;
    let log = Log::create(scene.folder.path(), std::time::UNIX_EPOCH, secrets()).unwrap();
    let saver = SqliteSaver::open(scene.folder.file("other.db")).await.unwrap();
    let agent = scene.builder(openai).settings(&settings).checkpointer(saver).log(log).build().unwrap();
    let solution = agent.solve("t", &Task::ask("What?")).await.unwrap();
    let error = solution.error.unwrap();
    assert!(error.contains("E_LLM_AUTH"), "{error}");
    drop(agent);

    let logs = scene.folder.logs();
    assert!(logs.contains("tavily_search") && logs.contains("[key]"), "{logs}");
    let mut seen = 0;
    for entry in std::fs::read_dir(scene.folder.path()).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            let bytes = std::fs::read(&path).unwrap();
            seen += 1;
            for key in KEYS {
                let is_there = bytes.windows(key.len()).any(|part| part == key.as_bytes());
                assert!(!is_there, "{key} is in {}", path.display());
            }
        }
    }
    assert!(seen >= 5, "logs, cache and threads: {seen}");
    assert!(KEYS.iter().all(|key| !error.contains(key)), "{error}");
}

#[tokio::test]
async fn the_log_has_calls_results_reasoning_and_the_chain_of_an_error() {
    let scene = Scene::new().await;
    let source = std::io::Error::other("the cable is out");
    let down = Error::new(Code::Connection, "no connection").with_source(source);
    let call = Reply::thinking("I should multiply.", "sig")
        .and_tool_call("calculator", json!({ "expression": "6 * 7" }));
    let model = ScriptedModel::new([
        Reply::error(down),
        call,
        Reply::tool_call("read_file", json!({ "path": "no.txt" })),
        Reply::text("Two\nlines\nFINAL ANSWER: 42"),
    ]);
    let log = Log::create(scene.folder.path(), std::time::UNIX_EPOCH, secrets()).unwrap();
    assert!(log.path().unwrap().ends_with("agent_run_19700101_000000.log"));
    let clock = Arc::new(crate::support::TestClock::default());
    let agent = scene.builder(model).log(log).clock(clock).build().unwrap();
    let mut task = Task::ask("How\nmany?");
    task.question.task_id = "t-1".into();
    agent.solve("t", &task).await.unwrap();
    let log = scene.folder.logs();
    for part in [
        "[t-1] question: How\n    many?",
        "[t-1] model failed: scripted/scripted: E_LLM_CONNECTION: no connection\n    caused by: the cable is out",
        "[t-1] reasoning: I should multiply.",
        "[t-1] call: calculator {\"expression\":\"6 * 7\"}",
        "[t-1] tool: calculator {\"expression\":\"6 * 7\"}",
        "[t-1] result: calculator: 42",
        "[t-1] tool failed: read_file: there is no file `no.txt`",
        "[t-1] text: Two\n    lines\n    FINAL ANSWER: 42",
        "[t-1] answer: 42 (final answer)",
    ] {
        assert!(log.contains(part), "{part:?} is not in\n{log}");
    }
    let is_line = |line: &str| line.starts_with("    ") || line.starts_with("20");
    assert!(log.lines().all(is_line), "{log}");
    let again = Log::create(scene.folder.path(), std::time::UNIX_EPOCH, secrets()).unwrap();
    assert!(again.path().unwrap().ends_with("agent_run_19700101_000000_2.log"), "no log is overwritten");
}

//! Servers that are killed or drained while runs are under way, and the next one on the same file.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use agentgraph::node::CallContext;
use agentgraph::prelude::*;
use agentgraph_llm::prelude::*;
use agentgraph_llm::{ScriptedModel, Usage};
use agentgraph_server::{OnRestart, RunConfig, Server};
use reqwest::Method;
use schemars::JsonSchema;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use crate::common::{ALL_CHANNELS, Event, Served, events_of};

#[derive(State, JsonSchema, Clone, Debug, Default)]
pub(crate) struct Count {
    #[reduce(append)]
    pub(crate) steps: Vec<u64>,
    pub(crate) to: u64,
    /// The inputs that were taken.
    #[reduce(append)]
    given: Vec<u64>,
    /// The step that waits until this file is there.
    waits_at: u64,
    file: String,
}

/// Notes each of its steps in a file beside the one that it waits for.
async fn count(count: Snapshot<Count>, run: CallContext<RunConfig>) -> Result<CountUpdate> {
    let step = count.steps.len() as u64 + 1;
    let mut notes = OpenOptions::new().create(true).append(true).open(format!("{}.steps", count.file))?;
    notes.write_all(format!("{} {step}\n", run.thread_id).as_bytes())?;
    while step == count.waits_at && !Path::new(&count.file).exists() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Ok(Count::update().steps([step]))
}

pub(crate) fn counting() -> CompiledGraph<Count> {
    let next = |count: &Count| if (count.steps.len() as u64) < count.to { "count" } else { END };
    let graph = StateGraph::new().node("count", count).edge(START, "count");
    graph.branch("count", next, ["count", END]).compile().unwrap()
}

/// Waits until a file is there.
#[tool]
async fn wait(file: String) -> String {
    while !Path::new(&file).exists() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    "waited".to_owned()
}

/// An agent that is told a file, waits for it, and counts its tokens.
fn spending() -> CompiledGraph<AgentState> {
    let model = ScriptedModel::from_fn(|request| match &request.messages[..] {
        [file] => Reply::tool_call("wait", json!({ "file": file.text() })).with_usage(Usage::new(1200, 80)),
        _ => Reply::text("done").with_usage(Usage::new(100, 10)),
    });
    Agent::new(model.named("tea-1")).tool(wait()).compile().unwrap().into_graph()
}

pub(crate) fn server(file: &Path, what: OnRestart) -> Server {
    let server = Server::new().sqlite(file).on_restart(what).graph("count", counting());
    server.graph_without_schema("spend", spending())
}

pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("agentgraph-server-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Not a test of its own: the server that the others kill, in a process of its own.
#[tokio::test]
#[ignore = "run by the tests beside it"]
async fn serves_until_it_is_killed() {
    let place = std::env::var("SERVED").unwrap();
    let server = match place.split_once(' ') {
        #[cfg(all(unix, feature = "postgres"))]
        Some((url, schema)) => crate::replicas_share_a_database::replica(url, schema).await,
        _ => server(Path::new(&place), OnRestart::Continue),
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    println!("listening on {}", listener.local_addr().unwrap());
    server.serve_on(listener).await.unwrap();
}

/// A server in a process of its own, on a file or on the schema of a database.
pub(crate) async fn process(place: &str) -> (Child, String) {
    let mut process = Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "--nocapture"])
        .arg("a_killed_server_leaves_no_ghost_runs::serves_until_it_is_killed")
        .env("SERVED", place)
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
    loop {
        let line = lines.next_line().await.unwrap().expect("the server ended");
        if let Some((_, address)) = line.split_once("listening on ") {
            // The rest of its output has no reader.
            tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
            return (process, format!("http://{address}"));
        }
    }
}

/// Starts a run in another process, ends that process in the middle of the run, and returns thread, run and
/// what its stream had.
async fn left_behind(folder: &Folder, kills: bool) -> (String, String, String) {
    let (mut process, url) = process(folder.0.join("served.db").to_str().unwrap()).await;
    let client = crate::common::client();
    let post = async |path: String, body: Value| -> Value {
        client.post(format!("{url}{path}")).json(&body).send().await.unwrap().json().await.unwrap()
    };
    let thread = post("/threads".to_owned(), json!({})).await["thread_id"].as_str().unwrap().to_owned();
    let body = json!({
        "assistant_id": "count", "stream_mode": ["updates"], "stream_resumable": true,
        "input": { "to": 6, "waits_at": 4, "file": folder.0.join("go") },
    });
    let stream = client.post(format!("{url}/threads/{thread}/runs/stream")).json(&body).send().await.unwrap();
    let run = stream.headers()["content-location"].to_str().unwrap().rsplit('/').next().unwrap().to_owned();
    let mut stream = stream;
    let mut read = String::new();
    while read.matches("event: updates").count() < 3 {
        read += &String::from_utf8_lossy(&stream.chunk().await.unwrap().unwrap());
    }
    if kills {
        process.kill().await.unwrap();
    } else {
        let other = post("/threads".to_owned(), json!({})).await;
        let other = format!("{url}/threads/{}/stream", other["thread_id"].as_str().unwrap());
        let mut idle = client.get(other).send().await.unwrap();
        let id = rustix::process::Pid::from_raw(process.id().unwrap().try_into().unwrap()).unwrap();
        rustix::process::kill_process(id, rustix::process::Signal::TERM).unwrap();
        // The drain ends this stream; the run under way must not reach its end before.
        while let Ok(Some(_)) = idle.chunk().await {}
        std::fs::write(folder.0.join("go"), "").unwrap();
        assert!(process.wait().await.unwrap().success(), "a drain is a success");
        while let Ok(Some(chunk)) = stream.chunk().await {
            read += &String::from_utf8_lossy(&chunk);
        }
        assert!(!read.contains("event: end") && !read.contains("event: error"), "{read}");
    }
    (thread, run, read)
}

async fn goes_on(name: &str, kills: bool) {
    let folder = Folder::new(name);
    let (thread, run, read) = left_behind(&folder, kills).await;
    std::fs::write(folder.0.join("go"), "").unwrap();
    let served = Served::of(server(&folder.0.join("served.db"), OnRestart::Continue)).await;
    let path = format!("/threads/{thread}/runs/{run}");
    let values = served.get(&format!("{path}/join")).await;
    assert_eq!(values["steps"], json!([1, 2, 3, 4, 5, 6]), "each step once");
    assert_eq!(served.get(&path).await["status"], "success");
    assert_eq!(served.get(&format!("/threads/{thread}")).await["status"], "idle");
    let whole = read.rfind("\r\n\r\n").map_or(0, |end| end + 4);
    let before = events_of(&read[..whole]);
    let last = before.last().unwrap().id.clone().unwrap();
    let rest = served.request(Method::GET, &format!("{path}/stream")).header("last-event-id", last);
    let rest = events_of(&rest.send().await.unwrap().text().await.unwrap());
    let updates = before.iter().chain(&rest).filter(|event| event.name == "updates");
    let steps: Vec<u64> = updates.map(|event| event.data["count"]["steps"][0].as_u64().unwrap()).collect();
    assert_eq!(steps, [1, 2, 3, 4, 5, 6], "and each event once");
    assert_eq!(rest.last().unwrap().name, "end");
}

#[tokio::test]
async fn runs_of_a_killed_server_go_on() {
    goes_on("killed", true).await;
}

#[tokio::test]
async fn runs_of_a_drained_server_go_on() {
    goes_on("drained", false).await;
}

/// Starts a run by a command in another process, kills that process in the middle of the run, and returns the
/// thread and the events that a reader has had.
async fn followed_and_killed(folder: &Folder) -> (String, Vec<Event>) {
    let (mut process, url) = process(folder.0.join("served.db").to_str().unwrap()).await;
    let thread = uuid::Uuid::now_v7().to_string();
    let input = json!({ "to": 6, "waits_at": 4, "file": folder.0.join("go") });
    let command =
        json!({ "id": 1, "method": "run.start", "params": { "assistant_id": "count", "input": input } });
    let client = crate::common::client();
    let post =
        |path: &str, body: &Value| client.post(format!("{url}/threads/{thread}/{path}")).json(body).send();
    post("commands", &command).await.unwrap();
    let mut stream = post("stream/events", &json!({ "channels": ALL_CHANNELS })).await.unwrap();
    let mut read = String::new();
    while read.matches("event: updates").count() < 3 {
        read += &String::from_utf8_lossy(&stream.chunk().await.unwrap().unwrap());
    }
    process.kill().await.unwrap();
    let whole = read.rfind("\r\n\r\n").map_or(0, |end| end + 4);
    (thread, events_of(&read[..whole]))
}

fn status(event: &Event) -> Option<&str> {
    event.data["params"]["data"]["event"].as_str()
}

#[tokio::test]
async fn the_log_of_a_thread_goes_on_after_a_kill() {
    let folder = Folder::new("log");
    let (thread, before) = followed_and_killed(&folder).await;
    std::fs::write(folder.0.join("go"), "").unwrap();
    let served = Served::of(server(&folder.0.join("served.db"), OnRestart::Continue)).await;
    let is_end = |event: &Event| status(event) == Some("completed");
    let events = served.follow(&thread, json!({ "channels": ALL_CHANNELS })).await.until(is_end).await;
    assert_eq!(events[..before.len()], before, "what a reader has seen is there");
    let numbers = events.iter().map(|event| event.data["seq"].as_u64().unwrap());
    assert!(numbers.eq(1..=events.len() as u64));
    let running = events.iter().filter(|event| status(event) == Some("running"));
    assert_eq!(running.count(), 1, "the run begins once");
    let updates = events.iter().filter(|event| event.name == "updates");
    let step = |event: &Event| event.data["params"]["data"]["values"]["steps"][0].as_u64().unwrap();
    assert_eq!(updates.map(step).collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6]);
}

#[tokio::test]
async fn the_log_of_a_thread_has_the_end_of_a_run_that_is_marked() {
    let folder = Folder::new("marked-log");
    let (thread, before) = followed_and_killed(&folder).await;
    let served = Served::of(server(&folder.0.join("served.db"), OnRestart::Mark)).await;
    let is_end = |event: &Event| status(event) == Some("failed");
    let events = served.follow(&thread, json!({ "channels": ALL_CHANNELS })).await.until(is_end).await;
    assert!(events.len() > before.len());
    let error = &events.last().unwrap().data["params"]["data"]["error"];
    assert!(error.as_str().unwrap().contains("stopped before the run ended"), "{error}");
}

#[tokio::test]
async fn runs_of_a_killed_server_are_marked_if_it_is_set_so() {
    let folder = Folder::new("marked");
    let (thread, run, _) = left_behind(&folder, true).await;
    let served = Served::of(server(&folder.0.join("served.db"), OnRestart::Mark)).await;
    assert_eq!(served.get(&format!("/threads/{thread}/runs/{run}")).await["status"], "error");
    assert_eq!(served.get(&format!("/threads/{thread}")).await["status"], "error");
    std::fs::write(folder.0.join("go"), "").unwrap();
    let body = json!({ "assistant_id": "count", "input": null });
    let values = served.post(&format!("/threads/{thread}/runs/wait"), &body).await;
    assert_eq!(values["steps"], json!([1, 2, 3, 4, 5, 6]), "an empty run continues the thread");
}

#[tokio::test]
async fn a_drain_ends_the_streams_of_this_process() {
    let folder = Folder::new("here");
    let served = Served::of(server(&folder.0.join("served.db"), OnRestart::Continue)).await;
    let thread = served.thread().await;
    let mut stream = served.request(Method::GET, &format!("/threads/{thread}/stream")).send().await.unwrap();
    served.drain().await;
    while let Ok(Some(_)) = stream.chunk().await {}
}

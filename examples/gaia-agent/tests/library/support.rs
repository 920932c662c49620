//! A scene: a world on a server, and a folder.
#![allow(dead_code)]

use std::io::{Cursor, Read, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use agentgraph_llm::{Clock, GeminiModel, Message};
use gaia_agent::GaiaAgent;
use gaia_agent::agent::{Attachment, GaiaAgentBuilder, Solution, Task};
use gaia_agent::evaluation::EvaluationClient;
use gaia_agent::net::Guard;
use gaia_agent::python::{PythonSettings, Sandbox};
use gaia_agent::run::{FileSource, Plan, Run, RunBook, RunEnd, Runner};
use gaia_agent::settings::Addresses;
use gaia_agent::world::{World, WorldServer};
use serde_json::Value;
use zip::write::SimpleFileOptions;

use crate::common::Folder;

/// The names of all tools, in the order in which they are offered.
pub const NAMES: [&str; 17] = [
    "duckduckgo_search",
    "tavily_search",
    "visit_page",
    "archive_page",
    "wikipedia",
    "youtube_transcript",
    "arxiv_search",
    "list_files",
    "read_file",
    "read_excel",
    "download_file",
    "execute_python_file",
    "understand_video",
    "understand_audio",
    "analyze_image",
    "calculator",
    "python_repl",
];

pub struct Scene {
    pub folder: Folder,
    pub server: WorldServer,
}

impl Scene {
    pub async fn new() -> Self {
        Scene::of(World::new()).await
    }

    pub async fn of(world: World) -> Self {
        Scene { folder: Folder::new(), server: WorldServer::start(world).await.unwrap() }
    }

    /// An agent in the world, with a current folder `here`.
    pub fn builder(&self, model: impl agentgraph_llm::ChatModel + 'static) -> GaiaAgentBuilder {
        let here = self.folder.file("here");
        std::fs::create_dir_all(&here).unwrap();
        let media =
            GeminiModel::builder().api_key("embedded").model("eyes").base_url(self.server.media_url());
        GaiaAgent::builder(model)
            .folder(self.folder.path())
            .current_folder(here)
            .addresses(Addresses::on(self.server.url()).unwrap(), true)
            .tavily_key("tvly-embedded".into())
            .media(Arc::new(media.build().unwrap()))
            .guard(Guard::new().trusted(self.server.url().parse().unwrap()))
    }

    pub fn client(&self) -> EvaluationClient {
        EvaluationClient::new(self.server.url()).unwrap()
    }

    pub fn python(&self) -> PythonSettings {
        python_in(&self.folder)
    }

    /// A run of all questions.
    pub async fn begin(&self) -> Run {
        let questions = self.client().questions().await.unwrap();
        RunBook::new(self.folder.file("runs")).begin(plan(), questions, SystemTime::UNIX_EPOCH).unwrap()
    }

    pub fn runner(&self, agent: &GaiaAgent) -> Runner {
        Runner {
            agent: agent.clone(),
            files: FileSource::Server(self.client()),
            concurrency: 4,
            drain: agentgraph::CancellationToken::new(),
            log: gaia_agent::log::Log::default(),
        }
    }

    pub async fn run(&self, agent: &GaiaAgent) -> RunEnd {
        self.runner(agent).run(&self.begin().await, |_| {}).await
    }

    /// The solution of one question of the world.
    pub async fn solve(&self, agent: &GaiaAgent, task: &str) -> Solution {
        let questions = self.client().questions().await.unwrap();
        let question = questions.into_iter().find(|question| question.task_id == task).unwrap();
        let files = FileSource::Server(self.client());
        let attachment = gaia_agent::run::fetch(&files, &question, &agent.downloads_of(task)).await.unwrap();
        agent.solve(task, &Task { question, attachment }).await.unwrap()
    }
}

/// Python with the program as its helper, and limits that are soon noticed.
pub fn python_in(folder: &Folder) -> PythonSettings {
    let helper = env!("CARGO_BIN_EXE_gaia-agent");
    let mut python = PythonSettings::new(folder.file("python")).helper(Some(helper.into()));
    python.poll = Duration::from_millis(10);
    python
}

/// What sandboxes there are on this machine: with namespaces where they work, and without.
pub async fn sandboxes() -> Vec<Sandbox> {
    let folder = Folder::new();
    let best = python_in(&folder).sandbox().await.unwrap();
    assert!(best.is_confined, "the tests need Landlock");
    let plain = Sandbox { is_confined: true, has_namespaces: false };
    if best == plain { vec![plain] } else { vec![best, plain] }
}

pub fn plan() -> Plan {
    Plan {
        source: "embedded".into(),
        limit: None,
        level: None,
        model: "offline".into(),
        prompts: "a".into(),
        python: false,
        runs: None,
    }
}

/// A file that another program wrote: see `fixtures/make_files.py`.
pub fn fixture(name: &str) -> Vec<u8> {
    let files = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/files");
    std::fs::read(files.join(name)).unwrap()
}

/// Stores a file among the downloads of a task.
pub fn attach(agent: &GaiaAgent, task: Task, name: &str, content: impl AsRef<[u8]>) -> Task {
    let folder = agent.downloads_of(&task.question.task_id);
    task.with(Attachment::store(&folder, name, content.as_ref()).unwrap())
}

/// The results of a question's calls: the text, and whether the call failed.
pub async fn results(agent: &GaiaAgent, thread: &str) -> Vec<(String, bool)> {
    let state = agent.graph().state(thread).await.unwrap().unwrap().values;
    let results = state.messages.iter().flat_map(Message::results);
    results.map(|result| (result.as_text(), result.is_error)).collect()
}

/// Calls a tool as the model of an agent, and returns its result: `Err` if the call failed.
pub async fn call(scene: &Scene, tool: &str, input: Value) -> Result<String, String> {
    call_with(scene, |builder| builder, tool, input).await
}

pub async fn call_with(
    scene: &Scene,
    settings: impl FnOnce(GaiaAgentBuilder) -> GaiaAgentBuilder,
    tool: &str,
    input: Value,
) -> Result<String, String> {
    let script = agentgraph_llm::ScriptedModel::new([
        agentgraph_llm::Reply::tool_call(tool, input),
        agentgraph_llm::Reply::text("FINAL ANSWER: done"),
    ]);
    let builder = scene.builder(script).checkpointer(agentgraph::MemorySaver::new());
    let agent = settings(builder).build().unwrap();
    // The folder of the downloads belongs to the task.
    let mut task = Task::ask("call it");
    task.question.task_id = "call".into();
    agent.solve("call", &task).await.unwrap();
    let (text, failed) = results(&agent, "call").await.pop().unwrap();
    if failed { Err(text) } else { Ok(text) }
}

/// Time passes only by sleeping.
#[derive(Default)]
pub struct TestClock(std::sync::Mutex<Vec<Duration>>);

impl TestClock {
    pub fn waits(&self) -> Vec<Duration> {
        self.0.lock().unwrap().clone()
    }
}

#[async_trait::async_trait]
impl Clock for TestClock {
    fn now(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH
    }

    fn jitter(&self) -> f64 {
        0.0
    }

    async fn sleep(&self, wait: Duration) {
        self.0.lock().unwrap().push(wait);
        tokio::task::yield_now().await;
    }
}

/// The archive with one of its files changed.
pub fn changed(book: &[u8], name: &str, change: impl Fn(String) -> String) -> Vec<u8> {
    let mut old = zip::ZipArchive::new(Cursor::new(book)).unwrap();
    let mut new = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for at in 0..old.len() {
        let mut file = old.by_index(at).unwrap();
        let path = file.name().unwrap().into_owned();
        let mut content = String::new();
        file.read_to_string(&mut content).unwrap();
        let content = if path == name { change(content) } else { content };
        new.start_file(path, SimpleFileOptions::default()).unwrap();
        new.write_all(content.as_bytes()).unwrap();
    }
    new.finish().unwrap().into_inner()
}

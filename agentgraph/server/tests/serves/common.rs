//! A server on a port of its own, its graphs, and a client that shows what is on the wire.

use std::time::Duration;

use agentgraph::Memory;
use agentgraph::node::CallContext;
use agentgraph::prelude::*;
use agentgraph_llm::prelude::*;
use agentgraph_llm::{Message, ScriptedModel, Usage};
use agentgraph_server::{NamedError, RunConfig, RunningServer, Server};
use axum::serve::ListenerExt;
use reqwest::header::AUTHORIZATION;
use reqwest::{Client, Method, RequestBuilder, StatusCode};
use schemars::JsonSchema;
use serde_json::{Value, json};

#[derive(State, JsonSchema, Clone, Debug, Default)]
pub(crate) struct Steps {
    pub(crate) text: String,
    #[reduce(append)]
    pub(crate) seen: Vec<String>,
    pub(crate) wait_ms: u64,
    pub(crate) fails: String,
}

async fn first(ctx: Ctx, steps: Snapshot<Steps>) -> Result<StepsUpdate> {
    ctx.emit(json!({ "at": "first" })).await;
    // Longer than any test runs: only a cancel ends it.
    if steps.wait_ms > 0 {
        tokio::time::sleep(Duration::from_millis(steps.wait_ms)).await;
    }
    if !steps.fails.is_empty() {
        return Err(NamedError::new(&steps.fails, "boom!").into());
    }
    Ok(Steps::update().seen([format!("first {}", steps.text)]))
}

async fn second() -> StepsUpdate {
    Steps::update().seen(["second"])
}

/// Two nodes in a row.
pub(crate) fn steps() -> CompiledGraph<Steps> {
    let graph = StateGraph::new().node("first", first).node("second", second);
    graph.edge(START, "first").edge("first", "second").compile().unwrap()
}

#[derive(State, JsonSchema, Clone, Debug, Default)]
pub(crate) struct Ask {
    #[reduce(append)]
    pub(crate) answers: Vec<Value>,
    pub(crate) done: bool,
}

pub(crate) async fn ask(ctx: Ctx) -> Result<AskUpdate> {
    let answer: Value = ctx.interrupt(json!({ "question": "go on?" }))?;
    Ok(Ask::update().answers([answer]))
}

async fn finish() -> AskUpdate {
    Ask::update().done(true)
}

/// A node that asks, and one that follows.
pub(crate) fn asking() -> CompiledGraph<Ask> {
    let graph = StateGraph::new().node("ask", ask).node("finish", finish);
    graph.edge(START, "ask").edge("ask", "finish").compile().unwrap()
}

/// The same inside another graph.
pub(crate) fn nested() -> CompiledGraph<Ask> {
    StateGraph::new().node("child", asking()).edge(START, "child").compile().unwrap()
}

async fn again(ctx: Ctx) -> StepsUpdate {
    Steps::update().seen([ctx.node()])
}

/// That graph inside another one.
fn deep() -> CompiledGraph<Ask> {
    StateGraph::new().node("middle", nested()).edge(START, "middle").compile().unwrap()
}

/// A graph without an end.
pub(crate) fn endless() -> CompiledGraph<Steps> {
    StateGraph::new().node("again", again).edge(START, "again").edge("again", "again").compile().unwrap()
}

async fn configured(run: CallContext<RunConfig>) -> StepsUpdate {
    let user = run.configurable.get("user").and_then(Value::as_str).unwrap_or("nobody");
    Steps::update().text(user.to_owned())
}

pub(crate) fn settings() -> CompiledGraph<Steps> {
    StateGraph::new().node("configured", configured).edge(START, "configured").compile().unwrap()
}

#[derive(serde::Serialize, serde::Deserialize, Clone)]
struct Job {
    word: String,
    times: u32,
}

async fn work(job: Option<Input<Job>>) -> StepsUpdate {
    match job {
        Some(Input(Job { word, times })) => Steps::update().seen((0..times).map(|_| word.clone())),
        None => Steps::update().seen(["nothing"]),
    }
}

/// A node that takes an input of its own, and one that follows.
fn jobs() -> CompiledGraph<Steps> {
    let graph = StateGraph::new().node("work", work).node("second", second);
    graph.edge(START, "work").edge("work", "second").compile().unwrap()
}

#[derive(State, serde::Serialize, serde::Deserialize, Clone, Debug, Default)]
pub(crate) struct Chat {
    #[reduce(by_id)]
    pub(crate) messages: Vec<Message>,
}

async fn reply(chat: Snapshot<Chat>, model: Dep<ScriptedModel>) -> Result<ChatUpdate> {
    let mut request = ChatRequest::user("x");
    request.messages = chat.messages.clone().into();
    let answer = model.stream(request).await?.into_response().await?;
    Ok(Chat::update().messages([answer.message]))
}

/// A chat with a model that repeats what it is told.
pub(crate) fn chat() -> CompiledGraph<Chat> {
    let model = ScriptedModel::from_fn(|request| {
        let said = request.messages.last().map(|message| message.text()).unwrap_or_default();
        Reply::text(format!("you said {said}")).with_usage(Usage::new(20, 5))
    });
    StateGraph::new().node("reply", reply).edge(START, "reply").dep(model).compile().unwrap()
}

/// Two nodes in a row inside another graph.
fn inside() -> CompiledGraph<Steps> {
    StateGraph::new().node("child", steps()).edge(START, "child").compile().unwrap()
}

/// The same, with a child that remembers its threads.
fn lasting() -> CompiledGraph<Steps> {
    let child = steps().memory(Memory::PerThread);
    StateGraph::new().node("child", child).edge(START, "child").compile().unwrap()
}

async fn talk(ctx: Ctx, steps: Snapshot<Steps>) {
    for word in 0..steps.wait_ms {
        ctx.emit(word).await;
    }
}

/// A node that emits as many numbers as it is told.
fn talking() -> CompiledGraph<Steps> {
    StateGraph::new().node("talk", talk).edge(START, "talk").compile().unwrap()
}

/// The sum of two numbers.
#[tool]
async fn add(a: i64, b: i64) -> String {
    (a + b).to_string()
}

/// An agent that uses a tool, once with numbers and once without.
fn agent() -> CompiledGraph<AgentState> {
    let model = ScriptedModel::from_fn(|request| match request.messages.len() {
        1 => Reply::tool_call("add", json!({ "a": 1, "b": 2 })).and_tool_call("add", json!({ "a": "x" })),
        _ => Reply::text("it is 3"),
    });
    Agent::new(model).tool(add()).compile().unwrap().into_graph()
}

pub(crate) fn all_graphs(server: Server) -> Server {
    server
        .graph("steps", steps())
        .graph("inside", inside())
        .graph("lasting", lasting())
        .graph("talking", talking())
        .graph_without_schema("agent", agent())
        .graph("ask", asking())
        .graph("nested", nested())
        .graph("deep", deep())
        .graph("endless", endless())
        .graph("jobs", jobs())
        .graph("settings", settings())
        .graph_without_schema("chat", chat())
}

/// A server on a socket.
pub(crate) struct Served {
    pub(crate) url: String,
    pub(crate) client: Client,
    /// `None` for a server that something else runs.
    running: Option<RunningServer>,
}

impl Served {
    pub(crate) async fn new() -> Self {
        Served::of(all_graphs(Server::new().in_memory())).await
    }

    pub(crate) async fn of(server: Server) -> Self {
        let running = server.start().await.unwrap();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let routes = running.router();
        let listener = listener.tap_io(|connection| connection.set_nodelay(true).unwrap());
        tokio::spawn(async move { axum::serve(listener, routes).await });
        Served { url, client: client(), running: Some(running) }
    }

    /// The same server for a caller with this key.
    pub(crate) fn with_key(&self, key: &str) -> Self {
        let headers = [(AUTHORIZATION, format!("Bearer {key}").parse().unwrap())].into_iter().collect();
        let client = agentgraph_llm::http_client_builder().default_headers(headers).build().unwrap();
        Served { url: self.url.clone(), client, running: self.running.clone() }
    }

    /// A server that something else runs.
    #[cfg(all(unix, any(feature = "browser", feature = "postgres")))]
    pub(crate) fn at(url: &str) -> Self {
        Served { url: url.to_owned(), client: client(), running: None }
    }

    pub(crate) async fn drain(&self) {
        self.running.as_ref().unwrap().drain().await;
    }

    pub(crate) fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.client.request(method, format!("{}{path}", self.url))
    }

    pub(crate) async fn send(&self, method: Method, path: &str, body: Option<&Value>) -> (StatusCode, Value) {
        let mut request = self.request(method, path);
        if let Some(body) = body {
            request = request.json(body);
        }
        let response = request.send().await.unwrap();
        let status = response.status();
        let text = response.text().await.unwrap();
        (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
    }

    pub(crate) async fn get(&self, path: &str) -> Value {
        let (status, body) = self.send(Method::GET, path, None).await;
        assert!(status.is_success(), "GET {path}: {status} {body}");
        body
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Value {
        let (status, answer) = self.send(Method::POST, path, Some(body)).await;
        assert!(status.is_success(), "POST {path}: {status} {answer}");
        answer
    }

    pub(crate) async fn thread(&self) -> String {
        self.post("/threads", &json!({})).await["thread_id"].as_str().unwrap().to_owned()
    }

    /// The events of a stream, to its end.
    pub(crate) async fn stream(&self, path: &str, body: &Value) -> Vec<Event> {
        let response = self.request(Method::POST, path).json(body).send().await.unwrap();
        assert_eq!(response.status(), 200, "{path}");
        events_of(&response.text().await.unwrap())
    }
}

/// All channels of the second protocol.
pub(crate) const ALL_CHANNELS: [&str; 9] =
    ["values", "updates", "messages", "tools", "lifecycle", "input", "checkpoints", "tasks", "custom"];

/// The calls of the second protocol.
impl Served {
    pub(crate) async fn command(&self, thread: &str, method: &str, params: Value) -> Value {
        let body = json!({ "id": 1, "method": method, "params": params });
        self.post(&format!("/threads/{thread}/commands"), &body).await
    }

    pub(crate) async fn start(&self, thread: &str, assistant: &str, input: Value) -> String {
        let params = json!({ "assistant_id": assistant, "input": input });
        let answer = self.command(thread, "run.start", params).await;
        answer["result"]["run_id"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
    }

    pub(crate) async fn respond(&self, thread: &str, interrupt: &Value, response: Value) -> Value {
        let params = json!({ "namespace": [], "interrupt_id": interrupt, "response": response });
        self.command(thread, "input.respond", params).await
    }

    pub(crate) async fn follow(&self, thread: &str, body: Value) -> Followed {
        let path = format!("/threads/{thread}/stream/events");
        let response = self.request(Method::POST, &path).json(&body).send().await.unwrap();
        assert_eq!(response.status(), 200);
        Followed { response, unread: String::new() }
    }
}

/// A stream of events that stays open.
pub(crate) struct Followed {
    response: reqwest::Response,
    unread: String,
}

impl Followed {
    /// The next events, to the first that is looked for.
    pub(crate) async fn until(&mut self, is_last: impl Fn(&Event) -> bool) -> Vec<Event> {
        let mut events = Vec::new();
        let read = async {
            loop {
                while let Some(end) = self.unread.find("\r\n\r\n") {
                    let block: String = self.unread.drain(..end + 4).collect();
                    events.extend(events_of(&block));
                    if !block.starts_with(':') && events.last().is_some_and(&is_last) {
                        return;
                    }
                }
                let chunk = self.response.chunk().await.unwrap().expect("the stream stays open");
                self.unread += std::str::from_utf8(&chunk).unwrap();
            }
        };
        let is_found = tokio::time::timeout(Duration::from_secs(60), read).await.is_ok();
        assert!(is_found, "it does not come: {events:?}");
        events
    }
}

pub(crate) fn client() -> Client {
    // The tests speak plain HTTP, and reqwest wants a provider all the same.
    agentgraph_llm::http_client_builder().build().unwrap()
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Event {
    pub(crate) name: String,
    pub(crate) data: Value,
    pub(crate) id: Option<String>,
}

/// Reads server-sent events in the framing that is promised: CRLF, one line of data.
pub(crate) fn events_of(text: &str) -> Vec<Event> {
    let mut events = Vec::new();
    for block in text.split("\r\n\r\n").filter(|block| !block.is_empty() && !block.starts_with(':')) {
        let field =
            |name: &str| block.split("\r\n").find_map(|line| line.strip_prefix(name)).map(str::to_owned);
        events.push(Event {
            name: field("event: ").unwrap_or_else(|| panic!("{text:?}")),
            data: serde_json::from_str(&field("data: ").unwrap()).unwrap(),
            id: field("id: "),
        });
    }
    events
}

pub(crate) fn names(events: &[Event]) -> Vec<&str> {
    events.iter().map(|event| &*event.name).collect()
}

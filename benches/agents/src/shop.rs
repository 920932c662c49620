//! Times the turns of the shop agent over HTTP, beside a bare handler that sends the same frames, and the
//! time from a cancel to the end of its stream. Callers, server and shop share the machine, so only ratios
//! and orders of magnitude are meaningful.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use agentgraph::{Checkpointer, MemorySaver, SqliteSaver};
use agentgraph_llm::{ChatModel, ChatRequest, ChatResponse, ChatStream, Message, ModelInfo, StopReason};
use async_trait::async_trait;
use axum::Router;
use axum::body::Body;
use axum::routing::post;
use futures_util::{future, stream};
use shopify_agent::ShopAgent;
use shopify_agent::agent::Limits;
use shopify_agent::embedded::EmbeddedShop;
use shopify_agent::server::{listen, routes};
use shopify_agent::shop::Shop;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use agentgraph_benches::{Arguments, Problem};

const CONVERSATIONS: usize = 200;

pub(crate) fn main(arguments: &Arguments) -> Result<(), Problem> {
    let conversations = if arguments.quick { 10 } else { CONVERSATIONS };
    let rounds = if arguments.quick { 1 } else { 5 };
    println!("| {conversations} conversations at once | first frame p50 | p99 | whole turn p50 | p99 |");
    println!("|---|---|---|---|---|");
    tokio::runtime::Runtime::new()?.block_on(table(conversations, rounds))
}

async fn table(conversations: usize, rounds: usize) -> Result<(), Problem> {
    let shop = EmbeddedShop::start().await?;
    let folder = std::env::temp_dir().join(format!("agentgraph-shop-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let sqlite = SqliteSaver::open(folder.join("threads.db")).await?;
    let memory = serve(agent(&shop, Arc::new(MemorySaver::new()))?).await?;
    let sqlite = serve(agent(&shop, Arc::new(sqlite))?).await?;
    let frames: Arc<[String]> = turn(memory, 0).await?.2.into();
    let bare = bare(frames).await?;
    for (name, address) in
        [("floor: a bare handler with the same frames", bare), ("in memory", memory), ("in SQLite", sqlite)]
    {
        let (mut first, mut whole) = (Vec::new(), Vec::new());
        for round in 0..rounds {
            let turns = (0..conversations).map(|n| turn(address, round * conversations + n + 1));
            for done in future::try_join_all(turns).await? {
                first.push(done.0);
                whole.push(done.1);
            }
        }
        println!(
            "| {name} | {} | {} | {} | {} |",
            at(&mut first, 50),
            at(&mut first, 99),
            at(&mut whole, 50),
            at(&mut whole, 99)
        );
    }
    let mut cancels = Vec::new();
    for n in 0..rounds * 20 {
        cancels.push(cancel(&shop, sqlite, n).await?);
    }
    println!();
    println!(
        "A cancel, from the request to the end of its stream: p50 {}, p99 {}.",
        at(&mut cancels, 50),
        at(&mut cancels, 99)
    );
    std::fs::remove_dir_all(folder)?;
    Ok(())
}

/// A percentile in milliseconds.
fn at(times: &mut [Duration], percent: usize) -> String {
    times.sort_unstable();
    let index = (times.len() * percent / 100).min(times.len().saturating_sub(1));
    format!("{:.1} ms", times[index].as_secs_f64() * 1000.0)
}

/// A model that answers at once: one look at the cart, then the answer.
struct Script;

#[async_trait]
impl ChatModel for Script {
    fn info(&self) -> ModelInfo {
        ModelInfo::new("bench", "script")
    }

    async fn stream(&self, request: ChatRequest) -> agentgraph_llm::Result<ChatStream> {
        let system = request.system.as_deref().unwrap_or_default();
        let task = system.lines().find_map(|line| line.strip_prefix("# Task: ")).unwrap_or_default();
        let answer = match task {
            "Routing" if system.contains("\"description\":\"The cart is empty.\"") => {
                r#"{"next-action": "respond-to-customer"}"#
            }
            "Routing" => r#"{"next-action": "call-tool"}"#,
            "ChooseTool" => r#"{"tool": "get_cart_summary"}"#,
            "ConvertNaturalLanguage" => r#"{"description": "The cart is empty."}"#,
            _ => r#"{"response": "One moment."}"#,
        };
        Ok(ChatStream::from_response(ChatResponse::new(Message::assistant(answer), StopReason::EndTurn)))
    }
}

fn agent(shop: &EmbeddedShop, saver: Arc<dyn Checkpointer>) -> Result<ShopAgent, Problem> {
    ShopAgent::new(Arc::new(Script), Shop::new(shop.settings())?, saver, Limits::default())
}

async fn serve(agent: ShopAgent) -> Result<SocketAddr, Problem> {
    spawn(routes(agent, &[])).await
}

/// A handler that sends prepared frames.
async fn bare(frames: Arc<[String]>) -> Result<SocketAddr, Problem> {
    let run = async move || {
        let frames: Vec<_> = frames.iter().cloned().map(Ok::<_, Infallible>).collect();
        ([("x-task-id", "task-0")], Body::from_stream(stream::iter(frames)))
    };
    spawn(Router::new().route("/run-reasoning-agent", post(run))).await
}

async fn spawn(routes: Router) -> Result<SocketAddr, Problem> {
    let listener = listen("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    tokio::spawn(async move { axum::serve(listener, routes).await });
    Ok(address)
}

async fn send(to: SocketAddr, path: &str, body: &str) -> Result<TcpStream, Problem> {
    let mut connection = TcpStream::connect(to).await?;
    let length = body.len();
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: {to}\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n"
    );
    connection.write_all(format!("{head}{body}").as_bytes()).await?;
    Ok(connection)
}

/// One turn: the time to its first frame, the time to its end, its frames.
async fn turn(to: SocketAddr, number: usize) -> Result<(Duration, Duration, Vec<String>), Problem> {
    let begun = Instant::now();
    let body =
        format!(r#"{{"messages":[{{"role":"user","content":"cart"}}],"session":{{"guid":"g-{number}"}}}}"#);
    let mut connection = send(to, "/run-reasoning-agent", &body).await?;
    let (mut answer, mut first) = (Vec::new(), None);
    let mut buffer = vec![0; 16 << 10];
    loop {
        let length = connection.read(&mut buffer).await?;
        if length == 0 {
            break;
        }
        answer.extend_from_slice(&buffer[..length]);
        if first.is_none() && answer.windows(6).any(|bytes| bytes == b"data: ") {
            first = Some(begun.elapsed());
        }
    }
    let answer = String::from_utf8(answer)?;
    let frames: Vec<String> =
        answer.lines().filter(|line| line.starts_with("data: ")).map(|line| format!("{line}\n\n")).collect();
    assert!(frames.last().is_some_and(|last| last.contains("CustomerResponse")), "{answer}");
    Ok((first.ok_or("no frame came")?, begun.elapsed(), frames))
}

/// The time from a cancel to the end of the stream of a task whose shop does not answer.
async fn cancel(shop: &EmbeddedShop, to: SocketAddr, number: usize) -> Result<Duration, Problem> {
    shop.delay(Duration::from_secs(3600));
    let body =
        format!(r#"{{"messages":[{{"role":"user","content":"cart"}}],"session":{{"guid":"c-{number}"}}}}"#);
    let mut connection = send(to, "/run-reasoning-agent", &body).await?;
    let (mut answer, mut buffer) = (Vec::new(), vec![0; 16 << 10]);
    while !answer.windows(18).any(|bytes| bytes == b"IdentifyToolParams") {
        let length = connection.read(&mut buffer).await?;
        answer.extend_from_slice(&buffer[..length]);
    }
    let answer = String::from_utf8(answer)?;
    let task = answer.lines().find_map(|line| line.strip_prefix("x-task-id: ")).ok_or("no task id")?;
    let begun = Instant::now();
    // Kept to the end: a request whose connection is closed at once may not be heard.
    let _request = send(to, &format!("/cancel-reasoning-agent/{task}"), "").await?;
    while connection.read(&mut buffer).await? > 0 {}
    let took = begun.elapsed();
    shop.delay(Duration::ZERO);
    Ok(took)
}

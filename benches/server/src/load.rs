//! Clients: each has a thread, and streams one run after the other.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use futures_util::future::{join_all, try_join_all};
use reqwest::{Client, Response};
use serde_json::{Value, json};

use crate::Problem;
use crate::process::Process;

/// What a load has shown: milliseconds, but for the runs of a second.
#[derive(Clone, Debug, Default)]
pub(crate) struct Load {
    pub(crate) rate: f64,
    pub(crate) first: [f64; 2],
    pub(crate) whole: [f64; 2],
    /// Processor time of the server for one run.
    pub(crate) cpu: f64,
}

pub(crate) async fn thread(client: &Client, url: &str) -> Result<Value, Problem> {
    Ok(client
        .post(format!("{url}/threads"))
        .json(&json!({}))
        .send()
        .await?
        .error_for_status()?
        .json()
        .await?)
}

pub(crate) async fn streamed(client: &Client, url: &str, thread: &str) -> Result<Response, Problem> {
    let body = json!({ "assistant_id": "agent", "input": { "text": "hello", "step": 0 }, "stream_mode": ["values"] });
    let request = client.post(format!("{url}/threads/{thread}/runs/stream")).json(&body);
    Ok(request.send().await?.error_for_status()?)
}

/// One run: when its first event came, and its last.
async fn run(client: &Client, url: &str, thread: &str) -> Result<(f64, f64), Problem> {
    let begun = Instant::now();
    let millis = || begun.elapsed().as_secs_f64() * 1000.0;
    let mut pieces = streamed(client, url, thread).await?.bytes_stream();
    let mut first = None;
    let mut has_values = false;
    while let Some(piece) = pieces.next().await {
        first.get_or_insert_with(millis);
        has_values |= piece?.windows(13).any(|part| part == b"event: values");
    }
    if !has_values {
        return Err("a run has no values".into());
    }
    Ok((first.unwrap_or_default(), millis()))
}

/// So many clients for so long. Runs that are under way at the end count as nothing.
pub(crate) async fn load(
    process: &Process,
    client: &Client,
    clients: usize,
    time: Duration,
) -> Result<Load, Problem> {
    let threads = try_join_all((0..clients).map(|_| thread(client, &process.url))).await?;
    for _ in 0..5 {
        run(client, &process.url, threads[0]["thread_id"].as_str().unwrap_or_default()).await?;
    }
    let (begun, cpu) = (Instant::now(), process.cpu());
    let end = tokio::time::Instant::now() + time;
    let url: Arc<str> = process.url.as_str().into();
    let tasks = threads.into_iter().map(|thread| {
        let (client, url) = (client.clone(), Arc::clone(&url));
        tokio::spawn(async move {
            let id = thread["thread_id"].as_str().unwrap_or_default();
            let mut runs = Vec::new();
            while let Ok(done) = tokio::time::timeout_at(end, run(&client, &url, id)).await {
                runs.push(done.map_err(|error| error.to_string())?);
            }
            Ok::<_, String>(runs)
        })
    });
    let mut runs = Vec::new();
    for done in join_all(tasks).await {
        runs.extend(done??);
    }
    let count = runs.len().max(1) as f64;
    let both = |of: fn(&(f64, f64)) -> f64| {
        let mut times: Vec<f64> = runs.iter().map(of).collect();
        times.sort_by(f64::total_cmp);
        let at = |part: f64| times.get((times.len() as f64 * part) as usize).copied().unwrap_or(f64::NAN);
        [at(0.5), at(0.99)]
    };
    Ok(Load {
        rate: runs.len() as f64 / begun.elapsed().as_secs_f64(),
        first: both(|run| run.0),
        whole: both(|run| run.1),
        cpu: (process.cpu() - cpu) / count,
    })
}

/// Bytes of the server for each of 10,000 idle threads, and for each of 1,000 open streams.
pub(crate) async fn memory(process: &Process, client: &Client) -> Result<[f64; 3], Problem> {
    let base = process.memory();
    let mut threads = Vec::new();
    while threads.len() < 10_000 {
        threads.extend(try_join_all((0..50).map(|_| thread(client, &process.url))).await?);
    }
    let idle = process.memory();
    let mut open = Vec::new();
    for thread in &threads[..1_000] {
        let id = thread["thread_id"].as_str().unwrap_or_default();
        open.push(
            client.get(format!("{}/threads/{id}/stream", process.url)).send().await?.error_for_status()?,
        );
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    Ok([base, (idle - base) / 10_000.0, (process.memory() - idle) / 1_000.0])
}

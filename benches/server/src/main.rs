//! What a graph of two idle nodes behind HTTP costs, beside a bare handler that sends the same bytes (the
//! floor), a bare handler that runs the graph, and LangGraph's server with the same graph. All servers are
//! processes; they take turns, and so each ratio is of one round.
//!
//! `server-cost [floor engine memory sqlite postgres langgraph] [--rounds 3] [--seconds 4]`; `run.sh`
//! prepares it.

mod load;
mod process;
mod serve;

use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;
use std::time::Duration;

use load::Load;
use process::Process;
use reqwest::Client;
use serde_json::json;

type Problem = Box<dyn Error + Send + Sync>;

const CLIENTS: [usize; 3] = [1, 50, 500];

#[tokio::main]
async fn main() -> Result<(), Problem> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["serve", kind, place, port] => serve::ours(kind, place, port.parse()?).await,
        ["floor", recorded, port] => serve::floor(recorded, port.parse()?).await,
        ["engine", recorded, port] => serve::engine(recorded, port.parse()?).await,
        _ => measure(&words).await,
    }
}

async fn measure(words: &[&str]) -> Result<(), Problem> {
    let option = |name: &str, otherwise: u64| {
        let at = words.iter().position(|word| *word == name);
        at.map_or(Ok(otherwise), |at| words.get(at + 1).unwrap_or(&"").parse())
    };
    let (rounds, seconds) = (option("--rounds", 3)?, option("--seconds", 4)?);
    let wanted: Vec<&str> = words.iter().copied().take_while(|word| !word.starts_with("--")).collect();
    let all = ["floor", "engine", "memory", "sqlite", "postgres", "langgraph"];
    let kinds = all.into_iter().filter(|kind| match wanted.is_empty() {
        true => *kind != "postgres" || std::env::var("DATABASE_URL").is_ok(),
        false => wanted.contains(kind) || *kind == "floor",
    });
    let kinds: Vec<&str> = kinds.collect();
    let client = agentgraph_llm::http_client_builder().tcp_nodelay(true).build()?;
    let folder = std::env::temp_dir().join(format!("server-cost-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    record(&folder, &client).await?;
    println!(
        "| server | MB at the start | bytes of an idle thread | bytes of an open stream |\n|---|---|---|---|"
    );
    for kind in &kinds {
        let process = Process::start(kind, &folder, &client).await?;
        let [base, idle, open] = load::memory(&process, &client).await?;
        process.end().await;
        println!("| {kind} | {:.0} | {idle:.0} | {open:.0} |", base / 1e6);
    }
    let mut found: BTreeMap<(usize, usize), Vec<Load>> = BTreeMap::new();
    for round in 0..rounds {
        for (at, kind) in kinds.iter().enumerate() {
            for clients in CLIENTS {
                let process = Process::start(kind, &folder, &client).await?;
                // LangGraph's server is slow, and is to end some runs.
                let time = Duration::from_secs(if *kind == "langgraph" { seconds * 4 } else { seconds });
                let load = load::load(&process, &client, clients, time).await?;
                process.end().await;
                eprintln!("round {round}, {kind}, {clients}: {load:?}");
                found.entry((clients, at)).or_default().push(load);
            }
        }
    }
    std::fs::remove_dir_all(&folder)?;
    println!(
        "\n| clients | server | runs a second | of the floor | first event p50 / p99 | run p50 / p99 | CPU of a run | of the floor |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    for ((clients, at), loads) in &found {
        let floor = &found[&(*clients, 0)];
        let each = |of: fn(&Load) -> f64| range(loads.iter().map(of));
        let ratio =
            |of: fn(&Load, &Load) -> f64| range(loads.iter().zip(floor).map(|(one, floor)| of(one, floor)));
        println!(
            "| {clients} | {} | {} | 1/{}x | {} / {} ms | {} / {} ms | {} ms | {}x |",
            kinds[*at],
            each(|load| load.rate),
            ratio(|load, floor| floor.rate / load.rate),
            each(|load| load.first[0]),
            each(|load| load.first[1]),
            each(|load| load.whole[0]),
            each(|load| load.whole[1]),
            each(|load| load.cpu),
            ratio(|load, floor| load.cpu / floor.cpu),
        );
    }
    Ok(())
}

/// Keeps what our server sends for the floor.
async fn record(folder: &Path, client: &Client) -> Result<(), Problem> {
    let process = Process::start("memory", folder, client).await?;
    let thread = load::thread(client, &process.url).await?;
    let id = thread["thread_id"].as_str().unwrap_or_default();
    let text = load::streamed(client, &process.url, id).await?.text().await?;
    let events: Vec<&str> = text.split_inclusive("\r\n\r\n").collect();
    std::fs::write(folder.join("recorded.json"), json!({ "thread": thread, "events": events }).to_string())?;
    process.end().await;
    Ok(())
}

fn range(values: impl Iterator<Item = f64>) -> String {
    let (low, high) =
        values.fold((f64::MAX, f64::MIN), |(low, high), value| (low.min(value), high.max(value)));
    let shown = |value: f64| match value {
        value if value >= 100.0 => format!("{value:.0}"),
        value if value >= 10.0 => format!("{value:.1}"),
        value => format!("{value:.2}"),
    };
    if shown(low) == shown(high) { shown(low) } else { format!("{}-{}", shown(low), shown(high)) }
}

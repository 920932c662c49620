//! Replays the records that `graphs.py` writes, and fails if the engine differs from LangGraph.
//!
//! `agentgraph/tests/beside_langgraph/run.sh` runs both.
#![allow(missing_docs)]

#[path = "mod.rs"]
mod beside_langgraph;

use std::io::Read;
use std::process::ExitCode;

use beside_langgraph::find_difference;
use beside_langgraph::record::Record;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<ExitCode, Box<dyn std::error::Error>> {
    let mut lines = String::new();
    std::io::stdin().read_to_string(&mut lines)?;
    let records = Record::read(&lines)?;
    if records.is_empty() {
        return Err("there is no record on the standard input".into());
    }
    let mut differing = 0;
    for record in &records {
        if let Some(difference) = find_difference(record).await {
            differing += 1;
            println!("--seed {} --only {}: {difference}", record.seed, record.number);
        }
    }
    println!("{} graphs beside LangGraph, {differing} differ", records.len());
    Ok(if differing == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

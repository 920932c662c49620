//! A graph as data, and what LangGraph made of it: a line of `graphs.py`.

use serde::Deserialize;

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    pub seed: u64,
    pub number: u64,
    /// Called `n0`, `n1`, ..
    pub nodes: Vec<NodeShape>,
    pub edges: Vec<(String, String)>,
    pub joins: Vec<(Vec<String>, String)>,
    pub routers: Vec<(String, Options)>,
    /// What was done to the thread, and how each call ended.
    pub acts: Vec<Act>,
    /// For each checkpoint of a superstep, and of an input: what runs next, sorted, and the hash of its
    /// values.
    pub steps: Vec<(String, String)>,
}

/// Lists of targets, one of which is chosen: `n1`, `end`, or `@n1` for a dispatch.
pub type Options = Vec<Vec<String>>;

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeShape {
    /// Channels; with `=` behind them they are overwritten.
    pub writes: Vec<String>,
    pub command: Option<Options>,
    #[serde(default)]
    pub asks: bool,
    #[serde(default)]
    pub defers: bool,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Act {
    /// A new run with this input.
    pub input: Option<u64>,
    /// Or the questions that are answered.
    pub answers: Option<Vec<String>>,
    pub end: End,
}

#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(tag = "is", rename_all = "snake_case", deny_unknown_fields)]
pub enum End {
    /// The joins that are half full, by their place, with the sources that arrived.
    Finished {
        stuck: Vec<(usize, Vec<String>)>,
    },
    Asks {
        asks: Vec<String>,
    },
    Limit,
    /// Two wrote a channel that takes one writer, or overwrote the same one.
    Conflict,
}

impl Record {
    /// Reads a record for each line.
    pub fn read(lines: &str) -> Result<Vec<Record>, String> {
        let records = lines.lines().enumerate().map(|(at, line)| {
            serde_json::from_str(line).map_err(|error| format!("line {}: {error}", at + 1))
        });
        records.collect()
    }
}

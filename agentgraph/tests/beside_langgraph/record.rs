//! A line of `graphs.py`: a graph as data, and the results of its calls in LangGraph.

use serde::Deserialize;

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    pub seed: u64,
    pub number: u64,
    /// The nodes, named `n0`, `n1`, .. in this order.
    pub nodes: Vec<NodeShape>,
    pub edges: Vec<(String, String)>,
    pub joins: Vec<(Vec<String>, String)>,
    pub routers: Vec<(String, Options)>,
    /// The calls on the thread, each with its end.
    pub acts: Vec<Act>,
    /// The sorted frontier and the hash of the values of each input and superstep checkpoint.
    pub steps: Vec<(String, String)>,
}

/// Alternative lists of targets. A target is `n1`, `end`, or `@n1` for a dispatch.
pub type Options = Vec<Vec<String>>;

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeShape {
    /// The channels that the node writes. The node overwrites a channel that is followed by `=`.
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
    /// The input of a new run.
    pub input: Option<u64>,
    /// The values of the answered interrupts, if the act is no new run.
    pub answers: Option<Vec<String>>,
    pub end: End,
}

#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(tag = "is", rename_all = "snake_case", deny_unknown_fields)]
pub enum End {
    /// The run finished. `stuck` has the index and the arrived sources of each half-full join.
    Finished {
        stuck: Vec<(usize, Vec<String>)>,
    },
    Asks {
        asks: Vec<String>,
    },
    Limit,
    /// Two tasks wrote a channel that takes one writer, or overwrote the same channel.
    Conflict,
}

impl Record {
    /// Reads one record per line.
    pub fn read(lines: &str) -> Result<Vec<Record>, String> {
        let records = lines.lines().enumerate().map(|(at, line)| {
            serde_json::from_str(line).map_err(|error| format!("line {}: {error}", at + 1))
        });
        records.collect()
    }
}

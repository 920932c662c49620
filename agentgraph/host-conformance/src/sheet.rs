//! [`Sheet`]: the state of the kit's graphs.

mod values;

pub use values::Values;

use std::collections::HashMap;

use agentgraph::prelude::*;
use serde::{Deserialize, Serialize};

/// The state of all graphs of the kit but its dependency graphs, which have texts as inputs and outputs.
#[derive(State, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
pub struct Sheet {
    /// Lines that nodes have written, in task order.
    #[reduce(append)]
    pub lines: Vec<String>,
    /// Marks of nodes, in a map without an order.
    #[reduce(merge)]
    pub marks: HashMap<String, u64>,
    /// A count of rounds; one writer in a superstep.
    pub number: u64,
    /// The last word; a large one in some clauses.
    #[reduce(last)]
    pub word: String,
    /// Set back at the start of each run.
    #[reduce(append)]
    #[channel(run)]
    pub run_lines: Vec<String>,
    /// Values of all kinds.
    pub values: Values,
}

use agentgraph::State;
use serde::{Deserialize, Serialize};

#[derive(State, Serialize, Deserialize, Clone, Default)]
struct Triage {
    #[reduce(apend)]
    notes: Vec<String>,
}

fn main() {
    // The mistake is reported once; uses of the state are not reported as well.
    let update = Triage::update().notes(["seen"]).overwrite_notes(["only"]);
    assert!(!update.is_empty());
}

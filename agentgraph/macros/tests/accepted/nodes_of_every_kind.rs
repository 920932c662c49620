//! `#[node]` accepts nodes of every kind and leaves the functions unchanged.

#![deny(warnings)]

use agentgraph::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(State, Serialize, Deserialize, Clone, Default)]
struct Triage {
    question: String,
}

struct Client;

#[node(Triage)]
async fn nothing() {}

#[node(Triage)]
async fn own(mut state: Triage) -> TriageUpdate {
    state.question.push('?');
    Triage::update().question(std::mem::take(&mut state.question))
}

/// Documented.
#[node(Triage)]
async fn every(
    _a: Snapshot<Triage>,
    _b: Ctx,
    Input(_c): Input<u32>,
    _d: Dep<Client>,
) -> Result<Command<Triage>> {
    Ok(Command::new())
}

#[node(Triage)]
#[allow(clippy::too_many_arguments)]
async fn eight(
    _a: Ctx,
    _b: Ctx,
    _c: Ctx,
    _d: Ctx,
    _e: Ctx,
    _f: Ctx,
    _g: Ctx,
    _h: Ctx,
) -> Option<TriageUpdate> {
    None
}

#[test]
fn nodes_of_every_kind_compile() {
    let _ =
        StateGraph::new().node("nothing", nothing).node("own", own).node("every", every).node("eight", eight);
}

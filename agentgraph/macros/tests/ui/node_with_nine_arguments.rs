use agentgraph::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(State, Serialize, Deserialize, Clone, Default)]
struct Triage {
    question: String,
}

#[node(Triage)]
async fn plan(_a: Ctx, _b: Ctx, _c: Ctx, _d: Ctx, _e: Ctx, _f: Ctx, _g: Ctx, _h: Ctx, _i: Ctx) -> TriageUpdate {
    Triage::update()
}

fn main() {}

use agentgraph::prelude::*;

struct Triage;

#[node(Triage)]
async fn plan(_ctx: Ctx) {}

fn main() {}

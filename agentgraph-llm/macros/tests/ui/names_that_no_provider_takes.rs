use agentgraph_llm::tool;

#[tool(name = "get weather")]
fn weather() -> &'static str {
    ""
}

#[tool]
fn größe() -> &'static str {
    ""
}

fn main() {}

use agentgraph_llm::tool;

#[tool]
unsafe fn danger() -> &'static str {
    ""
}

#[tool]
extern "C" fn foreign() -> &'static str {
    ""
}

fn main() {}

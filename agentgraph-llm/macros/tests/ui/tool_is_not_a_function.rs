use agentgraph_llm::tool;

#[tool]
struct Weather {
    city: String,
}

fn main() {}

use agentgraph_llm::tool;

#[tool]
fn add(a: i64, a: i64) -> String {
    a.to_string()
}

fn main() {}

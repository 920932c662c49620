use agentgraph_llm::tool;

#[tool]
async fn add((a, b): (i64, i64), _: String) -> String {
    (a + b).to_string()
}

fn main() {}

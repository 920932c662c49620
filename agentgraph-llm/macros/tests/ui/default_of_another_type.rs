use agentgraph_llm::tool;

#[tool]
async fn weather(#[default(true)] days: u8, #[default("three")] hours: u8) -> String {
    (days + hours).to_string()
}

fn main() {}

use agentgraph_llm::tool;

#[tool]
async fn owned() -> Result<String, String> {
    Ok(String::new())
}

#[tool]
fn borrowed() -> std::result::Result<String, &'static str> {
    Ok(String::new())
}

fn main() {}

use agentgraph_llm::tool;

#[derive(serde::Deserialize)]
struct WithoutSchema {}

#[derive(schemars::JsonSchema)]
struct WithoutDeserialize {}

#[tool]
async fn one(input: WithoutSchema) -> String {
    let _ = input;
    String::new()
}

#[tool]
async fn other(input: Vec<WithoutDeserialize>, time: std::time::Instant) -> String {
    let _ = (input, time);
    String::new()
}

fn main() {}

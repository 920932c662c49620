use agentgraph_llm::tool;

#[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
struct Unit {}

#[derive(Default, serde::Deserialize, schemars::JsonSchema)]
struct Unwritten {}

#[tool]
async fn weather(#[default] unit: Unit, #[default] unwritten: Unwritten) -> String {
    let _ = (unit, unwritten);
    String::new()
}

fn main() {}

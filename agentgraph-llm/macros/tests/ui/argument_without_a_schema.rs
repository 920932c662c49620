use agentgraph_llm::tool;

struct City;

#[tool]
async fn weather(city: City) -> &'static str {
    let _ = city;
    "rain"
}

fn main() {}

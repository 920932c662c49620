use agentgraph_llm::tool;

async fn wait() {}

#[tool]
async fn weather(city: String) -> String {
    let shared = std::rc::Rc::new(city);
    wait().await;
    shared.to_string()
}

fn main() {}

use agentgraph_llm::tool;

struct Station;

impl Station {
    #[tool]
    async fn weather(&self, city: String) -> String {
        city
    }
}

fn main() {}

use agentgraph_llm::prelude::*;

async fn weather(city: String) -> String {
    city
}

fn main() {
    let model = ScriptedModel::new([Reply::text("")]);
    let _ = ToolLoop::new(&model).tool(weather);
}

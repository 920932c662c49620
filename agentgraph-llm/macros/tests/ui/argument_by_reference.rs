use agentgraph_llm::tool;

#[tool]
async fn count(text: &str, words: &[String], limit: &mut u32) -> String {
    *limit += 1;
    format!("{text} {words:?}")
}

fn main() {}

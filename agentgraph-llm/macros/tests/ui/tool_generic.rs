use agentgraph_llm::prelude::*;

#[tool]
async fn first<T: Clone, const N: usize>(items: Vec<T>) -> String {
    items.len().to_string()
}

#[tool]
async fn second(item: impl ToString) -> String {
    item.to_string()
}

fn main() {
    let _ = (first().spec(), second().spec());
}

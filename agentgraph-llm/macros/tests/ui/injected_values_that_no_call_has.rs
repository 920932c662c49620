use agentgraph::{Dep, Session};
use agentgraph_llm::tool;

struct Database;

#[tool]
async fn find(database: Dep<Database>, session: Session<String>, #[inject] city: Option<Database>) -> String {
    let _ = (database, session, city);
    String::new()
}

fn main() {}

use agentgraph::Ctx;
use agentgraph_llm::tool;

#[tool]
async fn find(name: Option<&str>, words: Vec<&'static str>, pair: (String, &[u8])) -> String {
    format!("{name:?} {words:?} {pair:?}")
}

#[tool]
async fn look(ctx: &mut Ctx) -> String {
    ctx.node().to_owned()
}

fn main() {}

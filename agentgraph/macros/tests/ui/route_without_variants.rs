use agentgraph::Route;

#[derive(Route)]
enum Next {}

fn main() {}

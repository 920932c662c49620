use agentgraph::Route;

#[derive(Route)]
struct Next {
    node: String,
}

fn main() {}

use agentgraph::Route;

#[derive(Route)]
enum Next {
    ReadPage { page: u32 },
    Compare(String, String),
    Search(),
    #[route(end)]
    Done(String),
}

fn main() {}

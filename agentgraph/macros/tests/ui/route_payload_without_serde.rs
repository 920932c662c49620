use agentgraph::Route;

struct Page(u32);

#[derive(Route)]
enum Next {
    ReadPage(Page),
}

fn main() {
    let _ = Next::ReadPage(Page(3)).pick();
}

use agentgraph::Route;

#[derive(Route)]
enum Next {
    #[route(End)]
    Done,
    #[route(search)]
    Search,
    #[route]
    Plan,
    #[route("")]
    Ask,
    #[route("__end__")]
    Stop,
    #[route("__start__")]
    Again,
    #[route("one")]
    #[route("two")]
    Twice,
    #[route("one", "two")]
    Both,
    #[route(7)]
    Seven,
}

#[derive(Route)]
#[route(end)]
enum Other {
    Plan,
}

fn main() {}

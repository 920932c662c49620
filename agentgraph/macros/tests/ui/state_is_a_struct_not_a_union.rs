use agentgraph::State;

#[derive(State, Clone, Copy)]
union Either {
    number: u32,
    letter: char,
}

fn main() {}

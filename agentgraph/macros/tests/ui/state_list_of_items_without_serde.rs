use agentgraph::State;

#[derive(Clone)]
struct Note;

#[derive(State, Clone, Default)]
struct Triage {
    #[reduce(append)]
    notes: Vec<Note>,
}

fn main() {}

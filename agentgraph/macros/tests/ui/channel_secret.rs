use agentgraph::State;
use serde::{Deserialize, Serialize};

#[derive(State, Serialize, Deserialize, Clone, Default)]
struct Login {
    #[channel(secret = "key")]
    with_a_value: String,
    #[channel(secret, secret)]
    twice: String,
    #[channel(secret)]
    #[channel(secret)]
    twice_in_two: String,
    #[channel(secrt)]
    misspelt: String,
    #[channel(secret, untracked, run)]
    exclusive: String,
}

#[derive(State, Serialize, Deserialize, Clone, Default)]
#[channel(secret)]
struct Whole {
    token: String,
}

#[derive(State, Serialize, Deserialize, Clone, Default)]
#[state(secret)]
struct WholeState {
    token: String,
}

fn main() {}

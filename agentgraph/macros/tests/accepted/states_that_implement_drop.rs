//! Nothing is moved out of the state, so it may implement `Drop`.

use agentgraph::State;
use agentgraph::state::Lifetime;
use serde::{Deserialize, Serialize};

#[derive(State, Serialize, Deserialize, Clone, Default)]
struct Guarded {
    #[channel(run)]
    question: String,
}

impl Drop for Guarded {
    fn drop(&mut self) {}
}

#[test]
fn a_state_may_implement_drop() {
    let mut state = Guarded { question: "why?".to_owned() };
    state.reset(&(), Lifetime::Run);
    assert_eq!(state.question, "");
}

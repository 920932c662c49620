//! What an agent remembers of a conversation from round to round never differs from the conversation: after
//! edits by hooks and by users, removals, summaries, and in a run that goes on from a checkpoint.

use std::sync::{Arc, Mutex};

use agentgraph::prelude::*;
use agentgraph::state::StoredState;
use agentgraph_llm::agent::AgentChange;
use agentgraph_llm::prelude::*;
use agentgraph_llm::{AgentChannels, Hooks, conversation};
use async_trait::async_trait;
use proptest::prelude::*;
use serde_json::json;

use super::tools_read_and_change_the_state::Shop;
use crate::support::{Log, answer_to, block_on, echo};

/// What a hook does to the conversation before a round.
#[derive(Clone, Debug)]
enum Edit {
    Nothing,
    Remove(usize),
    Change(usize),
    Push,
    /// Keeps the last messages only.
    Summarize(usize),
    Copy,
}

/// A round: the edit of a hook, whether the run is stopped and goes on from the store, and then whether the
/// user removes a message of the stored state.
type Round = (Edit, bool, Option<usize>);

fn rounds() -> impl Strategy<Value = Vec<Round>> {
    let edit = prop_oneof![
        3 => Just(Edit::Nothing),
        1 => (0_usize..8).prop_map(Edit::Remove),
        1 => (0_usize..8).prop_map(Edit::Change),
        1 => Just(Edit::Push),
        1 => (0_usize..5).prop_map(Edit::Summarize),
        1 => Just(Edit::Copy),
    ];
    prop::collection::vec((edit, any::<bool>(), prop::option::weighted(0.3, 0_usize..6)), 1..10)
}

fn apply(edit: &Edit, turn: &mut Turn) {
    let messages = turn.messages().to_vec();
    match edit {
        Edit::Nothing => {}
        Edit::Remove(at) => messages.get(*at).into_iter().for_each(|message| turn.remove(&message.id)),
        Edit::Change(at) => {
            if let Some(mut message) = messages.get(*at).cloned() {
                message.content.push(Block::text("changed"));
                turn.put(message);
            }
        }
        Edit::Push => turn.push(Message::user("more")),
        Edit::Summarize(keep) => {
            let from = messages.len().saturating_sub(*keep);
            turn.set_messages([Message::user("summary")].into_iter().chain(messages[from..].iter().cloned()));
        }
        Edit::Copy => {
            let copy =
                |message: &Message| serde_json::from_value(serde_json::to_value(message).unwrap()).unwrap();
            turn.set_messages(messages.iter().map(copy));
        }
    }
}

/// Edits the conversation before each round, and notes it as it is then and after the answer.
struct Editor {
    rounds: Vec<Round>,
    before: Arc<Mutex<Vec<Vec<Message>>>>,
    answers: Arc<Mutex<Vec<Message>>>,
}

#[async_trait]
impl Middleware for Editor {
    fn name(&self) -> &str {
        "editor"
    }

    fn hooks(&self) -> Hooks {
        Hooks::NONE.before_model().after_model()
    }

    async fn before_model(&self, turn: &mut Turn) -> agentgraph_llm::Result<Jump> {
        let mut before = self.before.lock().unwrap();
        let Some((edit, ..)) = self.rounds.get(before.len()) else { return Ok(Jump::End) };
        apply(edit, turn);
        before.push(turn.messages().to_vec());
        Ok(Jump::Next)
    }

    async fn after_model(&self, turn: &mut Turn) -> agentgraph_llm::Result<Jump> {
        self.answers.lock().unwrap().push(turn.messages().last().unwrap().clone());
        Ok(Jump::Next)
    }
}

/// The supersteps of a round: its two hooks, the model and the tool.
const STEPS: u64 = 4;

async fn run<S: AgentChannels + StoredState>(rounds: Vec<Round>) {
    let (before, answers) = (Arc::<Mutex<Vec<_>>>::default(), Arc::<Mutex<Vec<_>>>::default());
    // Each answer has the same id, and the same id of its call.
    let model = ScriptedModel::from_fn(|_| {
        answer_to(&ChatRequest::default(), vec![ToolUse::new("call", "echo", json!({"n": 1})).into()])
    });
    let editor =
        Editor { rounds: rounds.clone(), before: Arc::clone(&before), answers: Arc::clone(&answers) };
    let agent = Agent::new(model.clone()).tool(echo("echo", &Log::default())).middleware(editor);
    let agent = agent.max_rounds(100).state::<S>().compile().unwrap().checkpointer(MemorySaver::new());
    let mut begun = false;
    let mut left = rounds.iter();
    loop {
        let stop = left.by_ref().position(|(_, stops, _)| *stops);
        let go = || S::add_messages(vec![Message::user("go")]);
        let call = if begun { agent.proceed() } else { agent.invoke(go()) }.thread("t");
        let steps = stop.map_or(1000, |rounds| (rounds as u64 + 1) * STEPS);
        let outcome = call.max_supersteps(steps).await.unwrap();
        begun = true;
        let Outcome::Stopped { .. } = outcome else { break };
        let done = rounds.len() - left.len();
        if let Some(at) = rounds[done - 1].2 {
            let state = agent.state("t").await.unwrap().unwrap().values;
            if let Some(message) = state.messages().get(at) {
                let mut change = AgentChange::default();
                change.removed = vec![message.id.clone()];
                agent.update_state("t").update(S::change(change)).await.unwrap();
            }
        }
    }

    let (before, answers) = (before.lock().unwrap(), answers.lock().unwrap());
    let requests = model.requests();
    assert_eq!((requests.len(), answers.len()), (rounds.len(), rounds.len()));
    for ((before, request), answer) in before.iter().zip(&requests).zip(answers.iter()) {
        assert_eq!(request.messages, conversation::complete(before));
        let has_answer = before.iter().any(|message| message.id == "answer-0");
        assert_eq!(answer.id == "answer-0", !has_answer, "{answer:?} {before:#?}");
        let known: Vec<_> = before.iter().flat_map(Message::tool_uses).map(|call| call.id.as_str()).collect();
        let ids = std::iter::once("call".to_owned()).chain((2..).map(|n| format!("call-{n}")));
        let expected = ids.into_iter().find(|id| !known.contains(&id.as_str())).unwrap();
        assert_eq!(answer.tool_uses().next().unwrap().id, expected, "{before:#?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn requests_and_ids_are_those_of_the_conversation_as_it_is(rounds in rounds(), has_vec: bool) {
        match has_vec {
            true => block_on(run::<Shop>(rounds)),
            false => block_on(run::<AgentState>(rounds)),
        }
    }
}

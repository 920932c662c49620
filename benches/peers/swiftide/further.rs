//! Graphs with state types of their own, each run once: one, or five with `--cfg many`. Nothing is stored.

use swiftide_agents::tasks::closures::SyncFn;
use swiftide_agents::tasks::errors::NodeError;
use swiftide_agents::tasks::task::Task;

macro_rules! graph {
    ($name:ident) => {
        mod $name {
            use super::*;

            #[derive(Clone, Debug, Default)]
            struct Ask {
                question: String,
                notes: Vec<String>,
                risk: u8,
                answer: String,
                done: bool,
            }

            pub async fn run() {
                let plan = |state: &Ask| {
                    let mut state = state.clone();
                    state.risk = state.question.len() as u8;
                    state.notes.push("planned".to_owned());
                    Ok::<_, NodeError>(state)
                };
                let answer = |state: &Ask| {
                    let answer = state.risk.to_string();
                    Ok::<_, NodeError>(Ask { answer, done: true, ..state.clone() })
                };
                let mut graph = Task::<Ask, Ask>::new();
                let plan = graph.register_node(SyncFn::new(plan));
                let answer = graph.register_node(SyncFn::new(answer));
                graph.register_transition(plan, answer.as_transition()).expect("two nodes");
                graph.register_transition(answer, graph.transitions_to_done()).expect("a node");
                graph.starts_with(plan);
                let asked = Ask { question: "why?".to_owned(), ..Ask::default() };
                let state = graph.run(asked).await.expect("it ends").expect("it does not pause");
                assert!(state.done && state.answer == "4" && state.notes.len() == 1);
            }
        }
    };
}

harness::graphs!();

//! No span holds anything of a state, an input, a question, an answer or an error's message.

use agentgraph::prelude::*;
use serde::{Deserialize, Serialize};

use crate::recorded::Trace;

#[derive(State, Serialize, Deserialize, Clone, Debug, Default)]
struct Note {
    text: String,
}

#[tokio::test]
async fn of_a_run_that_asks_is_answered_and_fails() {
    async fn start() -> Command<Note> {
        Command::update(Note::update().text("swordfish")).goto_dispatch()
    }
    trait GotoDispatch {
        fn goto_dispatch(self) -> Command<Note>;
    }
    impl GotoDispatch for Command<Note> {
        fn goto_dispatch(self) -> Command<Note> {
            self.goto(Dispatch::new("work", "swordfish".to_owned()))
        }
    }
    async fn work(ctx: Ctx, Input(input): Input<String>) -> Result<NoteUpdate> {
        let answer: String = ctx.interrupt(format!("{input}?"))?;
        Err(format!("{answer} in the message").into())
    }
    let graph = StateGraph::new().node("start", start.into_node().targets(["work"])).node("work", work);
    let graph = graph.edge(START, "start").compile().unwrap().checkpointer(MemorySaver::new());
    let trace = Trace::new();
    let asked = graph.invoke(Note::update().text("swordfish")).thread("t");
    assert_eq!(trace.follow(async { asked.await }).await.unwrap().interrupts().len(), 1);
    let error = trace.follow(async { graph.resume("swordfish").thread("t").await }).await.unwrap_err();
    assert!(error.to_string().contains("swordfish"));
    for name in ["run", "superstep", "node", "attempt"] {
        let spans = trace.all(name);
        assert!(!spans.is_empty() && !format!("{spans:?}").contains("swordfish"), "{spans:?}");
    }
}

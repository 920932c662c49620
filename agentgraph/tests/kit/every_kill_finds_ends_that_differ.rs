use std::sync::Mutex;

use agentgraph::prelude::*;
use agentgraph::testing::{FindingKind, TestGraph};

use crate::{Words, WordsUpdate, note, say};

#[derive(State, Clone, Debug, Default)]
struct Plan {
    #[channel(untracked)]
    draft: String,
    stored_draft: String,
    text: String,
}

#[tokio::test]
async fn a_value_in_an_untracked_channel_is_lost() {
    async fn draft() -> PlanUpdate {
        Plan::update().draft("a plan").stored_draft("a plan")
    }
    async fn from_untracked(plan: Snapshot<Plan>) -> PlanUpdate {
        Plan::update().text(plan.draft.clone())
    }
    async fn from_stored(plan: Snapshot<Plan>) -> PlanUpdate {
        Plan::update().text(plan.stored_draft.clone())
    }
    let graph = StateGraph::new().node("draft", draft).node("write", from_untracked);
    let graph = graph.edge(START, "draft").edge("draft", "write").compile().unwrap();
    let test = TestGraph::of(graph);
    let report = test.every_kill(Plan::update()).await;
    let [lost] = report.findings() else { panic!("{report}") };
    assert_eq!((lost.kind(), lost.subject()), (FindingKind::EndDiffers, "text"));
    assert!(report.to_string().contains(r#"`text` is "" at the end instead of "a plan""#), "{report}");

    test.replace("write", from_stored).every_kill(Plan::update()).await.assert_none();
}

#[tokio::test]
async fn a_value_in_a_variable_of_the_process_is_another_one_after_a_kill() {
    async fn number(counter: Dep<Mutex<u32>>) -> WordsUpdate {
        let mut counter = counter.lock().unwrap();
        *counter += 1;
        say(format!("number {counter}"))
    }
    async fn durable(ctx: Ctx, counter: Dep<Mutex<u32>>) -> Result<WordsUpdate> {
        let number = ctx.once("number", async {
            let mut counter = counter.lock().unwrap();
            *counter += 1;
            Ok(*counter)
        });
        // The counter counts calls; the answer to the first is kept.
        Ok(say(format!("number {}", number.await?.min(1))))
    }
    let graph = || {
        let graph = StateGraph::new().node("number", number).node("then", note);
        graph.edge(START, "number").edge("number", "then").dep(Mutex::new(0_u32)).compile().unwrap()
    };
    let test = TestGraph::by(graph);
    let report = test.every_kill(Words::update()).await;
    let [differs] = report.findings() else { panic!("{report}") };
    assert_eq!(
        (differs.kind(), differs.node(), differs.subject()),
        (FindingKind::EndDiffers, "number", "said")
    );
    test.replace("number", durable).every_kill(Words::update()).await.assert_none();
}

/// All runs share the counter, so no two are alike, and nothing can be compared.
#[tokio::test]
async fn runs_that_are_never_alike_are_reported_once() {
    async fn number(counter: Dep<Mutex<u32>>) -> WordsUpdate {
        let mut counter = counter.lock().unwrap();
        *counter += 1;
        say(format!("number {counter}"))
    }
    let graph = || {
        let graph = StateGraph::new().node("number", number).edge(START, "number");
        graph.dep(Mutex::new(0_u32)).compile().unwrap()
    };
    for report in [
        TestGraph::of(graph()).every_kill(Words::update()).await,
        TestGraph::of(graph()).every_order(Words::update()).await,
    ] {
        let [found] = report.findings() else { panic!("{report}") };
        assert_eq!((found.kind(), found.node(), report.runs()), (FindingKind::NotRepeatable, "number", 2));
    }
    TestGraph::by(graph).every_order(Words::update()).seeds(2).await.assert_none();
}

/// A question that is another one after a kill voids the answer.
#[tokio::test]
async fn a_question_that_changes_leaves_the_run_waiting() {
    async fn ask(ctx: Ctx, counter: Dep<Mutex<u32>>) -> Result<WordsUpdate> {
        let price = {
            let mut counter = counter.lock().unwrap();
            *counter += 1;
            *counter
        };
        let yes: bool = ctx.interrupt(format!("pay {price}?"))?;
        Ok(say(yes.to_string()))
    }
    let graph = || {
        let graph = StateGraph::new().node("ask", ask).edge(START, "ask");
        graph.dep(Mutex::new(0_u32)).compile().unwrap()
    };
    let trace = TestGraph::by(graph).answer(true).trace(Words::update()).await;
    assert_eq!(trace.asked(), ["pay 1?", "pay 2?"]);
    assert!(trace.interrupts()[1].replaces.is_some());
}

use agentgraph::prelude::*;
use agentgraph::testing::{FindingKind, Probe, TestGraph};

use crate::{Words, WordsUpdate, say};

fn one<M>(node: impl IntoNode<Words, M>) -> TestGraph<CompiledGraph<Words>> {
    TestGraph::of(StateGraph::new().node("approve", node).edge(START, "approve").compile().unwrap())
}

async fn before(ctx: Ctx, probe: Probe) -> Result<WordsUpdate> {
    probe.effect("mail");
    let yes: bool = ctx.interrupt("send?")?;
    Ok(say(yes.to_string()))
}

async fn behind(ctx: Ctx, probe: Probe) -> Result<WordsUpdate> {
    let yes: bool = ctx.interrupt("send?")?;
    probe.effect("mail");
    Ok(say(yes.to_string()))
}

async fn durable(ctx: Ctx) -> Result<WordsUpdate> {
    ctx.once("mail", async {
        Probe::new().effect("mail");
        Ok(())
    })
    .await?;
    let yes: bool = ctx.interrupt("send?")?;
    Ok(say(yes.to_string()))
}

#[tokio::test]
async fn an_effect_before_a_question_is_found_with_an_answer_and_without() {
    for test in [one(before), one(before).answer(true)] {
        let trace = test.trace(Words::update()).await;
        let [found] = trace.report().findings() else { panic!("{}", trace.report()) };
        assert_eq!(
            (found.kind(), found.node(), found.subject()),
            (FindingKind::EffectBeforeQuestion, "approve", "mail")
        );
    }
    let trace = one(before).answer(true).trace(Words::update()).await;
    assert_eq!(trace.effects(), ["approve: mail", "approve: mail"], "it happened twice");
}

#[tokio::test]
async fn an_effect_behind_the_question_or_in_a_durable_step_is_none() {
    for (test, effects) in [(one(behind), 1), (one(durable), 1)] {
        let trace = test.answer(true).trace(Words::update()).await;
        trace.report().assert_none();
        assert_eq!(trace.effects().len(), effects);
    }
}

#[tokio::test]
async fn an_effect_before_a_question_of_a_subgraph_is_one_of_its_node() {
    let inner = StateGraph::new().node("approve", before).edge(START, "approve").compile().unwrap();
    let outer = StateGraph::new().node("inner", inner).edge(START, "inner").compile().unwrap();
    let trace = TestGraph::of(outer).answer_to("inner/approve", true).trace(Words::update()).await;
    let [found] = trace.report().findings() else { panic!("{}", trace.report()) };
    assert_eq!(found.node(), "inner/approve");
    assert_eq!(trace.state().said, ["true"]);
}

#[tokio::test]
async fn reports_of_kills_and_orders_contain_it() {
    let test = one(before).answer(true);
    for report in [test.every_kill(Words::update()).await, test.every_order(Words::update()).seeds(2).await] {
        let before =
            report.findings().iter().filter(|found| found.kind() == FindingKind::EffectBeforeQuestion);
        assert_eq!(before.count(), 1, "{report}");
    }
}

#[tokio::test]
async fn questions_are_answered_in_order_by_node_and_by_key() {
    async fn ask(ctx: Ctx) -> Result<WordsUpdate> {
        Ok(say(format!("{} {}", ctx.node(), ctx.interrupt::<u32>("how many?")?)))
    }
    async fn keyed(ctx: Ctx) -> Result<WordsUpdate> {
        let tea = ctx.interrupt_as::<u32>("tea", "tea?");
        let milk = ctx.interrupt_as::<u32>("milk", "milk?");
        Ok(say(format!("tea {} milk {}", tea?, milk?)))
    }
    let graph = StateGraph::new().node("a", ask).node("b", ask).node("keyed", keyed).node("c", ask);
    let graph =
        graph.edge(START, "a").edge("a", "b").edge("b", "keyed").edge("keyed", "c").compile().unwrap();
    let test = TestGraph::of(graph).answer(1).answer(2).answer_to("milk", 9).answer_to("b", 7).answer(3);
    let trace = test.trace(Words::update()).await;
    assert_eq!(trace.state().said, ["a 1", "b 7", "tea 2 milk 9", "c 3"]);
    test.every_kill(Words::update()).await.assert_none();
}

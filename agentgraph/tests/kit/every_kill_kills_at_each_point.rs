use agentgraph::prelude::*;
use agentgraph::testing::{FindingKind, KillPoint, Probe, TestGraph};

use crate::{Words, WordsUpdate, note, say};

/// The runs of `every_kill` beside the killed ones: it compares two undisturbed runs first.
const UNDISTURBED: usize = 2;

fn chain(nodes: usize) -> CompiledGraph<Words> {
    let mut graph = StateGraph::new().edge(START, "n0");
    for node in 0..nodes {
        graph = graph.node(format!("n{node}"), note);
    }
    for node in 1..nodes {
        graph = graph.edge(format!("n{}", node - 1), format!("n{node}"));
    }
    graph.compile().unwrap()
}

/// The input and each superstep are one commit; a superstep of one task has no pending writes.
#[tokio::test]
async fn a_chain_has_a_commit_for_its_input_and_one_for_each_node() {
    for nodes in [1, 2, 5] {
        let report = TestGraph::of(chain(nodes)).every_kill(Words::update()).await;
        report.assert_none();
        assert_eq!(report.runs(), UNDISTURBED + 2 * (1 + nodes));
    }
}

/// Siblings of a waiting task are stored before the commit, in one write.
#[tokio::test]
async fn parallel_nodes_have_a_write_for_those_that_end_before_the_others() {
    async fn slow(probe: Probe) -> WordsUpdate {
        probe.pause().await;
        say("slow")
    }
    let graph =
        StateGraph::new().node("slow", slow).node("quick", note).edge(START, "slow").edge(START, "quick");
    let report = TestGraph::of(graph.compile().unwrap()).every_kill(Words::update()).await;
    report.assert_none();
    let (input, pending, commit, waits) = (1, 1, 1, 1);
    assert_eq!(report.runs(), UNDISTURBED + 2 * (input + pending + commit) + waits);
}

/// A question is stored, the answer is, and the commit is.
#[tokio::test]
async fn a_question_has_a_write_for_itself_and_one_for_its_answer() {
    async fn ask(ctx: Ctx) -> Result<WordsUpdate> {
        Ok(say(ctx.interrupt::<String>("which word?")?))
    }
    let graph = StateGraph::new().node("ask", ask).edge(START, "ask").compile().unwrap();
    let report = TestGraph::of(graph).answer("tea").every_kill(Words::update()).await;
    report.assert_none();
    let (input, question, answer, commit) = (1, 1, 1, 1);
    assert_eq!(report.runs(), UNDISTURBED + 2 * (input + question + answer + commit));
}

#[tokio::test]
async fn a_finding_names_the_kill_that_shows_it_again() {
    async fn pay(probe: Probe) {
        probe.effect("charge");
        probe.pause().await;
    }
    let graph = StateGraph::<Words>::new().node("a", note).node("pay", pay).edge(START, "a").edge("a", "pay");
    let test = TestGraph::of(graph.compile().unwrap());
    let report = test.every_kill(Words::update()).await;
    let [twice] = report.findings() else { panic!("{report}") };
    // Before its commit, which is the third, and in the middle of the node.
    assert_eq!((twice.kill(), twice.times()), (Some(KillPoint::BeforeWrite(3)), 2));

    let again = test.every_kill(Words::update()).at(KillPoint::BeforeWrite(3)).await;
    assert_eq!((again.runs(), again.findings().len()), (UNDISTURBED + 1, 1));
    assert_eq!(again.findings()[0].kind(), FindingKind::EffectTwice);
    test.every_kill(Words::update()).at(KillPoint::AfterWrite(3)).await.assert_none();
}

/// Subgraphs store their own checkpoints, so a kill inside one is another point.
#[tokio::test]
async fn kills_inside_subgraphs_are_points_too() {
    let outer = |memory| {
        let inner = chain(2).memory(memory);
        StateGraph::<Words>::new().node("inner", inner).edge(START, "inner").compile().unwrap()
    };
    let report = TestGraph::of(outer(agentgraph::Memory::PerCall)).every_kill(Words::update()).await;
    report.assert_none();
    let plain = TestGraph::of(outer(agentgraph::Memory::None)).every_kill(Words::update()).await;
    plain.assert_none();
    assert!(report.runs() > plain.runs(), "{} and {}", report.runs(), plain.runs());
}

#[tokio::test]
async fn eager_graphs_and_joins_survive_every_kill() {
    async fn slow(ctx: Ctx, probe: Probe) -> WordsUpdate {
        probe.pause().await;
        say(ctx.node())
    }
    let graph = |eager: bool| {
        let graph = StateGraph::new().node("a", slow).node("b", note).node("c", slow).node("d", note);
        let graph = graph.edge(START, "a").edge(START, "b").edge("b", "c").edge(["a", "c"], "d");
        if eager { graph.eager().compile().unwrap() } else { graph.compile().unwrap() }
    };
    TestGraph::of(graph(false)).every_kill(Words::update()).await.assert_none();
    let report = TestGraph::of(graph(true)).every_kill(Words::update()).await;
    // The merge order of an eager graph is that of the ends, which a kill may change.
    assert!(report.findings().iter().all(|found| found.subject() == "said"), "{report}");
}

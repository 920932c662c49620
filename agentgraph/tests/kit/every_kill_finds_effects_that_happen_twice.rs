use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use agentgraph::prelude::*;
use agentgraph::testing::{FindingKind, Probe, Report, TestGraph};

use crate::{Words, WordsUpdate, say};

fn one<M>(name: &'static str, node: impl IntoNode<Words, M>) -> TestGraph<CompiledGraph<Words>> {
    TestGraph::of(StateGraph::new().node(name, node).edge(START, name).compile().unwrap())
}

fn kinds(report: &Report) -> Vec<(FindingKind, &str, &str)> {
    report.findings().iter().map(|found| (found.kind(), found.node(), found.subject())).collect()
}

#[tokio::test]
async fn an_effect_without_a_key_happens_twice() {
    async fn pay(probe: Probe) -> WordsUpdate {
        probe.effect(("charge", 7));
        say("paid")
    }
    let report = one("pay", pay).every_kill(Words::update()).await;
    assert_eq!(kinds(&report), [(FindingKind::EffectTwice, "pay", "charge 7")]);
    let text = report.to_string();
    assert!(text.contains("`pay`: the effect `charge 7` happened 2 times instead of 1"), "{text}");
    assert!(text.contains("probe.idempotent(name, key)"), "{text}");
}

#[tokio::test]
async fn an_effect_with_a_key_of_the_state_counts_once() {
    async fn pay(probe: Probe, words: Snapshot<Words>) -> WordsUpdate {
        probe.idempotent("charge", words.said.len());
        say("paid")
    }
    one("pay", pay).every_kill(Words::update()).await.assert_none();
}

/// A key that is made anew in each attempt is none.
#[tokio::test]
async fn an_effect_with_a_new_key_each_time_happens_twice() {
    use std::sync::atomic::AtomicU32;
    static KEYS: AtomicU32 = AtomicU32::new(0);
    async fn pay(probe: Probe) -> WordsUpdate {
        probe.idempotent("charge", KEYS.fetch_add(1, Ordering::Relaxed));
        say("paid")
    }
    let report = one("pay", pay).every_kill(Words::update()).await;
    assert_eq!(kinds(&report), [(FindingKind::EffectTwice, "pay", "charge")]);
}

/// Two effects in one node: the first happens again if the process dies before the second is done. In a
/// durable step of its own, it does not, unless the process dies within the step.
#[tokio::test]
async fn a_durable_step_narrows_the_kills_after_which_an_effect_happens_twice() {
    async fn service(effect: &'static str) -> Result<()> {
        Probe::new().effect(effect);
        Probe::new().pause().await;
        Ok(())
    }
    async fn bare() -> Result<WordsUpdate> {
        service("charge").await?;
        service("mail").await?;
        Ok(say("done"))
    }
    async fn durable(ctx: Ctx) -> Result<WordsUpdate> {
        ctx.once("charge", service("charge")).await?;
        ctx.once("mail", service("mail")).await?;
        Ok(say("done"))
    }
    let times = |report: &Report, effect: &str| {
        let found = report.findings().iter().find(|found| found.subject() == effect).unwrap();
        assert_eq!(found.kind(), FindingKind::EffectTwice);
        found.times()
    };
    let bare = one("both", bare).every_kill(Words::update()).await;
    // The charge: at both waits and before the commit. The mail: at its own wait and before the commit.
    assert_eq!((times(&bare, "charge"), times(&bare, "mail")), (3, 2));
    let durable = one("both", durable).every_kill(Words::update()).await;
    // Each: before its result is stored, by the wait of the service, the wait for the store or the write.
    assert!(durable.findings().iter().all(|found| found.kind() == FindingKind::EffectTwice), "{durable}");
    assert_eq!(times(&durable, "charge"), times(&durable, "mail"));
}

/// A node that remembers in the process, before it acts, that it has acted.
#[tokio::test]
async fn an_effect_that_is_noted_before_it_happens_is_lost() {
    async fn pay(sent: Dep<Arc<AtomicBool>>, probe: Probe) -> WordsUpdate {
        if !sent.swap(true, Ordering::Relaxed) {
            probe.pause().await;
            probe.effect("charge");
        }
        say("paid")
    }
    let graph = || {
        let graph = StateGraph::new().node("pay", pay).edge(START, "pay");
        graph.dep(Arc::new(AtomicBool::new(false))).compile().unwrap()
    };
    let report = TestGraph::by(graph).every_kill(Words::update()).await;
    assert_eq!(kinds(&report), [(FindingKind::EffectLost, "pay", "charge")]);
}

#[tokio::test]
async fn effects_of_a_spawned_task_belong_to_its_node() {
    async fn pay(probe: Probe) -> Result<WordsUpdate> {
        tokio::spawn(async move { probe.effect("charge") }).await?;
        Ok(say("paid"))
    }
    let trace = one("pay", pay).trace(Words::update()).await;
    assert_eq!(trace.effects(), ["pay: charge"]);
    let report = one("pay", pay).every_kill(Words::update()).await;
    assert_eq!(kinds(&report), [(FindingKind::EffectTwice, "pay", "charge")]);
}

#[tokio::test]
async fn a_probe_does_nothing_outside_the_kit() {
    async fn pay(probe: Probe) -> WordsUpdate {
        probe.effect("charge");
        probe.pause().await;
        probe.wait(std::time::Duration::from_secs(3600)).await;
        say("paid")
    }
    let graph = StateGraph::new().node("pay", pay).edge(START, "pay").compile().unwrap();
    let words = graph.invoke(Words::update()).await.unwrap().into_finished().unwrap();
    assert_eq!(words.said, ["paid"]);
}

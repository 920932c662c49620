//! Graphs recorded with LangGraph 1.2.22 give the same results here: values, frontiers, interrupts,
//! half-full joins and limits.
//!
//! The graphs are random and their results are recorded, so this test needs no Python.
//! `beside_langgraph/run.sh` generates new graphs and runs them in both systems. The fixture is the
//! output of `graphs.py --seed 1 --count 500 --short`.

use std::collections::{BTreeMap, HashSet};

use crate::beside_langgraph::find_difference;
use crate::beside_langgraph::record::{End, Record};

fn recorded() -> Vec<Record> {
    Record::read(include_str!("../fixtures/langgraph-1.2.22.jsonl")).unwrap()
}

#[tokio::test]
async fn every_recorded_graph_gives_the_result_recorded_from_langgraph() {
    let mut differing = Vec::new();
    for record in recorded() {
        if let Some(difference) = find_difference(&record).await {
            differing.push(format!("{}: {difference}", record.number));
        }
    }
    assert!(differing.is_empty(), "{differing:#?}");
}

#[tokio::test]
async fn a_changed_record_is_detected() {
    let records = recorded();
    let of = |wanted: fn(&Record) -> bool| records.iter().find(|record| wanted(record)).unwrap().clone();
    let mut hash = of(|record| record.steps.len() > 3);
    hash.steps[2].1 = "0".repeat(16);
    let mut next = of(|record| record.steps.len() > 3);
    next.steps[1].0.push_str(" n0");
    let mut shorter = of(|record| record.steps.len() > 3);
    shorter.steps.pop();
    let mut stuck = of(|record| matches!(&record.acts[0].end, End::Finished { stuck } if !stuck.is_empty()));
    stuck.acts[0].end = End::Finished { stuck: Vec::new() };
    let mut asks = of(|record| matches!(record.acts[0].end, End::Asks { .. }));
    asks.acts[0].end = End::Limit;
    for record in [hash, next, shorter, stuck, asks] {
        assert!(find_difference(&record).await.is_some(), "{record:?}");
    }
}

/// Asserts that each feature occurs in at least ten recorded graphs, so that the fixture covers it.
#[test]
fn the_recorded_graphs_cover_every_feature() {
    let mut found = BTreeMap::<&str, usize>::new();
    for record in recorded() {
        let nodes = |step: &str| step.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let steps: Vec<Vec<String>> = record.steps.iter().map(|(next, _)| nodes(next)).collect();
        let crowded = |step: &Vec<String>| step.iter().collect::<HashSet<_>>().len() < step.len();
        let crowd =
            |source: &String| steps.iter().any(|step| step.iter().filter(|node| *node == source).count() > 1);
        let again = |node: &String| steps.iter().filter(|step| step.contains(node)).count() > 1;
        let ends = |wanted: fn(&End) -> bool| record.acts.iter().any(|act| wanted(&act.end));
        let mut note = |what, is: bool| *found.entry(what).or_default() += usize::from(is);
        note("dispatches", steps.iter().any(crowded));
        note("a source of a join runs several times in a superstep", {
            record.joins.iter().any(|(sources, _)| sources.iter().any(crowd))
        });
        note("a join is reached in a loop", {
            record.joins.iter().any(|(sources, to)| again(to) && sources.iter().all(again))
        });
        note("deferred nodes", record.nodes.iter().any(|node| node.defers));
        note("commands", record.nodes.iter().any(|node| node.command.is_some()));
        note("routes", !record.routers.is_empty());
        note("several runs", record.acts.iter().filter(|act| act.input.is_some()).count() > 1);
        note("a half-full join", ends(|end| matches!(end, End::Finished { stuck } if !stuck.is_empty())));
        note("interrupts", ends(|end| matches!(end, End::Asks { .. })));
        note("a limit", ends(|end| *end == End::Limit));
        note("a clash", ends(|end| *end == End::Conflict));
    }
    assert!(found.values().all(|times| *times >= 10), "{found:#?}");
}

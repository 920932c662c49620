//! A graph without a barrier: a slow branch beside a thousand steps of a fast one, over a state of a
//! megabyte.

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use agentgraph::prelude::*;
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;

use crate::case::{Case, Entrant, Figure};
use crate::runtime::{on, one_thread};

const STEPS: u64 = 1000;

pub(crate) fn cases() -> Vec<Case> {
    vec![Case::new("eager/two_branches", "step", STEPS, entrants).with_figures(clones)]
}

#[derive(State, Serialize, Deserialize, Debug, Default)]
struct Heavy {
    count: u64,
    blob: Vec<u8>,
    #[reduce(append)]
    slow: Vec<u64>,
    #[channel(untracked)]
    clones: Clones,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Clones {
    #[serde(skip)]
    count: Arc<AtomicU64>,
}

impl Clone for Heavy {
    fn clone(&self) -> Self {
        self.clones.count.fetch_add(1, Ordering::Relaxed);
        let Heavy { count, blob, slow, clones } = self;
        Heavy { count: *count, blob: blob.clone(), slow: slow.clone(), clones: clones.clone() }
    }
}

#[derive(Route)]
enum After {
    Fast,
    #[route(end)]
    Done,
}

fn graph() -> CompiledGraph<Heavy> {
    let slow = |done: Dep<Notify>, heavy: Snapshot<Heavy>| async move {
        done.notified().await;
        Heavy::update().slow([black_box(heavy.count)])
    };
    let fast = |done: Dep<Notify>, heavy: Snapshot<Heavy>| async move {
        let count = black_box(heavy.count) + 1;
        if count == STEPS {
            done.notify_one();
        }
        Heavy::update().count(count)
    };
    let after = |heavy: &Heavy| if heavy.count < STEPS { After::Fast } else { After::Done };
    let graph = StateGraph::new().eager().dep(Notify::new()).node("slow", slow).node("fast", fast);
    let graph = graph.edge(START, "slow").edge(START, "fast").route("fast", after);
    graph.compile().expect("a graph")
}

fn engine(clones: Clones) -> impl FnMut(u64) {
    let graph = graph();
    on(&one_thread(), move || {
        let input = Heavy::update().blob(vec![0; 1 << 20]).clones(clones.clone());
        let run = graph.invoke(input).max_supersteps(STEPS + 1);
        async move { assert_eq!(run.await.expect("the run ends").output().count, STEPS) }
    })
}

/// Makes the same calls in sequence, on a state in place.
fn floor() -> impl FnMut(u64) {
    on(&one_thread(), || async {
        let mut heavy = Heavy { blob: vec![0; 1 << 20], ..Heavy::default() };
        for _ in 0..STEPS {
            let count = heavy.count;
            let call: std::pin::Pin<Box<dyn Future<Output = u64>>> =
                Box::pin(async move { black_box(count) + 1 });
            heavy.count = call.await;
        }
        assert_eq!(black_box(heavy).count, STEPS);
    })
}

fn entrants() -> Vec<Entrant> {
    vec![
        Entrant::new("floor: a loop over boxed calls", floor()),
        Entrant::new("engine, eager", engine(Clones::default())),
    ]
}

fn clones() -> Vec<Figure> {
    let clones = Clones::default();
    engine(clones.clone())(1);
    let count = clones.count.load(Ordering::Relaxed);
    vec![Figure::new("clones of the state, 1 MB", count as f64, "").within(2.0)]
}

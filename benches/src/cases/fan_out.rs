//! Branches that start together and a join behind them.

use std::future::Future;
use std::hint::black_box;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use agentgraph::prelude::*;

use crate::bare::{Branch, FanOut};
use crate::case::{Case, Entrant, Figure};
use crate::runtime::{on, one_thread};
use crate::states::{Fan, FanUpdate};

/// The number of times that the slow branch is woken before it is done.
const WAKES: u64 = 100;

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case::new("fan_out/10", "branch", 10, || ready(10, 1.8)),
        Case::new("fan_out/100", "branch", 100, || ready(100, 1.5)),
        Case::new("fan_out/1000", "branch", 1000, || ready(1000, 1.5)),
        Case::new("fan_out/one_slow", "branch", 1000, one_slow).with_figures(polls),
    ]
}

fn graph<M, N: IntoNode<Fan, M>>(size: u64, branch: impl Fn(u64) -> N) -> CompiledGraph<Fan> {
    let name = |at: u64| format!("branch_{at}");
    let mut graph = StateGraph::new().node("join", join);
    for at in 0..size {
        graph = graph.node(name(at), branch(at)).edge(START, name(at));
    }
    graph.edge((0..size).map(name).collect::<Vec<_>>(), "join").compile().expect("a graph")
}

async fn join(state: Snapshot<Fan>) -> FanUpdate {
    Fan::update().joined(black_box(state.items.len() as u64))
}

fn engine(graph: CompiledGraph<Fan>, size: u64) -> impl FnMut(u64) {
    on(&one_thread(), move || {
        let run = graph.invoke(Fan::update());
        async move { check(run.await.expect("the run ends").output(), size) }
    })
}

fn floor(branches: Vec<Branch>) -> impl FnMut(u64) {
    let size = branches.len() as u64;
    let bare = Rc::new(FanOut::new(branches));
    on(&one_thread(), move || {
        let bare = Rc::clone(&bare);
        async move { check(&bare.run(Fan::default()).await, size) }
    })
}

fn check(state: &Fan, size: u64) {
    assert_eq!((state.joined, state.items.first(), state.items.last()), (size, Some(&0), Some(&(size - 1))));
}

fn ready(size: u64, budget: f64) -> Vec<Entrant> {
    let bare = (0..size).map(|at| {
        let branch: Branch = Box::new(move |_| Box::pin(async move { vec![black_box(at)] }));
        branch
    });
    let branch = |at| move |_: Snapshot<Fan>| async move { Fan::update().items([black_box(at)]) };
    let alone = |at| move || async move { Fan::update().items([black_box(at)]) };
    vec![
        Entrant::new("floor: polled in place", floor(bare.collect())),
        Entrant::new("engine, `Snapshot`", engine(graph(size, branch), size)).within(budget).allocating(3.5),
        Entrant::new("engine, no argument", engine(graph(size, alone), size)),
    ]
}

/// A future that is pending for `left` polls, and counts all its polls.
struct ReadyAfter {
    left: u64,
    polls: Arc<AtomicU64>,
}

impl Future for ReadyAfter {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.polls.fetch_add(1, Ordering::Relaxed);
        if self.left == 0 {
            return Poll::Ready(());
        }
        self.left -= 1;
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

/// Returns the future of a branch: the first branch is slow, all others are ready at once.
fn after(at: u64, polls: &Polls) -> ReadyAfter {
    match at {
        0 => ReadyAfter { left: WAKES, polls: Arc::clone(&polls.slow) },
        _ => ReadyAfter { left: 0, polls: Arc::clone(&polls.ready) },
    }
}

#[derive(Clone, Default)]
struct Polls {
    slow: Arc<AtomicU64>,
    ready: Arc<AtomicU64>,
}

fn slow_graph(polls: &Polls) -> CompiledGraph<Fan> {
    graph(1000, |at| {
        let polls = polls.clone();
        move |_: Snapshot<Fan>| {
            let after = after(at, &polls);
            async move {
                after.await;
                Fan::update().items([at])
            }
        }
    })
}

fn one_slow() -> Vec<Entrant> {
    let polls = Polls::default();
    let bare = (0..1000).map(|at| {
        let polls = polls.clone();
        let branch: Branch = Box::new(move |_| {
            let after = after(at, &polls);
            Box::pin(async move {
                after.await;
                vec![at]
            })
        });
        branch
    });
    vec![
        Entrant::new("floor: in place, then the one", floor(bare.collect())),
        Entrant::new("engine", engine(slow_graph(&Polls::default()), 1000)).within(1.5).allocating(3.5),
    ]
}

fn polls() -> Vec<Figure> {
    let polls = Polls::default();
    engine(slow_graph(&polls), 1000)(1);
    let slow = polls.slow.load(Ordering::Relaxed);
    let ready = polls.ready.load(Ordering::Relaxed);
    vec![
        Figure::new("polls of a ready branch", ready as f64 / 999.0, "").within(1.0),
        Figure::new("polls of the slow one, woken 100 times", slow as f64, "").within(WAKES as f64 + 1.0),
    ]
}

//! A checkpoint in memory after every step.

use std::rc::Rc;
use std::sync::Arc;

use agentgraph::prelude::*;

use crate::bare::Routed;
use crate::case::{Case, Entrant};
use crate::cases::chain::add_one;
use crate::cases::looped::{Next, looped};
use crate::runtime::{on, one_thread};
use crate::states::Counter;

const STEPS: u64 = 1000;

pub(crate) fn cases() -> Vec<Case> {
    vec![Case::new("memory/1000", "step", STEPS, entrants)]
}

fn next(state: &Counter) -> Next {
    if state.count < STEPS { Next::Work } else { Next::Done }
}

fn entrants() -> Vec<Entrant> {
    let runtime = one_thread();
    let bare = Rc::new(Routed::new("work", |state| (state.count < STEPS).then_some("work")));
    let floor = on(&runtime, move || {
        let bare = Rc::clone(&bare);
        async move {
            let mut kept = Vec::new();
            let state = bare.run_keeping(Counter::begun(), &mut kept).await;
            assert_eq!((state.count, kept.len() as u64), (STEPS, STEPS));
        }
    });
    let saver = Arc::new(MemorySaver::new());
    let graph = looped(add_one, next).checkpointer(Arc::clone(&saver));
    let engine = on(&runtime, move || {
        let graph = graph.clone();
        let saver = Arc::clone(&saver);
        async move {
            let outcome = graph.invoke(Counter::input()).thread("t").await.expect("the run ends");
            assert_eq!(outcome.output().count, STEPS);
            // Steps are counted from 0, the checkpoint of the input.
            assert_eq!(outcome.checkpoint().map(|id| id.step), Some(STEPS));
            saver.delete_thread("t").await.expect("it is there");
        }
    });
    vec![
        Entrant::new("floor: a clone of the state each step", floor),
        Entrant::new("engine, `MemorySaver`", engine).within(1.0).allocating(4.0),
    ]
}

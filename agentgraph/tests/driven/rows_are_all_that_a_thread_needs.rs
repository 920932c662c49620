//! The rows that a driven run leaves are those that the next one needs, and few.

use std::sync::Arc;

use agentgraph::host::RunCall;
use agentgraph::prelude::*;

use crate::driver::Driver;
use crate::graphs::{Work, asking, busy, looping, step};

#[tokio::test]
async fn a_long_loop_keeps_few_rows_and_does_not_slow_down() {
    let mut driver = Driver::new(looping(2_000), looping(2_000));
    let call = RunCall::invoke::<Work>(&(), &step("input", 0)).unwrap();
    let done = driver.call_once(call.max_supersteps(1_000)).await;
    assert!(done.rows.len() < 200, "{} rows", done.rows.len());
    let sizes: Vec<usize> = done.journal.needs.iter().map(Vec::len).collect();
    let sum = |part: &[usize]| part.iter().sum::<usize>();
    let (first, last) = (sum(&sizes[200..600]), sum(&sizes[sizes.len() - 400..]));
    assert!(last < first * 3 / 2, "{first} bytes are asked for at the start, {last} at the end");
}

#[tokio::test]
async fn a_finished_thread_keeps_no_pending_writes() {
    let mut driver = Driver::new(busy(false), busy(false));
    let done = driver.call(RunCall::invoke::<Work>(&(), &step("input", 0)).unwrap()).await;
    assert!(done.rows.keys().all(|key| !key.contains(".w")), "{:?}", done.rows.keys());
}

/// A graph, a call without a history, and one with it.
type Late<'a> = (&'a dyn Fn() -> CompiledGraph<Work>, [RunCall; 2]);

/// A store that is attached when the thread is there already gets what the thread has, then what follows.
#[tokio::test]
async fn a_history_begins_with_the_rows_when_its_store_comes_later() {
    let invoke = || RunCall::invoke::<Work>(&(), &step("input", 0)).unwrap();
    let loops = || looping(2_000);
    let calls: [Late<'_>; 3] = [
        (&|| busy(false), [invoke(), invoke()]),
        (&|| asking(false), [invoke(), RunCall::update_state::<Work>(&(), &step("edit", 1)).unwrap()]),
        // So long that its rows have segments.
        (&loops, [invoke().max_supersteps(1_000), RunCall::proceed().max_supersteps(1_000)]),
    ];
    for (build, [before, after]) in calls {
        let mut driver = Driver::new(build(), build());
        driver.call_once(before).await;
        driver.history = Arc::new(MemorySaver::new());
        let done = driver.call_once(after).await;

        let rows = done.rows.into_iter().collect();
        let state = driver.near.thread_state("t", rows).await.unwrap().unwrap();
        let state = state.into_checkpoint::<Work>(&()).unwrap();
        let kept = build().checkpointer(Arc::clone(&driver.history));
        let history = kept.history("t").await.unwrap();
        assert!(history.len() > 1);
        for checkpoint in &history {
            assert_eq!(kept.state_at("t", checkpoint.id).await.unwrap().unwrap().values, checkpoint.values);
        }
        let newest = kept.state("t").await.unwrap().unwrap();
        assert_eq!((newest.values, newest.interrupts), (state.values, state.interrupts));
    }
}

//! The rows that a driven run leaves are those that the next one needs, and few.

use agentgraph::host::RunCall;

use crate::driver::Driver;
use crate::graphs::{Work, busy, looping, step};

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

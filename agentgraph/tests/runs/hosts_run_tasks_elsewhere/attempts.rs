//! A host runs one attempt at a time, and the run ends, waits and reports as it does in one process.

use std::time::Duration;

use agentgraph::prelude::*;
use agentgraph::{Code, EventKind, View};
use futures_util::StreamExt;

use super::far::Far;
use crate::common::clock::Clock;
use crate::common::words::{Words, WordsUpdate, text};

/// Fails twice, each time later.
async fn third_time(ctx: Ctx) -> Result<WordsUpdate> {
    match ctx.attempt() {
        1 | 2 => Err(format!("attempt {}", ctx.attempt()).into()),
        third => Ok(Words::update().seen([format!("attempt {third} of {}", ctx.task_id())])),
    }
}

fn build(attempts: u32, clock: &Clock) -> CompiledGraph<Words> {
    let policy = RetryPolicy::attempts(attempts).initial(Duration::from_secs(3));
    let graph = StateGraph::new().node("a", third_time.retry(policy)).edge(START, "a");
    graph.compile().unwrap().services(clock.clone())
}

#[tokio::test]
async fn the_run_waits_between_attempts_by_its_own_clock() {
    let (near, far, run) = (Clock::default(), Clock::default(), Clock::default());
    let outcome = build(3, &near).invoke(Words::update()).await.unwrap();
    let host = Far::of(build(3, &far));
    let hosted = build(3, &run).host(host.clone()).invoke(Words::update()).await.unwrap();
    let cut = |words: &Words| text(words).split(" of ").next().unwrap().to_owned();
    assert_eq!(
        (cut(outcome.output()), cut(hosted.output())),
        ("attempt 3".to_owned(), "attempt 3".to_owned())
    );
    assert_eq!(run.slept(), near.slept());
    assert_eq!(far.slept(), []);
    let calls = host.calls();
    assert_eq!(calls.iter().map(|call| call.attempt).collect::<Vec<_>>(), [1, 2, 3]);
    assert!(calls.iter().all(|call| call.task == calls[0].task));
    let again: Vec<_> = host.replies().iter().map(|reply| reply.again()).collect();
    assert_eq!(again, [Some((near.slept()[0], 2)), Some((near.slept()[1], 3)), None]);
}

#[tokio::test]
async fn the_last_failure_counts_its_attempts_and_the_stream_shows_each() {
    let mut found = Vec::new();
    for hosted in [false, true] {
        let clock = Clock::default();
        let graph = build(2, &clock);
        let graph = if hosted { graph.host(Far::of(build(2, &clock))) } else { graph };
        let mut events = graph.invoke(Words::update()).views([View::Tasks]).stream();
        let mut shown = Vec::new();
        while let Some(event) = events.next().await {
            // The error of the end has another source here than there.
            if !matches!(event.kind, EventKind::Ended(_)) {
                let attempt = event.task.map(|task| task.attempt);
                shown.push(format!("{} {attempt:?} {:?}", event.step, event.kind));
            }
        }
        let error = graph.invoke(Words::update()).await.unwrap_err();
        assert_eq!(error.code(), Code::NodeFailed);
        found.push((shown, error.to_string()));
    }
    assert!(found[0].0.iter().any(|event| event.contains("AttemptFailed")), "{:?}", found[0]);
    assert_eq!(found[0], found[1]);
}

#[tokio::test]
async fn a_reply_has_the_time_of_the_far_side() {
    let (far, run) = (Clock::default(), Clock::default());
    far.advance(Duration::from_secs(90));
    let host = Far::of(build(1, &far));
    build(1, &run).host(host.clone()).invoke(Words::update()).await.unwrap_err();
    assert_eq!(host.replies()[0].at(), std::time::UNIX_EPOCH + Duration::from_secs(90));
}

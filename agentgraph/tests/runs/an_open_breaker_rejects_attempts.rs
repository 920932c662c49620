//! A breaker opens after so many failures in a row, lets one attempt try after its pause, and closes when
//! that succeeds: compared with a model on random histories.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use agentgraph::policy::{Breaker, BreakerOpen};
use agentgraph::prelude::*;
use agentgraph::{BoxError, Code};
use proptest::prelude::*;
use serde::{Deserialize, Serialize};
use tokio::sync::Semaphore;

use crate::common::clock::Clock;
use crate::common::poll::poll_once;

#[derive(State, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
struct Trip {
    end: u8,
}

const FAILS: u8 = 1;
const ASKS: u8 = 2;

/// Ends as the state says.
async fn call(ctx: Ctx, trip: Snapshot<Trip>, calls: Dep<Arc<AtomicU32>>) -> Result<TripUpdate> {
    calls.fetch_add(1, Ordering::SeqCst);
    match trip.end {
        FAILS => Err(BoxError::from("down")),
        ASKS => {
            ctx.interrupt::<()>("?")?;
            Ok(Trip::update())
        }
        _ => Ok(Trip::update()),
    }
}

#[derive(Clone, Copy, Debug)]
enum Event {
    Waits(u64),
    Calls { end: u8, of_the_other_graph: bool },
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let event = prop_oneof![
        (0..150_u64).prop_map(Event::Waits),
        (prop_oneof![2 => Just(0), 4 => Just(FAILS), 1 => Just(ASKS)], any::<bool>())
            .prop_map(|(end, of_the_other_graph)| Event::Calls { end, of_the_other_graph }),
    ];
    prop::collection::vec(event, 1..40)
}

/// A reference model of a breaker, from its documentation.
struct Model {
    now: u64,
    failed_in_a_row: u32,
    open_until: Option<u64>,
}

impl Model {
    /// Whether a call is let through.
    fn call(&mut self, end: u8, failures: u32, pause: u64) -> bool {
        if self.open_until.is_some_and(|until| self.now < until) {
            return false;
        }
        match end {
            FAILS => {
                self.failed_in_a_row += 1;
                if self.open_until.is_some() || self.failed_in_a_row == failures {
                    (self.open_until, self.failed_in_a_row) = (Some(self.now + pause), 0);
                }
            }
            ASKS => {}
            _ => (self.open_until, self.failed_in_a_row) = (None, 0),
        }
        true
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn a_breaker_is_as_its_model(events in events(), failures in 1..4_u32, pause in 1..200_u64) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let (clock, calls) = (Clock::default(), Arc::new(AtomicU32::new(0)));
            let breaker = Breaker::new("service", failures, Duration::from_millis(pause));
            let graph = |eager: bool| {
                let graph = StateGraph::new().node("call", call.breaker(&breaker)).edge(START, "call");
                let graph = graph.dep(Arc::clone(&calls));
                let graph = if eager { graph.eager() } else { graph };
                graph.compile().unwrap().services(clock.clone()).checkpointer(MemorySaver::new())
            };
            let graphs = [graph(false), graph(true)];
            let mut model = Model { now: 0, failed_in_a_row: 0, open_until: None };
            for (at, event) in events.iter().enumerate() {
                match *event {
                    Event::Waits(milliseconds) => {
                        model.now += milliseconds;
                        clock.advance(Duration::from_millis(milliseconds));
                    }
                    Event::Calls { end, of_the_other_graph } => {
                        let before = calls.load(Ordering::SeqCst);
                        let graph = &graphs[usize::from(of_the_other_graph)];
                        let result = graph.invoke(Trip::update().end(end)).thread(format!("{at}")).await;
                        let is_called = calls.load(Ordering::SeqCst) > before;
                        assert_eq!(is_called, model.call(end, failures, pause), "event {at} of {events:?}");
                        let wanted = match (is_called, end) {
                            (false, _) => Some(Code::BreakerOpen),
                            (true, FAILS) => Some(Code::NodeFailed),
                            (true, _) => None,
                        };
                        assert_eq!(result.err().map(|error| error.code()), wanted);
                    }
                }
            }
        });
    }
}

/// Waits for a permit, and ends as the state says.
async fn end_late(late: Dep<Arc<Semaphore>>, trip: Snapshot<Trip>) -> Result<()> {
    late.acquire().await?.forget();
    if trip.end == FAILS { Err("down".into()) } else { Ok(()) }
}

#[tokio::test]
async fn one_attempt_tries_and_the_next_one_if_it_is_dropped() {
    let (clock, late) = (Clock::default(), Arc::new(Semaphore::new(1)));
    let breaker = Breaker::new("service", 1, Duration::from_secs(10));
    let graph = StateGraph::new().node("a", end_late.breaker(&breaker)).edge(START, "a");
    let graph = graph.dep(Arc::clone(&late)).compile().unwrap().services(clock.clone());
    let run = || Box::pin(graph.invoke(Trip::update().end(FAILS)).into_future());

    assert_eq!(run().await.unwrap_err().code(), Code::NodeFailed);
    let refused = run().await.unwrap_err();
    let open = std::error::Error::source(&refused).unwrap().downcast_ref::<BreakerOpen>().unwrap().clone();
    assert_eq!((&*open.name, open.wait), ("service", Duration::from_secs(10)));

    clock.advance(Duration::from_secs(10));
    let mut tries = run();
    assert!(poll_once(&mut tries).is_pending());
    assert_eq!(run().await.unwrap_err().code(), Code::BreakerOpen, "another one tries");
    drop(tries);
    let mut tries = run();
    assert!(poll_once(&mut tries).is_pending(), "the dropped one said nothing");
    late.add_permits(1);
    assert_eq!(tries.await.unwrap_err().code(), Code::NodeFailed);
    assert_eq!(run().await.unwrap_err().code(), Code::BreakerOpen, "open for a further pause");
}

#[tokio::test]
async fn attempts_from_before_it_opened_decide_nothing() {
    let (clock, late) = (Clock::default(), Arc::new(Semaphore::new(0)));
    let breaker = Breaker::new("service", 2, Duration::from_secs(10));
    let graph = StateGraph::new().node("a", end_late.breaker(&breaker)).edge(START, "a");
    let graph = graph.dep(Arc::clone(&late)).compile().unwrap().services(clock.clone());
    let run = |end| Box::pin(graph.invoke(Trip::update().end(end)).into_future());
    let mut all = [run(FAILS), run(FAILS), run(FAILS), run(0)];
    for one in &mut all {
        assert!(poll_once(one).is_pending());
    }
    late.add_permits(2);
    let [one, two, three, four] = all;
    let (one, two) = tokio::join!(one, two);
    assert_eq!([one, two].map(|end| end.unwrap_err().code()), [Code::NodeFailed; 2]);
    clock.advance(Duration::from_secs(9));
    late.add_permits(2);
    assert!(three.await.is_err() && four.await.is_ok());
    late.add_permits(1);
    assert_eq!(run(0).await.unwrap_err().code(), Code::BreakerOpen, "the late success closed it");
    clock.advance(Duration::from_secs(1));
    assert!(run(0).await.is_ok(), "the late failure began a further pause");
}

#[tokio::test]
async fn a_retry_waits_until_an_attempt_may_try() {
    let (clock, calls) = (Clock::default(), Arc::new(AtomicU32::new(0)));
    let breaker = Breaker::new("service", 1, Duration::from_secs(3));
    let second =
        RetryPolicy::attempts(9).initial(Duration::from_secs(1)).factor(1.0).max(Duration::from_secs(1));
    let graph = StateGraph::new().node("a", call.breaker(&breaker).retry(second)).edge(START, "a");
    let graph = graph.dep(Arc::clone(&calls)).compile().unwrap().services(clock.clone());
    assert!(graph.invoke(Trip::update().end(FAILS)).await.is_err());
    // The attempts at 0, 3 and 6 seconds; the others were refused.
    assert_eq!(calls.load(Ordering::SeqCst), 3);
}

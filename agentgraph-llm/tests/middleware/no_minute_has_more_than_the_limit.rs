//! A limiter that models and agents share keeps its limit in every window of a minute, in the order of
//! arrival, and never waits longer than it must.

use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use agentgraph_llm::middleware::{RateLimitedModel, RateLimiter};
use agentgraph_llm::*;
use proptest::prelude::*;

use crate::support::{TestClock, block_on, events};

const MINUTE: Duration = Duration::from_secs(60);

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn for_requests_and_tokens_of_many_tasks(
        requests in 1_u64..6,
        tokens in 10_u64..60,
        asks in prop::collection::vec(1_u64..10, 1..30),
    ) {
        let clock = TestClock::new();
        let limiter =
            RateLimiter::new().clock(clock.clone()).requests_per_minute(requests).tokens_per_minute(tokens);
        let granted: Arc<Mutex<Vec<(SystemTime, usize, u64)>>> = Arc::default();
        block_on(async {
            let tasks = asks.iter().enumerate().map(|(number, amount)| {
                let (limiter, clock, granted) = (limiter.clone(), clock.clone(), granted.clone());
                let amount = *amount;
                async move {
                    let _permit = limiter.acquire(amount).await.unwrap();
                    granted.lock().unwrap().push((clock.now(), number, amount));
                }
            });
            futures_util::future::join_all(tasks).await;
        });
        let granted = granted.lock().unwrap();
        prop_assert!(granted.iter().map(|(_, number, _)| *number).eq(0..asks.len()), "in order");
        for (start, ..) in granted.iter() {
            let window = || granted.iter().filter(|(at, ..)| at >= start && *at < *start + MINUTE);
            prop_assert!(window().count() as u64 <= requests);
            prop_assert!(window().map(|(_, _, amount)| amount).sum::<u64>() <= tokens);
        }
    }
}

fn usage(tokens: u64) -> Reply {
    Reply::text("ok").with_usage(Usage::new(tokens, 0))
}

#[tokio::test]
async fn what_a_response_used_more_than_estimated_counts() {
    let clock = TestClock::new();
    let limiter = RateLimiter::new().clock(clock.clone()).tokens_per_minute(1000);
    let model = RateLimitedModel::new(ScriptedModel::new([usage(990), usage(1)]), limiter.clone());
    model
        .chat(ChatRequest::user("a request of more than ten tokens, or so an estimate of it must say"))
        .await
        .unwrap();
    assert!(clock.waits().is_empty());
    model
        .chat(ChatRequest::user("a request of more than ten tokens, or so an estimate of it must say"))
        .await
        .unwrap();
    assert_eq!(clock.waits(), [MINUTE]);
}

#[tokio::test]
async fn a_provider_that_has_nothing_left_is_asked_after_its_reset() {
    let clock = TestClock::new();
    let limiter = RateLimiter::new().clock(clock.clone());
    let mut response = ChatResponse::new(Message::assistant("ok"), StopReason::EndTurn);
    let quota =
        |remaining, seconds| Some(Quota::new(None, Some(remaining), Some(Duration::from_secs(seconds))));
    response.limits = Some(RateLimits::new(quota(0, 7), quota(1_000_000, 3)));
    let model: Arc<dyn ChatModel> =
        Arc::new(ScriptedModel::new([Reply::response(response), Reply::text("ok")]));
    for _ in 0..2 {
        events(&limiter, Arc::clone(&model), ChatRequest::user("hi")).await;
    }
    assert_eq!(clock.waits(), [Duration::from_secs(7)]);
}

#[tokio::test]
async fn a_dropped_request_does_not_hold_up_the_next() {
    let clock = TestClock::new();
    let limiter = RateLimiter::new().clock(clock.clone()).requests_per_minute(1);
    let _first = limiter.acquire(0).await.unwrap();
    let mut waiting = Box::pin(limiter.acquire(0));
    assert!(futures_util::poll!(&mut waiting).is_pending());
    drop(waiting);
    clock.pass(MINUTE);
    let waits = clock.waits().len();
    let _next = limiter.acquire(0).await.unwrap();
    assert_eq!(clock.waits().len(), waits);
}

//! `#[reduce(sum)]`, `min` and `max` give what a plain fold over all writes gives, in task order, as
//! LangGraph's `BinaryOperatorAggregate` does with `operator.add`, `min` and `max`; and a sum that its type
//! cannot hold is an error that changes nothing.

use agentgraph::checkpoint::delta::DeltaWriter;
use agentgraph::prelude::*;
use agentgraph::state::StoredState;
use agentgraph::{Code, MemorySaver};
use proptest::collection::vec;
use proptest::prelude::*;
use serde::{Deserialize, Serialize};

use crate::common::poll::at_most;

#[derive(State, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
struct Bill {
    #[reduce(sum)]
    cents: u8,
    #[reduce(sum)]
    balance: i8,
    #[reduce(sum)]
    weight: f64,
    #[reduce(max)]
    risk: f64,
    #[reduce(min)]
    cheapest: Option<f64>,
    #[reduce(max)]
    latest: Option<i16>,
    #[reduce(min)]
    first: i16,
    #[reduce(append)]
    route: Vec<u8>,
    #[reduce(sum)]
    #[channel(secret)]
    salary: u8,
}

/// A number, or something that is none, or has no end.
fn number() -> impl Strategy<Value = f64> {
    prop_oneof![
        6 => -4.0..4.0_f64,
        1 => Just(f64::NAN),
        1 => Just(f64::INFINITY),
        1 => Just(f64::NEG_INFINITY),
        1 => Just(-0.0),
    ]
}

/// The fold of Python's `max`, over the numbers that have an order.
fn greatest(numbers: impl Iterator<Item = f64>) -> Option<f64> {
    numbers.filter(|number| !number.is_nan()).fold(None, |max: Option<f64>, number| match max {
        Some(max) if number <= max => Some(max),
        _ => Some(number),
    })
}

proptest! {
    /// The writes are divided into updates, which makes no difference.
    #[test]
    fn sums_are_checked_folds(start in any::<i8>(), updates in vec(vec(-90..90_i8, 0..4), 0..4)) {
        let expected = updates.iter().flatten().try_fold(start, |sum, more| sum.checked_add(*more));
        let mut state = Bill { balance: start, ..Bill::default() };
        let mut applied = Ok(());
        for update in &updates {
            let before = state.clone();
            let update = update.iter().fold(Bill::update().route([1]), |update, more| update.balance(*more));
            applied = state.apply(&(), update);
            if applied.is_err() {
                prop_assert_eq!(&state, &before, "nothing of the update was applied");
                break;
            }
        }
        prop_assert_eq!(applied.ok().map(|()| state.balance), expected);
    }

    #[test]
    fn floating_sums_are_added_in_order(start in number(), writes in vec(number(), 0..6)) {
        let expected = writes.iter().fold(start, |sum, more| sum + more);
        let mut state = Bill { weight: start, ..Bill::default() };
        state.apply(&(), writes.iter().fold(Bill::update(), |update, more| update.weight(*more))).unwrap();
        prop_assert_eq!(state.weight.to_bits(), expected.to_bits());
    }

    /// The order of the writes, and their division into updates, make no difference.
    #[test]
    fn extremes_are_those_of_all_values(start in number(), writes in vec(number(), 0..6), cut in 0..7_usize) {
        let mut state = Bill { risk: start, ..Bill::default() };
        let (first, second) = writes.split_at(cut.min(writes.len()));
        for part in [second, first] {
            let update = part.iter().fold(Bill::update(), |update, one| update.risk(*one).cheapest(*one));
            state.apply(&(), update).unwrap();
        }
        let risk = greatest(std::iter::once(start).chain(writes.iter().copied()));
        prop_assert_eq!(Some(state.risk).filter(|risk| !risk.is_nan()), risk);
        prop_assert_eq!(
            state.cheapest.filter(|one| !one.is_nan()),
            greatest(writes.iter().map(|one| -one)).map(|one| -one)
        );
    }

    /// What is stored is the outcome: one value for a field, whatever was written.
    #[test]
    fn a_record_needs_no_reducer_to_be_read(writes in vec(0..40_u8, 1..6)) {
        let mut delta = DeltaWriter::new(Bill::channels(&()).len());
        delta.begin(Default::default());
        let update = writes.iter().fold(Bill::update(), |update, one| update.cents(*one).latest(i16::from(*one)));
        let mut state = Bill::default();
        state.apply_recorded(&(), update, &mut delta).unwrap();
        let mut folded = agentgraph::checkpoint::fold::Folded::default();
        folded.apply(delta.bytes(), None).unwrap();
        let mut read = Bill::default();
        for at in [0, 5] {
            let agentgraph::checkpoint::fold::Value::Bytes(bytes) = folded.value(at).unwrap() else {
                panic!("a whole value");
            };
            read.restore_channel(&(), at, &bytes).unwrap();
        }
        prop_assert_eq!((read.cents, read.latest), (state.cents, state.latest));
    }
}

#[test]
fn a_minimum_begins_with_nothing_and_keeps_the_first_of_equals() {
    let mut state = Bill::default();
    state.apply(&(), Bill::update().cheapest(None).latest(None)).unwrap();
    assert_eq!((state.cheapest, state.latest), (None, None));
    state
        .apply(&(), Bill::update().cheapest(0.0).cheapest(-0.0).cheapest(None).latest(-3).latest(None))
        .unwrap();
    assert!(state.cheapest.unwrap().is_sign_positive(), "an equal write changes nothing");
    assert_eq!(state.latest, Some(-3));
    state.apply(&(), Bill::update().first(3).first(-2)).unwrap();
    assert_eq!(state.first, -2, "without an option the default counts");
    state.apply(&(), Bill::update().overwrite_first(7).overwrite_cheapest(Some(9.5))).unwrap();
    assert_eq!((state.first, state.cheapest), (7, Some(9.5)));
}

#[test]
fn an_overwriting_value_is_added_to_when_updates_become_one() {
    let composed = |base: u8, later: u8| {
        let mut update = Bill::update().overwrite_cents(base);
        Bill::compose(&(), &mut update, Bill::update().cents(later)).map(|()| {
            let mut state = Bill { cents: 99, ..Bill::default() };
            state.apply(&(), update).unwrap();
            state.cents
        })
    };
    assert_eq!(composed(3, 4).unwrap(), 7);
    assert!(composed(255, 1).unwrap_err().to_string().contains("`cents`"));
}

async fn tea() -> BillUpdate {
    tokio::task::yield_now().await;
    Bill::update().cents(100).risk(0.2).cheapest(3.5).latest(2)
}

async fn cake() -> BillUpdate {
    Bill::update().cents(120).risk(0.7).cheapest(4.5).latest(1)
}

fn order() -> StateGraph<Bill> {
    StateGraph::new().node("tea", tea).node("cake", cake).edge(START, "tea").edge(START, "cake")
}

#[tokio::test]
async fn parallel_tasks_all_write() {
    let bill =
        order().compile().unwrap().invoke(Bill::update().cents(5)).await.unwrap().into_finished().unwrap();
    assert_eq!((bill.cents, bill.risk, bill.cheapest, bill.latest), (225, 0.7, Some(3.5), Some(2)));
}

#[tokio::test]
async fn a_sum_beyond_its_type_is_an_error_that_names_the_field_and_the_node() {
    let graph = order().compile().unwrap().checkpointer(MemorySaver::new());
    let error = graph.invoke(Bill::update().cents(36)).thread("t").await.unwrap_err();
    assert_eq!((error.code(), error.node()), (Code::BadValue, Some("cake")), "{error}");
    assert!(error.message().starts_with("channel `cents`: the sum is more than `u8` can hold"), "{error}");
    let kept = graph.state("t").await.unwrap().unwrap();
    assert_eq!((kept.values.cents, kept.values.route.len()), (156, 0), "`cake` was stored while `tea` ran");

    graph.update_state("t").update(Bill::update().overwrite_cents(35)).await.unwrap();
    let bill = graph.proceed().thread("t").await.unwrap().into_finished().unwrap();
    assert_eq!(bill.cents, 255, "the edited run goes on");
}

/// Results of finished tasks that do not fit together do not make the thread unreadable.
#[tokio::test]
async fn a_thread_whose_results_do_not_fit_can_be_read_and_edited() {
    let graph = StateGraph::new()
        .node("tea", tea)
        .node("cake", cake)
        .node("slow", async || -> BillUpdate { std::future::pending().await })
        .edge(START, "tea")
        .edge(START, "cake")
        .edge(START, "slow")
        .compile()
        .unwrap()
        .checkpointer(MemorySaver::new());
    let call = graph.invoke(Bill::update().cents(100)).thread("t").into_future();
    assert!(at_most(call, 20).await.is_none());
    let kept = graph.state("t").await.unwrap().unwrap();
    assert_eq!((kept.values.cents, kept.values.latest), (200, Some(2)), "the input and `tea`");
    graph.update_state("t").update(Bill::update().overwrite_cents(5)).await.unwrap();
    assert_eq!(graph.state("t").await.unwrap().unwrap().values.cents, 225);
}

#[tokio::test]
async fn an_input_that_does_not_fit_is_refused_without_its_value() {
    let graph = order().compile().unwrap();
    let error = graph.invoke(Bill::update().salary(199).salary(98)).await.unwrap_err();
    assert_eq!(error.code(), Code::BadValue);
    assert!(!format!("{error} {error:?}").contains("98"), "{error:?}");
}

/// The router of a parallel task sees the sum with its own task's write, and none of its sibling's.
#[tokio::test]
async fn a_route_reads_the_sum_of_its_own_task() {
    let graph = order()
        .node("end", async |bill: Snapshot<Bill>| Bill::update().route([bill.cents]))
        .branch(
            "tea",
            |bill: &Bill| if bill.cents == 101 && bill.cheapest == Some(3.5) { "end" } else { END },
            ["end", END],
        )
        .compile()
        .unwrap();
    let bill = graph.invoke(Bill::update().cents(1)).await.unwrap().into_finished().unwrap();
    assert_eq!((bill.route, bill.cents), (vec![221], 221));
}

/// A call that is dropped at any poll, and continued by another, adds every write exactly once.
#[tokio::test]
async fn a_dropped_run_adds_no_write_twice() {
    async fn step(bill: Snapshot<Bill>) -> BillUpdate {
        tokio::task::yield_now().await;
        Bill::update().cents(10).balance(-3).latest(i16::from(bill.cents)).cheapest(f64::from(bill.cents))
    }
    let graph = || {
        let graph = StateGraph::new().node("a", step).node("b", step).node("c", step).edge(START, "a");
        graph.edge("a", "b").edge("a", "c").edge("b", "c").compile().unwrap()
    };
    let whole = graph().invoke(Bill::update().cents(1)).await.unwrap().into_finished().unwrap();
    assert_eq!((whole.cents, whole.balance), (41, -12));
    for polls in 1..16 {
        let graph = graph().checkpointer(MemorySaver::new());
        let first = at_most(graph.invoke(Bill::update().cents(1)).thread("t").into_future(), polls).await;
        let outcome = match first {
            Some(outcome) => outcome,
            None if graph.state("t").await.unwrap().is_none() => continue,
            None => graph.proceed().thread("t").await,
        };
        assert_eq!(outcome.unwrap().into_finished().unwrap(), whole, "dropped after {polls} polls");
    }
}

#[tokio::test]
async fn a_subgraph_passes_its_sums_on_once() {
    let inner = order().compile().unwrap();
    let outer = StateGraph::new().node("inner", inner).edge(START, "inner").compile().unwrap();
    let bill = outer.invoke(Bill::update().cents(5).cheapest(4.0)).await.unwrap().into_finished().unwrap();
    assert_eq!((bill.cents, bill.cheapest), (225, Some(3.5)));
}

#[test]
fn the_kinds_are_part_of_the_fingerprint() {
    let kinds: Vec<&str> = Bill::channels(&()).iter().map(|channel| &*channel.reducer).collect();
    assert_eq!(kinds, ["sum", "sum", "sum", "max", "min", "max", "min", "append", "sum"]);
    assert!(Bill::channels(&()).iter().all(|channel| !channel.exclusive));
}

//! The reducers of a JSON state give the values of the typed ones, and the same bytes in checkpoints. A write
//! that does not fit is an error and changes nothing.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use agentgraph::Code;
use agentgraph::checkpoint::delta::DeltaWriter;
use agentgraph::json_state::{JsonChannels, JsonReducer, JsonUpdate};
use agentgraph::prelude::*;
use agentgraph::state::{StateError, StoredState};
use proptest::collection::vec;
use proptest::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::common::poll::at_most;

#[derive(Serialize, Deserialize, Clone, Debug, PartialEq)]
struct Task {
    done: bool,
    id: String,
}

impl Keyed for Task {
    fn key(&self) -> Cow<'_, str> {
        Cow::Borrowed(&self.id)
    }
}

fn longer(value: &mut String, write: String) {
    if write.len() > value.len() {
        *value = write;
    }
}

#[derive(State, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
struct Typed {
    #[reduce(last)]
    last: i64,
    #[reduce(append)]
    log: Vec<i64>,
    #[reduce(merge)]
    table: BTreeMap<String, i64>,
    #[reduce(by_id)]
    tasks: Vec<Task>,
    #[reduce(sum)]
    total: i64,
    #[reduce(min)]
    least: Option<i64>,
    #[reduce(max)]
    most: Option<i64>,
    #[reduce(max)]
    latest: String,
    #[reduce(with = longer)]
    title: String,
}

fn json_longer(value: &mut Value, write: Value) -> Result<()> {
    let text = write.as_str().ok_or("a title is a text")?;
    if text.len() > value.as_str().unwrap_or_default().len() {
        *value = write;
    }
    Ok(())
}

fn channels() -> JsonChannels {
    JsonChannels::new()
        .channel("last", json!(0), JsonReducer::Last)
        .channel("log", json!([]), JsonReducer::Append)
        .channel("table", json!({}), JsonReducer::Merge)
        .channel("tasks", json!([]), JsonReducer::by_id())
        .channel("total", json!(0), JsonReducer::Sum)
        .channel("least", json!(null), JsonReducer::Min)
        .channel("most", json!(null), JsonReducer::Max)
        .channel("latest", json!(""), JsonReducer::Max)
        .channel("title", json!(""), JsonReducer::with("longer", json_longer))
}

#[derive(Clone, Debug)]
enum Write {
    Last(i64),
    Log(Vec<i64>),
    Table(String, i64),
    Tasks(Vec<Task>),
    RemoveTasks(Vec<String>),
    Total(i64),
    Least(Option<i64>),
    Most(Option<i64>),
    Latest(String),
    Title(String),
    OverwriteLog(Vec<i64>),
    OverwriteTasks(Vec<Task>),
    OverwriteTotal(i64),
}

fn word() -> impl Strategy<Value = String> {
    "[a-c]{0,2}"
}

/// Keys that differ in their length, before their last eight bytes, or in these.
fn key() -> impl Strategy<Value = String> {
    prop_oneof![word(), "(task|mask)-000000[12]", "[ab]?-000000"]
}

fn task() -> impl Strategy<Value = Task> {
    (any::<bool>(), key()).prop_map(|(done, id)| Task { done, id })
}

fn number() -> impl Strategy<Value = i64> {
    prop_oneof![-5..5_i64, Just(i64::MAX / 2), Just(i64::MIN / 2)]
}

fn write() -> impl Strategy<Value = Write> {
    prop_oneof![
        number().prop_map(Write::Last),
        vec(number(), 0..3).prop_map(Write::Log),
        (word(), number()).prop_map(|(key, value)| Write::Table(key, value)),
        vec(task(), 0..3).prop_map(Write::Tasks),
        vec(key(), 0..3).prop_map(Write::RemoveTasks),
        (-9..9_i64).prop_map(Write::Total),
        any::<Option<i64>>().prop_map(Write::Least),
        any::<Option<i64>>().prop_map(Write::Most),
        word().prop_map(Write::Latest),
        word().prop_map(Write::Title),
        vec(number(), 0..3).prop_map(Write::OverwriteLog),
        vec(task(), 0..4).prop_map(Write::OverwriteTasks),
        number().prop_map(Write::OverwriteTotal),
    ]
}

fn typed(write: Write) -> TypedUpdate {
    let update = Typed::update();
    match write {
        Write::Last(value) => update.last(value),
        Write::Log(items) => update.log(items),
        Write::Table(key, value) => update.table([(key, value)]),
        Write::Tasks(items) => update.tasks(items),
        Write::RemoveTasks(keys) => update.remove_tasks(keys),
        Write::Total(more) => update.total(more),
        Write::Least(value) => update.least(value),
        Write::Most(value) => update.most(value),
        Write::Latest(value) => update.latest(value),
        Write::Title(value) => update.title(value),
        Write::OverwriteLog(items) => update.overwrite_log(items),
        Write::OverwriteTasks(items) => update.overwrite_tasks(items),
        Write::OverwriteTotal(value) => update.overwrite_total(value),
    }
}

fn untyped(write: Write) -> JsonUpdate {
    with(JsonUpdate::new(), write)
}

fn with(update: JsonUpdate, write: Write) -> JsonUpdate {
    match write {
        Write::Last(value) => update.set("last", value),
        Write::Log(items) => update.set("log", items),
        Write::Table(key, value) => update.set("table", json!({ key: value })),
        Write::Tasks(items) => update.set_as("tasks", &items).unwrap(),
        Write::RemoveTasks(keys) => update.remove("tasks", keys),
        Write::Total(more) => update.set("total", more),
        Write::Least(value) => update.set("least", value),
        Write::Most(value) => update.set("most", value),
        Write::Latest(value) => update.set("latest", value),
        Write::Title(value) => update.set("title", value),
        Write::OverwriteLog(items) => update.overwrite("log", items),
        Write::OverwriteTasks(items) => update.overwrite("tasks", json!(items)),
        Write::OverwriteTotal(value) => update.overwrite("total", value),
    }
}

proptest! {
    #[test]
    fn values_and_stored_bytes_are_those_of_the_typed_reducers(writes in vec(write(), 0..12)) {
        let channels = channels();
        let mut typed_state = Typed::default();
        let mut json_state = JsonState::initial(&channels);
        for write in writes {
            let mut deltas = [DeltaWriter::new(9), DeltaWriter::new(9)];
            deltas.iter_mut().for_each(|delta| delta.begin(Default::default()));
            typed_state.apply_recorded(&(), typed(write.clone()), &mut deltas[0]).unwrap();
            json_state.apply_recorded(&channels, untyped(write.clone()), &mut deltas[1]).unwrap();
            prop_assert_eq!(json_state.to_value(), serde_json::to_value(&typed_state).unwrap());
            prop_assert_eq!(deltas[0].bytes(), deltas[1].bytes(), "{:?}", write);
        }
        for channel in 0..9 {
            let mut deltas = [DeltaWriter::new(9), DeltaWriter::new(9)];
            deltas.iter_mut().for_each(|delta| delta.begin(Default::default()));
            typed_state.record_channel(&(), channel, &mut deltas[0]).unwrap();
            json_state.record_channel(&channels, channel, &mut deltas[1]).unwrap();
            prop_assert_eq!(deltas[0].bytes(), deltas[1].bytes(), "the whole of {}", channel);
        }
    }

    #[test]
    fn a_look_composing_and_encoding_change_nothing(updates in vec(vec(write(), 0..4), 0..4)) {
        check_composed(updates)?;
    }
}

/// Composes the updates, each of which holds its writes as a node makes them. The whole does what the writes
/// do one after the other.
fn check_composed(updates: Vec<Vec<Write>>) -> Result<(), TestCaseError> {
    let channels = channels();
    let (mut composed, mut expected) = (JsonUpdate::new(), JsonState::initial(&channels));
    for writes in updates {
        JsonState::compose(&channels, &mut composed, writes.iter().cloned().fold(JsonUpdate::new(), with))
            .unwrap();
        for write in writes {
            expected.apply(&channels, untyped(write)).unwrap();
        }
    }
    let bytes = JsonState::encode_update(&channels, &composed).unwrap();
    prop_assert_eq!(&JsonState::decode_update(&channels, &bytes).unwrap(), &composed);

    let mut state = JsonState::initial(&channels);
    let seen = state.peek(&channels, &mut composed, JsonState::clone).unwrap();
    prop_assert_eq!(&state, &JsonState::initial(&channels));
    prop_assert_eq!(&seen, &expected);
    state.apply(&channels, composed).unwrap();
    prop_assert_eq!(state, expected);
    Ok(())
}

#[test]
fn an_overwrite_composes_with_a_later_write_as_it_would_be_applied_before_it() {
    let a = || Task { done: true, id: "a".to_owned() };
    let remove = || Write::RemoveTasks(vec!["a".to_owned()]);
    let twice_in_one_overwrite = vec![vec![Write::OverwriteTasks(vec![a(), a()])], vec![remove()]];
    check_composed(twice_in_one_overwrite).unwrap();
    let removed_before =
        vec![vec![Write::OverwriteTasks(vec![a()]), remove()], vec![Write::Tasks(vec![a()])]];
    check_composed(removed_before).unwrap();
}

#[test]
fn a_write_that_does_not_fit_is_an_error_and_changes_nothing() {
    let channels = channels().channel("ratio", json!(0.5), JsonReducer::Sum);
    let cases = [
        (JsonUpdate::new().set("total", "3"), "only a number can be added to it"),
        (JsonUpdate::new().set("table", 3), "only an object can be merged into it"),
        (
            JsonUpdate::new().set("tasks", json!({ "name": "a" })),
            "each of its items needs a text in `id`, which is its id",
        ),
        (
            JsonUpdate::new().set("tasks", json!([{ "id": "a" }, 3])),
            "each of its items needs a text in `id`, which is its id",
        ),
        (JsonUpdate::new().set("latest", 3), "a number cannot be compared with a text"),
        (JsonUpdate::new().set("least", true), "a truth value cannot be compared with null"),
        (JsonUpdate::new().set("title", 3), "a title is a text"),
        (
            JsonUpdate::new().remove("log", ["a"]),
            "its reducer is `append`, and only items of `by_id` can be removed",
        ),
        (
            JsonUpdate::new().overwrite("total", "3"),
            "the overwriting value: it is a text, and `sum` needs a number, such as `0`",
        ),
        (
            JsonUpdate::new().overwrite("tasks", json!([3])),
            "each of its items needs a text in `id`, which is its id",
        ),
    ];
    for (update, expected) in cases {
        let mut state = JsonState::initial(&channels);
        let error = state.apply(&channels, update).unwrap_err();
        assert!(matches!(&error, StateError::BadValue { problem, .. } if problem == expected), "{error}");
        assert_eq!(state, JsonState::initial(&channels));
    }
}

#[test]
fn sums_stay_whole_and_end_at_the_numbers_of_json() {
    let channels = channels();
    let sum = |start: Value, more: Value| {
        let mut state = JsonState::initial(&channels);
        let update = JsonUpdate::new().overwrite("total", start);
        state.apply(&channels, update).unwrap();
        state.apply(&channels, JsonUpdate::new().set("total", more)).map(|()| state["total"].clone())
    };
    assert_eq!(sum(json!(i64::MAX), json!(1)).unwrap(), json!(i64::MAX as u64 + 1));
    assert_eq!(sum(json!(u64::MAX), json!(-1)).unwrap(), json!(u64::MAX - 1));
    assert_eq!(sum(json!(1), json!(0.5)).unwrap(), json!(1.5));
    for (start, more) in
        [(json!(u64::MAX), json!(1)), (json!(i64::MIN), json!(-1)), (json!(f64::MAX), json!(f64::MAX))]
    {
        let error = sum(start, more).unwrap_err();
        assert!(error.to_string().contains("the sum is more than a JSON number can hold"), "{error}");
    }
}

#[tokio::test]
async fn parallel_nodes_write_sums_and_items_and_clashes_speak_of_keys() {
    let node = |update: JsonUpdate| move || std::future::ready(update.clone());
    let graph = |one: JsonUpdate, other: JsonUpdate| {
        let channels = channels().channel("once", json!(null), JsonReducer::Once);
        let graph =
            StateGraph::<JsonState>::with_schema(channels).node("a", node(one)).node("b", node(other));
        graph.edge(START, "a").edge(START, "b").compile().unwrap()
    };
    let one = JsonUpdate::new().set("total", 2).set("tasks", json!({ "id": "x", "by": "a" })).set("least", 4);
    let other =
        JsonUpdate::new().set("total", 3).set("tasks", json!({ "id": "x", "by": "b" })).set("least", 1.5);
    let state = graph(one, other).invoke(JsonUpdate::new()).await.unwrap().into_finished().unwrap();
    assert_eq!((&state["total"], &state["least"]), (&json!(5), &json!(1.5)));
    assert_eq!(state["tasks"], json!([{ "id": "x", "by": "b" }]));

    let once = JsonUpdate::new().set("once", 1);
    let error = graph(once.clone(), once).invoke(JsonUpdate::new()).await.unwrap_err();
    assert_eq!(error.code(), Code::ConcurrentUpdate);
    assert!(error.message().contains("give the key another reducer, such as `JsonReducer::Last`"), "{error}");
    assert!(!error.message().contains("#["), "{error}");
}

/// Dropped at any poll, and continued in a graph made from the same file, a thread holds every write once.
#[tokio::test]
async fn a_dropped_run_continues_with_items_and_sums() {
    async fn work(ctx: Ctx, state: Snapshot<JsonState>) -> Result<JsonUpdate> {
        tokio::task::yield_now().await;
        let done = state.get_as::<Vec<Task>>("tasks")?.len();
        let task = Task { done: true, id: ctx.node().to_owned() };
        let update = JsonUpdate::new().set_as("tasks", &task)?.set("total", done as u64 + 1);
        Ok(if done == 2 { update.remove("tasks", ["a"]) } else { update })
    }
    let file = serde_json::to_string(&channels()).unwrap();
    let graph = || {
        let functions = agentgraph::json_state::JsonFunctions::new().with("longer", json_longer);
        let channels: JsonChannels = serde_json::from_str(&file).unwrap();
        let channels = channels.with_functions(&functions).unwrap();
        let graph =
            StateGraph::<JsonState>::with_schema(channels).node("a", work).node("b", work).node("c", work);
        graph.edge(START, "a").edge("a", "b").edge("b", "c").compile().unwrap()
    };
    let whole = graph().invoke(JsonUpdate::new()).await.unwrap().into_finished().unwrap();
    assert_eq!((&whole["total"], &whole["tasks"][0]["id"]), (&json!(6), &json!("b")));
    for polls in 1..14 {
        let saver = Arc::new(MemorySaver::new());
        let first = graph().checkpointer(Arc::clone(&saver));
        let first = at_most(first.invoke(JsonUpdate::new()).thread("t").into_future(), polls).await;
        let second = graph().checkpointer(saver);
        let outcome = match first {
            Some(outcome) => outcome,
            None if second.state("t").await.unwrap().is_none() => continue,
            None => second.proceed().thread("t").await,
        };
        let state = outcome.unwrap().into_finished().unwrap();
        assert_eq!(state.to_value(), whole.to_value(), "dropped after {polls} polls");
    }
}

//! The channels of a JSON state are read from a file and written to one; `compile()` and serde refuse what is
//! wrong there, by key and with a remedy.

use agentgraph::graph::ProblemKind;
use agentgraph::json_state::{JsonChannels, JsonFunctions, JsonReducer};
use agentgraph::prelude::*;
use agentgraph::state::Lifetime;
use serde_json::{Value, json};

fn sets(value: &mut Value, write: Value) -> Result<()> {
    *value = write;
    Ok(())
}

fn all() -> JsonChannels {
    JsonChannels::new()
        .channel("once", json!({ "any": 1 }), JsonReducer::Once)
        .channel("last", json!(null), JsonReducer::Last)
        .with_lifetime("append", json!([1]), JsonReducer::Append, Lifetime::Run)
        .with_lifetime("merge", json!({}), JsonReducer::Merge, Lifetime::Ephemeral)
        .with_lifetime("sum", json!(0.5), JsonReducer::Sum, Lifetime::Untracked)
        .channel("min", json!(null), JsonReducer::Min)
        .channel("max", json!("a"), JsonReducer::Max)
        .channel("by_id", json!([{ "id": "a" }]), JsonReducer::by_id())
        .channel("by_name", json!([{ "name": "a" }]), JsonReducer::by_field("name"))
        .secret("with", json!(3), JsonReducer::with("sets", sets), Lifetime::Thread)
}

fn compiled(channels: JsonChannels) -> std::result::Result<String, Vec<String>> {
    async fn note() {}
    let graph =
        StateGraph::<JsonState>::with_schema(channels).node("note", note).edge(START, "note").compile();
    match graph {
        Ok(graph) => Ok(graph.fingerprint().to_owned()),
        Err(error) => Err(error.problems().iter().map(|problem| problem.kind.to_string()).collect()),
    }
}

#[test]
fn what_is_written_is_read_again() {
    let file = serde_json::to_string(&all()).unwrap();
    let read: JsonChannels = serde_json::from_str(&file).unwrap();
    assert_eq!(read, all());
    assert_eq!(serde_json::to_string(&read).unwrap(), file);
    let packed: JsonChannels = rmp_serde::from_slice(&rmp_serde::to_vec_named(&all()).unwrap()).unwrap();
    assert_eq!(packed, all());

    let read = read.with_functions(&JsonFunctions::new().with("sets", sets)).unwrap();
    assert_eq!(compiled(read).unwrap(), compiled(all()).unwrap());
}

#[test]
fn a_short_form_means_the_usual() {
    let file = json!([
        { "key": "question" },
        { "key": "log", "reducer": "append" },
        { "key": "table", "reducer": "merge" },
        { "key": "cost", "reducer": "sum" },
        { "key": "best", "reducer": "max" },
        { "key": "tasks", "reducer": { "by_id": "name" } },
        { "key": "plan", "initial": null, "lifetime": "run", "secret": true },
    ]);
    let read: JsonChannels = serde_json::from_value(file).unwrap();
    let expected = JsonChannels::new()
        .channel("question", json!(null), JsonReducer::Once)
        .channel("log", json!([]), JsonReducer::Append)
        .channel("table", json!({}), JsonReducer::Merge)
        .channel("cost", json!(0), JsonReducer::Sum)
        .channel("best", json!(null), JsonReducer::Max)
        .channel("tasks", json!([]), JsonReducer::by_field("name"))
        .secret("plan", json!(null), JsonReducer::Once, Lifetime::Run);
    assert_eq!(read, expected);
}

#[test]
fn a_wrong_file_is_refused_with_the_reason() {
    let cases = [
        (
            json!([{ "key": "a", "reducer": "appendd" }]),
            "there is no reducer `appendd`; did you mean `append`?",
        ),
        (
            json!([{ "key": "a", "reducer": "mean" }]),
            "there is no reducer `mean`: use one of once, last, append,",
        ),
        (json!([{ "key": "a", "reducer": { "by": "id" } }]), "a reducer is a word, `{\"by_id\": field}` or"),
        (json!([{ "key": "a", "reducer": 3 }]), "a reducer is a word"),
        (json!([{ "key": "" }]), "a key needs a name, and this one is empty"),
        (
            json!([{ "key": "a", "reducer": { "by_id": "" } }]),
            "a reducer `by_id` needs a name, and this one is empty",
        ),
        (
            json!([{ "key": "a", "reducer": { "with": "" } }]),
            "a reducer `with` needs a name, and this one is empty",
        ),
        (json!([{ "key": "a" }, { "key": "a" }]), "the key `a` is there twice"),
        (json!([{ "key": "a", "intial": 3 }]), "unknown field `intial`"),
        (json!([{ "key": "a", "lifetime": "year" }]), "unknown variant `year`"),
        (json!([{ "reducer": "sum" }]), "missing field `key`"),
        (json!({ "a": "sum" }), "expected a sequence"),
    ];
    for (file, expected) in cases {
        let error = serde_json::from_value::<JsonChannels>(file).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn an_unknown_function_is_an_error_that_names_key_and_function() {
    let read: JsonChannels =
        serde_json::from_value(json!([{ "key": "risk", "reducer": { "with": "keep_max" } }])).unwrap();
    let error = read.clone().with_functions(&JsonFunctions::new().with("keep_mx", sets)).unwrap_err();
    assert_eq!((&*error.key, &*error.name, error.nearest.as_deref()), ("risk", "keep_max", Some("keep_mx")));
    assert!(
        error
            .to_string()
            .starts_with("key `risk` is reduced by the function `keep_max`, which is not registered")
    );

    let problems = compiled(read.clone()).unwrap_err();
    assert_eq!(problems.len(), 1);
    assert!(
        problems[0]
            .starts_with("key `risk`: it is reduced by the function `keep_max`, which was read by name only")
    );

    let mut state = JsonState::initial(&read);
    let error = state.apply(&read, JsonUpdate::new().set("risk", 1)).unwrap_err();
    assert!(error.to_string().contains("the function `keep_max`, is not known"), "{error}");
}

#[test]
fn a_wrong_initial_value_is_a_problem_of_compile() {
    let wrong = JsonChannels::new()
        .channel("log", json!({}), JsonReducer::Append)
        .channel("table", json!([]), JsonReducer::Merge)
        .channel("cost", json!("0"), JsonReducer::Sum)
        .channel("best", json!(true), JsonReducer::Max)
        .channel("tasks", json!([{ "name": "a" }]), JsonReducer::by_id())
        .channel("twice", json!([{ "id": "a" }, { "id": "a" }]), JsonReducer::by_id())
        .secret("token", json!("hunter2"), JsonReducer::Sum, Lifetime::Run)
        .channel("", json!(0), JsonReducer::Sum)
        .channel("names", json!([]), JsonReducer::by_field(""))
        .channel("risk", json!(0), JsonReducer::with("", |_, _| Ok(())));
    let problems = compiled(wrong.clone()).unwrap_err();
    assert_eq!(
        problems,
        [
            "key `log`: the initial value is wrong: it is an object, and `append` needs an array, such as `[]`",
            "key `table`: the initial value is wrong: it is an array, and `merge` needs an object, such as `{}`",
            "key `cost`: the initial value is wrong: it is a text, and `sum` needs a number, such as `0`",
            "key `best`: the initial value is wrong: it is a truth value, and `max` needs a number, a text, or `null` for none yet",
            "key `tasks`: the initial value is wrong: each of its items needs a text in `id`, which is its id",
            "key `twice`: the initial value is wrong: two of its items have the same `id`",
            "key `token`: the initial value is wrong: it is a text, and `sum` needs a number, such as `0`",
            "key ``: a key needs a name, and this one is empty",
            "key `names`: its reducer `by_id` needs the name of a field, and this one is empty",
            "key `risk`: its reducer is a function, which needs a name, and this one is empty",
        ]
    );
    let graph = StateGraph::<JsonState>::with_schema(wrong);
    let error = graph.compile().map(drop).unwrap_err();
    let first =
        error.problems().iter().find(|problem| matches!(problem.kind, ProblemKind::BadKey { .. })).unwrap();
    assert!(first.place.unwrap().file().ends_with("files_name_the_channels_of_a_json_state.rs"));
}

#[test]
fn the_reducer_is_part_of_the_fingerprint_with_its_name_or_field() {
    let of = |reducer: JsonReducer, initial: Value| {
        compiled(JsonChannels::new().channel("a", initial, reducer)).unwrap()
    };
    let fingerprints = [
        of(JsonReducer::Once, json!(null)),
        of(JsonReducer::Min, json!(null)),
        of(JsonReducer::Max, json!(null)),
        of(JsonReducer::Sum, json!(0)),
        of(JsonReducer::by_id(), json!([])),
        of(JsonReducer::by_field("name"), json!([])),
        of(JsonReducer::with("sets", sets), json!(null)),
        of(JsonReducer::with("other", sets), json!(null)),
    ];
    for (at, fingerprint) in fingerprints.iter().enumerate() {
        assert!(!fingerprints[..at].contains(fingerprint));
    }
}

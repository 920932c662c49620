//! A program reads the writes of a JSON update, and typed values of a JSON state; `Debug` shows no value that
//! may be secret.

use agentgraph::json_state::{JsonChannels, JsonReducer, JsonUpdate, JsonWrite};
use agentgraph::prelude::*;
use agentgraph::state::{Lifetime, StateError};
use serde::{Deserialize, Serialize};
use serde_json::json;

#[derive(Serialize, Deserialize, Debug, PartialEq)]
struct Plan {
    steps: Vec<String>,
}

fn channels() -> JsonChannels {
    JsonChannels::new()
        .channel("plan", json!({ "steps": [] }), JsonReducer::Once)
        .channel("tasks", json!([]), JsonReducer::by_id())
        .secret("token", json!("hunter2"), JsonReducer::Once, Lifetime::Run)
}

fn update() -> JsonUpdate {
    JsonUpdate::new()
        .set_as("plan", &Plan { steps: vec!["ask".into()] })
        .unwrap()
        .overwrite("tasks", json!([]))
        .remove("tasks", ["a", "b"])
        .set("token", "hunter3")
        .set("nowhere", "hunter4")
}

#[test]
fn its_writes_are_read_in_order() {
    let update = update();
    let writes: Vec<_> = update.writes().collect();
    assert_eq!(writes[0], ("plan", JsonWrite::Set(&json!({ "steps": ["ask"] }))));
    assert_eq!(writes[1], ("tasks", JsonWrite::Overwrite(&json!([]))));
    assert_eq!(writes[2], ("tasks", JsonWrite::Remove(&["a".to_owned(), "b".to_owned()])));
    assert_eq!(writes[3], ("token", JsonWrite::Set(&json!("hunter3"))));
    assert_eq!(
        update.to_value(),
        json!([
            { "key": "plan", "set": { "steps": ["ask"] } },
            { "key": "tasks", "overwrite": [] },
            { "key": "tasks", "remove": ["a", "b"] },
            { "key": "token", "set": "hunter3" },
            { "key": "nowhere", "set": "hunter4" },
        ])
    );
    assert!(!update.is_empty() && JsonUpdate::new().is_empty());
}

#[test]
fn debug_shows_values_only_where_the_channels_allow_it() {
    let plain = format!("{:?}", update());
    assert_eq!(
        plain,
        r#"{"plan": set .., "tasks": overwrite .., "tasks": remove .., "token": set .., "nowhere": set ..}"#
    );
    let shown = format!("{:?}", update().shown(&channels()));
    let expected = r#"{"plan": set {"steps":["ask"]}, "tasks": overwrite [], "tasks": remove ["a","b"], "token": set [secret], "nowhere": set [secret]}"#;
    assert_eq!(shown, expected);
}

#[test]
fn typed_values_go_in_and_out() {
    let channels = channels();
    let mut state = JsonState::initial(&channels);
    let plan = Plan { steps: vec!["ask".into(), "wait".into()] };
    state.apply(&channels, JsonUpdate::new().set_as("plan", &plan).unwrap()).unwrap();
    assert_eq!(state.get_as::<Plan>("plan").unwrap(), plan);
    let steps = state.get_as::<std::collections::BTreeMap<&str, Vec<&str>>>("plan").unwrap();
    assert_eq!(steps["steps"], ["ask", "wait"], "texts can be borrowed");

    let wrong = state.get_as::<Vec<u8>>("plan").unwrap_err();
    assert!(matches!(&wrong, StateError::BadValue { channel, .. } if channel == "plan"), "{wrong}");
    let secret = state.get_as::<u8>("token").unwrap_err();
    assert!(!secret.to_string().contains("hunter"), "{secret}");
    assert_eq!(state.get_as::<String>("token").unwrap(), "hunter2", "the program itself may read it");
    assert!(
        matches!(state.get_as::<u8>("paln"), Err(StateError::UnknownChannel { nearest: Some(near), .. }) if near == "plan")
    );

    let no_json = std::collections::BTreeMap::from([(vec![1], 2)]);
    let refused = JsonUpdate::new().set_as("plan", &no_json).unwrap_err();
    assert!(matches!(refused, StateError::Encode { .. }), "{refused}");
}

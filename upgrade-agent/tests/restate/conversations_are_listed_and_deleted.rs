//! `threads` with `--restate`: the conversations of the server, which other processes began.

use serde_json::{Value, json};

use crate::shell::{create, finish};
use crate::stage::{Stage, events};

#[test]
#[ignore = "needs the server of Restate: `.ci/restate` fetches it and runs this test"]
fn by_their_names() {
    let stage = Stage::new();
    let _worker = stage.worker(&stage.upgrade.url, &[]);
    let threads = |args: &[&str]| finish(stage.caller(&[&["threads"], args].concat()), "");
    assert_eq!(threads(&[]).good().out(), "There are no conversations yet.\n");
    stage.ask("old plans", "hello");
    stage.ask("open", &create("Foo"));

    let listed = events(&threads(&["--json"]).good().out());
    let told: Vec<(&Value, &Value, &Value)> =
        listed.iter().map(|one| (&one["name"], &one["turns"], &one["pending"]["waits_for"])).collect();
    let (open, old) = (json!("open"), json!("old plans"));
    assert_eq!(told, [(&open, &json!(1), &json!("confirmation")), (&old, &json!(1), &Value::Null)]);
    assert_eq!((&listed[1]["first"], &listed[1]["unfinished"]), (&json!("hello"), &json!(false)));

    let resumed = finish(stage.caller(&["threads", "resume", "open"]), "yes\n").good().out();
    assert!(resumed.contains("Thread open, where we were:"), "{resumed}");
    assert!(resumed.contains("Experiment 'Foo' was created"), "{resumed}");

    let ran = threads(&["delete", "old plan"]);
    assert_eq!(ran.code(), 1);
    assert!(ran.err().contains("E_UNKNOWN_THREAD"), "{}", ran.err());
    assert!(ran.err().contains("did you mean old plans?"), "{}", ran.err());
    assert_eq!(threads(&["delete", "old plans"]).good().out(), "Thread old plans is deleted.\n");
    let left = events(&threads(&["--json"]).good().out());
    assert_eq!((left.len(), &left[0]["name"]), (1, &open));
    assert_eq!(stage.ask("old plans", "yes")["kind"], "clarification", "it begins anew");
}

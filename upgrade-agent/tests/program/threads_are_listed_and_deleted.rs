//! `threads` and `chat --json` of the real program.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::shell;

use serde_json::{Value, json};
use shell::{Folder, Simulator, agent, ask, create, embedded_experiments, finish, reply, run};

fn lines(text: &str) -> Vec<Value> {
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|why| panic!("{why}: {line}")))
        .collect()
}

/// Returns the names of the events, without the pieces of text.
fn kinds(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["event"].as_str().unwrap()).filter(|kind| *kind != "text").collect()
}

#[test]
fn a_list_shows_the_last_messages_and_open_questions() {
    let folder = Folder::new();
    assert_eq!(run(&folder, &["threads"], "").good().out(), "There are no conversations yet.\n");
    assert_eq!(run(&folder, &["threads", "--json"], "").good().out(), "");
    ask(&folder, &["--thread", "old"], "hello");
    ask(&folder, &["--thread", "open"], &create("Foo"));
    let out = run(&folder, &["threads"], "").good().out();
    let expected = "open   1 turn, just now\n    create experiment Foo in assign-prog";
    assert!(out.starts_with(expected) && out.ends_with("\nold   1 turn, just now\n    hello\n"), "{out}");
    assert!(out.contains("\n    waits for an answer: Create experiment 'Foo' in context"), "{out}");
    let listed = lines(&run(&folder, &["threads", "--json"], "").good().out());
    let fields: Vec<&String> = listed[0].as_object().unwrap().keys().collect();
    assert_eq!(fields, ["error", "first", "last", "name", "pending", "turns", "unfinished"]);
    assert_eq!(
        (&listed[0]["name"], &listed[0]["pending"]["waits_for"]),
        (&json!("open"), &json!("confirmation"))
    );
    assert_eq!(
        (&listed[1]["name"], &listed[1]["pending"], &listed[1]["turns"]),
        (&json!("old"), &Value::Null, &json!(1))
    );
    let last = listed[0]["last"].as_str().unwrap();
    assert!(last.len() == 20 && last.ends_with('Z'), "{last}");
}

#[test]
fn a_conversation_is_resumed_or_deleted_by_its_name() {
    let folder = Folder::new();
    ask(&folder, &["--thread", "plans"], &create("Foo"));
    let out = run(&folder, &["threads", "resume", "plans"], "yes\n").good().out();
    assert!(
        out.contains("Thread plans, where we were:") && out.contains("Experiment 'Foo' was created"),
        "{out}"
    );
    for command in ["resume", "delete"] {
        let ran = run(&folder, &["threads", command, "plan"], "");
        assert_eq!(ran.code(), 1);
        assert!(
            ran.err().contains("E_UNKNOWN_THREAD") && ran.err().contains("did you mean plans?"),
            "{}",
            ran.err()
        );
    }
    assert_eq!(run(&folder, &["threads", "delete", "plans"], "").good().out(), "Thread plans is deleted.\n");
    assert_eq!(run(&folder, &["threads", "--json"], "").good().out(), "");
    assert_eq!(embedded_experiments(&folder).len(), 1);
}

#[test]
fn the_current_conversation_can_be_deleted_and_starts_anew() {
    let folder = Folder::new();
    let script =
        format!("{}\n/delete default\nno\n/delete default\nyes\nyes\n/delete nobody\n", create("Foo"));
    let ran = run(&folder, &[], &script).good();
    let asked = "Delete thread default with all its messages? Answer yes or no.\nThread default is kept.\n";
    assert!(ran.out().contains(asked), "{}", ran.out());
    assert!(ran.out().contains("Thread default is deleted.\nThread default, a new one."), "{}", ran.out());
    assert!(ran.out().contains("I am not waiting for a yes or no"), "{}", ran.out());
    assert!(ran.err().contains("E_UNKNOWN_THREAD"), "{}", ran.err());
    assert!(embedded_experiments(&folder).is_empty());
}

#[test]
fn a_conversation_that_cannot_be_read_does_not_hide_the_others() {
    let folder = Folder::new();
    ask(&folder, &["--thread", "sound"], "hello");
    ask(&folder, &["--thread", "torn"], "hello");
    let file = rusqlite::Connection::open(folder.file("data").join("threads.db")).unwrap();
    let torn =
        "UPDATE checkpoint SET record = x'00' WHERE place = (SELECT id FROM place WHERE thread = 'torn')";
    assert!(file.execute(torn, []).unwrap() > 0);
    drop(file);
    let out = run(&folder, &["threads"], "").good().out();
    assert!(out.contains("sound   1 turn") && out.contains("torn\n    cannot be read: E_"), "{out}");
    let ran = run(&folder, &["ask", "hi", "--thread", "torn"], "");
    assert_eq!(ran.code(), 1);
    for part in ["E_CORRUPT_CHECKPOINT", "threads.db", "--thread", "threads delete torn"] {
        assert!(ran.err().contains(part), "{part:?} is not in {}", ran.err());
    }
    assert!(run(&folder, &["threads"], "").good().out().contains("torn"), "it is left as it is");
    let deleted = run(&folder, &["threads", "delete", "torn"], "").good().out();
    assert!(deleted.contains("Thread torn is deleted."), "{deleted}");
    let left = run(&folder, &["threads"], "").good().out();
    assert!(left.contains("sound   1 turn") && !left.contains("torn"), "{left}");
    assert!(reply(&ask(&folder, &["--thread", "torn"], "hello")).starts_with("Hello"));
}

#[test]
fn programs_chat_in_lines_of_json() {
    let folder = Folder::new();
    let script = format!(
        "{}\n\n{}\n{}\n",
        json!({ "text": create("Foo"), "thread": "other" }),
        json!({ "text": "yes", "thread": "other" }),
        "what is a payload?"
    );
    let ran = run(&folder, &["chat", "--json"], &script).good();
    let events = lines(&ran.out());
    let node = "node";
    assert_eq!(
        kinds(&events),
        ["ready", node, node, node, node, "turn", node, node, node, "turn", node, node, "turn"],
        "{events:#?}"
    );
    assert_eq!(
        events[0],
        json!({ "event": "ready", "thread": "default", "recovered": null, "pending": null, "suggested": [] })
    );
    let turns: Vec<&Value> = events.iter().filter(|event| event["event"] == "turn").collect();
    assert_eq!((&turns[0]["thread"], &turns[0]["kind"]), (&json!("other"), &json!("confirmation")));
    assert_eq!((&turns[1]["thread"], &turns[1]["kind"]), (&json!("other"), &json!("report")));
    assert_eq!(turns[2]["thread"], "default");
    let end = events.iter().rposition(|event| event["event"] == node).unwrap();
    let said: String = events[end..].iter().filter_map(|event| event["text"].as_str()).collect();
    assert_eq!(said, turns[2]["reply"].as_str().unwrap());
    assert_eq!(embedded_experiments(&folder).len(), 1);
}

#[test]
fn an_invalid_input_line_is_reported_and_the_chat_continues() {
    let folder = Folder::new();
    let script = "{\"txt\": \"hello\"}\n{\"text\": \"hi\", \"thread\": \" \"}\n{not json, so a text}\n";
    let ran = run(&folder, &["chat", "--json"], script);
    assert_eq!(ran.code(), 1);
    let events = lines(&ran.out());
    assert_eq!(events[1]["code"], "E_CHAT_LINE");
    assert!(events[1]["message"].as_str().unwrap().contains("`txt`"), "{events:?}");
    assert_eq!(events[2]["code"], "E_CHAT_LINE");
    assert_eq!(kinds(&events).last(), Some(&"turn"));
}

#[test]
fn an_open_question_is_in_the_first_event_and_survives_an_unreachable_server() {
    let folder = Folder::new();
    let simulator = Simulator::start(&folder);
    ask(&folder, &["--url", &simulator.url], &create("Foo"));
    let url = simulator.url.clone();
    drop(simulator);
    let ran = run(&folder, &["chat", "--json", "--url", &url], "yes\n");
    assert_eq!(ran.code(), 1);
    let events = lines(&ran.out());
    assert_eq!(
        (&events[0]["pending"]["waits_for"], &events[0]["suggested"][0]),
        (&json!("confirmation"), &json!("Yes"))
    );
    assert_eq!((&events[1]["event"], &events[1]["code"]), (&json!("error"), &json!("E_UPGRADE_CONNECT")));
    let open = lines(&run(&folder, &["threads", "--json"], "").good().out());
    assert_eq!(open[0]["pending"]["waits_for"], "confirmation");
}

#[cfg(unix)]
#[test]
fn the_data_folder_is_accessible_only_to_its_owner() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new();
    finish(agent(&folder, &[]), "hello\n").good();
    let mode = std::fs::metadata(folder.file("data")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
    assert!(
        !folder.file("data").join("server.db.in-use").exists(),
        "the note of the running program is removed"
    );
}

#[cfg(unix)]
#[test]
fn an_existing_data_folder_becomes_private_and_one_for_everybody_is_refused() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new();
    let data = folder.file("data");
    std::fs::create_dir(&data).unwrap();
    let set = |mode| std::fs::set_permissions(&data, std::fs::Permissions::from_mode(mode)).unwrap();
    set(0o755);
    run(&folder, &["ask", "hello"], "").good();
    assert_eq!(std::fs::metadata(&data).unwrap().permissions().mode() & 0o777, 0o700);
    set(0o1777);
    let refused = run(&folder, &["ask", "hello"], "");
    assert!(refused.code() == 1 && refused.err().contains("it is shared by all users"), "{}", refused.err());
}

#[cfg(unix)]
#[test]
fn stored_files_are_accessible_only_to_their_owner_even_in_an_open_folder() {
    use std::os::unix::fs::PermissionsExt;
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let set = |path: &std::path::Path, to: u32| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(to)).unwrap();
    };
    let folder = Folder::new();
    let data = folder.file("data");
    std::fs::create_dir(&data).unwrap();
    set(&data, 0o755);
    for older in [false, true] {
        ask(&folder, &[], "hello");
        let files: Vec<_> = std::fs::read_dir(&data).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert!(files.len() >= 2, "{files:?}");
        for file in files.iter().filter(|file| file.to_string_lossy().contains(".db")) {
            assert_eq!(mode(file), 0o600, "{}, {older}", file.display());
            // Earlier versions left the files with this mode.
            set(file, 0o644);
        }
    }
}

//! `--relay`: nodes and pieces of the reply reach the chat while the turn runs, and a lost relay costs no
//! reply.

use serde_json::Value;

use crate::shell::gate::{Gate, Hold};
use crate::shell::{Folder, Running, Simulator, agent, create, finish, run};
use crate::stage::{Stage, events};

const TOKEN: &str = "UPGRADE_AGENT_RELAY_TOKEN";

/// `upgrade-agent relay` as a process.
struct Relay {
    process: Running,
    url: String,
}

impl Relay {
    fn start(folder: &Folder, token: Option<&str>) -> Self {
        let mut command = agent(folder, &["relay", "--listen", "127.0.0.1:0"]);
        command.envs(token.map(|token| (TOKEN, token)));
        let mut process = Running::start(command);
        let url = process.line();
        assert!(url.starts_with("http://127.0.0.1:"), "{url}");
        Relay { process, url }
    }
}

/// The events without the words of replies: nodes, progress and turns.
fn outline(events: &[Value]) -> Vec<String> {
    let name = |event: &Value| format!("{} {}", event["event"], event["name"]);
    events.iter().filter(|event| event["event"] != "text").map(name).collect()
}

/// The texts of the pieces of each turn.
fn pieces(events: &[Value]) -> Vec<Vec<&str>> {
    let turns = events.split(|event| event["event"] == "turn");
    turns.map(|turn| turn.iter().filter_map(|event| event["text"].as_str()).collect()).collect()
}

fn replies(events: &[Value]) -> Vec<&str> {
    events.iter().filter_map(|event| event["reply"].as_str()).collect()
}

#[test]
#[ignore = "needs the server of Restate: `.ci/restate` fetches it and runs this test"]
fn as_in_one_process_and_without_a_relay_whole() {
    let stage = Stage::new();
    let relay = Relay::start(&stage.folder, None);
    let _worker = stage.worker(&stage.upgrade.url, &["--relay", &relay.url]);
    let script = format!("what is a payload?\n{}\nno\n", create("Foo"));
    let local = Folder::new();
    let upgrade = Simulator::start(&local);
    let here = events(&run(&local, &["--url", &upgrade.url, "chat", "--json"], &script).good().out());
    let chat = |thread: &str, more: &[&str]| {
        let args = [&["chat", "--json", "--thread", thread], more].concat();
        let ran = finish(stage.caller(&args), &script).good();
        (events(&ran.out()), ran.err())
    };

    let (there, err) = chat("streamed", &["--relay", &relay.url]);
    assert_eq!(err, "");
    assert_eq!((outline(&there), replies(&there)), (outline(&here), replies(&here)));
    assert_eq!(pieces(&there), pieces(&here));
    assert!(pieces(&there)[0].len() > 1, "{there:?}");

    let (whole, err) = chat("whole", &[]);
    assert_eq!(err, "");
    assert_eq!(outline(&whole), ["\"ready\" null", "\"turn\" null", "\"turn\" null", "\"turn\" null"]);
    assert_eq!(pieces(&whole).concat(), replies(&here));

    relay.process.kill();
    let (lost, err) = chat("lost", &["--relay", &relay.url]);
    assert!(err.contains("does not answer, so replies come whole"), "{err}");
    assert_eq!(replies(&lost), replies(&here));
}

#[test]
#[ignore = "needs the server of Restate: `.ci/restate` fetches it and runs this test"]
fn while_the_turn_runs_and_only_with_its_token() {
    let stage = Stage::new();
    let relay = Relay::start(&stage.folder, Some("a-secret-word"));
    let gate = Gate::before(&stage.upgrade.url, "POST /experiments ", Hold::Before);
    let args = [
        "worker",
        "--listen",
        "127.0.0.1:0",
        "--restate-admin",
        &stage.restate.admin,
        "--url",
        &gate.url,
        "--relay",
        &relay.url,
    ];
    let mut worker = agent(&stage.folder, &args);
    worker.env(TOKEN, "a-secret-word");
    let mut worker = Running::start(worker);
    assert!(worker.line().starts_with("http://127.0.0.1:"));

    let refused = finish(stage.caller(&["ask", "hello", "--relay", &relay.url]), "").good();
    assert!(refused.err().contains("it refuses the token in UPGRADE_AGENT_RELAY_TOKEN"), "{}", refused.err());
    assert!(refused.out().starts_with("Hello"), "{}", refused.out());

    let mut chat = stage.caller(&["chat", "--json", "--relay", &relay.url]);
    chat.env(TOKEN, "a-secret-word");
    let mut chat = Running::start(chat);
    chat.expect("\"ready\"");
    chat.say(&create("Foo"));
    chat.expect("\"event\":\"turn\"");
    chat.say("yes");
    gate.wait();
    // The server has not answered yet.
    chat.expect("\"name\":\"tool_executor\"");
    assert!(stage.upgrade.experiments().is_empty());
    gate.open();
    chat.expect("Experiment 'Foo' was created");
    assert_eq!(chat.end().0, 0);
}

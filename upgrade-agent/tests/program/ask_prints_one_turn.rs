//! `ask`, `graph`, `simulator` and `threads` of the real program, and their error messages.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::shell;

use std::io::{BufRead, BufReader};
use std::net::TcpListener;

use serde_json::{Value, json};
use shell::gate::{Gate, Hold};
use shell::{Folder, Simulator, agent, ask, create, embedded_experiments, finish, reply, run};
use upgrade_agent::client::{ExperimentState, UpgradeClient};

#[test]
fn a_turn_is_one_line_of_json_with_these_fields() {
    let folder = Folder::new();
    let turn = ask(&folder, &[], "What is A/B testing?");
    let fields: Vec<&String> = turn.as_object().unwrap().keys().collect();
    assert_eq!(
        fields,
        ["balance", "errors", "kind", "path", "pending", "recovered", "reply", "suggested", "thread"]
    );
    assert_eq!(
        (&turn["thread"], &turn["kind"], &turn["errors"]),
        (&json!("default"), &json!("answer"), &json!([]))
    );
    assert_eq!((&turn["pending"], &turn["recovered"]), (&Value::Null, &Value::Null));
    assert_eq!(turn["path"], json!(["conversation_analyzer", "response_generator"]));
}

#[test]
fn a_thread_continues_in_another_process() {
    let folder = Folder::new();
    let asked = ask(&folder, &["--thread", "t"], &create("Foo"));
    assert_eq!(
        (&asked["kind"], &asked["suggested"]),
        (&json!("confirmation"), &json!(["Yes", "No", "Modify"]))
    );
    assert_eq!(
        (&asked["pending"]["waits_for"], &asked["pending"]["action"]),
        (&json!("confirmation"), &json!("create_experiment"))
    );
    assert!(embedded_experiments(&folder).is_empty());
    let elsewhere = ask(&folder, &["--thread", "u"], "yes");
    assert_eq!(elsewhere["kind"], "clarification");
    let done = ask(&folder, &["--thread", "t"], "yes");
    assert!(reply(&done).contains("Experiment 'Foo' was created"), "{done}");
    let again = ask(&folder, &["--thread", "t"], "yes");
    assert_eq!(again["kind"], "clarification");
    assert_eq!(embedded_experiments(&folder).len(), 1);
}

#[test]
fn without_json_only_the_reply_is_printed() {
    let folder = Folder::new();
    let ran = run(&folder, &["ask", "what is a payload?"], "").good();
    assert!(ran.out().starts_with("A payload is data"), "{}", ran.out());
    assert!(ran.err().contains("The offline model answers"), "{}", ran.err());
}

#[test]
fn the_graph_is_drawn_without_a_server_a_model_or_a_folder() {
    let folder = Folder::new();
    for (form, begin) in [("text", " "), ("svg", "<svg"), ("mermaid", "flowchart")] {
        let out = run(&folder, &["graph", "--form", form], "").good().out();
        assert!(out.starts_with(begin) && out.contains("tool_executor") && out.contains("START"), "{out}");
    }
    let text = run(&folder, &["graph"], "").good().out();
    assert!(text.contains("┌") && text.contains("│ tool_executor │"), "{text}");
    assert!(!folder.file("data").exists());
}

#[test]
fn the_simulator_prints_its_address_first_and_answers() {
    let folder = Folder::new();
    let simulator = Simulator::start(&folder);
    let client = UpgradeClient::builder(&simulator.url).build().unwrap();
    let health = tokio::runtime::Runtime::new().unwrap().block_on(client.health()).unwrap();
    assert_eq!(health.version, "6.5.0");
    assert!(simulator.url.ends_with("/api"), "{}", simulator.url);
    let turn = ask(&folder, &["--url", &simulator.url], "which contexts are there?");
    assert!(reply(&turn).contains("assign-prog, mathstream"), "{turn}");
}

#[test]
fn the_agent_speaks_with_a_simulator_of_the_old_dialect() {
    let folder = Folder::new();
    let simulator = Simulator::with(&folder, &["--dialect", "6.2", "--seed", "7"]);
    for text in [&create("Foo"), "yes", "start Foo", "yes"] {
        ask(&folder, &["--url", &simulator.url], text);
    }
    let all = simulator.experiments();
    assert_eq!((all[0].name.as_str(), &all[0].state), ("Foo", &ExperimentState::Enrolling));
}

#[test]
fn the_simulator_serves_the_contexts_of_a_file() {
    let folder = Folder::new();
    let shop =
        json!({ "CONDITIONS": ["red"], "GROUP_TYPES": [], "EXP_POINTS": ["cart"], "EXP_IDS": ["button"] });
    let file = folder.file("contexts.json");
    std::fs::write(&file, json!({ "contextMetadata": { "shop": shop } }).to_string()).unwrap();
    let simulator = Simulator::with(&folder, &["--contexts", file.to_str().unwrap()]);
    let client = UpgradeClient::builder(&simulator.url).build().unwrap();
    let contexts = tokio::runtime::Runtime::new().unwrap().block_on(client.context_metadata()).unwrap();
    assert_eq!(contexts.names().collect::<Vec<_>>(), ["shop"]);
}

#[test]
fn the_help_of_the_simulator_shows_its_own_options_only() {
    let folder = Folder::new();
    let help = run(&folder, &["simulator", "--help"], "").good().out();
    for own in
        ["--port", "--dialect", "--data-file", "--contexts", "--seed", "--require-token", "--cors-origin"]
    {
        assert!(help.contains(own), "{own} is not in {help}");
    }
    for other in ["--url", "--model", "--thread", "--data-dir", "--confidence", "--color"] {
        assert!(!help.contains(other), "{other} is in {help}");
    }
    let whole = run(&folder, &["--help"], "").good().out();
    assert!(whole.contains("--model") && whole.contains("mostly ends in /api"), "{whole}");
}

/// The URL of the API is the first line of standard output. Standard error explains both URLs.
#[test]
fn the_simulator_prints_the_url_for_upgrades_own_clients_too() {
    let folder = Folder::new();
    let mut command = agent(&folder, &["simulator", "--port", "0", "--cors-origin", "127.0.0.1"]);
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let mut simulator = command.spawn().unwrap();
    let mut told = String::new();
    let mut beside = String::new();
    BufReader::new(simulator.stdout.take().unwrap()).read_line(&mut told).unwrap();
    BufReader::new(simulator.stderr.take().unwrap()).read_line(&mut beside).unwrap();
    simulator.kill().unwrap();
    simulator.wait().unwrap();
    let host = told.trim_end().strip_suffix("/api").unwrap();
    assert!(beside.contains("client libraries") && beside.trim_end().ends_with(host), "{told}{beside}");
}

#[test]
fn the_simulator_refuses_impossible_settings() {
    let folder = Folder::new();
    let empty = folder.file("empty.json");
    std::fs::write(&empty, "{}").unwrap();
    let cases = [
        (&["--contexts", empty.to_str().unwrap()][..], "has no `contextMetadata`"),
        (&["--contexts", "nowhere.json"], "E_CONFIG_FILE: nowhere.json"),
        (&["--seed", "1", "--data-file", "data.db"], "cannot be used with"),
        (&["--dialect", "7"], "there are 6.5 and 6.2"),
        (&["--require-token"], "E_CONFIG_VALUE: UPGRADE_TOKEN"),
        (&["--cors-origin", "*.example.org"], "name one host"),
    ];
    for (args, told) in cases {
        let ran = run(&folder, &[&["simulator", "--port", "0"], args].concat(), "");
        assert_eq!(ran.code(), 2, "{args:?}");
        assert!(ran.err().contains(told), "{}", ran.err());
    }
}

#[cfg(unix)]
#[test]
fn the_simulator_ends_on_sigint_and_sigterm() {
    for signal in ["-INT", "-TERM"] {
        let folder = Folder::new();
        let simulator = Simulator::start(&folder);
        let id = simulator.id().to_string();
        assert!(std::process::Command::new("kill").args([signal, &id]).status().unwrap().success());
        assert_eq!(simulator.wait(), 0, "{signal}");
    }
}

#[test]
fn a_taken_port_is_reported() {
    let folder = Folder::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let ran = run(&folder, &["simulator", "--port", &port], "");
    assert_eq!(ran.code(), 1);
    assert!(ran.err().contains("E_SERVER_BIND") && ran.err().contains(&port), "{}", ran.err());
}

#[test]
fn an_unreachable_server_is_reported_and_the_question_stays_open() {
    let folder = Folder::new();
    let simulator = Simulator::start(&folder);
    let nowhere = {
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        format!("http://{}/api", free.local_addr().unwrap())
    };
    ask(&folder, &["--url", &simulator.url], &create("Foo"));
    let ran = run(&folder, &["ask", "--json", "--url", &nowhere, "yes"], "");
    assert_eq!((ran.code(), ran.out().as_str()), (1, ""));
    assert!(
        ran.err().contains("E_UPGRADE_CONNECT") && ran.err().contains("check that the server runs"),
        "{}",
        ran.err()
    );
    assert!(ran.err().contains(&nowhere), "the URL that was tried is not in {}", ran.err());
    let done = ask(&folder, &["--url", &simulator.url], "yes");
    assert!(reply(&done).contains("was created"), "{done}");
    assert_eq!(simulator.experiments().len(), 1);
}

#[test]
fn an_invalid_or_foreign_address_is_reported() {
    let folder = Folder::new();
    let ran = run(&folder, &["ask", "hi", "--url", "localhost:3030"], "");
    assert_eq!(ran.code(), 2);
    assert!(ran.err().contains("E_UPGRADE_CONFIG"), "{}", ran.err());
    assert!(ran.err().contains("such as http://localhost:3030/api;"), "{}", ran.err());
    let simulator = Simulator::start(&folder);
    let wrong = simulator.url.replace("/api", "/other");
    let ran = run(&folder, &["ask", "hi", "--url", &wrong], "");
    assert_eq!(ran.code(), 1);
    assert!(ran.err().contains("E_UPGRADE_PROTOCOL") && ran.err().contains("/api"), "{}", ran.err());
    assert!(ran.err().contains(&wrong), "the URL that was tried is not in {}", ran.err());
}

#[test]
fn a_refused_login_is_reported_without_the_token() {
    let folder = Folder::new();
    let url = shell::gate::refusing();
    let mut command = agent(&folder, &["ask", "list the experiments", "--url", &url]);
    command.env("UPGRADE_TOKEN", "hunter2-token");
    let ran = finish(command, "");
    assert_eq!(ran.code(), 1);
    assert!(
        ran.out().contains("E_UPGRADE_AUTH") && ran.out().contains("give a valid token (UPGRADE_TOKEN)"),
        "{}",
        ran.out()
    );
    assert!(!format!("{}{}", ran.out(), ran.err()).contains("hunter2"));
}

#[test]
fn an_answer_waits_for_an_accepted_login() {
    let folder = Folder::new();
    let simulator = Simulator::start(&folder);
    ask(&folder, &["--url", &simulator.url], &create("Foo"));
    let refusing = shell::gate::refusing();
    let ran = run(&folder, &["ask", "--json", "--url", &refusing, "yes"], "");
    assert_eq!((ran.code(), ran.out().as_str()), (1, ""));
    assert!(
        ran.err().starts_with("E_UPGRADE_AUTH") && ran.err().contains("give a valid token"),
        "{}",
        ran.err()
    );
    let fed = run(&folder, &["chat", "--json", "--url", &refusing], "yes\n");
    assert!(fed.out().contains("\"code\":\"E_UPGRADE_AUTH\""), "{}", fed.out());
    let chat = run(&folder, &["--url", &refusing], "yes\n");
    assert!(chat.err().contains("Your answer was not given: the question is still open."), "{}", chat.err());
    let done = ask(&folder, &["--url", &simulator.url], "yes");
    assert!(reply(&done).contains("was created"), "{done}");
}

#[test]
fn settings_are_read_from_the_folder_and_unknown_ones_refused() {
    let folder = Folder::new();
    std::fs::create_dir_all(folder.file("data")).unwrap();
    let file = folder.file("data").join("upgrade-agent.json");
    std::fs::write(&file, r#"{"confidense": 0.9}"#).unwrap();
    let ran = run(&folder, &["ask", "hi"], "");
    assert_eq!(ran.code(), 2);
    assert!(
        ran.err().contains("E_CONFIG_FILE") && ran.err().contains("did you mean `confidence`?"),
        "{}",
        ran.err()
    );
    std::fs::write(&file, r#"{"confidence": 0.95}"#).unwrap();
    let turn = ask(&folder, &[], "list all experiments");
    assert_eq!(turn["kind"], "clarification", "{turn}");
    let turn = ask(&folder, &["--confidence", "0.5"], "list all experiments");
    assert_eq!(turn["kind"], "answer", "{turn}");
}

#[test]
fn invalid_commands_and_flags_are_refused() {
    let folder = Folder::new();
    for args in [
        &["ask"][..],
        &["asc", "hi"],
        &["ask", "hi", "--modle", "x"],
        &["simulator", "--port", "high"],
        &["--confidence", "2", "ask", "x"],
    ] {
        let ran = run(&folder, args, "");
        assert_eq!(ran.code(), 2, "{args:?}: {}", ran.err());
        assert!(!ran.err().is_empty());
    }
    let ran = run(&folder, &["ask", "  "], "");
    assert!(ran.code() == 1 && ran.err().contains("E_AGENT_EMPTY"), "{}", ran.err());
}

#[test]
fn a_foreign_file_of_threads_is_reported_and_not_changed() {
    let folder = Folder::new();
    std::fs::create_dir_all(folder.file("data")).unwrap();
    let file = folder.file("data").join("threads.db");
    std::fs::write(&file, "this is not a database, but my only copy of something").unwrap();
    for args in [&["ask", "hi"][..], &["threads"], &[]] {
        let ran = run(&folder, args, "hello\n");
        assert_eq!(ran.code(), 1, "{args:?}");
        for part in ["E_STORE", "threads.db", "move that file away", "choose another folder with --data-dir"]
        {
            assert!(ran.err().contains(part), "{part:?} is not in {}", ran.err());
        }
    }
    assert!(std::fs::read_to_string(&file).unwrap().starts_with("this is not a database"));
}

#[test]
fn a_damaged_file_of_threads_is_reported_and_not_changed() {
    let folder = Folder::new();
    ask(&folder, &[], "hello");
    let file = folder.file("data").join("threads.db");
    let mut bytes = std::fs::read(&file).unwrap();
    // The head is intact, so the file is a database; its tables are damaged.
    bytes[4096..].fill(0xAA);
    std::fs::write(&file, &bytes).unwrap();
    for args in [&["ask", "hi"][..], &["threads"], &["threads", "delete", "default"]] {
        let ran = run(&folder, args, "");
        assert_eq!(ran.code(), 1, "{args:?}");
        for part in ["E_STORE", "threads.db", "damaged", "restore a backup", "--data-dir"] {
            assert!(ran.err().contains(part), "{part:?} is not in {}", ran.err());
        }
    }
    assert!(std::fs::read(&file).unwrap() == bytes, "the file is unchanged");
}

#[test]
fn an_invalid_setting_is_reported_with_its_source() {
    let folder = Folder::new();
    let nowhere = folder.file("nowhere.json");
    let nowhere = nowhere.to_str().unwrap();
    for (variable, value, told) in [
        ("UPGRADE_AGENT_TEMPERATURE", "warm", "`warm` is not a number from 0 up"),
        ("UPGRADE_AGENT_CONFIDENCE", "2", "2 is out of range"),
        ("UPGRADE_AGENT_OFFLINE", "maybe", "`maybe` is neither true nor false"),
        ("UPGRADE_API_TIMEOUT", "0", "a time in seconds above 0"),
        ("UPGRADE_AGENT_MODEL_TIMEOUT", "-1", "a time in seconds above 0"),
        ("UPGRADE_CLIENT_KEY", "app", "needs UPGRADE_CLIENT_SECRET beside it"),
    ] {
        let mut command = agent(&folder, &["ask", "hi"]);
        command.env(variable, value);
        let ran = finish(command, "");
        assert_eq!((ran.code(), ran.out().as_str()), (2, ""), "{variable}: {}", ran.err());
        let begins = format!("E_CONFIG_VALUE: {variable}: ");
        assert!(ran.err().starts_with(&begins) && ran.err().contains(told), "{}", ran.err());
    }
    for (variable, value, told) in [
        ("UPGRADE_API_URL", "ftp://school.example", "must begin with http:// or https://"),
        ("UPGRADE_API_URL", "http://ada:hunter2@127.0.0.1/api", "must not carry a user name or password"),
        ("UPGRADE_AGENT_SERVICE_ACCOUNT", nowhere, nowhere),
    ] {
        let mut command = agent(&folder, &["ask", "hi"]);
        command.env("UPGRADE_API_URL", "http://127.0.0.1:9/api").env(variable, value);
        let ran = finish(command, "");
        assert_eq!((ran.code(), ran.out().as_str()), (2, ""), "{variable}: {}", ran.err());
        assert!(ran.err().starts_with("E_UPGRADE_CONFIG: ") && ran.err().contains(told), "{}", ran.err());
        assert!(!ran.err().contains("hunter2"), "{}", ran.err());
    }
}

#[test]
fn a_data_folder_that_cannot_be_created_is_reported() {
    let folder = Folder::new();
    std::fs::write(folder.file("data"), "a file stands in the way").unwrap();
    let ran = run(&folder, &["ask", "hi"], "");
    assert_eq!(ran.code(), 1);
    assert!(ran.err().contains("E_DATA_DIR") && ran.err().contains("--data-dir"), "{}", ran.err());
}

#[cfg(target_os = "linux")]
#[test]
fn a_read_only_data_folder_is_reported() {
    // No user can create files in this folder, not even root.
    let folder = Folder::new();
    for args in [&["ask", "hi"][..], &["threads"], &["chat", "--json"], &[]] {
        let mut command = agent(&folder, &[]);
        let program = command.get_program().to_owned();
        command = std::process::Command::new(program);
        command.env_clear().args(["--data-dir", "/proc/self"]).args(args);
        let ran = finish(command, "hello\n");
        assert_eq!((ran.code(), ran.out().as_str()), (1, ""), "{args:?}");
        let told = ran.err();
        assert!(told.starts_with("E_DATA_DIR: cannot use the data folder /proc/self: "), "{told}");
        assert!(told.contains("correct that or choose another with --data-dir"), "{told}");
    }
}

#[test]
fn two_programs_on_one_folder_are_distinguished() {
    let folder = Folder::new();
    let mut chat = shell::Running::start(agent(&folder, &[]));
    chat.expect("a new one.");
    let ran = run(&folder, &["ask", "hi"], "");
    assert_eq!(ran.code(), 1);
    let process = format!("process {}", chat.id());
    for part in ["E_SERVER_IN_USE", "server.db", &process, "--url http://127.0.0.1:", "--data-dir"] {
        assert!(ran.err().contains(part), "{part:?} is not in {}", ran.err());
    }
    chat.say("hello");
    chat.expect("Hello!");
}

#[test]
fn keys_are_never_printed() {
    let folder = Folder::new();
    let mut command = agent(&folder, &["ask", "hi"]);
    command
        .env("ANTHROPIC_API_KEY", "sk-hunter2")
        .env("ANTHROPIC_BASE_URL", "http://127.0.0.1:9")
        .env("RUST_LOG", "trace");
    command.env("UPGRADE_AGENT_MODEL_TIMEOUT", "2");
    let ran = finish(command, "");
    assert_eq!(ran.code(), 1, "{}", ran.out());
    assert!(!format!("{}{}", ran.out(), ran.err()).contains("hunter2"), "{}", ran.err());
    assert!(ran.out().contains("E_LLM_"), "{}", ran.out());
}

#[test]
fn the_settings_are_printed_with_their_sources_and_without_secrets() {
    let folder = Folder::new();
    let told = |args: &[&str]| {
        let mut command = agent(&folder, args);
        command
            .env("UPGRADE_TOKEN", "hunter2-token")
            .env("UPGRADE_CLIENT_KEY", "hunter2-key")
            .env("UPGRADE_CLIENT_SECRET", "hunter2-secret")
            .env("ANTHROPIC_BASE_URL", "https://ada:hunter2@proxy.example/v1?key=hunter2#hunter2")
            .env("ANTHROPIC_API_KEY", "sk-hunter2")
            .env("ANTHROPIC_MODEL_NAME", "claude-theirs");
        let ran = finish(command, "").good();
        assert!(!ran.out().contains("hunter2"), "{}", ran.out());
        ran
    };
    let out = told(&["config", "--confidence", "0.8"]).out();
    for line in [
        "url              the embedded server   (default)",
        "token            set, and not shown   (UPGRADE_TOKEN)",
        "model            claude-theirs   (ANTHROPIC_MODEL_NAME)",
        "confidence       0.8   (--confidence)",
        "client_key       set, and not shown   (UPGRADE_CLIENT_KEY)",
        "client_secret    set, and not shown   (UPGRADE_CLIENT_SECRET)",
    ] {
        assert!(out.contains(line), "{line:?} is not in:\n{out}");
    }
    let json = told(&["config", "--json"]).json();
    let model = json["settings"].as_array().unwrap().iter().find(|told| told["name"] == "model").unwrap();
    assert_eq!(
        *model,
        json!({ "name": "model", "value": "claude-theirs", "set": true, "from": "ANTHROPIC_MODEL_NAME" })
    );
    assert!(json["files"]["threads"].as_str().unwrap().ends_with("threads.db"));
    assert!(!folder.file("data").exists(), "no data folder is created");
}

#[test]
fn debug_asks_for_traces_on_standard_error() {
    let folder = Folder::new();
    let debugged = |value: &str| {
        let mut command = agent(&folder, &["ask", "hi", "--json"]);
        command.env("DEBUG", value);
        let ran = finish(command, "").good();
        assert_eq!(ran.json()["kind"], "answer");
        ran.err()
    };
    let traces = debugged("true");
    assert!(traces.contains("conversation_analyzer") && traces.contains("time.busy"), "{traces}");
    assert_eq!(debugged("false"), "");
    assert_eq!(debugged("express:*"), "", "the value of another program's variable is ignored");
}

/// Runs `ask` with an output that is not read. Returns the exit code and standard error.
#[cfg(target_os = "linux")]
fn ask_unread(folder: &Folder, args: &[&str], output: std::process::Stdio) -> (i32, String) {
    let ran = agent(folder, args).stdin(std::process::Stdio::null()).stdout(output).output().unwrap();
    (ran.status.code().unwrap(), String::from_utf8(ran.stderr).unwrap())
}

#[cfg(target_os = "linux")]
#[test]
fn a_yes_to_a_question_that_could_not_be_written_does_not_count() {
    let full = || std::fs::File::create("/dev/full").unwrap().into();
    let gone = || {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        writer.into()
    };
    let outputs: [(&[&str], &dyn Fn() -> std::process::Stdio); 3] =
        [(&[], &full), (&["--json"], &full), (&["--json"], &gone)];
    for (at, (more, output)) in outputs.into_iter().enumerate() {
        let folder = Folder::new();
        run(&folder, &["--thread", "made"], &format!("{}\nyes\n", create("Foo"))).good();
        let args: Vec<&str> = ["ask", "start Foo"].iter().chain(more).copied().collect();
        let (code, error) = ask_unread(&folder, &args, output());
        assert!(code == 1 && error.contains("E_OUTPUT: "), "{at}: {code}: {error}");
        let again = ask(&folder, &[], "ok");
        assert!(reply(&again).starts_with("My question may not have reached you before"), "{at}: {again}");
        assert_eq!(again["pending"]["action"], "update_experiment_status", "{at}: {again}");
        let done = ask(&folder, &[], "ok");
        assert_eq!(done["kind"], "report", "{at}: {done}");
        assert_eq!(embedded_experiments(&folder)[0].state, ExperimentState::Enrolling, "{at}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_no_to_a_question_that_could_not_be_written_counts() {
    let folder = Folder::new();
    let full = std::fs::File::create("/dev/full").unwrap();
    ask_unread(&folder, &["ask", &create("Foo")], full.into());
    assert!(reply(&ask(&folder, &[], "no")).contains("Nothing was changed"));
}

#[cfg(target_os = "linux")]
#[test]
fn a_chat_whose_replies_cannot_be_written_accepts_no_yes_and_ends() {
    for args in [&["chat"][..], &["chat", "--json"]] {
        let folder = Folder::new();
        let input = folder.file("lines");
        std::fs::write(&input, format!("{}\nyes\n", create("Foo"))).unwrap();
        let full = std::fs::File::create("/dev/full").unwrap();
        let input = std::fs::File::open(input).unwrap();
        let ran = agent(&folder, args).stdin(input).stdout(full).output().unwrap();
        let error = String::from_utf8(ran.stderr).unwrap();
        assert!(ran.status.code() == Some(1) && error.contains("E_OUTPUT: "), "{args:?}: {error}");
        assert!(embedded_experiments(&folder).is_empty(), "{args:?}");
    }
}

#[test]
fn a_question_that_was_shown_again_can_be_answered() {
    for chat in [&["chat"][..], &["chat", "--json"]] {
        let folder = Folder::new();
        let full = if cfg!(target_os = "linux") { "/dev/full" } else { "/dev/null" };
        let full = std::fs::File::create(full).unwrap();
        agent(&folder, &["ask", &create("Foo")]).stdout(full).output().unwrap();
        run(&folder, chat, "").good();
        assert!(reply(&ask(&folder, &[], "yes")).contains("was created"), "{chat:?}");
    }
}

#[test]
fn a_token_in_the_url_is_refused_and_never_printed() {
    for url in [
        "http://127.0.0.1:9/api?token=hunter2",
        "http://127.0.0.1:9/api#hunter2",
        "http://a:hunter2@127.0.0.1:9",
    ] {
        for command in [&["chat"][..], &["chat", "--json"], &["ask", "hi"]] {
            let folder = Folder::new();
            let args: Vec<&str> = ["--url", url].iter().chain(command).copied().collect();
            let ran = run(&folder, &args, "hello\n");
            assert!(ran.code() == 2 && ran.err().contains("E_UPGRADE_CONFIG"), "{url}: {}", ran.err());
            assert!(!format!("{}{}", ran.out(), ran.err()).contains("hunter2"), "{url}: {}", ran.err());
        }
        let folder = Folder::new();
        let shown = run(&folder, &["--url", url, "config"], "").good().out();
        assert!(shown.contains("http://") && shown.contains("***") && !shown.contains("hunter2"), "{shown}");
    }
}

#[test]
fn a_token_goes_over_plain_http_only_if_that_is_allowed() {
    let folder = Folder::new();
    let url = "http://upgrade.school.invalid/api";
    let asked = |allowed: &[&str]| {
        let args = [&["--url", url, "ask", "what can you do?"], allowed].concat();
        agent(&folder, &args).env("UPGRADE_TOKEN", "hunter2").output().unwrap()
    };
    let refused = asked(&[]);
    let told = String::from_utf8_lossy(&refused.stderr);
    assert!(refused.status.code() == Some(2) && told.contains("--allow-plain-http"), "{told}");
    let mut model = agent(&folder, &["ask", "hi"]);
    let model = model.env("ANTHROPIC_API_KEY", "hunter2").env("ANTHROPIC_BASE_URL", "http://gate.invalid");
    let refused = model.output().unwrap();
    let told = String::from_utf8_lossy(&refused.stderr);
    assert!(refused.status.code() == Some(2) && told.contains("E_LLM_CONFIG: "), "{told}");
    assert!(told.contains("allow this with --allow-plain-http") && !told.contains("hunter2"), "{told}");
    let allowed = asked(&["--allow-plain-http"]);
    let told = String::from_utf8_lossy(&allowed.stderr);
    assert!(allowed.status.code() == Some(1) && told.contains("E_UPGRADE_CONNECT"), "{told}");
}

#[test]
fn quick_answers_are_chosen_by_number() {
    let folder = Folder::new();
    let say = |text: &str| run(&folder, &["ask", text], "").good().out();
    assert!(say("create experiment Foo").ends_with("1) assign-prog   2) mathstream   3) Cancel\n"));
    assert!(say("1").contains("At which decision points"));
    say("3 4");
    assert!(say("5").contains("I will not create the experiment"));
    // Without an offer a number is a text. The word DELETE is typed.
    assert!(say("1").contains("did not understand '1'"));
    say(&create("Foo"));
    say("1");
    assert!(say("delete Foo").ends_with("(Cancel)\n"));
    assert!(say("1").contains("type the word DELETE"));
}

#[test]
fn one_call_of_the_server_takes_at_most_the_given_time() {
    let folder = Folder::new();
    let simulator = Simulator::start(&folder);
    let gate = Gate::before(&simulator.url, "GET /experiments", Hold::Before);
    let begin = std::time::Instant::now();
    let ran =
        run(&folder, &["ask", "--url", &gate.url, "--timeout", "2", "which experiments are there?"], "");
    // A second attempt would end after four seconds.
    assert!(begin.elapsed() < std::time::Duration::from_millis(3_900), "{:?}", begin.elapsed());
    assert!(ran.out().contains("E_UPGRADE_TIMEOUT"), "{}", ran.out());
}

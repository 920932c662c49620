//! The chat at a real pseudo-terminal: keys, colours, the status line, and characters that a terminal must
//! not receive.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::shell;

use std::os::unix::fs::PermissionsExt;

use shell::gate::{Gate, Hold};
use shell::terminal::{CTRL_C, CTRL_D, Terminal, UP};
use shell::{Folder, Simulator, agent, create, run};
use upgrade_agent::client::{ExperimentState, Mark, NewExperiment, NewUser, UpgradeClient};

const COLUMNS: u16 = 100;

/// Starts the chat and waits for its first prompt.
fn chat(folder: &Folder, args: &[&str]) -> Terminal {
    let mut terminal = Terminal::start(&agent(folder, args), COLUMNS);
    terminal.until_prompt();
    terminal
}

#[test]
fn lines_can_be_edited_and_are_remembered_between_sessions() {
    let folder = Folder::new();
    let mut first = chat(&folder, &[]);
    first.say("what is a paxload?\u{1b}[D\u{1b}[D\u{1b}[D\u{1b}[D\u{1b}[D\u{7f}y");
    first.until("A payload is data");
    first.until_prompt();
    first.say("my key is sk-ant-api03-hunter2");
    first.until_screen("a reply", |shown| shown.matches("\n>").count() == 3);
    first.until_prompt();
    first.keys(CTRL_D);
    assert_eq!(first.end(), 0);
    let file = folder.file("data").join("history.txt");
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let kept = std::fs::read_to_string(&file).unwrap();
    assert!(kept.contains("what is a payload?") && !kept.contains("hunter2"), "{kept}");

    let mut second = chat(&folder, &["--thread", "second"]);
    second.keys(UP);
    second.until("> what is a payload?");
    second.keys("\r");
    second.until("A payload is data");
}

#[test]
fn an_interrupt_clears_the_line_and_a_second_one_ends_the_chat() {
    let folder = Folder::new();
    let mut chat = chat(&folder, &[]);
    chat.keys("delete everything");
    chat.until("> delete everything");
    chat.keys(CTRL_C);
    chat.until("Ctrl-C again, Ctrl-D or /quit leaves.");
    chat.until_prompt();
    chat.say("hello");
    chat.until("Hello!");
    chat.until_prompt();
    chat.keys(CTRL_C);
    chat.until_screen("a second hint", |shown| shown.matches("Ctrl-C again").count() == 2);
    chat.until_prompt();
    chat.keys(CTRL_C);
    assert_eq!(chat.end(), 0);
    assert!(!chat.shown().contains("everything?"), "{}", chat.shown());
}

#[test]
fn an_interrupt_during_a_turn_stops_it_and_removes_its_status_line() {
    let folder = Folder::new();
    let simulator = Simulator::start(&folder);
    let gate = Gate::before(&simulator.url, "GET /experiments/contextMetaData", Hold::Before);
    let mut chat = chat(&folder, &["--url", &gate.url]);
    chat.say("which contexts are there?");
    gate.wait();
    chat.until("information_gatherer");
    chat.keys(CTRL_C);
    chat.until("Stopped.");
    chat.until_prompt();
    assert!(!chat.shown().contains("information_gatherer"), "{}", chat.shown());
    chat.say("hello");
    chat.until("had not ended; it has now:\nThere are 2 contexts");
    chat.until("Hello!");
}

#[test]
fn lines_typed_before_a_question_do_not_answer_it() {
    for kind in ["xterm-256color", "dumb"] {
        let folder = Folder::new();
        let simulator = Simulator::start(&folder);
        let url = ["--url", &simulator.url, "--thread", "made"];
        run(&folder, &url, &format!("{}\nyes\n", create("Foo"))).good();
        let gate = Gate::before(&simulator.url, "GET /experiments/single", Hold::Before);
        let mut command = agent(&folder, &["--url", &gate.url]);
        command.env("TERM", kind);
        let mut chat = Terminal::start(&command, COLUMNS);
        chat.until("a new one.");
        chat.until_screen("a prompt", |shown| kind == "dumb" || shown.trim_end_matches(' ').ends_with("\n>"));
        chat.say("start Foo");
        gate.wait();
        chat.say("ok");
        chat.until("ok");
        gate.open();
        chat.until("1) Yes   2) No   3) Modify");
        chat.until_screen("a prompt", |shown| kind == "dumb" || shown.trim_end_matches(' ').ends_with("\n>"));
        chat.say_until("no", "All right, I did not change experiment 'Foo' to enrolling.");
        assert_eq!(simulator.experiments().remove(0).state, ExperimentState::Inactive, "{kind}");
    }
}

#[test]
fn the_status_line_shows_the_running_node_and_is_removed_afterwards() {
    let folder = Folder::new();
    let simulator = Simulator::start(&folder);
    let gate = Gate::before(&simulator.url, "GET /experiments/contextMetaData", Hold::Before);
    let mut chat = chat(&folder, &["--url", &gate.url]);
    chat.say("which contexts are there?");
    gate.wait();
    for frame in ["⠙ information_gatherer", "⠹ information_gatherer"] {
        chat.until(frame);
    }
    gate.open();
    chat.until("There are 2 contexts");
    chat.until_prompt();
    let shown = chat.shown();
    assert!(
        !shown.contains("gatherer") && !shown.contains("generator") && !shown.contains("analyzer"),
        "{shown}"
    );
}

#[test]
fn only_a_terminal_gets_colours() {
    let folder = Folder::new();
    let is_coloured = |raw: &[u8]| String::from_utf8_lossy(raw).contains("\u{1b}[1;36m");
    let session = |name: &str, more: &[&str], env: &[(&str, &str)]| {
        let args: Vec<&str> = ["--thread", name].iter().chain(more).copied().collect();
        let mut command = agent(&folder, &args);
        command.envs(env.iter().copied());
        let mut chat = Terminal::start(&command, COLUMNS);
        chat.until_prompt();
        chat.say("create experiment Foo");
        chat.until("1) assign-prog");
        chat.until_prompt();
        chat.keys(CTRL_D);
        assert_eq!(chat.end(), 0);
        chat.raw.clone()
    };
    assert!(is_coloured(&session("a", &[], &[])));
    assert!(!is_coloured(&session("b", &[], &[("NO_COLOR", "1")])));
    assert!(!is_coloured(&session("c", &["--color", "never"], &[])));
    assert!(is_coloured(&session("d", &["--color", "always"], &[("NO_COLOR", "1")])));
    let piped = run(&folder, &["--thread", "e"], "create experiment Foo\n").good();
    assert!(!piped.out().contains('\u{1b}') && piped.out().contains("1) assign-prog"), "{}", piped.out());
    let forced = run(&folder, &["--thread", "f", "--color", "always"], "create experiment Foo\n").good();
    assert!(is_coloured(forced.out().as_bytes()) && !forced.out().contains("\u{1b}[K"), "{}", forced.out());
}

#[test]
fn a_dumb_terminal_gets_plain_lines() {
    let folder = Folder::new();
    let mut command = agent(&folder, &[]);
    command.env("TERM", "dumb");
    let mut chat = Terminal::start(&command, COLUMNS);
    chat.until("a new one.");
    chat.keys("hello\n");
    chat.until("Hello!");
    chat.keys("/quit\n");
    assert_eq!(chat.end(), 0);
    assert!(
        !String::from_utf8_lossy(&chat.raw).contains('\u{1b}'),
        "{:?}",
        String::from_utf8_lossy(&chat.raw)
    );
}

#[test]
fn lines_break_between_words_on_a_narrow_terminal() {
    let folder = Folder::new();
    let mut chat = Terminal::start(&agent(&folder, &[]), 30);
    chat.until_prompt();
    chat.say("what is a payload?");
    chat.until("A payload is data");
    chat.until_prompt();
    chat.say(&create("Foo"));
    chat.until("1) Yes   2) No   3) Modify");
    chat.until_prompt();
    chat.say("no");
    chat.until_screen("an end", |shown| shown.matches("\n>").count() == 4);
    chat.until_prompt();
    chat.say("create experiment Bar");
    chat.until("1) assign-prog\n2) mathstream\n3) Cancel");
    let shown = chat.shown();
    let reply = shown.split("A payload is data").nth(1).unwrap().split("\n\n").next().unwrap();
    let whole = run(&folder, &["ask", "what is a payload?", "--thread", "other"], "");
    // The folder is in use, so the second program needs its own.
    assert_ne!(whole.code(), 0);
    let elsewhere = Folder::new();
    let whole = run(&elsewhere, &["ask", "what is a payload?"], "").good().out();
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(words(&format!("A payload is data{reply}")), words(&whole));
}

#[test]
fn control_characters_in_names_are_shown_and_not_obeyed() {
    const EVIL: &str = "Evil \u{1b}[2J\u{1b}]0;owned\u{7}\u{9b}31m\u{202e}name";
    let folder = Folder::new();
    let simulator = Simulator::start(&folder);
    let client = UpgradeClient::builder(&simulator.url).build().unwrap();
    let evil = NewExperiment::new(EVIL, "assign-prog")
        .point("SelectSection", "absolute_value_plot_equality")
        .condition("control", 50.0)
        .condition("variant", 50.0)
        .include_all();
    tokio::runtime::Runtime::new().unwrap().block_on(client.create(&evil)).unwrap();
    let mut chat = chat(&folder, &["--url", &simulator.url]);
    chat.say("list the experiments");
    chat.until("Evil");
    chat.until("31m\\u{202e}name");
    chat.until_prompt();
    assert!(
        chat.shown().contains("The offline model answers"),
        "the screen was not cleared: {}",
        chat.shown()
    );
    let raw = String::from_utf8_lossy(&chat.raw).into_owned();
    for bad in ["\u{1b}[2J", "\u{1b}]0;", "\u{7}", "\u{9b}", "\u{202e}"] {
        assert!(!raw.contains(bad), "{bad:?} came through");
    }
    let asked = run(&folder, &["--url", &simulator.url, "ask", "list the experiments", "--json"], "").good();
    assert!(asked.json()["reply"].as_str().unwrap().contains("\u{202e}"), "JSON contains the characters");
    assert!(
        !asked.out().contains(['\u{1b}', '\u{9b}', '\u{202e}']),
        "the output has no characters that a terminal obeys"
    );
}

/// Creates an enrolling experiment, and students who visited it.
fn visited(url: &str, students: usize) {
    const PLACE: (&str, &str) = ("SelectSection", "absolute_value_plot_equality");
    let client = UpgradeClient::builder(url).build().unwrap();
    let new = NewExperiment::new("Hints", "assign-prog")
        .point(PLACE.0, PLACE.1)
        .condition("control", 50.0)
        .condition("variant", 50.0)
        .include_all();
    let mark = Mark { condition_code: Some("control".to_owned()), ..Mark::new(PLACE.0, PLACE.1) };
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        let made = client.create(&new).await.unwrap();
        client.set_state(&made.id, &ExperimentState::Enrolling).await.unwrap();
        for student in 0..students {
            let student = format!("student-{student}");
            client.init_user(&NewUser::new(&student)).await.unwrap();
            client.mark(&student, &mark).await.unwrap();
        }
    });
}

#[test]
fn a_split_is_a_chart_at_a_terminal_and_numbers_elsewhere() {
    let folder = Folder::new();
    let simulator = Simulator::start(&folder);
    visited(&simulator.url, 10);
    let question = "how many students are enrolled in Hints?";
    let asked = ["--url", &simulator.url, "ask", question];
    let figures = run(&folder, &asked, "").good().out();
    let line = |code: &str| {
        let line = figures.lines().find(|line| line.starts_with(&format!("{code}: ")));
        line.unwrap_or_else(|| panic!("{code}: {figures}")).to_owned()
    };
    let control = line("control");
    let variant = line("variant");
    assert!(control.ends_with(" (expected 5.0)") && variant.ends_with(" (expected 5.0)"), "{figures}");
    assert!(!figures.contains(['█', '#']), "{figures}");

    let mut chat = chat(&folder, &["--url", &simulator.url]);
    chat.say(question);
    chat.until("(expected 5.0)");
    chat.until_prompt();
    let shown = chat.shown();
    for told in [control, variant] {
        let (code, figures) = told.split_once(": ").unwrap();
        let drawn = |line: &str| line.starts_with(code) && line.contains('│') && line.ends_with(figures);
        assert!(shown.lines().any(|line| drawn(line.trim_end())), "{told}:\n{shown}");
    }
    let json = run(&folder, &["--url", &simulator.url, "ask", "--json", question], "").good().json();
    assert_eq!(json["balance"]["users"], 10, "{json}");
}

#[test]
fn a_simulation_shows_its_progress_and_then_the_split() {
    let folder = Folder::new();
    let simulator = Simulator::start(&folder);
    visited(&simulator.url, 0);
    let test = "run a live balance test of Hints with 40 users";
    let mut chat = chat(&folder, &["--url", &simulator.url]);
    chat.say(test);
    chat.until("1) Yes   2) No");
    chat.until_prompt();
    chat.say("1");
    chat.until("(expected 20.0)");
    chat.until_prompt();
    let raw = String::from_utf8_lossy(&chat.raw).into_owned();
    assert!(raw.contains("█] 40/40") && raw.contains("░] 20/40"), "{raw:?}");
    assert!(!chat.shown().contains("/40"), "the bar is removed: {}", chat.shown());

    let script = format!("{test}\nyes\n");
    let piped = run(&folder, &["--url", &simulator.url, "--thread", "pipe"], &script).good().out();
    assert!(piped.contains("chi-square") && !piped.contains(['█', '░', '\r']), "{piped}");
}

#[test]
fn an_answer_to_an_open_question_waits_for_an_unreachable_server() {
    let folder = Folder::new();
    let simulator = Simulator::start(&folder);
    let mut chat = chat(&folder, &["--url", &simulator.url]);
    chat.say(&create("Foo"));
    chat.until("1) Yes   2) No   3) Modify");
    chat.until_prompt();
    drop(simulator);
    chat.say("1");
    chat.until("E_UPGRADE_CONNECT");
    chat.until("Your answer was not given: the question is still open.");
    chat.until_prompt();
    chat.say("/quit");
    assert_eq!(chat.end(), 0);
    let open = run(&folder, &["threads"], "").good().out();
    assert!(open.contains("waits for an answer: Create experiment 'Foo'"), "{open}");
}

#[test]
fn a_word_that_must_be_typed_cannot_be_chosen_by_a_number() {
    let folder = Folder::new();
    let simulator = Simulator::start(&folder);
    run(&folder, &["--url", &simulator.url, "--thread", "made"], &format!("{}\nyes\n", create("Foo"))).good();
    let mut chat = chat(&folder, &["--url", &simulator.url]);
    chat.say("delete Foo");
    chat.until("Type DELETE to do it, or cancel.");
    chat.until_prompt();
    let offers = |line: &str| line.trim_start().starts_with("1)");
    assert!(!chat.shown().lines().any(offers), "{}", chat.shown());
    for (times, pick) in ["1", "1)", "the first"].into_iter().enumerate() {
        chat.say(pick);
        chat.until_screen("the hint", |shown| {
            shown.matches("type the word DELETE in capitals").count() == times + 1
        });
        chat.until_prompt();
    }
    assert_eq!(simulator.experiments().len(), 1);
    chat.say("DELETE");
    chat.until("was deleted");
    assert!(simulator.experiments().is_empty());
}

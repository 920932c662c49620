//! The chat of the real program, through a pipe.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::shell;

use shell::{Folder, Running, Simulator, agent, ask, create, embedded_experiments, reply, run};

#[test]
fn a_fresh_folder_is_made_and_a_whole_session_runs_through_a_pipe() {
    let folder = Folder::new();
    let script = format!(
        "hello\n{}\nyes\ndelete experiment Foo\nyes\nDELETE\nlist the experiments\n/quit\n",
        create("Foo")
    );
    let ran = run(&folder, &[], &script).good();
    let out = ran.out();
    for text in [
        "The offline model answers",
        "Hello!",
        "Create experiment 'Foo' in context 'assign-prog'?",
        "Experiment 'Foo' was created",
        "PERMANENTLY DELETE experiment 'Foo'",
        "type the word DELETE in capitals",
        "Experiment 'Foo' was deleted",
        "There are no experiments yet",
    ] {
        assert!(out.contains(text), "{text:?} is not in:\n{out}");
    }
    assert!(!out.contains('\u{1b}'), "no colours in a pipe");
    assert!(
        !out.contains("conversation_analyzer") && ran.err().is_empty(),
        "no progress in a pipe: {}",
        ran.err()
    );
    assert!(embedded_experiments(&folder).is_empty());
}

#[test]
fn the_input_may_end_anywhere() {
    let folder = Folder::new();
    assert_eq!(run(&folder, &[], "").code(), 0);
    assert_eq!(run(&folder, &[], "hello").code(), 0);
    assert_eq!(run(&folder, &[], "\n\n  \n").code(), 0);
}

#[test]
fn quit_works_with_and_without_a_slash() {
    for word in ["/quit", "/exit", "quit", "exit"] {
        let ran = run(&Folder::new(), &[], &format!("hello\n{word}\nlist the contexts\n")).good();
        assert!(ran.out().contains("Hello!") && !ran.out().contains("mathstream"), "{word}: {}", ran.out());
    }
    let ran = run(&Folder::new(), &[], "quit the contexts\nlist the contexts\n").good();
    assert!(ran.out().contains("mathstream"), "a line with more words is a message: {}", ran.out());
}

#[test]
fn quick_answers_are_chosen_by_number() {
    let folder = Folder::new();
    let out = run(&folder, &[], "create experiment Foo\n1\n").good().out();
    assert!(out.contains("1) assign-prog   2) mathstream   3) Cancel"), "{out}");
    assert!(out.contains("At which decision points"), "{out}");
    let out = run(&folder, &["--thread", "other"], "create experiment Foo\n3\n99\n").good().out();
    assert!(out.contains("Nothing was changed"), "{out}");
}

#[test]
fn a_thread_continues_in_another_process() {
    let folder = Folder::new();
    run(&folder, &["--thread", "plans"], &format!("{}\n", create("Foo"))).good();
    let out = run(&folder, &["--thread", "plans"], "1\n").good().out();
    assert!(
        out.contains("Thread plans, where we were:") && out.contains("[you] create experiment Foo"),
        "{out}"
    );
    assert!(
        out.contains("That question is still open.") && out.contains("1) Yes   2) No   3) Modify"),
        "{out}"
    );
    assert!(out.contains("Experiment 'Foo' was created"), "{out}");
    assert_eq!(embedded_experiments(&folder).len(), 1);
}

#[test]
fn threads_are_listed_and_changed() {
    let folder = Folder::new();
    let out =
        run(&folder, &[], "/threads\nhello\n/thread second\nhello\n/threads\n/thread\n/nonsense\n/help\n")
            .good()
            .out();
    assert!(out.contains("There are no conversations yet."), "{out}");
    assert!(out.contains("Thread second, a new one."), "{out}");
    assert!(
        out.contains("1) second (this one)   1 turn, just now\n    hello\n2) default   1 turn, "),
        "{out}"
    );
    assert!(out.contains("There is no command /nonsense") && out.contains("/thread NAME"), "{out}");
}

#[test]
fn two_threads_do_not_mix() {
    let folder = Folder::new();
    let script = format!("{}\n/thread b\nyes\n/thread a\nyes\n", create("Foo"));
    let out = run(&folder, &["--thread", "a"], &script).good().out();
    assert!(out.contains("I am not waiting for a yes or no"), "{out}");
    assert!(out.contains("Experiment 'Foo' was created"), "{out}");
    assert_eq!(embedded_experiments(&folder).len(), 1);
}

#[test]
fn input_that_is_not_utf_8_is_read_as_far_as_possible() {
    let folder = Folder::new();
    let mut chat = Running::start(agent(&folder, &[]));
    chat.expect("a new one.");
    chat.say("what is \u{0} a condition?");
    chat.expect("one of the versions");
    chat.say("what is a condition? \u{1F980}");
    chat.expect("did not understand '\u{1F980}'");
    let (code, _) = chat.end();
    assert_eq!(code, 0);
}

#[cfg(unix)]
#[test]
fn an_interrupt_at_the_prompt_ends_the_chat() {
    let folder = Folder::new();
    let mut chat = Running::start(agent(&folder, &[]));
    chat.expect("a new one.");
    chat.say("create experiment Foo");
    // Quick answers are printed at the end of a turn.
    chat.expect("3) Cancel");
    interrupt(chat.id());
    assert_eq!(chat.wait(), 0);
}

#[cfg(unix)]
#[test]
fn an_interrupt_before_the_first_prompt_ends_the_chat() {
    let folder = Folder::new();
    let mut chat = Running::start(agent(&folder, &[]));
    chat.expect("The offline model answers");
    interrupt(chat.id());
    assert_eq!(chat.wait(), 0);
}

#[cfg(unix)]
#[test]
fn an_interrupt_during_a_turn_stops_only_the_turn() {
    use shell::gate::{Gate, Hold};
    let folder = Folder::new();
    let simulator = shell::Simulator::start(&folder);
    let gate = Gate::before(&simulator.url, "GET /experiments/contextMetaData", Hold::Before);
    let mut chat = Running::start(agent(&folder, &["--url", &gate.url]));
    chat.expect("a new one.");
    chat.say("which contexts are there?");
    gate.wait();
    interrupt(chat.id());
    chat.expect("Stopped.");
    chat.say("hello");
    chat.expect("had not ended; it has now:\nThere are 2 contexts");
    chat.expect("Hello!");
    assert_eq!(chat.end().0, 0);
}

#[cfg(unix)]
#[test]
fn a_yes_after_an_interrupt_does_not_answer_the_question_of_the_stopped_turn() {
    use shell::gate::{Gate, Hold};
    use upgrade_agent::client::ExperimentState;
    let folder = Folder::new();
    let simulator = shell::Simulator::start(&folder);
    run(&folder, &["--url", &simulator.url, "--thread", "made"], &format!("{}\nyes\n", create("Foo"))).good();
    let gate = Gate::before(&simulator.url, "GET /experiments/single", Hold::Before);
    let mut chat = Running::start(agent(&folder, &["--url", &gate.url]));
    chat.expect("a new one.");
    chat.say("start Foo");
    gate.wait();
    interrupt(chat.id());
    chat.expect("Stopped.");
    gate.open();
    chat.say("go ahead");
    let asked = chat.expect("I asked that after your message came in, so I have not taken it as a yes.");
    assert!(asked.contains("had not ended; it has now:\nChange experiment 'Foo' status"), "{asked}");
    chat.expect("1) Yes   2) No   3) Modify");
    assert_eq!(simulator.experiments().remove(0).state, ExperimentState::Inactive);
    chat.say("go ahead");
    chat.expect("The status of experiment 'Foo' is now enrolling.");
    assert_eq!(chat.end().0, 0);
}

#[cfg(unix)]
#[test]
fn an_interrupt_during_a_plan_restores_the_status_before_the_chat_continues() {
    use shell::gate::{Gate, Hold};
    use upgrade_agent::client::ExperimentState;
    let folder = Folder::new();
    let simulator = shell::Simulator::start(&folder);
    run(&folder, &["--url", &simulator.url], &format!("{}\nyes\n", create("Foo"))).good();
    let gate = Gate::before(&simulator.url, "POST /v6/mark", Hold::Before);
    let mut chat = Running::start(agent(&folder, &["--url", &gate.url, "--thread", "plan"]));
    chat.expect("a new one.");
    chat.say("test the balance of Foo with 5 students");
    chat.expect("1) Yes");
    chat.say("yes");
    gate.wait();
    interrupt(chat.id());
    chat.expect("Stopped.");
    chat.expect("The status of experiment 'Foo' is inactive again.");
    let made = simulator.experiments().remove(0);
    assert_eq!((made.state, made.state_log.len()), (ExperimentState::Inactive, 2));
    assert_eq!(chat.end().0, 0);
}

#[cfg(unix)]
#[test]
fn an_interrupt_during_a_plan_restores_the_status_and_sets_the_exit_code() {
    use shell::gate::{Gate, Hold};
    use upgrade_agent::client::ExperimentState;
    let folder = Folder::new();
    let simulator = shell::Simulator::start(&folder);
    run(&folder, &["--url", &simulator.url], &format!("{}\nyes\n", create("Foo"))).good();
    let gate = Gate::before(&simulator.url, "POST /v6/mark", Hold::Before);
    let mut feed = Running::start(agent(&folder, &["--url", &gate.url, "chat", "--json"]));
    feed.expect("\"ready\"");
    feed.say(r#"{"text": "test the balance of Foo with 5 students", "thread": "plan"}"#);
    feed.expect("\"event\":\"turn\"");
    feed.say(r#"{"text": "yes", "thread": "plan"}"#);
    gate.wait();
    interrupt(feed.id());
    feed.expect("\"event\":\"turn\",\"thread\":\"plan\"");
    feed.expect("The status of experiment 'Foo' is inactive again.");
    assert_eq!(feed.end().0, 1);
    let made = simulator.experiments().remove(0);
    assert_eq!((made.state, made.state_log.len()), (ExperimentState::Inactive, 2));
}

#[cfg(unix)]
#[test]
fn an_interrupt_between_the_turns_of_a_program_ends_the_chat() {
    let folder = Folder::new();
    let mut feed = Running::start(agent(&folder, &["chat", "--json"]));
    feed.say("hello");
    feed.expect("\"event\":\"turn\"");
    feed.line();
    interrupt(feed.id());
    assert_eq!(feed.wait(), 0);
}

#[cfg(unix)]
fn interrupt(id: u32) {
    assert!(std::process::Command::new("kill").args(["-INT", &id.to_string()]).status().unwrap().success());
}

#[test]
fn a_thread_is_chosen_by_its_number_in_the_list() {
    let folder = Folder::new();
    let script = "hello\n/thread second\nhello\n/threads\n/thread 2\nthanks\n";
    let out = run(&folder, &[], script).good().out();
    assert!(out.contains("Thread default, where we were:\n[you] hello"), "{out}");
}

#[test]
fn a_yes_counts_only_for_questions_that_its_process_printed() {
    let folder = Folder::new();
    let simulator = Simulator::start(&folder);
    let url = ["--url", simulator.url.as_str()];
    for (program, idle) in [(&["chat"][..], ("/help", "leave")), (&["chat", "--json"], ("{}", "E_CHAT_LINE"))]
    {
        // When the next line is answered, the turn has ended and all its data is stored.
        let settle = |chat: &mut Running| {
            chat.say(idle.0);
            chat.expect(idle.1);
        };
        let args = [&url[..], program].concat();
        let start = || {
            let mut chat = Running::start(agent(&folder, &args));
            chat.say("hello");
            chat.expect("Hello!");
            settle(&mut chat);
            chat
        };
        let mut one = start();
        let mut other = start();
        one.say(&create("Foo"));
        one.expect("Create experiment 'Foo'");
        settle(&mut one);
        other.say("hello again");
        other.expect("Hello!");
        settle(&mut other);
        one.say("initialize user ada");
        one.expect("Initialize user 'ada' for experiment simulation?");
        settle(&mut one);
        other.say("yes");
        other.expect("This was asked elsewhere and not here");
        other.expect("Initialize user 'ada' for experiment simulation?");
        other.say("no");
        other.expect("Nothing was changed");
        assert!(simulator.experiments().is_empty());
    }
}

#[test]
fn a_question_is_answered_in_the_process_that_repeated_it() {
    let folder = Folder::new();
    let mut one = Running::start(agent(&folder, &["chat"]));
    one.say("hello");
    one.expect("Hello!");
    one.kill();
    ask(&folder, &[], &create("Foo"));
    assert!(
        reply(&ask(&folder, &[], "yes")).contains("'Foo' was created"),
        "the process that answers differs from the one that asked"
    );
    ask(&folder, &[], "delete Foo");
    let out = run(&folder, &[], "DELETE\n").good().out();
    assert!(out.contains("That question is still open.") && out.contains("was deleted"), "{out}");
}

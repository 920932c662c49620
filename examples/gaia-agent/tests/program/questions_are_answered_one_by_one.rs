//! `ask`: one question, with a file, at random, and its pieces as they come; and `serve`.

use crate::common::Folder;
use crate::shell::{Running, program, run};

#[test]
fn the_answer_is_printed_alone_and_its_steps_can_be_shown() {
    let folder = Folder::new();
    let question =
        "How many studio albums did Mira Solheim publish between 2000 and 2004, both years included?";
    let ran = run(&folder, &["ask", question]).good();
    assert_eq!(ran.out(), "1\n");
    let note = ran.err();
    let thread = note.split("show ").nth(1).unwrap().split('`').next().unwrap();
    let shown = run(&folder, &["show", thread]).good().out();
    assert!(shown.contains("CALL call-1 wikipedia") && shown.contains("ANSWER (final answer): 1"), "{shown}");
    let again = run(&folder, &["ask", question]).good();
    assert!(again.out() == "1\n" && again.err().contains("from the cache"), "{}", again.err());
    let unknown = run(&folder, &["ask", "What is the meaning of it all?"]).good();
    assert!(
        unknown.out() == "unknown\n" && unknown.err().contains("no answer was found"),
        "{}",
        unknown.err()
    );
}

#[test]
fn a_file_belongs_to_its_question() {
    let folder = Folder::new();
    let question = "How many lines of the attached log are errors of the module pump?";
    let ask = |content: &str| {
        let file = folder.write("my files/a.log", content);
        run(&folder, &["ask", question, "--file", file.to_str().unwrap()]).good().out()
    };
    assert_eq!(ask("1 ERROR pump x\n"), "1\n");
    assert_eq!(ask("1 ERROR pump x\n2 ERROR pump x\n"), "2\n", "another file is another question");
    let missing = run(&folder, &["ask", question, "--file", "nowhere.log"]);
    assert!(
        missing.code() == Some(1) && missing.err().contains("E_GAIA_DATA: nowhere.log"),
        "{}",
        missing.err()
    );
}

#[test]
fn pieces_of_the_answer_are_printed_as_they_come() {
    let folder = Folder::new();
    let question = "Put these harbours in alphabetical order, as a comma separated list: B, A.";
    let ran = run(&folder, &["ask", question, "--stream"]).good();
    assert_eq!(ran.out(), "A, B\n");
    assert!(ran.err().contains("It follows from the question.\nFINAL ANSWER: A, B"), "{}", ran.err());
}

#[test]
fn a_question_by_chance_comes_from_the_server() {
    let folder = Folder::new();
    let ran = run(&folder, &["ask", "--random", "--allow-python"]).good();
    assert!(!ran.out().trim().is_empty() && ran.out() != "unknown\n", "{}\n{}", ran.out(), ran.err());
    let mut server = Running::start(program(&folder, &["serve"]));
    let url = server.line();
    assert!(url.starts_with("http://127.0.0.1:"), "{url}");
    let ran = run(&folder, &["ask", "--random", "--allow-python", "--questions", &url]).good();
    assert!(ran.out() != "unknown\n", "{}", ran.err());
}

#[test]
fn plain_arithmetic_needs_no_model_if_patterns_are_on() {
    let folder = Folder::new();
    let asked = run(&folder, &["ask", "What is 17 * 3?"]).good();
    assert!(asked.out() == "51\n" && !asked.err().contains("by a pattern"), "{}", asked.err());
    let quick = run(&folder, &["ask", "What is 17 * 3?", "--patterns", "--no-cache"]).good();
    assert!(
        quick.out() == "51\n" && quick.err().contains("by a pattern, without a model"),
        "{}",
        quick.err()
    );
}

//! `run` on a fresh machine, without a key: it answers the embedded questions and scores itself.

use std::collections::BTreeSet;
use std::path::Path;

use crate::common::Folder;
use crate::shell::run;

/// The lines about questions.
fn answers(out: &str) -> BTreeSet<String> {
    out.lines().take_while(|line| !line.is_empty()).map(str::to_owned).collect()
}

#[test]
fn nineteen_of_twenty_are_right_without_python_and_twenty_with_it() {
    let folder = Folder::new();
    let first = run(&folder, &["run"]).good();
    assert!(first.out().contains("19 of 20 answers are right."), "{}", first.out());
    assert!(
        first.out().contains("Python code is not run (program): --allow-python allows it."),
        "{}",
        first.out()
    );
    assert!(
        first.err().contains("The offline model answers") && first.err().contains("Run 2"),
        "{}",
        first.err()
    );
    assert_eq!(answers(&first.out()).len(), 20);
    let with_python = run(&folder, &["run", "--allow-python"]).good();
    assert!(with_python.out().contains("20 of 20 answers are right."), "{}", with_python.out());
    assert!(with_python.out().contains("(from the cache)") && !with_python.out().contains("--allow-python"));
    assert!(folder.file("data/agent_cache.json").exists());
    assert_eq!(
        std::fs::read_dir(folder.file("work")).unwrap().count(),
        0,
        "nothing is left in the working directory"
    );
}

#[test]
fn a_second_run_is_answered_from_the_cache_without_a_model() {
    let folder = Folder::new();
    run(&folder, &["run", "--allow-python"]).good();
    let again = run(&folder, &["run", "--allow-python"]).good();
    assert_eq!(again.out().matches("(from the cache)").count(), 20, "{}", again.out());
    let report = run(&folder, &["report"]).good().out();
    assert!(report.contains("cache hits       100 %") && report.contains("model calls      0 ("), "{report}");
    let fresh = run(&folder, &["run", "--allow-python", "--no-cache"]).good();
    assert!(!fresh.out().contains("(from the cache)"), "{}", fresh.out());
}

#[test]
fn questions_are_chosen_by_level_and_number_and_several_are_worked_on_at_once() {
    let folder = Folder::new();
    let few = run(&folder, &["run", "--limit", "3", "--concurrency", "1"]).good().out();
    let names: Vec<_> = few.lines().take(3).map(|line| line.split(' ').next().unwrap()).collect();
    assert_eq!(names, ["pencils", "backwards", "operation"], "one after another, in order");
    assert!(few.contains("3 of 3 answers are right."), "{few}");
    let hard = run(&folder, &["run", "--level", "3"]).good().out();
    assert!(hard.contains("programme") && hard.contains("1 of 1 answers are right."), "{hard}");
    let many = run(&folder, &["run", "--concurrency", "20", "--new", "--no-cache"]).good().out();
    assert!(many.contains("19 of 20 answers are right."), "{many}");
}

#[test]
fn a_file_of_questions_has_its_files_beside_it_and_its_own_answers() {
    let folder = Folder::new();
    let lines = [
        r#"{"task_id": "a", "Question": "Put these harbours in alphabetical order, as a comma separated list: B, A.", "Level": 1, "Final answer": "A, B"}"#,
        r#"{"task_id": "b", "Question": "How many lines of the attached log are errors of the module pump?", "Level": 1, "file_name": "my.log", "Final answer": "2"}"#,
        r#"{"task_id": "c", "Question": "How many lines of the attached log are errors of the module pump?", "Level": 1, "file_name": "../secret.log", "Final answer": "unknown"}"#,
    ];
    folder.write("questions/metadata.jsonl", lines.join("\n"));
    folder.write("questions/my.log", "x ERROR pump 1\nx ERROR pump 2\nx INFO pump\n");
    folder.write("secret.log", "x ERROR pump 1\n");
    let file = folder.file("questions/metadata.jsonl");
    let ran = run(&folder, &["run", "--questions", file.to_str().unwrap()]).good();
    assert!(ran.out().contains("3 of 3 answers are right."), "{}", ran.out());
    let score = run(&folder, &["score"]).good().out();
    assert!(
        score.contains("right  b                        2")
            && score.contains("3 of 3 answers are right (100.0 %)."),
        "{score}"
    );
}

/// The data set as the benchmark has it: Parquet by pyarrow, with its levels as text, or JSON lines.
#[test]
fn the_data_set_is_read_in_both_of_its_forms_and_the_answers_are_exported() {
    let files = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/files");
    let path = |name: &str| files.join(name).to_str().unwrap().to_owned();
    for name in ["metadata.parquet", "metadata.jsonl"] {
        let folder = Folder::new();
        let export = folder.file("answers.jsonl");
        let args = ["run", "--questions", &path(name), "--level", "1", "--export", export.to_str().unwrap()];
        let ran = run(&folder, &args);
        assert!(ran.out().contains("0 of 1 answers are right."), "{name}: {} {}", ran.out(), ran.err());
        let lines = std::fs::read_to_string(&export).unwrap();
        let line: serde_json::Value = serde_json::from_str(lines.trim()).unwrap();
        assert_eq!((&line["task_id"], &line["model_answer"]), (&"q-1".into(), &"unknown".into()));
        assert!(line["reasoning_trace"].as_str().unwrap().contains("No answer was found"), "{line}");
        assert!(folder.file("data/downloads/q-1/birds.csv").exists(), "the file beside the questions");
    }
    // Where the truth is hidden, nothing is said about right and wrong.
    let folder = Folder::new();
    let ran = run(&folder, &["run", "--questions", &path("hidden.parquet")]);
    let report = run(&folder, &["report"]).out();
    for text in [ran.out(), report] {
        assert!(text.contains("q-2") && !text.contains("right") && !text.contains("wrong"), "{text}");
    }
    let score = run(&folder, &["score"]);
    assert!(score.code() == Some(1) && score.err().contains("are not known here"), "{}", score.err());
    let wrong = run(&folder, &["run", "--questions", &path("gifts.docx")]);
    assert!(
        wrong
            .err()
            .contains("gifts.docx: it is neither Parquet nor a text with JSON; the file is a Word document"),
        "{}",
        wrong.err()
    );
}

#[test]
fn several_runs_of_each_question_vote_and_the_vote_is_shown() {
    let folder = Folder::new();
    let args = ["run", "--limit", "2", "--runs", "3"];
    let ran = run(&folder, &args).good();
    assert!(ran.out().contains("310.8 (final answer, 3 of 3 runs)"), "{}", ran.out());
    let report = run(&folder, &["report"]).good().out();
    assert!(report.contains("right, final answer, 3 of 3 runs; "), "{report}");
    let shown = run(&folder, &["show", "pencils"]).good().out();
    assert!(
        shown.contains("run 2 of 3") && shown.ends_with("ANSWER (final answer, 3 of 3 runs): 310.8\n"),
        "{shown}"
    );
    // A vote of three serves one run, and a run of its own is another run.
    let one = run(&folder, &["run", "--limit", "2"]).good();
    assert!(one.out().contains("310.8 (from the cache)"), "{}", one.out());
    let asked = run(&folder, &["ask", "What is 6 * 7?", "--runs", "2", "--no-cache"]);
    assert!(asked.err().contains(" of 2 runs; `gaia-agent show ask/"), "{}", asked.err());
    for wrong in [["run", "--runs", "0"], ["run", "--runs", "10"], ["ask", "--runs=2", "--stream"]] {
        assert_eq!(run(&folder, &wrong).code(), Some(2), "{wrong:?}");
    }
}

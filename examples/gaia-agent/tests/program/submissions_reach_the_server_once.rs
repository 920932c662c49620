//! `run --submit` against the embedded server in another process.

use crate::common::Folder;
use crate::shell::{Running, program, run};

const WHO: [&str; 4] = ["--username", "ada", "--agent-code", "https://code.example/agent"];

#[test]
fn answers_are_submitted_at_the_end_and_not_again_unless_told_to() {
    let folder = Folder::new();
    let mut server = Running::start(program(&folder, &["serve"]));
    let url = server.line();
    let submit = |more: &[&str]| {
        let args = ["run", "--questions", &url, "--submit"]
            .iter()
            .chain(&WHO)
            .chain(more)
            .copied()
            .collect::<Vec<_>>();
        run(&folder, &args)
    };
    let first = submit(&[]).good();
    assert!(
        first.out().contains("Submitted: 95.0 %, 19 right. 19 of 20 answers are right."),
        "{}",
        first.out()
    );
    let second = submit(&[]).good();
    assert!(second.out().contains("were submitted before: 95.0 %. --again"), "{}", second.out());
    assert!(second.err().contains("goes on: 0 of 20 questions are left"), "{}", second.err());
    let third = submit(&["--again"]).good();
    assert!(third.out().contains("Submitted: 95.0 %"), "{}", third.out());
    let stored = std::fs::read_dir(folder.file("data/runs")).unwrap().map(|entry| entry.unwrap().path());
    let stored: Vec<_> =
        stored.filter(|path| path.extension().is_some_and(|end| end == "submission")).collect();
    let [file] = &stored[..] else { panic!("{stored:?}") };
    let json: serde_json::Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    assert_eq!(
        (json["submission"]["username"].as_str(), json["submission"]["answers"].as_array().unwrap().len()),
        (Some("ada"), 20)
    );
}

#[test]
fn a_server_that_is_down_is_tried_again_by_the_next_run() {
    let folder = Folder::new();
    let mut server = Running::start(program(&folder, &["serve"]));
    let url = server.line();
    let ask = ["run", "--questions", &url, "--limit", "2"];
    run(&folder, &ask).good();
    server.kill();
    let args: Vec<_> = ask.iter().chain(&["--submit"]).chain(&WHO).copied().collect();
    for _ in 0..2 {
        let refused = run(&folder, &args);
        assert!(
            refused.code() == Some(1) && refused.err().contains("E_GAIA_API: no connection"),
            "{}",
            refused.err()
        );
    }
}

//! The questions of the evaluation server and of files, and files that are broken.

use gaia_agent::question::read_questions;

use crate::support::fixture;

#[test]
fn questions_of_the_server_and_of_the_benchmarks_files_are_read() {
    let server = r#"[{"task_id": "a", "question": "q", "Level": "2", "file_name": "x.png"}, {"task_id": "b", "question": "r"}]"#;
    let read = read_questions(server.into()).unwrap();
    assert_eq!((read[0].level, read[0].file(), read[1].level), (2, Some("x.png"), 0));
    let lines = "{\"task_id\": \"a\", \"Question\": \"q\", \"Level\": 3, \"Final answer\": \"7\", \"file_name\": null, \"Annotator Metadata\": {}}\n\n";
    let read = read_questions(lines.into()).unwrap();
    assert_eq!((read[0].level, read[0].truth.as_deref(), read[0].file()), (3, Some("7"), None));
    assert!(
        read_questions("{\"task_id\": \"a\", \"question\": \"q\"}\nnot json".into())
            .unwrap_err()
            .contains("line 2")
    );
    assert!(read_questions("[1]".into()).is_err());
}

#[test]
fn changed_and_cut_files_are_errors_or_questions() {
    let file = fixture("metadata.parquet");
    assert_eq!(read_questions(file.clone()).unwrap()[1].level, 3);
    for at in (4..file.len()).step_by(11) {
        let mut changed = file.clone();
        changed[at] ^= 0x55;
        let _ = read_questions(changed);
        assert!(read_questions(file[..at].to_vec()).is_err(), "{at}");
    }
}

//! Printing. A reader that went away (`| head`) is no failure: what cannot be printed is dropped.

use std::io::{IsTerminal, Write, stderr, stdout};

/// Prints a line.
pub(super) fn line(text: &str) {
    let _ = writeln!(stdout(), "{text}");
}

/// Prints a piece of a line, at once.
pub(super) fn piece(text: &str) {
    let mut out = stdout();
    let _ = out.write_all(text.as_bytes());
    let _ = out.flush();
}

/// Prints a line beside the answer.
pub(super) fn warn(text: &str) {
    let _ = writeln!(stderr(), "{text}");
}

/// Whether a person looks at both.
pub(super) fn is_watched() -> bool {
    stdout().is_terminal() && stderr().is_terminal()
}

/// Quick answers with the numbers they can be chosen by.
pub(super) fn numbered(answers: &[String]) -> String {
    let each = answers.iter().enumerate().map(|(at, answer)| format!("{}) {answer}", at + 1));
    each.collect::<Vec<_>>().join("   ")
}

//! Prints to a terminal or a pipe. All text is printed through this file, and is escaped here: answers and
//! files of others may hold anything.

use std::io::{IsTerminal, Write, stderr, stdout};

/// The properties of the terminal. Cheap to copy.
#[derive(Clone, Copy, Debug)]
pub(super) struct Screen {
    /// Whether a status line can be drawn and removed.
    is_watched: bool,
}

impl Screen {
    pub(super) fn new() -> Self {
        let is_dumb = std::env::var("TERM").is_ok_and(|kind| kind == "dumb");
        Screen { is_watched: stderr().is_terminal() && !is_dumb }
    }

    pub(super) fn width(self) -> usize {
        terminal_size::terminal_size().map_or(80, |(width, _)| usize::from(width.0)).max(20)
    }

    /// Prints a line. A closed pipe (`| head`) is no error.
    pub(super) fn line(self, text: &str) {
        let mut out = stdout();
        let _ = writeln!(out, "{}", escape(text)).and_then(|()| out.flush());
    }

    /// Prints a line to standard error.
    pub(super) fn note(self, text: &str) {
        let _ = writeln!(stderr(), "{}", escape(text));
    }

    /// Prints a piece of a line to standard error.
    pub(super) fn piece(self, text: &str) {
        let mut out = stderr();
        let _ = write!(out, "{}", escape(text)).and_then(|()| out.flush());
    }

    /// Replaces the status line.
    pub(super) fn status(self, text: &str) {
        if self.is_watched {
            let mut out = stderr();
            let _ = write!(out, "\r{}\u{1b}[K", escape(text)).and_then(|()| out.flush());
        }
    }
}

/// Shows control characters, and those that change the direction of the text, as what they are.
pub(super) fn escape(text: &str) -> String {
    let is_unruly = |letter: char| {
        (letter.is_control() && letter != '\n' && letter != '\t')
            || matches!(letter, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    text.chars()
        .map(
            |letter| if is_unruly(letter) { letter.escape_unicode().to_string() } else { letter.to_string() },
        )
        .collect()
}

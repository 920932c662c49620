//! Prints to a terminal or a pipe. All text is printed through this file, and is escaped here.
//!
//! A closed pipe (`| head`) is not an error by itself: the rest is dropped. The loss is recorded, because a
//! reply that was not printed asks no question.

use std::borrow::Cow;
use std::io::{IsTerminal, Write, stderr, stdin, stdout};
use std::sync::atomic::{AtomicBool, Ordering};

use super::escape::escape;

/// When text is coloured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Colors {
    /// On a terminal, unless NO_COLOR is set
    #[default]
    Auto,
    /// Also in a pipe
    Always,
    /// Never
    Never,
}

/// The style of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Style {
    /// Secondary text.
    Faint,
    /// Something to choose or type.
    Accent,
    /// An error.
    Alarm,
}

/// Whether something could not be printed. One flag for the process, like the output itself.
static LOST: AtomicBool = AtomicBool::new(false);

/// The properties of the terminal. Cheap to copy.
#[derive(Clone, Copy, Debug)]
pub(super) struct Screen {
    /// Whether the output is a terminal with a movable cursor.
    watched: bool,
    /// Whether a person types.
    typed: bool,
    colored: bool,
    /// Whether the terminal shows more than ASCII.
    pub(super) unicode: bool,
}

impl Screen {
    /// Inspects the process's output and environment.
    pub(super) fn new(colors: Colors) -> Self {
        let set = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let watched = stdout().is_terminal() && set("TERM").is_none_or(|kind| kind != "dumb");
        Screen {
            watched,
            typed: stdin().is_terminal(),
            colored: match colors {
                Colors::Auto => watched && set("NO_COLOR").is_none(),
                Colors::Always => true,
                Colors::Never => false,
            },
            unicode: shows_unicode(&set),
        }
    }

    /// Whether printed text can be changed again.
    pub(super) fn is_watched(&self) -> bool {
        self.watched
    }

    /// Whether a person types.
    pub(super) fn is_typed(&self) -> bool {
        self.typed
    }

    /// Whether lines can be edited: typed by a person, at a visible terminal.
    pub(super) fn is_edited(&self) -> bool {
        self.watched && self.typed
    }

    /// The width of the terminal; `None` without one, where lines may be of any length.
    pub(super) fn width(&self) -> Option<usize> {
        let size = self.watched.then(terminal_size::terminal_size).flatten();
        size.map(|(width, _)| usize::from(width.0)).filter(|width| *width > 0)
    }

    /// Prints a line.
    pub(super) fn line(&self, text: &str) {
        self.raw(&format!("{}\n", escape(text)));
    }

    /// Prints a line in a style.
    pub(super) fn styled(&self, style: Style, text: &str) {
        self.raw(&format!("{}\n", self.paint(style, &escape(text))));
    }

    /// Prints a piece of a line and flushes it.
    pub(super) fn piece(&self, text: &str) {
        self.raw(&escape(text));
    }

    /// Prints escaped text and flushes it.
    pub(super) fn raw(&self, text: &str) {
        let mut out = stdout();
        if out.write_all(text.as_bytes()).and_then(|()| out.flush()).is_err() {
            LOST.store(true, Ordering::Relaxed);
        }
    }

    /// Whether printing has failed so far.
    pub(super) fn has_lost(&self) -> bool {
        LOST.load(Ordering::Relaxed)
    }

    /// Prints a line to standard error.
    pub(super) fn warn(&self, text: &str) {
        let text = escape(text);
        let text = if stderr().is_terminal() { self.paint(Style::Alarm, &text) } else { text };
        let _ = writeln!(stderr(), "{text}");
    }

    /// The text in a style, if colours are on.
    pub(super) fn paint<'a>(&self, style: Style, text: &'a str) -> Cow<'a, str> {
        let code = match style {
            _ if !self.colored || text.is_empty() => return text.into(),
            Style::Faint => "2",
            Style::Accent => "1;36",
            Style::Alarm => "33",
        };
        format!("\u{1b}[{code}m{text}\u{1b}[0m").into()
    }
}

fn shows_unicode(set: &dyn Fn(&str) -> Option<String>) -> bool {
    let locale = set("LC_ALL").or_else(|| set("LC_CTYPE")).or_else(|| set("LANG"));
    let named = locale.is_some_and(|name| name.to_lowercase().replace('-', "").contains("utf8"));
    named || cfg!(windows) || cfg!(target_os = "macos")
}

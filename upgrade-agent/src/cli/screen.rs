//! Printing, and who looks: a person at a terminal, or a pipe. Everything that is printed as text goes
//! through here, and comes out harmless.
//!
//! A reader that went away (`| head`) is no failure by itself: what cannot be printed is dropped. But that
//! something was is known, for a reply that nobody got asks nothing.

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

/// How text looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Style {
    /// What is beside the matter.
    Faint,
    /// What can be chosen or typed at.
    Accent,
    /// What went wrong.
    Alarm,
}

/// Whether something could not be printed: as with the output itself, there is one for the process.
static LOST: AtomicBool = AtomicBool::new(false);

/// What is known of the terminal. Cheap to copy.
#[derive(Clone, Copy, Debug)]
pub(super) struct Screen {
    /// Whether the output is a terminal that can move its cursor.
    watched: bool,
    /// Whether a person types.
    typed: bool,
    colored: bool,
    /// Whether the terminal shows more than ASCII.
    pub(super) unicode: bool,
}

impl Screen {
    /// Looks at the process's own output and environment.
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

    /// Whether what is on the screen can be changed again.
    pub(super) fn is_watched(&self) -> bool {
        self.watched
    }

    /// Whether a person types.
    pub(super) fn is_typed(&self) -> bool {
        self.typed
    }

    /// Whether lines can be edited: a person types and sees it.
    pub(super) fn is_edited(&self) -> bool {
        self.watched && self.typed
    }

    /// The columns of the terminal; `None` if there is none, where a line may be as long as it is.
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

    /// Prints a piece of a line, at once.
    pub(super) fn piece(&self, text: &str) {
        self.raw(&escape(text));
    }

    /// Prints what is harmless already, at once.
    pub(super) fn raw(&self, text: &str) {
        let mut out = stdout();
        if out.write_all(text.as_bytes()).and_then(|()| out.flush()).is_err() {
            LOST.store(true, Ordering::Relaxed);
        }
    }

    /// Whether something of what was printed so far was lost.
    pub(super) fn has_lost(&self) -> bool {
        LOST.load(Ordering::Relaxed)
    }

    /// Prints a line beside the answer.
    pub(super) fn warn(&self, text: &str) {
        let text = escape(text);
        let text = if stderr().is_terminal() { self.paint(Style::Alarm, &text) } else { text };
        let _ = writeln!(stderr(), "{text}");
    }

    /// The text in a style, if there are colours.
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

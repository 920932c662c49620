//! What the person types, read on a thread of its own: a turn can be listened to and stopped meanwhile.
//!
//! At a terminal lines are edited and remembered; through a pipe they are read as they come.

mod history;

use std::io::BufRead;
use std::path::{Path, PathBuf};

use rustyline::error::ReadlineError;
use rustyline::history::FileHistory;
use rustyline::{Config, Editor};
use tokio::sync::mpsc::{Receiver, Sender, channel, unbounded_channel};

use super::screen::{Screen, Style};

/// What came from the keyboard.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Typed {
    /// A line, without the spaces around it.
    Line(String),
    /// Ctrl-C; what stood in the line is gone.
    Interrupt,
    /// Ctrl-D, or the end of the input.
    End,
}

const PROMPT: &str = "> ";

/// The keyboard.
pub(super) struct Keyboard {
    typed: Receiver<Typed>,
    /// Asks for one line. Without it lines come by themselves.
    asks: Option<tokio::sync::mpsc::UnboundedSender<()>>,
}

impl Keyboard {
    /// Edited lines are remembered in the file.
    pub(super) fn open(screen: Screen, history: &Path) -> Self {
        match screen.is_edited().then(|| editor(history)).flatten() {
            Some(editor) => Self::edited(editor, screen, history.to_owned()),
            None => Self::plain(),
        }
    }

    /// Whether Ctrl-C is a key here, and not a signal.
    pub(super) fn is_edited(&self) -> bool {
        self.asks.is_some()
    }

    /// The next line.
    pub(super) async fn line(&mut self) -> Typed {
        if let Some(asks) = &self.asks {
            // A thread that is gone is seen below.
            let _ = asks.send(());
        }
        self.typed.recv().await.unwrap_or(Typed::End)
    }

    /// Lines as they come.
    pub(super) fn plain() -> Self {
        let (sender, typed) = channel(1);
        std::thread::spawn(move || read_lines(&sender));
        Keyboard { typed, asks: None }
    }

    /// The terminal is the editor's only while a line is asked for: in between Ctrl-C is a signal again.
    fn edited(mut editor: Editor<(), FileHistory>, screen: Screen, history: PathBuf) -> Self {
        let (sender, typed) = channel(1);
        let (asks, mut asked) = unbounded_channel();
        let prompt = (PROMPT, screen.paint(Style::Accent, PROMPT).into_owned());
        std::thread::spawn(move || {
            while asked.blocking_recv().is_some() {
                let typed = edit(&mut editor, &prompt, &history);
                if sender.blocking_send(typed).is_err() {
                    return;
                }
            }
        });
        Keyboard { typed, asks: Some(asks) }
    }
}

fn editor(history: &Path) -> Option<Editor<(), FileHistory>> {
    // What begins with a space is not remembered, as in shells.
    let config = Config::builder().history_ignore_space(true).build();
    let mut editor = Editor::with_config(config).ok()?;
    history::load(&mut editor, history);
    Some(editor)
}

fn edit(editor: &mut Editor<(), FileHistory>, prompt: &(&str, String), history: &Path) -> Typed {
    match editor.readline(prompt) {
        Ok(line) => {
            history::remember(editor, &line, history);
            Typed::Line(line.trim().to_owned())
        }
        Err(ReadlineError::Interrupted) => Typed::Interrupt,
        Err(_) => Typed::End,
    }
}

fn read_lines(sender: &Sender<Typed>) {
    let mut input = std::io::stdin().lock();
    let mut bytes = Vec::new();
    while input.read_until(b'\n', &mut bytes).is_ok_and(|read| read > 0) {
        let line = String::from_utf8_lossy(&bytes).trim().to_owned();
        bytes.clear();
        if sender.blocking_send(Typed::Line(line)).is_err() {
            return;
        }
    }
}

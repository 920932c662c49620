//! Reads lines on a thread of its own, so that a turn can be shown and stopped meanwhile.
//!
//! At a terminal, lines are edited and stored in a history. From a pipe they are read as they are.

mod history;

use std::io::BufRead;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rustyline::error::ReadlineError;
use rustyline::history::FileHistory;
use rustyline::{Config, Editor};
use tokio::sync::mpsc::{Receiver, Sender, UnboundedSender, channel, unbounded_channel};

use super::screen::{Screen, Style};

/// The next input from the keyboard.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum KeyboardInput {
    /// A line, without the spaces around it.
    Line(String),
    /// Ctrl-C; the text of the line is discarded.
    Interrupt,
    /// Ctrl-D, or the end of the input.
    End,
}

const PROMPT: &str = "> ";

/// The keyboard.
pub(super) struct Keyboard {
    /// The input, and the number of questions at that time.
    typed: Receiver<(KeyboardInput, u64)>,
    /// Requests one line, which has to be typed from now on if `true`. Without the channel, lines come
    /// unrequested.
    asks: Option<UnboundedSender<bool>>,
    /// Whether a person types, who may type before the reply is shown.
    by_person: bool,
    questions: Questions,
}

/// The number of questions that need a yes.
#[derive(Clone, Default)]
pub(super) struct Questions(Arc<AtomicU64>);

impl Questions {
    /// Counts one more question.
    pub(super) fn put(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }

    fn count(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }
}

impl Keyboard {
    /// Edited lines are stored in the file.
    pub(super) fn open(screen: Screen, history: &Path) -> Self {
        match screen.is_edited().then(|| editor(history)).flatten() {
            Some(editor) => Self::edited(editor, screen, history.to_owned()),
            None => Keyboard { by_person: screen.is_typed(), ..Self::plain() },
        }
    }

    /// Whether Ctrl-C is read as a key rather than a signal.
    pub(super) fn is_edited(&self) -> bool {
        self.asks.is_some()
    }

    /// The next line.
    pub(super) async fn line(&mut self) -> KeyboardInput {
        self.line_of(false).await
    }

    /// A handle that counts the questions.
    pub(super) fn questions(&self) -> Questions {
        self.questions.clone()
    }

    /// The next line that a person types after the last question can be read; earlier lines are dropped. A
    /// program may write its lines ahead.
    pub(super) async fn answer(&mut self) -> KeyboardInput {
        self.line_of(self.by_person).await
    }

    async fn line_of(&mut self, from_now: bool) -> KeyboardInput {
        let since = if from_now { self.questions.count() } else { 0 };
        if let Some(asks) = &self.asks {
            // The end of the thread is noticed below.
            let _ = asks.send(from_now);
        }
        loop {
            match self.typed.recv().await {
                Some((KeyboardInput::Line(_), questions)) if questions < since => {}
                Some((typed, _)) => return typed,
                None => return KeyboardInput::End,
            }
        }
    }

    /// Reads lines as they come.
    pub(super) fn plain() -> Self {
        let (sender, typed) = channel(1);
        let questions = Questions::default();
        let asked = questions.clone();
        std::thread::spawn(move || read_lines(&sender, &asked));
        Keyboard { typed, asks: None, by_person: false, questions }
    }

    /// The editor owns the terminal only while a line is requested. In between Ctrl-C is a signal, and the
    /// terminal itself stores typed characters.
    fn edited(mut editor: Editor<(), FileHistory>, screen: Screen, history: PathBuf) -> Self {
        let (sender, typed) = channel(1);
        let (asks, mut asked) = unbounded_channel();
        let prompt = (PROMPT, screen.paint(Style::Accent, PROMPT).into_owned());
        std::thread::spawn(move || {
            while let Some(from_now) = asked.blocking_recv() {
                if from_now {
                    forget_typed();
                }
                let typed = edit(&mut editor, &prompt, &history);
                if sender.blocking_send((typed, u64::MAX)).is_err() {
                    return;
                }
            }
        });
        Keyboard { typed, asks: Some(asks), by_person: true, questions: Questions::default() }
    }
}

/// Discards the characters that the terminal has stored.
#[cfg(unix)]
fn forget_typed() {
    // If the terminal cannot do it, it behaves like a pipe.
    let _ = rustix::termios::tcflush(std::io::stdin(), rustix::termios::QueueSelector::IFlush);
}

#[cfg(not(unix))]
fn forget_typed() {}

fn editor(history: &Path) -> Option<Editor<(), FileHistory>> {
    // Lines that start with a space are not stored, as in shells.
    let config = Config::builder().history_ignore_space(true).build();
    let mut editor = Editor::with_config(config).ok()?;
    history::load(&mut editor, history);
    Some(editor)
}

fn edit(editor: &mut Editor<(), FileHistory>, prompt: &(&str, String), history: &Path) -> KeyboardInput {
    match editor.readline(prompt) {
        Ok(line) => {
            history::remember(editor, &line, history);
            KeyboardInput::Line(line.trim().to_owned())
        }
        Err(ReadlineError::Interrupted) => KeyboardInput::Interrupt,
        Err(_) => KeyboardInput::End,
    }
}

fn read_lines(sender: &Sender<(KeyboardInput, u64)>, questions: &Questions) {
    let mut input = std::io::stdin().lock();
    let mut bytes = Vec::new();
    while input.read_until(b'\n', &mut bytes).is_ok_and(|read| read > 0) {
        let line = String::from_utf8_lossy(&bytes).trim().to_owned();
        bytes.clear();
        let put = questions.count();
        if sender.blocking_send((KeyboardInput::Line(line), put)).is_err() {
            return;
        }
    }
}

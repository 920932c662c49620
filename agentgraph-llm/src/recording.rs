//! Exchanges with a model, written to a file once and given back from it in tests.
//!
//! A test with a recording needs no key and no network, gives the same answers each time, and fails when the
//! program asks for something else than it did when it was recorded.

mod exchange;

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use futures_util::{StreamExt, stream};

use crate::error::{Code, Error, Result};
use crate::mask::masked;
use crate::model::{ChatEvent, ChatModel, ChatRequest, ChatStream, ModelInfo};

use exchange::{Exchange, Recorded};

/// A model whose exchanges are recorded, or that answers from a recording. Cheap to clone; clones share the
/// file.
///
/// ```
/// use agentgraph_llm::prelude::*;
/// use agentgraph_llm::Recording;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = std::env::temp_dir().join(format!("agentgraph-recording-{}", std::process::id()));
/// # std::fs::create_dir_all(&folder)?;
/// let file = folder.join("greeting.jsonl");
/// let live = ScriptedModel::new(["Good morning."]); // in a program: a real model
/// let recording = Recording::of(live, &file)?.mask("hunter2");
/// recording.chat(ChatRequest::user("Greet me, I am hunter2.")).await?;
/// assert!(!std::fs::read_to_string(&file)?.contains("hunter2"));
///
/// let replay = Recording::open(&file)?.mask("hunter2");
/// let answer = replay.chat(ChatRequest::user("Greet me, I am hunter2.")).await?;
/// assert_eq!(answer.message.text(), "Good morning.");
///
/// let missed = replay.chat(ChatRequest::user("Something else")).await.unwrap_err();
/// assert_eq!(missed.code().as_str(), "E_LLM_RECORDING");
/// # std::fs::remove_dir_all(&folder)?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Recording {
    source: Source,
    path: Arc<Path>,
    /// Texts that are never written.
    secrets: Vec<String>,
}

#[derive(Clone)]
enum Source {
    Live { model: Arc<dyn ChatModel>, file: Arc<Mutex<File>> },
    File { info: Box<ModelInfo>, replies: Arc<Mutex<Replies>> },
}

/// The recorded replies by canonical request, in the order of the file.
type Replies = HashMap<String, VecDeque<Recorded>>;

impl Recording {
    /// Asks `model`, and writes each exchange to a file as one line of JSON when it has ended. An existing
    /// file is replaced. A stream that is dropped before its end is not recorded.
    ///
    /// # Errors
    /// `E_LLM_RECORDING` if the file cannot be written.
    pub fn of(model: impl ChatModel + 'static, path: impl Into<PathBuf>) -> Result<Self> {
        let path = path.into();
        let file = File::create(&path).map_err(|error| unwritable(&path, &error))?;
        let source = Source::Live { model: Arc::new(model), file: Arc::new(Mutex::new(file)) };
        Ok(Recording { source, path: path.into(), secrets: Vec::new() })
    }

    /// Answers from a file, and asks no model. Equal requests get their replies in the order in which they
    /// were recorded. A request that has no reply left is `E_LLM_RECORDING`.
    ///
    /// # Errors
    /// `E_LLM_RECORDING` if the file cannot be read or is no recording.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self> {
        let path = path.into();
        let text = std::fs::read_to_string(&path).map_err(|error| unreadable(&path, error.to_string()))?;
        let mut info = ModelInfo::new("recording", "recording");
        let mut replies = Replies::new();
        for (at, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let exchange = Exchange::read(line)
                .map_err(|error| unreadable(&path, format!("line {}: {error}", at + 1)))?;
            info = exchange.info();
            replies.entry(exchange.request).or_default().push_back(exchange.reply);
        }
        let source = Source::File { info: Box::new(info), replies: Arc::new(Mutex::new(replies)) };
        Ok(Recording { source, path: path.into(), secrets: Vec::new() })
    }

    /// Writes `[masked]` for a text, in requests and replies; the pieces of a stream are then written as one.
    /// A recording is opened with the same masks with which it was made. An empty text is ignored.
    pub fn mask(mut self, secret: impl Into<String>) -> Self {
        self.secrets.push(secret.into());
        self.secrets.retain(|secret| !secret.is_empty());
        // A secret that contains another one is masked as a whole.
        self.secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        self
    }

    /// The number of recorded replies that were not asked for; 0 for a live model.
    pub fn remaining(&self) -> usize {
        match &self.source {
            Source::Live { .. } => 0,
            Source::File { replies, .. } => lock(replies).values().map(VecDeque::len).sum(),
        }
    }

    async fn record(&self, model: &dyn ChatModel, request: ChatRequest) -> Result<ChatStream> {
        let pending = Exchange::begin(&model.info(), &request);
        match model.stream(request).await {
            Ok(events) => Ok(self.clone().written_at_end(pending, events)),
            Err(error) => {
                self.write(pending.end(Vec::new(), Some(&error)))?;
                Err(error)
            }
        }
    }

    /// The events unchanged; the exchange is written before the last one is given.
    fn written_at_end(self, exchange: Exchange, events: ChatStream) -> ChatStream {
        let mut pending = Some((exchange, Vec::new()));
        ChatStream::new(events.map(move |event| {
            let Some((exchange, mut seen)) = pending.take() else { return event };
            match event {
                Ok(event) => {
                    seen.push(event.clone());
                    match event {
                        ChatEvent::Finished(_) => self.write(exchange.end(seen, None))?,
                        _ => pending = Some((exchange, seen)),
                    }
                    Ok(event)
                }
                Err(error) => {
                    self.write(exchange.end(seen, Some(&error)))?;
                    Err(error)
                }
            }
        }))
    }

    fn write(&self, exchange: Exchange) -> Result<()> {
        let Source::Live { file, .. } = &self.source else { return Ok(()) };
        let line = exchange.line(&self.secrets);
        let mut file = lock(file);
        file.write_all(line.as_bytes()).map_err(|error| unwritable(&self.path, &error))
    }

    fn replay(&self, replies: &Mutex<Replies>, request: &ChatRequest) -> Result<ChatStream> {
        let key = masked(&request.canonical(), &self.secrets);
        let recorded = lock(replies).get_mut(&key).and_then(VecDeque::pop_front);
        let Some(recorded) = recorded else {
            let message = format!(
                "{} has no reply left for this request of {} messages: record it again, or find out why the program \
                 asks for something else",
                self.path.display(),
                request.messages.len()
            );
            return Err(Error::new(Code::Recording, message));
        };
        let (events, error) = recorded.into_parts();
        match error {
            Some(error) if events.is_empty() => Err(error),
            error => Ok(ChatStream::new(stream::iter(events.into_iter().map(Ok).chain(error.map(Err))))),
        }
    }
}

#[async_trait]
impl ChatModel for Recording {
    fn info(&self) -> ModelInfo {
        match &self.source {
            Source::Live { model, .. } => model.info(),
            Source::File { info, .. } => (**info).clone(),
        }
    }

    async fn stream(&self, request: ChatRequest) -> Result<ChatStream> {
        match &self.source {
            Source::Live { model, .. } => self.record(&**model, request).await,
            Source::File { replies, .. } => self.replay(replies, &request),
        }
    }
}

impl fmt::Debug for Recording {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_live = matches!(self.source, Source::Live { .. });
        out.debug_struct("Recording")
            .field("path", &self.path)
            .field("is_live", &is_live)
            .finish_non_exhaustive()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn unwritable(path: &Path, error: &std::io::Error) -> Error {
    let message = format!("{} cannot be written ({error}): check the folder and its rights", path.display());
    Error::new(Code::Recording, message)
}

fn unreadable(path: &Path, why: String) -> Error {
    let message =
        format!("{} is no readable recording ({why}): make it with `Recording::of`", path.display());
    Error::new(Code::Recording, message)
}

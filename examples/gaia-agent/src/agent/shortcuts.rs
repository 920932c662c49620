//! [`Shortcuts`]: answers that cost no call of a model: from the cache, and by patterns.

use agentgraph_llm::{Hooks, Jump, Message, Middleware, Origin, Result, Turn};
use async_trait::async_trait;

use super::{Asked, pattern};
use crate::cache::{AnswerCache, CacheKey};
use crate::log::Log;

/// The providers that a message of a shortcut names as its origin.
pub(super) const CACHE: &str = "cache";
pub(super) const PATTERN: &str = "pattern";

/// Looks for an answer before the first request. What it finds is a message of the thread, and ends the run.
pub(super) struct Shortcuts {
    pub(super) cache: Option<AnswerCache>,
    pub(super) patterns: bool,
    pub(super) log: Log,
}

#[async_trait]
impl Middleware for Shortcuts {
    fn name(&self) -> &str {
        "shortcuts"
    }

    fn hooks(&self) -> Hooks {
        Hooks::NONE.before_agent()
    }

    async fn before_agent(&self, turn: &mut Turn) -> Result<Jump> {
        // Outside of a `GaiaAgent` there is no question.
        let Ok(asked) = turn.ctx()?.call_context::<Asked>() else { return Ok(Jump::Next) };
        let kept = asked.key.as_ref().and_then(|key| self.cached(&asked.task, key));
        let found = match kept {
            Some(answer) => Some((answer, CACHE)),
            None if self.patterns => pattern::answer(&asked.question).map(|answer| (answer, PATTERN)),
            None => None,
        };
        let Some((answer, origin)) = found else { return Ok(Jump::Next) };
        turn.push(Message::assistant(answer).with_origin(Origin::new(origin, origin)));
        Ok(Jump::End)
    }
}

impl Shortcuts {
    /// A cache that cannot be read is a miss.
    pub(super) fn cached(&self, task: &str, key: &CacheKey) -> Option<String> {
        let cache = self.cache.as_ref()?;
        let found = cache.get(key);
        for aside in cache.set_aside() {
            let text = format!("the cache could not be read, and is set aside as {}", aside.display());
            self.log.line(task, "cache", &text);
        }
        match found {
            Ok(Some(hit)) => {
                let of =
                    hit.other_question.map(|other| format!(", of the question: {other}")).unwrap_or_default();
                self.log.line(task, "cache hit", &format!("{}{of}", hit.answer));
                Some(hit.answer)
            }
            Ok(None) => {
                self.log.line(task, "cache miss", "");
                None
            }
            Err(error) => {
                self.log.line(task, "cache miss", &format!("the cache cannot be read: {error}"));
                None
            }
        }
    }
}

//! A limit of the requests to the model.

use async_trait::async_trait;

use super::limit_count::{Count, Limits};
use super::{Hooks, Jump, Middleware, Turn};
use crate::error::Result;
use crate::message::Message;

/// What happens when a limit is reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum AtLimit {
    /// The run ends; its last message says why.
    #[default]
    End,
    /// The run fails.
    Error,
}

/// Limits the requests of an agent to its model, for a run, for a thread, or for both.
///
/// ```
/// use agentgraph_llm::middleware::{AtLimit, Jump, Middleware, ModelCallLimit, Turn};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> agentgraph_llm::Result<()> {
/// let limit = ModelCallLimit::per_run(0)?;
/// let mut turn = Turn::detached(limit.name(), []);
/// assert_eq!(limit.before_model(&mut turn).await?, Jump::End);
/// assert!(turn.messages()[0].text().contains("limit of 0 model calls per run"));
///
/// let limit = limit.at_limit(AtLimit::Error);
/// assert_eq!(limit.before_model(&mut turn).await.unwrap_err().code().as_str(), "E_LLM_CALL_LIMIT");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct ModelCallLimit {
    limits: Limits,
    at_limit: AtLimit,
}

impl ModelCallLimit {
    /// Allows this many requests in a run, and then ends it.
    ///
    /// # Errors
    /// `E_LLM_CONFIG` as [`new`](Self::new).
    pub fn per_run(calls: u64) -> Result<Self> {
        ModelCallLimit::new(None, Some(calls))
    }

    /// Allows this many requests in a thread and in each of its runs; `None` is no limit.
    ///
    /// # Errors
    /// `E_LLM_CONFIG` if there is neither, or if the limit of a run is above that of the thread.
    pub fn new(thread: Option<u64>, run: Option<u64>) -> Result<Self> {
        let limits = Limits { thread, run };
        limits.check()?;
        Ok(ModelCallLimit { limits, at_limit: AtLimit::default() })
    }

    /// Sets what happens when the limit is reached.
    pub fn at_limit(mut self, action: AtLimit) -> Self {
        self.at_limit = action;
        self
    }
}

#[async_trait]
impl Middleware for ModelCallLimit {
    fn name(&self) -> &str {
        "model_call_limit"
    }

    fn hooks(&self) -> Hooks {
        Hooks::NONE.before_model()
    }

    async fn before_model(&self, turn: &mut Turn) -> Result<Jump> {
        let count = Count { thread: turn.thread_rounds(), run: turn.run_rounds() };
        if self.limits.room(count) > 0 {
            return Ok(Jump::Next);
        }
        let error = self.limits.error(count, "model calls");
        match self.at_limit {
            AtLimit::Error => Err(error),
            AtLimit::End => {
                turn.push(Message::assistant(error.message()));
                Ok(Jump::End)
            }
        }
    }
}

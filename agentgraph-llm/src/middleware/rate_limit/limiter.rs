//! The limiter: who may ask now, and who waits.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use super::window::{Room, Window};
use crate::error::{Code, Error, Result};
use crate::http::{Clock, SystemClock};
use crate::model::{ChatRequest, ChatResponse, ChatStream, TokenCount};

/// A limit of requests and tokens per minute. Clones share it, so one limiter serves many models and agents
/// of one account.
///
/// No window of a minute has more than the limit, wherever it begins. Requests wait in the order in which
/// they came. What a provider says in its headers ([`ChatResponse::limits`]) counts, too: if nothing is left,
/// requests wait for the reset that it named.
///
/// The tokens of a request are estimated before it is sent, with its limit of output tokens. If the response
/// used more, the rest is counted when it is known.
///
/// ```
/// use agentgraph_llm::middleware::RateLimiter;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> agentgraph_llm::Result<()> {
/// let limiter = RateLimiter::new().requests_per_minute(50).tokens_per_minute(40_000);
/// limiter.acquire(1200).await?;
/// let error = limiter.acquire(50_000).await.unwrap_err();
/// assert_eq!(error.code().as_str(), "E_LLM_TOO_LARGE");    // no wait would help
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct RateLimiter(Arc<Shared>);

struct Shared {
    clock: Arc<dyn Clock>,
    windows: Mutex<Windows>,
    /// Held by the request that is next, also while it waits: the others queue in their order.
    turn: tokio::sync::Mutex<()>,
}

struct Windows {
    requests: Window,
    tokens: Window,
}

/// The right to make one request.
#[derive(Debug)]
#[must_use = "tell the limiter what the response used, with `settle` or `watch`"]
pub struct Permit {
    limiter: RateLimiter,
    tokens: u64,
}

impl RateLimiter {
    /// A limiter that only follows what the provider says.
    pub fn new() -> Self {
        RateLimiter::of(Arc::new(SystemClock), None, None)
    }

    fn of(clock: Arc<dyn Clock>, requests: Option<u64>, tokens: Option<u64>) -> Self {
        let windows = Mutex::new(Windows { requests: Window::new(requests), tokens: Window::new(tokens) });
        RateLimiter(Arc::new(Shared { clock, windows, turn: tokio::sync::Mutex::new(()) }))
    }

    /// A fresh limiter with this limit of requests. Set limits before you clone it.
    pub fn requests_per_minute(self, requests: u64) -> Self {
        let tokens = self.lock().tokens.limit();
        RateLimiter::of(Arc::clone(&self.0.clock), Some(requests), tokens)
    }

    /// A fresh limiter with this limit of input and output tokens. Set limits before you clone it.
    pub fn tokens_per_minute(self, tokens: u64) -> Self {
        let requests = self.lock().requests.limit();
        RateLimiter::of(Arc::clone(&self.0.clock), requests, Some(tokens))
    }

    /// A fresh limiter with this source of time.
    pub fn clock(self, clock: Arc<dyn Clock>) -> Self {
        let requests = self.lock().requests.limit();
        let tokens = self.lock().tokens.limit();
        RateLimiter::of(clock, requests, tokens)
    }

    /// Waits until a request with this many tokens may be made.
    ///
    /// # Errors
    /// `E_LLM_TOO_LARGE` if it alone is above a limit.
    pub async fn acquire(&self, tokens: u64) -> Result<Permit> {
        let _turn = self.0.turn.lock().await;
        loop {
            let now = self.0.clock.now();
            match self.try_acquire(now, tokens)? {
                None => return Ok(Permit { limiter: self.clone(), tokens }),
                Some(ready) => self.0.clock.sleep(ready.duration_since(now).unwrap_or_default()).await,
            }
        }
    }

    /// The time to ask again, or `None` if the request was counted.
    fn try_acquire(&self, now: SystemTime, tokens: u64) -> Result<Option<SystemTime>> {
        let mut windows = self.lock();
        match (windows.requests.room(now, 1), windows.tokens.room(now, tokens)) {
            (Room::Never, _) | (_, Room::Never) => Err(too_large(tokens, &windows)),
            (Room::At(one), Room::At(other)) => Ok(Some(one.max(other))),
            (Room::At(ready), Room::Now) | (Room::Now, Room::At(ready)) => Ok(Some(ready)),
            (Room::Now, Room::Now) => {
                windows.requests.grant(now, 1);
                windows.tokens.grant(now, tokens);
                Ok(None)
            }
        }
    }

    /// The tokens that a request may use, by estimate.
    pub fn tokens_of(request: &ChatRequest) -> u64 {
        let output = request.max_tokens.map_or(0, u64::from);
        TokenCount::estimate(request).tokens.saturating_add(output)
    }

    fn lock(&self) -> MutexGuard<'_, Windows> {
        // The windows are whole after each call, also after one that panicked.
        self.0.windows.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for RateLimiter {
    fn default() -> Self {
        RateLimiter::new()
    }
}

fn too_large(tokens: u64, windows: &Windows) -> Error {
    let message = format!(
        "a request of {tokens} tokens is above the limit of {} requests and {} tokens per minute, so it can never be \
         made: shorten it, or raise the limit",
        windows.requests.limit().map_or("any number of".to_owned(), |limit| limit.to_string()),
        windows.tokens.limit().map_or("any number of".to_owned(), |limit| limit.to_string()),
    );
    Error::new(Code::TooLarge, message)
}

impl Permit {
    /// Notes what the response used, and what the provider says is left.
    pub fn settle(self, response: &ChatResponse) {
        let now = self.limiter.0.clock.now();
        let mut windows = self.limiter.lock();
        windows.tokens.correct(now, self.tokens, response.usage.total());
        let Some(limits) = &response.limits else { return };
        if let Some(quota) = &limits.requests {
            windows.requests.hear(now, quota.remaining, quota.resets_in);
        }
        if let Some(quota) = &limits.tokens {
            windows.tokens.hear(now, quota.remaining, quota.resets_in);
        }
    }

    /// Settles at the end of a stream.
    pub fn watch(self, stream: ChatStream) -> ChatStream {
        stream.map_response(move |response| {
            self.settle(&response);
            response
        })
    }
}

impl fmt::Debug for RateLimiter {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let windows = self.lock();
        let mut parts = out.debug_struct("RateLimiter");
        parts.field("requests", &windows.requests.limit()).field("tokens", &windows.tokens.limit()).finish()
    }
}

//! What a provider says about its rate limits.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The rate limits as the headers of a response give them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct RateLimits {
    /// The limit of requests.
    pub requests: Option<Quota>,
    /// The limit of tokens.
    pub tokens: Option<Quota>,
}

impl RateLimits {
    /// Limits of requests and tokens.
    pub fn new(requests: Option<Quota>, tokens: Option<Quota>) -> Self {
        RateLimits { requests, tokens }
    }
}

/// One rate limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Quota {
    /// How many are allowed in a period.
    pub limit: Option<u64>,
    /// How many are left.
    pub remaining: Option<u64>,
    /// The time until the quota is full again.
    pub resets_in: Option<Duration>,
}

impl Quota {
    /// A quota of these numbers.
    pub fn new(limit: Option<u64>, remaining: Option<u64>, resets_in: Option<Duration>) -> Self {
        Quota { limit, remaining, resets_in }
    }
}

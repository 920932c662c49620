//! Counts of calls and their limits, apart for a run and for a thread. Pure.

use serde::{Deserialize, Serialize};

use crate::error::{Code, Error, Result};

/// Calls so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Count {
    pub(super) thread: u64,
    pub(super) run: u64,
}

/// The limits; at least one is set.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) thread: Option<u64>,
    pub(super) run: Option<u64>,
}

impl Count {
    pub(super) fn add(&mut self, calls: u64) {
        self.thread = self.thread.saturating_add(calls);
        self.run = self.run.saturating_add(calls);
    }
}

impl Limits {
    /// How many more calls are allowed.
    pub(super) fn room(&self, count: Count) -> u64 {
        let left = |limit: Option<u64>, used| limit.map_or(u64::MAX, |limit: u64| limit.saturating_sub(used));
        left(self.thread, count.thread).min(left(self.run, count.run))
    }

    /// The error that names the limit which was reached. `calls` is what is counted.
    pub(super) fn error(&self, count: Count, calls: &str) -> Error {
        let (limit, of, remedy) = match self.thread {
            Some(limit) if count.thread >= limit => (limit, "thread", "start another thread"),
            _ => (self.run.unwrap_or(0), "run", "let the agent finish with fewer"),
        };
        Error::new(
            Code::CallLimit,
            format!("the limit of {limit} {calls} per {of} is reached: {remedy}, or raise the limit"),
        )
    }

    pub(super) fn check(&self) -> Result<()> {
        match (self.thread, self.run) {
            (None, None) => {
                Err(Error::new(Code::Config, "a call limit needs a limit for the run or the thread"))
            }
            (Some(thread), Some(run)) if run > thread => {
                let message =
                    format!("the limit of a run ({run}) is above that of its thread ({thread}): lower it");
                Err(Error::new(Code::Config, message))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// However calls are asked for, no run and no thread has more than its limit, and none is refused
        /// before a limit is reached.
        #[test]
        fn exactly_the_limit_is_allowed(
            thread in prop::option::of(0_u64..20),
            run in prop::option::of(0_u64..10),
            runs in prop::collection::vec(prop::collection::vec(0_u64..5, 0..6), 0..6),
        ) {
            let limits = Limits { thread, run };
            let mut count = Count::default();
            let mut in_thread = 0;
            for asked in runs {
                count.run = 0;
                let mut in_run = 0;
                for wanted in asked {
                    for _ in 0..wanted {
                        let allowed = thread.is_none_or(|limit| in_thread < limit) && run.is_none_or(|limit| in_run < limit);
                        prop_assert_eq!(limits.room(count) > 0, allowed);
                        if allowed {
                            count.add(1);
                            in_thread += 1;
                            in_run += 1;
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn a_limit_must_be_set_and_possible() {
        assert!(Limits { thread: None, run: None }.check().is_err());
        assert!(Limits { thread: Some(1), run: Some(2) }.check().is_err());
        assert!(Limits { thread: Some(2), run: Some(2) }.check().is_ok());
    }
}

//! A regular expression that knows whether a text that goes on can still become a match.

use std::fmt;
use std::sync::Arc;

use regex_automata::hybrid::LazyStateID;
use regex_automata::hybrid::dfa::{Cache, DFA};
use regex_automata::util::start;
use regex_automata::{Anchored, MatchKind};

use crate::error::{Code, Error, Result};

/// A compiled expression. Cheap to clone.
#[derive(Clone)]
pub(super) struct Pattern(Arc<DFA>);

/// One attempt to match from a fixed start, which can be continued when more text arrives.
pub(super) struct Attempt {
    state: LazyStateID,
    /// Bytes read since the start.
    read: usize,
    /// The length of the best match so far.
    best: Option<usize>,
    /// Whether the cache forgot the state, so that the attempt has to begin again.
    pub(super) is_lost: bool,
}

/// The result of an attempt.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// No further text changes it: a match of this length, or none.
    Decided(Option<usize>),
    /// Further text can change it.
    Open,
}

impl Pattern {
    pub(super) fn new(expression: &str) -> Result<Self> {
        let config = DFA::config().match_kind(MatchKind::LeftmostFirst);
        let dfa = DFA::builder().configure(config).build(expression).map_err(|error| {
            let message = format!(
                "the expression for personal data cannot be used: {error}; for a word boundary write `(?-u:\\b)`"
            );
            Error::new(Code::Config, message)
        })?;
        if dfa.get_nfa().has_empty() {
            let message = "the expression for personal data matches the empty text: let it match a character";
            return Err(Error::new(Code::Config, message));
        }
        Ok(Pattern(Arc::new(dfa)))
    }

    pub(super) fn cache(&self) -> Cache {
        self.0.create_cache()
    }

    /// Begins an attempt after the byte `before`, or at the start of the text.
    pub(super) fn attempt(&self, cache: &mut Cache, before: Option<u8>) -> Result<Attempt> {
        let config = start::Config::new().anchored(Anchored::Yes).look_behind(before);
        let state = self.0.start_state(cache, &config).map_err(unusable)?;
        Ok(Attempt { state, read: 0, best: None, is_lost: false })
    }

    /// Continues an attempt with all the text since its start. `is_whole` says that no text follows.
    pub(super) fn advance(
        &self,
        cache: &mut Cache,
        attempt: &mut Attempt,
        text: &[u8],
        is_whole: bool,
    ) -> Result<Outcome> {
        while let Some(byte) = text.get(attempt.read) {
            attempt.state = self.0.next_state(cache, attempt.state, *byte).map_err(unusable)?;
            // The automaton reports a match one byte late, because of boundaries.
            if attempt.state.is_match() {
                attempt.best = Some(attempt.read);
            } else if attempt.state.is_dead() || attempt.state.is_quit() {
                return Ok(Outcome::Decided(attempt.best));
            }
            attempt.read += 1;
        }
        if !is_whole {
            return self.look_ahead(cache, attempt);
        }
        let end = self.0.next_eoi_state(cache, attempt.state).map_err(unusable)?;
        if end.is_match() {
            attempt.best = Some(attempt.read);
        }
        Ok(Outcome::Decided(attempt.best))
    }
}

impl Pattern {
    /// Whether any next byte, and the end of the text, lead to the same outcome.
    fn look_ahead(&self, cache: &mut Cache, attempt: &mut Attempt) -> Result<Outcome> {
        let cleared = cache.clear_count();
        let ends_here = self.0.next_eoi_state(cache, attempt.state).map_err(unusable)?.is_match();
        let next = self.next_states(cache, attempt.state)?;
        let outcome = if next.iter().all(|state| state.is_dead()) && !ends_here {
            Outcome::Decided(attempt.best)
        } else if ends_here && self.all_end(cache, &next)? {
            Outcome::Decided(Some(attempt.read))
        } else {
            Outcome::Open
        };
        attempt.is_lost = cache.clear_count() != cleared;
        Ok(if attempt.is_lost { Outcome::Open } else { outcome })
    }

    /// The states after each byte, each once.
    fn next_states(&self, cache: &mut Cache, state: LazyStateID) -> Result<Vec<LazyStateID>> {
        let mut states = Vec::new();
        for unit in self.0.byte_classes().representatives(0..=255_u8) {
            let Some(byte) = unit.as_u8() else { continue };
            let next = self.0.next_state(cache, state, byte).map_err(unusable)?;
            if !states.contains(&next) {
                states.push(next);
            }
        }
        Ok(states)
    }

    /// Whether all of these states are matches that cannot grow.
    fn all_end(&self, cache: &mut Cache, states: &[LazyStateID]) -> Result<bool> {
        for state in states {
            if !state.is_match() {
                return Ok(false);
            }
            let grows = self.0.next_eoi_state(cache, *state).map_err(unusable)?.is_match();
            if grows || self.next_states(cache, *state)?.iter().any(|next| !next.is_dead()) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

fn unusable(error: impl fmt::Display) -> Error {
    Error::new(Code::Config, format!("the expression for personal data cannot be run: {error}; simplify it"))
}

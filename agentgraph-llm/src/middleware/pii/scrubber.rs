//! Replaces matches in a text that arrives in pieces.
//!
//! The result does not depend on the cuts: from each position, the first that can begin a match, the text is
//! held back until it is known whether it does.

use std::ops::Range;

use regex_automata::hybrid::dfa::Cache;

use super::Rule;
use super::kind::Finder;
use super::pattern::{Attempt, Outcome, Pattern};
use crate::error::Result;

/// The state of one text.
pub(super) struct Scrubber {
    /// The text that was not let through yet.
    held: String,
    /// The last byte before it.
    before: Option<u8>,
    /// The attempt at the start of `held`.
    attempt: Option<Attempt>,
    cache: Option<Cache>,
}

impl Scrubber {
    pub(super) fn new() -> Self {
        Scrubber { held: String::new(), before: None, attempt: None, cache: None }
    }

    /// Takes the next piece and returns what is certain now.
    pub(super) fn push(&mut self, rule: &Rule, piece: &str) -> Result<String> {
        self.held.push_str(piece);
        self.release(rule, false)
    }

    /// Returns the rest. The scrubber is then at the start of a new text.
    pub(super) fn finish(&mut self, rule: &Rule) -> Result<String> {
        let rest = self.release(rule, true);
        *self = Scrubber { cache: self.cache.take(), ..Scrubber::new() };
        rest
    }

    fn release(&mut self, rule: &Rule, is_whole: bool) -> Result<String> {
        match &rule.kind.finder {
            Finder::Pattern { pattern, check } => self.release_by_pattern(rule, pattern, *check, is_whole),
            Finder::Function(find) if is_whole => replace(rule, &self.held, find(&self.held)),
            Finder::Function(_) => Ok(String::new()),
        }
    }

    fn release_by_pattern(
        &mut self,
        rule: &Rule,
        pattern: &Pattern,
        check: fn(&str) -> Option<usize>,
        is_whole: bool,
    ) -> Result<String> {
        let mut cache = self.cache.take().unwrap_or_else(|| pattern.cache());
        let mut attempt = self.attempt.take();
        let mut clean = String::new();
        let mut at = 0;
        while let Some(first) = self.held[at..].chars().next() {
            let mut current = match attempt.take() {
                Some(attempt) => attempt,
                None => pattern.attempt(&mut cache, self.before)?,
            };
            let rest = &self.held[at..];
            let length = match pattern.advance(&mut cache, &mut current, rest.as_bytes(), is_whole)? {
                Outcome::Open => {
                    attempt = Some(current).filter(|attempt| !attempt.is_lost);
                    break;
                }
                Outcome::Decided(found) => found.and_then(|length| check(&rest[..length])),
            };
            let taken = length.unwrap_or(first.len_utf8());
            match length {
                Some(_) => clean.push_str(&rule.replacement(&rest[..taken])?),
                None => clean.push(first),
            }
            self.before = rest.as_bytes().get(taken - 1).copied();
            at += taken;
        }
        self.held.drain(..at);
        self.attempt = attempt;
        self.cache = Some(cache);
        Ok(clean)
    }
}

/// Replaces ranges that a function found. Ranges that overlap an earlier one, or that are no part of the
/// text, are left out.
fn replace(rule: &Rule, text: &str, mut ranges: Vec<Range<usize>>) -> Result<String> {
    ranges.sort_by_key(|range| (range.start, std::cmp::Reverse(range.end)));
    let mut clean = String::new();
    let mut at = 0;
    for range in ranges {
        if let Some(found) = text.get(range.clone()).filter(|found| range.start >= at && !found.is_empty()) {
            clean.push_str(&text[at..range.start]);
            clean.push_str(&rule.replacement(found)?);
            at = range.end;
        }
    }
    clean.push_str(&text[at..]);
    Ok(clean)
}

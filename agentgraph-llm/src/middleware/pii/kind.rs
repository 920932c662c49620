//! What personal data looks like: a pattern, and a check of what the pattern found.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::ops::Range;
use std::sync::Arc;

use super::pattern::Pattern;
use crate::error::Result;

type Function = dyn Fn(&str) -> Vec<Range<usize>> + Send + Sync;

/// A kind of personal data, and how it is found.
///
/// The patterns of the built-in kinds are bounded, so a stream is held back for the length of one match at
/// most. A match is taken leftmost first; a match that fails its check (such as the check digit of a card) is
/// no match.
#[derive(Clone)]
pub struct PiiKind {
    name: String,
    pub(super) finder: Finder,
    pub(super) mask: Mask,
}

#[derive(Clone)]
pub(super) enum Finder {
    /// The check returns how much of the match is accepted, from its start; `None` for nothing.
    Pattern {
        pattern: Pattern,
        check: fn(&str) -> Option<usize>,
    },
    Function(Arc<Function>),
}

/// How a match is masked.
#[derive(Clone, Copy)]
pub(super) enum Mask {
    /// The last characters stay, the other letters and digits become stars.
    LastAlphanumerics(usize),
    /// The user stays, the host becomes stars but for its last label.
    Email,
    /// All becomes stars.
    Whole,
}

const EMAIL: &str = r"[A-Za-z0-9._%+'-]{1,64}@(?:[A-Za-z0-9-]{1,63}\.){1,8}[A-Za-z]{2,24}(?-u:\b)";
const CREDIT_CARD: &str = r"(?-u:\b)[0-9](?:[ -]?[0-9]){12,18}(?-u:\b)";
const IP: &str = concat!(
    r"(?-u:\b{start-half})(?:(?:[0-9]{1,3}\.){3}[0-9]{1,3}",
    r"|(?:[0-9A-Fa-f]{0,4}:){2,7}(?:(?:[0-9]{1,3}\.){3}[0-9]{1,3}|[0-9A-Fa-f]{0,4}))(?-u:\b{end-half})",
);
const MAC: &str = concat!(
    r"(?-u:\b)(?:(?:[0-9A-Fa-f]{2}:){5}[0-9A-Fa-f]{2}|(?:[0-9A-Fa-f]{2}-){5}[0-9A-Fa-f]{2}",
    r"|(?:[0-9A-Fa-f]{4}\.){2}[0-9A-Fa-f]{4})(?-u:\b)",
);
const URL: &str = r#"(?i:https?://|www\.)[^\s<>"]*[^\s<>"'.,;:!?)\]]"#;

impl PiiKind {
    /// An email address.
    pub fn email() -> Self {
        PiiKind::built_in("email", EMAIL, all, Mask::Email)
    }

    /// A number of 13 to 19 digits, with or without spaces and hyphens, whose Luhn digit is right.
    pub fn credit_card() -> Self {
        PiiKind::built_in("credit_card", CREDIT_CARD, card, Mask::LastAlphanumerics(4))
    }

    /// An IPv4 or IPv6 address.
    pub fn ip() -> Self {
        PiiKind::built_in("ip", IP, address, Mask::Whole)
    }

    /// A MAC address in one of its three notations.
    pub fn mac() -> Self {
        PiiKind::built_in("mac", MAC, all, Mask::LastAlphanumerics(2))
    }

    /// An address that begins with `http://`, `https://` or `www.`.
    pub fn url() -> Self {
        PiiKind::built_in("url", URL, all, Mask::Whole)
    }

    /// A kind found by a regular expression, in the syntax of the `regex` crate.
    ///
    /// ```
    /// use agentgraph_llm::middleware::PiiKind;
    ///
    /// let key = PiiKind::pattern("api_key", r"sk-[A-Za-z0-9]{32}").unwrap();
    /// assert_eq!(key.name(), "api_key");
    /// ```
    ///
    /// # Errors
    /// `E_LLM_CONFIG` if the expression is not valid, can match the empty text, or needs a Unicode word
    /// boundary: write `(?-u:\b)` for `\b`.
    pub fn pattern(name: impl Into<String>, expression: &str) -> Result<Self> {
        let pattern = Pattern::new(expression)?;
        let finder = Finder::Pattern { pattern, check: all };
        Ok(PiiKind { name: name.into(), finder, mask: Mask::LastAlphanumerics(4) })
    }

    /// A kind found by a function that returns the byte ranges of its matches in a text. Nothing is known
    /// about it, so each block of a stream is held back until its end.
    pub fn function(
        name: impl Into<String>,
        find: impl Fn(&str) -> Vec<Range<usize>> + Send + Sync + 'static,
    ) -> Self {
        let finder = Finder::Function(Arc::new(find));
        PiiKind { name: name.into(), finder, mask: Mask::LastAlphanumerics(4) }
    }

    /// The name, as it appears in `[REDACTED_EMAIL]`.
    pub fn name(&self) -> &str {
        &self.name
    }

    fn built_in(name: &str, expression: &str, check: fn(&str) -> Option<usize>, mask: Mask) -> Self {
        let finder = match Pattern::new(expression) {
            Ok(pattern) => Finder::Pattern { pattern, check },
            // A pattern of this file is always valid. If it were not, nothing must pass.
            Err(_) => Finder::Function(Arc::new(|text| std::iter::once(0..text.len()).collect())),
        };
        PiiKind { name: name.to_owned(), finder, mask }
    }
}

impl fmt::Debug for PiiKind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_tuple("PiiKind").field(&self.name).finish()
    }
}

fn all(found: &str) -> Option<usize> {
    Some(found.len())
}

/// The longest part of a run of digits that is a card's number and ends where a group ends.
fn card(found: &str) -> Option<usize> {
    let ends = found.char_indices().filter(|(_, char)| !char.is_ascii_digit()).map(|(at, _)| at);
    let mut ends: Vec<usize> = ends.chain([found.len()]).collect();
    ends.reverse();
    ends.into_iter().find(|end| {
        let digits: Vec<u32> = found[..*end].chars().filter_map(|char| char.to_digit(10)).collect();
        digits.len() >= 13 && has_luhn_digit(&digits)
    })
}

fn has_luhn_digit(digits: &[u32]) -> bool {
    let sum: u32 = digits
        .iter()
        .rev()
        .enumerate()
        .map(|(place, digit)| match digit * (1 + place as u32 % 2) {
            doubled if doubled > 9 => doubled - 9,
            digit => digit,
        })
        .sum();
    sum.is_multiple_of(10)
}

/// The longest part from the start that is an address.
fn address(found: &str) -> Option<usize> {
    let is_address = |text: &str| text.parse::<Ipv4Addr>().is_ok() || text.parse::<Ipv6Addr>().is_ok();
    let ends_group = |end: usize| !found[end..].starts_with(|next: char| next.is_ascii_alphanumeric());
    (3..=found.len()).rev().find(|end| ends_group(*end) && is_address(&found[..*end]))
}

//! The mark that a task leaves in the state. It shows in stored bytes whether the task was stored.

use std::cmp::Ordering;
use std::fmt;

use serde::{Deserialize, Serialize};

/// A text `<place:name>`. The place says when the task runs: `2` is the second superstep, and `2.sub.1` is
/// the first superstep of `sub` in the second superstep.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Mark(String);

impl Mark {
    pub fn new(place: impl fmt::Display, name: impl fmt::Display) -> Self {
        Mark(format!("<{place}:{name}>"))
    }

    pub fn text(&self) -> &str {
        &self.0
    }

    fn place(&self) -> impl Iterator<Item = &str> {
        let place = self.0.trim_start_matches('<').split(':').next().unwrap_or_default();
        place.split('.')
    }

    /// Whether the state of the thread shows the mark only after the task around it has finished.
    pub fn is_inside(&self) -> bool {
        self.place().count() > 1
    }

    /// Whether a task of a subgraph leaves the mark.
    pub fn is_of_subgraph(&self) -> bool {
        self.place().any(|part| part == "sub")
    }

    /// Whether its task can begin only after the task of `other` has ended. Numbered parts of a place are
    /// ordered, named parts are not.
    pub fn comes_after(&self, other: &Mark) -> bool {
        let parts = self.place().zip(other.place()).find(|(mine, its)| mine != its);
        let Some((mine, its)) = parts else { return false };
        match (mine.parse::<u64>(), its.parse::<u64>()) {
            (Ok(mine), Ok(its)) => mine.cmp(&its) == Ordering::Greater,
            _ => false,
        }
    }

    /// Returns all marks in the bytes, in their order.
    pub fn all_in(bytes: &[u8]) -> Vec<Mark> {
        let mut found = Vec::new();
        for piece in bytes.split(|byte| *byte == b'<').skip(1) {
            let Some(end) = piece.iter().position(|byte| *byte == b'>') else { continue };
            let Ok(inner) = std::str::from_utf8(&piece[..end]) else { continue };
            if is_mark(inner) {
                found.push(Mark(format!("<{inner}>")));
            }
        }
        found
    }
}

/// Whether the text between two brackets is a mark. Other bytes may contain brackets by chance.
fn is_mark(inner: &str) -> bool {
    let plain =
        |text: &str| text.chars().all(|letter| letter.is_ascii_alphanumeric() || "._".contains(letter));
    let parts = inner.split_once(':');
    parts.is_some_and(|(place, name)| {
        place.starts_with(|first: char| first.is_ascii_digit())
            && plain(place)
            && !name.is_empty()
            && plain(name)
    })
}

impl fmt::Debug for Mark {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

//! JSON within the prose of an answer.
//!
//! Models are asked for JSON and write a sentence before it, a fence round it and a remark behind it.
//! [`JsonInText`] finds the objects and arrays of a text; the last one is usually the answer. It knows
//! brackets, strings and fences, not what the JSON should say.
//!
//! - A *value* is an object or an array as RFC 8259 has them, so no `NaN`, no comments, no trailing commas,
//!   and nested no deeper than `serde_json` reads (127 levels). Of values within each other the outermost
//!   counts. A lone number, string or word counts only where nothing else stands: as the whole text, or as
//!   the whole of a JSON block.
//! - If the text has fenced blocks marked `json` that are not empty, only what stands in them counts: that is
//!   where the model says its JSON is.
//! - A bracket that is no beginning of JSON is prose: `[sic]`, `{name}`, the outer braces of `{{"a": 1}}`.
//! - What begins as JSON and breaks off is no value, and *nothing inside of it* is one either: the half of an
//!   answer must not be taken for the whole. `{"plan": {"steps": 3}, "risk": NaN}` holds no value, and
//!   neither does `{"a": [1, 2]` at the end of a cut text. [`broken`](JsonInText::broken) says where it
//!   broke, which is worth telling the model.
//!
//! The time is linear in the text, the memory beside it a few words per value found.

mod read;

use std::fmt;
use std::ops::Range;

use serde::de::IgnoredAny;
use serde_json::Value;

use read::{Reading, read_value};

/// The last JSON value in a text. See the [module](crate::json_in_text) for what counts as one.
///
/// ```
/// use agentgraph_llm::json_in_text::last_json;
///
/// assert_eq!(last_json(r#"{"a": 1}? No: {"answer": "}"}, I think [sic]."#), Some(r#"{"answer": "}"}"#));
/// assert_eq!(last_json("nothing {here}"), None);
/// ```
pub fn last_json(text: &str) -> Option<&str> {
    JsonInText::of(text).last()
}

/// The JSON values in a text, found in one pass.
///
/// ```
/// use agentgraph_llm::json_in_text::JsonInText;
///
/// let found = JsonInText::of("[1, 2] or rather\n```json\n{\"answer\": \"yes\"}\n```\nas in [2].");
/// assert_eq!(found.last(), Some(r#"{"answer": "yes"}"#));
///
/// let found = JsonInText::of(r#"{"answer": "yes",}"#);
/// assert_eq!(found.last(), None);
/// assert_eq!(found.broken().unwrap().to_string(), "trailing comma at line 1 column 18");
/// ```
#[derive(Clone, Debug)]
pub struct JsonInText<'t> {
    text: &'t str,
    values: Vec<Range<usize>>,
    broken: Option<usize>,
}

impl<'t> JsonInText<'t> {
    /// Reads a text.
    pub fn of(text: &'t str) -> Self {
        let mut scan = Scan::new(text);
        scan.run();
        let Scan { values, in_blocks, has_blocks, broken, .. } = scan;
        let mut values = if has_blocks { in_blocks } else { values };
        if values.is_empty()
            && !has_blocks
            && let Some(scalar) = scalar(text, 0..text.len())
        {
            values.push(scalar);
        }
        let last = values.last().map_or(0, |last| last.end);
        JsonInText { text, values, broken: broken.filter(|start| *start >= last) }
    }

    /// The last value.
    pub fn last(&self) -> Option<&'t str> {
        self.values.last().map(|at| &self.text[at.clone()])
    }

    /// All values, in the order of the text.
    pub fn all(&self) -> impl DoubleEndedIterator<Item = &'t str> + ExactSizeIterator {
        self.values.iter().map(|at| &self.text[at.clone()])
    }

    /// What began as JSON behind the last value and broke off.
    pub fn broken(&self) -> Option<BrokenJson<'t>> {
        self.broken.map(|start| BrokenJson(&self.text[start..]))
    }
}

/// Something that began as JSON and broke off. Displays where and why.
#[derive(Clone, Copy, Debug)]
pub struct BrokenJson<'t>(&'t str);

impl<'t> BrokenJson<'t> {
    /// The text from where it began.
    pub fn text(&self) -> &'t str {
        self.0
    }
}

impl fmt::Display for BrokenJson<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut values = serde_json::Deserializer::from_str(self.0).into_iter::<Value>();
        match values.next() {
            Some(Err(error)) => error.fmt(out),
            _ => out.write_str("it breaks off"),
        }
    }
}

/// A fence that is open.
#[derive(Clone, Copy)]
struct Fence {
    ticks: usize,
    is_json: bool,
    body: usize,
    /// How many values the blocks had before it.
    before: usize,
}

/// The pass over a text.
struct Scan<'t> {
    text: &'t str,
    at: usize,
    values: Vec<Range<usize>>,
    in_blocks: Vec<Range<usize>>,
    has_blocks: bool,
    fence: Option<Fence>,
    /// Brackets of broken JSON that are still open. What is found meanwhile is inside of it, if they close.
    open: usize,
    /// How many values there were before it broke.
    kept: (usize, usize),
    broken: Option<usize>,
    /// Up to here no quote begins a string, as the one before had no end in its line.
    unquoted: usize,
}

impl<'t> Scan<'t> {
    fn new(text: &'t str) -> Self {
        Scan {
            text,
            at: 0,
            values: Vec::new(),
            in_blocks: Vec::new(),
            has_blocks: false,
            fence: None,
            open: 0,
            kept: (0, 0),
            broken: None,
            unquoted: 0,
        }
    }

    fn run(&mut self) {
        while let Some(byte) = self.text.as_bytes().get(self.at) {
            match byte {
                b'{' | b'[' => self.bracket(),
                b'}' | b']' => self.close(),
                b'`' => self.ticks(),
                b'"' if self.open > 0 && self.at >= self.unquoted => self.skip_string(),
                _ => self.at += 1,
            }
        }
        self.end_fence(self.text.len());
    }

    fn bracket(&mut self) {
        match read_value(self.text.as_bytes(), self.at) {
            Reading::Value(end) => {
                self.found(self.at..end);
                self.at = end;
            }
            Reading::Prose { first, resume, depth } => {
                if let Some(first) = first {
                    self.found(first);
                }
                if self.open > 0 {
                    self.open += depth;
                }
                self.at = resume;
            }
            Reading::Broken { resume, depth } => {
                if self.open == 0 {
                    self.kept = (self.values.len(), self.in_blocks.len());
                    self.broken = Some(self.at);
                }
                self.open += depth;
                self.at = resume;
            }
        }
    }

    /// Within broken JSON brackets in strings are text, as far as strings can still be told.
    fn skip_string(&mut self) {
        match read::string_in_line(self.text.as_bytes(), self.at) {
            Ok(end) => self.at = end,
            Err(line_end) => {
                self.at += 1;
                self.unquoted = line_end;
            }
        }
    }

    fn close(&mut self) {
        self.at += 1;
        if self.open == 1 {
            self.values.truncate(self.kept.0);
            self.in_blocks.truncate(self.kept.1);
        }
        self.open = self.open.saturating_sub(1);
    }

    fn found(&mut self, value: Range<usize>) {
        if self.fence.is_some_and(|fence| fence.is_json) {
            self.in_blocks.push(value);
        } else {
            self.values.push(value);
        }
    }

    fn ticks(&mut self) {
        let start = self.at;
        let rest = &self.text[start..];
        let ticks = rest.len() - rest.trim_start_matches('`').len();
        self.at += ticks;
        match self.fence {
            _ if ticks < 3 => {}
            Some(fence) if ticks >= fence.ticks => self.end_fence(start),
            Some(_) => {}
            None => self.begin_fence(ticks),
        }
    }

    fn begin_fence(&mut self, ticks: usize) {
        self.open = 0;
        let rest = &self.text[self.at..];
        let label = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_alphanumeric()).len();
        let is_json = rest[..label].eq_ignore_ascii_case("json");
        self.at += label;
        self.fence = Some(Fence { ticks, is_json, body: self.at, before: self.in_blocks.len() });
    }

    fn end_fence(&mut self, end: usize) {
        self.open = 0;
        let Some(fence) = self.fence.take().filter(|fence| fence.is_json) else { return };
        // `in a ```json``` block` speaks of a block and is none.
        self.has_blocks |= !self.text[fence.body..end].trim().is_empty();
        if self.in_blocks.len() == fence.before {
            self.in_blocks.extend(scalar(self.text, fence.body..end));
        }
    }
}

/// A lone number, string or word, if there is nothing else.
fn scalar(text: &str, within: Range<usize>) -> Option<Range<usize>> {
    let body = &text[within.clone()];
    let start = within.start + (body.len() - body.trim_start().len());
    let body = body.trim();
    let is_scalar = !body.starts_with(['{', '[']) && serde_json::from_str::<IgnoredAny>(body).is_ok();
    is_scalar.then_some(start..start + body.len())
}

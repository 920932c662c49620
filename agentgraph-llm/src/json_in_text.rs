//! JSON within the prose of an answer.
//!
//! Models that are asked for JSON often write a sentence before it, a fence around it and a remark after it.
//! [`JsonInText`] finds the objects and arrays of a text; the last one is usually the answer. It knows
//! brackets, strings and fences, not the meaning of the JSON.
//!
//! - A *value* is an object or an array of RFC 8259: without `NaN`, comments and trailing commas, and no
//!   deeper than `serde_json` reads (127 levels). Of nested values the outermost counts. A number, string or
//!   word counts only if it is the whole text or the whole of a JSON block.
//! - If the text has non-empty fenced blocks marked `json`, only their content counts, because the model
//!   marked it as its JSON.
//! - A bracket that does not start JSON is prose: `[sic]`, `{name}`, the outer braces of `{{"a": 1}}`.
//! - JSON that breaks off is not a value, and *nothing inside of it* is one: a part of an answer must not be
//!   taken for the whole. `{"plan": {"steps": 3}, "risk": NaN}` has no value, and neither has `{"a": [1, 2]`
//!   at the end of a cut text. [`broken`](JsonInText::broken) says where it broke, for the next request to
//!   the model.
//!
//! The time is linear in the text. The extra memory is a few words per value.

mod read;

use std::fmt;
use std::ops::Range;

use serde::de::IgnoredAny;
use serde_json::Value;

use read::{Reading, read_value};

/// The last JSON value in a text. The [module](crate::json_in_text) defines what counts as a value.
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

    /// The JSON that started after the last value and broke off.
    pub fn broken(&self) -> Option<BrokenJson<'t>> {
        self.broken.map(|start| BrokenJson(&self.text[start..]))
    }
}

/// JSON that broke off. `Display` shows where and why.
#[derive(Clone, Copy, Debug)]
pub struct BrokenJson<'t>(&'t str);

impl<'t> BrokenJson<'t> {
    /// The text from its start.
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

/// An open fence.
#[derive(Clone, Copy)]
struct Fence {
    ticks: usize,
    is_json: bool,
    body: usize,
    /// The number of values before the block.
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
    /// Open brackets of broken JSON. Values found meanwhile are inside of it, if the brackets close.
    open: usize,
    /// The number of values before it broke.
    kept: (usize, usize),
    broken: Option<usize>,
    /// No quote before this place starts a string, because an earlier one had no end in its line.
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
                self.add_value(self.at..end);
                self.at = end;
            }
            Reading::Prose { first, resume, depth } => {
                if let Some(first) = first {
                    self.add_value(first);
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

    /// Within broken JSON, brackets in strings are text, as far as strings can be recognized.
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

    fn add_value(&mut self, value: Range<usize>) {
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
        // `in a ```json``` block` mentions a block and is not one.
        self.has_blocks |= !self.text[fence.body..end].trim().is_empty();
        if self.in_blocks.len() == fence.before {
            self.in_blocks.extend(scalar(self.text, fence.body..end));
        }
    }
}

/// The whole text as a number, string or word, if there is nothing else.
fn scalar(text: &str, within: Range<usize>) -> Option<Range<usize>> {
    let body = &text[within.clone()];
    let start = within.start + (body.len() - body.trim_start().len());
    let body = body.trim();
    let is_scalar = !body.starts_with(['{', '[']) && serde_json::from_str::<IgnoredAny>(body).is_ok();
    is_scalar.then_some(start..start + body.len())
}

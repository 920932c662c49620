//! A scanner of one JSON value from its opening bracket, which builds no value.
//!
//! A pushdown automaton over bytes with its own stack. It does not recurse, so no nesting is too deep, and an
//! error includes the place. All structure of JSON is ASCII, so every place is at a character boundary.

use std::ops::Range;

/// The deepest nesting of a value, as in `serde_json`.
pub(super) const MAX_DEPTH: usize = 127;

/// The result of reading from an opening bracket.
#[derive(Debug, PartialEq)]
pub(super) enum Reading {
    /// A value that ends at this place.
    Value(usize),
    /// Text that is not JSON.
    Prose {
        /// The value directly after the bracket, as in `[{"a": 1} and so on]`.
        first: Option<Range<usize>>,
        /// The place where the search continues.
        resume: usize,
        /// The number of open brackets at that place.
        depth: usize,
    },
    /// JSON that broke off.
    Broken {
        /// The place where the search continues.
        resume: usize,
        /// The number of open brackets at that place.
        depth: usize,
    },
}

#[derive(Clone, Copy)]
struct Frame {
    start: usize,
    is_object: bool,
    /// Whether a colon or a comma was read, so that the bracket was meant as JSON.
    began: bool,
}

#[derive(Clone, Copy, PartialEq)]
enum Expectation {
    ValueOrEnd,
    Value,
    KeyOrEnd,
    Key,
    Colon,
    CommaOrEnd,
}

struct Reader<'t> {
    bytes: &'t [u8],
    at: usize,
    frames: Vec<Frame>,
    expect: Expectation,
    /// The container that closed last, if no token followed.
    closed: Option<Range<usize>>,
    /// The string that was read last, if no container closed since.
    string: Option<usize>,
}

/// Reads the value whose opening bracket is at `start`.
pub(super) fn read_value(bytes: &[u8], start: usize) -> Reading {
    let mut reader = Reader {
        bytes,
        at: start,
        frames: Vec::new(),
        expect: Expectation::Value,
        closed: None,
        string: None,
    };
    loop {
        reader.skip_space();
        if reader.token().is_none() {
            return reader.failure();
        }
        if reader.frames.is_empty() {
            return Reading::Value(reader.at);
        }
    }
}

impl Reader<'_> {
    fn byte(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while matches!(self.byte(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    /// Reads the next token, or stops at the place where it is wrong.
    fn token(&mut self) -> Option<()> {
        use Expectation::{Colon, CommaOrEnd, Key, KeyOrEnd, Value, ValueOrEnd};
        match (self.expect, self.byte()?) {
            (Value | ValueOrEnd, b'{') => self.open(true),
            (Value | ValueOrEnd, b'[') => self.open(false),
            (ValueOrEnd | CommaOrEnd, b']') => self.close(false),
            (KeyOrEnd | CommaOrEnd, b'}') => self.close(true),
            (Key | KeyOrEnd, b'"') => self.read_string(Colon),
            (Value | ValueOrEnd, b'"') => self.read_string(CommaOrEnd),
            (Value | ValueOrEnd, _) => {
                self.at = scalar_end(self.bytes, self.at)?;
                self.expect = CommaOrEnd;
                Some(())
            }
            (Colon, b':') => self.separator(Value),
            (CommaOrEnd, b',') => {
                let is_object = self.frames.last()?.is_object;
                self.separator(if is_object { Key } else { Value })
            }
            _ => None,
        }
    }

    fn open(&mut self, is_object: bool) -> Option<()> {
        if self.frames.len() == MAX_DEPTH {
            // Too deep for any parser: broken JSON rather than prose, even without a comma.
            self.frames.iter_mut().for_each(|frame| frame.began = true);
            return None;
        }
        self.frames.push(Frame { start: self.at, is_object, began: false });
        self.expect = if is_object { Expectation::KeyOrEnd } else { Expectation::ValueOrEnd };
        self.at += 1;
        Some(())
    }

    fn close(&mut self, is_object: bool) -> Option<()> {
        let frame = self.frames.pop_if(|frame| frame.is_object == is_object)?;
        self.at += 1;
        self.expect = Expectation::CommaOrEnd;
        (self.closed, self.string) = (Some(frame.start..self.at), None);
        Some(())
    }

    fn separator(&mut self, expect: Expectation) -> Option<()> {
        self.frames.last_mut()?.began = true;
        self.expect = expect;
        self.at += 1;
        Some(())
    }

    fn read_string(&mut self, expect: Expectation) -> Option<()> {
        self.string = Some(self.at);
        match string_end(self.bytes, self.at) {
            Ok(end) => {
                (self.at, self.expect) = (end, expect);
                Some(())
            }
            Err(at) => {
                self.at = at;
                None
            }
        }
    }

    fn failure(self) -> Reading {
        let depth = self.frames.len();
        let just_opened =
            matches!(self.expect, Expectation::KeyOrEnd | Expectation::ValueOrEnd) && self.string.is_none();
        let at_structure = matches!(self.byte(), Some(b'{' | b'}' | b'[' | b']' | b',' | b':' | b'"'));
        let is_cut = self.at == self.bytes.len();
        let began = self.frames.iter().any(|frame| frame.began);
        if began || (at_structure && !just_opened) || (is_cut && self.string.is_some()) {
            return Reading::Broken { resume: self.at, depth };
        }
        let first = self.closed.filter(|_| self.expect == Expectation::CommaOrEnd && !is_cut);
        // Quotes in prose may pair with quotes of the JSON after them: `{"so to say} {"a": 1}`.
        let resume = self.string.map_or(self.at, |string| string + 1);
        Reading::Prose { first, resume, depth }
    }
}

/// The end of the string that starts at `start`, or the place where it is wrong.
fn string_end(bytes: &[u8], start: usize) -> Result<usize, usize> {
    let mut at = start + 1;
    loop {
        match bytes.get(at).ok_or(at)? {
            b'"' => return Ok(at + 1),
            b'\\' => at = escape_end(bytes, at)?,
            0..0x20 => return Err(at),
            _ => at += 1,
        }
    }
}

/// The end of the escape that starts at `start`, or the place where it is wrong. That is the end of the text
/// if the escape is only cut off.
fn escape_end(bytes: &[u8], start: usize) -> Result<usize, usize> {
    match bytes.get(start + 1).ok_or(bytes.len())? {
        b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => Ok(start + 2),
        b'u' => {
            let digits =
                bytes[start + 2..].iter().take(4).take_while(|byte| byte.is_ascii_hexdigit()).count();
            let end = start + 2 + digits;
            if digits == 4 { Ok(end) } else { Err(if end == bytes.len() { end } else { start }) }
        }
        _ => Err(start),
    }
}

/// The end of the number or word that starts at `start`.
fn scalar_end(bytes: &[u8], start: usize) -> Option<usize> {
    let rest = &bytes[start..];
    let word = [b"true".as_slice(), b"false", b"null"].into_iter().find(|word| rest.starts_with(word));
    word.map_or_else(|| number_length(rest), |word| Some(word.len())).map(|length| start + length)
}

fn number_length(bytes: &[u8]) -> Option<usize> {
    let digits = |from: usize| bytes[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let mut at = usize::from(bytes.first() == Some(&b'-'));
    at += match digits(at) {
        0 => return None,
        _ if bytes[at] == b'0' => 1,
        count => count,
    };
    if bytes.get(at) == Some(&b'.') {
        let count = digits(at + 1);
        at += if count == 0 { return None } else { count + 1 };
    }
    if matches!(bytes.get(at), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(at + 1), Some(b'+' | b'-')));
        let count = digits(at + 1 + sign);
        at += if count == 0 { return None } else { count + 1 + sign };
    }
    Some(at)
}

/// The end of the string that starts at `start` if it ends in the same line, otherwise the end of the line.
pub(super) fn string_in_line(bytes: &[u8], start: usize) -> Result<usize, usize> {
    let mut at = start + 1;
    loop {
        match bytes.get(at) {
            Some(b'"') => return Ok(at + 1),
            None | Some(b'\n') => return Err(at.min(bytes.len())),
            Some(b'\\') if bytes.get(at + 1).is_some_and(|byte| *byte != b'\n') => at += 2,
            Some(_) => at += 1,
        }
    }
}

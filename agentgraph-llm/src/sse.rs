//! Server-sent events, parsed from bytes as they arrive.
//!
//! The parser knows lines and fields. Data stays bytes, so an invalid character is an error of the reader and
//! not silently replaced. Two things differ from the standard, because a model's response is a finite body
//! and not an endless feed: an event at the end of the body counts even without a blank line after it, and
//! the size of an event is limited.

/// The most bytes of one event.
pub const MAX_EVENT: usize = 32 * 1024 * 1024;

const BOM: &[u8] = b"\xEF\xBB\xBF";

/// One event.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Event {
    /// The data lines, joined by line feeds.
    pub data: Vec<u8>,
    /// Whether the event's name is `error`.
    pub is_error: bool,
}

/// An event larger than the parser's limit.
#[derive(Debug, PartialEq, Eq)]
pub struct OversizedEvent;

/// A parser of bytes that are split at any place.
///
/// ```
/// use agentgraph_llm::sse::{MAX_EVENT, SseParser};
///
/// let (mut parser, mut events) = (SseParser::new(MAX_EVENT), Vec::new());
/// parser.push(b"data: one\r\n\r\ndata: t", &mut events).unwrap();
/// parser.push(b"wo", &mut events).unwrap();
/// events.extend(parser.end());
/// assert_eq!((events.len(), &*events[1].data), (2, b"two".as_slice()));
/// ```
#[derive(Debug)]
pub struct SseParser {
    line: Vec<u8>,
    data: Option<Vec<u8>>,
    is_error: bool,
    /// The last line ended with a CR: a LF that follows belongs to it, even in the next piece.
    after_cr: bool,
    first_line: bool,
    max_event: usize,
}

impl SseParser {
    /// A parser of one body, whose events have at most this size in bytes.
    pub fn new(max_event: usize) -> Self {
        SseParser {
            line: Vec::new(),
            data: None,
            is_error: false,
            after_cr: false,
            first_line: true,
            max_event,
        }
    }

    /// Adds a piece, and its complete events to `events`.
    ///
    /// # Errors
    /// If an event is larger than the limit. The body cannot be read further.
    pub fn push(&mut self, mut bytes: &[u8], events: &mut Vec<Event>) -> Result<(), OversizedEvent> {
        if self.after_cr && !bytes.is_empty() {
            self.after_cr = false;
            bytes = bytes.strip_prefix(b"\n").unwrap_or(bytes);
        }
        while let Some(end) = bytes.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
            self.extend_line(&bytes[..end])?;
            events.extend(self.end_line());
            let cr = bytes[end] == b'\r';
            bytes = &bytes[end + 1..];
            if cr {
                self.after_cr = bytes.is_empty();
                bytes = bytes.strip_prefix(b"\n").unwrap_or(bytes);
            }
        }
        self.extend_line(bytes)
    }

    /// Ends the body and returns the last event, if no blank line followed it.
    pub fn end(&mut self) -> Option<Event> {
        self.end_line().or_else(|| self.take_event())
    }

    /// An event needs data, except for an error: its name says enough.
    fn take_event(&mut self) -> Option<Event> {
        let is_error = std::mem::take(&mut self.is_error);
        let data = self.data.take();
        (is_error || data.is_some()).then(|| Event { data: data.unwrap_or_default(), is_error })
    }

    fn extend_line(&mut self, bytes: &[u8]) -> Result<(), OversizedEvent> {
        let size = self.line.len() + self.data.as_ref().map_or(0, Vec::len) + bytes.len();
        if size > self.max_event {
            return Err(OversizedEvent);
        }
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    fn end_line(&mut self) -> Option<Event> {
        let line = std::mem::take(&mut self.line);
        let first = std::mem::replace(&mut self.first_line, false);
        let line = if first { line.strip_prefix(BOM).unwrap_or(&line) } else { &line };
        if line.is_empty() {
            return self.take_event();
        }
        if let Some(name) = field_value(line, b"event") {
            self.is_error = name.trim_ascii() == b"error";
        }
        if let Some(value) = field_value(line, b"data") {
            match &mut self.data {
                None => self.data = Some(value.to_vec()),
                Some(data) => {
                    data.push(b'\n');
                    data.extend_from_slice(value);
                }
            }
        }
        None
    }
}

/// The value of a line `name: value`, `name:value` or `name`. A comment starts with a colon, so it has no
/// name.
fn field_value<'a>(line: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let rest = line.strip_prefix(name)?;
    match rest.strip_prefix(b":") {
        Some(value) => Some(value.strip_prefix(b" ").unwrap_or(value)),
        None => rest.is_empty().then_some(rest),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parse(pieces: &[&[u8]]) -> Vec<String> {
        let mut parser = SseParser::new(MAX_EVENT);
        let mut events = Vec::new();
        for piece in pieces {
            parser.push(piece, &mut events).unwrap();
        }
        events.extend(parser.end());
        let shown = |event: Event| {
            let data = String::from_utf8(event.data).unwrap();
            if event.is_error { format!("error: {data}") } else { data }
        };
        events.into_iter().map(shown).collect()
    }

    const CASES: &[(&str, &str, &[&str])] = &[
        ("LF", "data: a\n\ndata: b\n\n", &["a", "b"]),
        ("CRLF", "data: a\r\n\r\ndata: b\r\n\r\n", &["a", "b"]),
        ("CR", "data: a\r\rdata: b\r\r", &["a", "b"]),
        ("mixed ends", "data: a\r\n\ndata: b\r\r\n", &["a", "b"]),
        ("comment", ": hello\ndata: a\n:\n\n: bye\n\n", &["a"]),
        ("event and id", "event: ping\nid: 7\nretry: 5\ndata: a\n\n", &["a"]),
        ("lines joined", "data: a\ndata:\ndata:  b\n\n", &["a\n\n b"]),
        ("CRLF between joined lines", "data: a\r\ndata: b\r\n\r\n", &["a\nb"]),
        ("empty data", "id: 1\ndata:\n\ndata\n\n", &["", ""]),
        ("no data", "event: ping\n\n", &[]),
        ("errors", "event: error\ndata: a\n\nevent:error\n\ndata: b\n\n", &["error: a", "error: ", "b"]),
        ("other field with the name as prefix", "database: x\n\ndata: a\n\n", &["a"]),
        ("byte order mark", "\u{feff}data: a\n\n", &["a"]),
        ("mark only at the start", "data: \u{feff}a\n\n", &["\u{feff}a"]),
        ("no blank line at the end", "data: a\n\ndata: b\n", &["a", "b"]),
        ("no line end at the end", "data: a\n\ndata: b", &["a", "b"]),
        ("no space", "data:a\n\n", &["a"]),
        ("padding kept", "data: {}   \n\n", &["{}   "]),
        ("letters of several bytes", "data: æ→🦀\n\n", &["æ→🦀"]),
        ("nothing", "", &[]),
    ];

    #[test]
    fn events_are_parsed_from_any_split_of_the_bytes() {
        for (name, text, expected) in CASES {
            let bytes = text.as_bytes();
            assert_eq!(parse(&[bytes]), *expected, "{name}, whole");
            let single: Vec<&[u8]> = bytes.chunks(1).collect();
            assert_eq!(parse(&single), *expected, "{name}, byte by byte");
            for cut in 0..=bytes.len() {
                let (head, tail) = bytes.split_at(cut);
                assert_eq!(parse(&[head, &[], tail]), *expected, "{name}, cut at {cut}");
            }
        }
    }

    #[test]
    fn an_event_that_never_ends_is_refused() {
        let mut parser = SseParser::new(10);
        let mut events = Vec::new();
        assert_eq!(parser.push(b"data: 1\n\ndata: 2", &mut events), Ok(()));
        assert_eq!(parser.push(b"34567", &mut events), Err(OversizedEvent));
        assert_eq!(events, [Event { data: b"1".to_vec(), is_error: false }]);
    }

    proptest! {
        #[test]
        fn the_events_do_not_depend_on_the_splits_of_the_bytes(
            bytes in prop::collection::vec(prop_oneof![
                Just(b'\n'), Just(b'\r'), Just(b':'), Just(b' '), Just(b'd'), Just(b'a'), Just(b't'), any::<u8>()
            ], 0..200),
            size in 1usize..20,
        ) {
            let all = |pieces: &mut dyn Iterator<Item = &[u8]>| {
                let mut parser = SseParser::new(MAX_EVENT);
                let mut events = Vec::new();
                for piece in pieces {
                    parser.push(piece, &mut events).unwrap();
                }
                events.extend(parser.end());
                events
            };
            prop_assert_eq!(all(&mut std::iter::once(&bytes[..])), all(&mut bytes.chunks(size)));
        }
    }
}

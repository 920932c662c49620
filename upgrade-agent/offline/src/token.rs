//! The tokens of a message: words, quoted texts, JSON objects and signs, each with its place in the message.
//!
//! Nothing is dropped but white space, so a name can be cut out of the message with all of its signs.

use std::ops::Range;

use winnow::Parser;
use winnow::combinator::{alt, repeat};
use winnow::error::{ContextError, ParserError};
use winnow::stream::{LocatingSlice, Location, Stateful, Stream};
use winnow::token::{any, take_while};

/// The most characters of a message.
pub(crate) const LONGEST: usize = 100_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Word,
    /// What quotes hold.
    Quoted,
    Json,
    /// A punctuation mark.
    Sign,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Token<'t> {
    pub(crate) kind: Kind,
    /// The text as typed, without quotes.
    pub(crate) text: &'t str,
    /// The text in lower case, with straight apostrophes.
    pub(crate) low: String,
    /// The place in the message, with quotes.
    pub(crate) span: Range<usize>,
}

impl Token<'_> {
    pub(crate) fn is_word(&self) -> bool {
        self.kind == Kind::Word
    }

    pub(crate) fn is_sign(&self, signs: &[&str]) -> bool {
        self.kind == Kind::Sign && signs.contains(&self.text)
    }
}

#[derive(Clone, Debug, Default)]
struct LexerState {
    /// The closing marks that the rest of the message is known not to have. Without them, each opening mark
    /// without a partner would search the whole rest again.
    absent: Vec<char>,
    /// The end of the last quoted text.
    quote_end: usize,
}

type Input<'t> = Stateful<LocatingSlice<&'t str>, LexerState>;

/// Reads a message.
pub(crate) fn tokens(message: &str) -> Vec<Token<'_>> {
    let mut input = Stateful { input: LocatingSlice::new(message), state: LexerState::default() };
    let pieces: winnow::Result<Vec<Vec<Token<'_>>>> =
        repeat(0.., alt((space, json, possessive, quoted, sign, word))).parse_next(&mut input);
    pieces.unwrap_or_default().into_iter().flatten().collect()
}

fn space<'t>(input: &mut Input<'t>) -> winnow::Result<Vec<Token<'t>>> {
    let is_space = |c: char| c.is_whitespace() || c.is_control();
    take_while(1.., is_space).map(|_| Vec::new()).parse_next(input)
}

/// Cuts `length` bytes off, without `margin` bytes at each side as text.
fn cut<'t>(input: &mut Input<'t>, kind: Kind, length: usize, open: usize, close: usize) -> Token<'t> {
    let start = input.current_token_start();
    let whole = input.next_slice(length);
    let text = whole.get(open..length - close).unwrap_or(whole);
    Token { kind, text, low: lower(text), span: start..start + length }
}

fn lower(text: &str) -> String {
    text.to_lowercase().replace(['\u{2019}', '\u{2018}'], "'")
}

fn fail<T>(input: &mut Input<'_>) -> winnow::Result<T> {
    Err(ContextError::from_input(input))
}

/// A JSON object, if the braces hold one.
fn json<'t>(input: &mut Input<'t>) -> winnow::Result<Vec<Token<'t>>> {
    let rest: &'t str = ***input;
    if !rest.starts_with('{') || input.state.absent.contains(&'}') {
        return fail(input);
    }
    let mut objects = serde_json::Deserializer::from_str(rest).into_iter::<serde_json::Value>();
    match objects.next() {
        Some(Ok(_)) => {
            let length = objects.byte_offset();
            Ok(vec![cut(input, Kind::Json, length, 0, 0)])
        }
        Some(Err(error)) if error.is_eof() => {
            input.state.absent.push('}');
            fail(input)
        }
        _ => fail(input),
    }
}

/// The closing marks of an opening one.
fn closing(open: char) -> Option<&'static [char]> {
    match open {
        '"' => Some(&['"']),
        '`' => Some(&['`']),
        '\'' => Some(&['\'']),
        '“' | '„' => Some(&['”', '“']),
        '‘' | '‚' => Some(&['’', '‘']),
        '«' => Some(&['»']),
        _ => None,
    }
}

/// The `'s` of a quoted name.
fn possessive<'t>(input: &mut Input<'t>) -> winnow::Result<Vec<Token<'t>>> {
    let rest: &'t str = ***input;
    let end = ["'s", "’s"].into_iter().find(|end| rest.starts_with(end)).map(str::len);
    let follows = input.state.quote_end > 0 && input.state.quote_end == input.current_token_start();
    match end.filter(|end| follows && !rest[*end..].starts_with(char::is_alphanumeric)) {
        Some(length) => Ok(vec![cut(input, Kind::Word, length, 0, 0)]),
        None => fail(input),
    }
}

fn quoted<'t>(input: &mut Input<'t>) -> winnow::Result<Vec<Token<'t>>> {
    let rest: &'t str = ***input;
    let mut signs = rest.char_indices();
    let Some((_, open)) = signs.next() else { return fail(input) };
    let Some(close) = closing(open) else { return fail(input) };
    if input.state.absent.contains(&open) {
        return fail(input);
    }
    // An apostrophe within a word closes nothing.
    let is_apostrophe = ['\'', '‘', '‚'].contains(&open);
    let mut signs = signs.peekable();
    while let Some((at, c)) = signs.next() {
        let inside = is_apostrophe && signs.peek().is_some_and(|(_, next)| next.is_alphanumeric());
        if close.contains(&c) && !inside {
            let length = at + c.len_utf8();
            input.state.quote_end = input.current_token_start() + length;
            return Ok(vec![cut(input, Kind::Quoted, length, open.len_utf8(), c.len_utf8())]);
        }
    }
    input.state.absent.push(open);
    fail(input)
}

fn is_sign(c: char) -> bool {
    matches!(c, ',' | ';' | ':' | '.' | '!' | '?' | '…' | '(' | ')' | '=' | '{' | '}') || closing(c).is_some()
}

fn sign<'t>(input: &mut Input<'t>) -> winnow::Result<Vec<Token<'t>>> {
    let first = input.input.chars().next();
    let Some(first) = first.filter(|c| is_sign(*c) || matches!(c, '”' | '»')) else { return fail(input) };
    Ok(vec![cut(input, Kind::Sign, first.len_utf8(), 0, 0)])
}

/// A run of other signs. A point or colon at its end is a sign of its own, and so is a possessive `'s`.
fn word<'t>(input: &mut Input<'t>) -> winnow::Result<Vec<Token<'t>>> {
    let rest: &'t str = ***input;
    let ends = |c: char| {
        c.is_whitespace()
            || c.is_control()
            || matches!(c, ',' | ';' | '!' | '?' | '…' | '(' | ')' | '=' | '"' | '“' | '”' | '»')
    };
    let run = &rest[..rest.find(ends).unwrap_or(rest.len())];
    let run = run.trim_end_matches(['.', ':', '\'', '’', '`']);
    if run.is_empty() {
        // A lone sign that begins no word and closes nothing.
        return any.map(|_: char| Vec::new()).parse_next(input);
    }
    let kind = if run.chars().all(|c| matches!(c, '-' | '–' | '—')) { Kind::Sign } else { Kind::Word };
    let bare = ["'s", "’s", "'S", "’S"].iter().find_map(|end| run.strip_suffix(end));
    match bare.filter(|bare| !bare.is_empty()) {
        Some(bare) => {
            let (stem, end) = (bare.len(), run.len() - bare.len());
            Ok(vec![cut(input, kind, stem, 0, 0), cut(input, Kind::Word, end, 0, 0)])
        }
        None => Ok(vec![cut(input, kind, run.len(), 0, 0)]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(message: &str) -> Vec<String> {
        let shown = |token: &Token<'_>| match token.kind {
            Kind::Word => token.text.to_owned(),
            Kind::Quoted => format!("<{}>", token.text),
            Kind::Json => format!("json{}", token.text),
            Kind::Sign => format!("~{}", token.text),
        };
        tokens(message).iter().map(shown).collect()
    }

    #[test]
    fn words_keep_their_signs_and_quotes_hold_any_text() {
        for (message, wanted) in [
            ("start C++ vs C#!", "start C++ vs C# ~!"),
            ("control=60, 70/30.", "control ~= 60 ~, 70/30 ~."),
            ("Foo's status is 6.5", "Foo 's status is 6.5"),
            ("\"Foo\"'s status 'x'", "<Foo> 's status <x>"),
            ("don't “Was it ‘good’?” now", "don't <Was it ‘good’?> now"),
            ("'Tom's cat' «x» `y`", "<Tom's cat> <x> <y>"),
            ("\"open 'a 'b", "~\" open ~' a ~' b"),
            ("make {\"a\": {\"b\": 1}} {x", "make json{\"a\": {\"b\": 1}} ~{ x"),
            ("a - b – 🦀", "a ~- b ~– 🦀"),
        ] {
            assert_eq!(texts(message).join(" "), wanted, "{message}");
        }
    }

    #[test]
    fn each_token_is_at_its_place() {
        let message = "rename “Foo” to A&B (v2)";
        for token in tokens(message) {
            assert!(message[token.span.clone()].contains(token.text), "{token:?}");
        }
    }
}

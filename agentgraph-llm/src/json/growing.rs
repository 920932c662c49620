//! One text in several views: pieces, and the whole of it at a later or an earlier time.

use serde_json::Value;

use super::RawJson;
use super::pieces::{BadPiece, TextPieces};

/// A text that arrives as deltas, as a whole, or as both. A whole that the text begins with adds nothing, a
/// longer one adds its rest, and any other is a contradiction: see [`whole_text`](Self::whole_text).
#[derive(Debug, Default)]
pub(crate) struct Growing {
    text: String,
    /// The bytes of `text` that deltas have given. A whole may be ahead of them.
    written: usize,
    pieces: TextPieces,
}

impl Growing {
    /// The text so far.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Adds a delta, and returns what is new.
    pub(crate) fn push(&mut self, piece: &RawJson) -> Result<String, BadPiece> {
        let piece = self.pieces.push(piece)?;
        let ahead = &self.text[self.written..];
        if ahead.starts_with(&piece) {
            self.written += piece.len();
            return Ok(String::new());
        }
        let new = piece.strip_prefix(ahead).ok_or(BadPiece::Contradiction)?.to_owned();
        self.text += &new;
        self.written = self.text.len();
        Ok(new)
    }

    /// Adds a delta of the arguments of a call. They are JSON in a string; some servers give them once, as
    /// the object that they are.
    pub(crate) fn push_arguments(&mut self, piece: &RawJson) -> Result<String, BadPiece> {
        if self.text.is_empty() && !piece.is_string() {
            return self.push(&RawJson::string(piece.get()));
        }
        self.push(piece)
    }

    /// Takes the whole of a text, of which deltas may have given a part, and returns what is new. White space
    /// at the end does not count.
    pub(crate) fn whole_text(&mut self, whole: &RawJson) -> Result<String, BadPiece> {
        let new = extension(&self.text, &read(whole)?)?.to_owned();
        Ok(self.extend(new))
    }

    /// Takes the whole arguments of a call, which are compared as JSON, and returns what is new. Arguments
    /// without content, such as `{}`, add nothing.
    pub(crate) fn whole_arguments(&mut self, whole: &RawJson) -> Result<String, BadPiece> {
        let whole = match whole.is_string() {
            true => read(whole)?,
            false => whole.get().to_owned(),
        };
        if matches!(whole.trim(), "" | "{}" | "null") {
            return Ok(String::new());
        }
        let new = match extension(&self.text, &whole) {
            Ok(new) => new.to_owned(),
            Err(_) if is_same_json(&self.text, &whole) => String::new(),
            Err(_) => extension(&compact(&self.text), &compact(&whole))?.to_owned(),
        };
        Ok(self.extend(new))
    }

    fn extend(&mut self, new: String) -> String {
        if !new.is_empty() {
            self.text += &new;
            // The whole has the letter of which only one half had come.
            self.pieces = TextPieces::default();
        }
        new
    }

    /// The text at its end.
    pub(crate) fn finish(&self) -> Result<&str, BadPiece> {
        self.pieces.end()?;
        Ok(&self.text)
    }
}

fn read(whole: &RawJson) -> Result<String, BadPiece> {
    let mut pieces = TextPieces::default();
    let text = pieces.push(whole)?;
    pieces.end().map(|()| text)
}

/// What a whole adds to the text that is known: nothing if the text begins with it.
pub(crate) fn extension<'a>(known: &str, whole: &'a str) -> Result<&'a str, BadPiece> {
    if let Some(new) = whole.strip_prefix(known) {
        return Ok(new);
    }
    match known.starts_with(whole.trim_end()) {
        true => Ok(""),
        false => Err(BadPiece::Contradiction),
    }
}

/// Whether two texts are the same JSON value, however it is written.
pub(crate) fn is_same_json(one: &str, other: &str) -> bool {
    let read = |text: &str| serde_json::from_str::<Value>(text).ok();
    read(one).is_some_and(|value| read(other).is_some_and(|other| other == value))
}

/// JSON, perhaps cut, without the white space around its tokens.
fn compact(json: &str) -> String {
    let (mut in_string, mut is_escaped) = (false, false);
    let is_kept = |letter: &char| {
        let is_quote = *letter == '"' && !is_escaped;
        is_escaped = in_string && *letter == '\\' && !is_escaped;
        in_string ^= is_quote;
        in_string || !letter.is_ascii_whitespace()
    };
    json.chars().filter(is_kept).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text of deltas and of wholes, which begin with `=`.
    fn join(views: &[&str], is_json: bool) -> Result<String, BadPiece> {
        let mut growing = Growing::default();
        let mut shown = String::new();
        for view in views {
            let raw = |text: &str| RawJson::string(text);
            shown += &match view.strip_prefix('=') {
                Some(whole) if is_json => growing.whole_arguments(&raw(whole))?,
                Some(whole) => growing.whole_text(&raw(whole))?,
                None => growing.push(&raw(view))?,
            };
        }
        assert_eq!(growing.finish()?, shown);
        Ok(shown)
    }

    #[test]
    fn a_prefix_yields_to_the_longer_text_and_all_else_is_a_contradiction() {
        for (views, expected) in [
            (&["Hel", "lo"] as &[&str], Some("Hello")),
            (&["Hel", "lo", "=Hello", "=Hello"], Some("Hello")),
            (&["Hel", "=Hello"], Some("Hello")),
            (&["Hel", "lo", "=", "=Hel", "=Hello \n"], Some("Hello \n")),
            (&["Hello\n", "=Hello", "=Hello  "], Some("Hello\n")),
            (&["=Hello", "Hel", "lo"], Some("Hello")),
            (&["=Hel", "Hello", "!"], Some("Hello!")),
            (&["Hel", "lo", "=Hallo"], None),
            (&["Hel", "=Hello", "p!"], None),
        ] {
            assert_eq!(join(views, false).ok().as_deref(), expected, "{views:?}");
        }
    }

    #[test]
    fn arguments_are_compared_as_json() {
        for (views, expected) in [
            (&["{\"a\"", ":1}", "={\"a\":1}"] as &[&str], Some("{\"a\":1}")),
            (&["{\"a\"", ":1}", "={\"a\": 1}", "=", "={}"], Some("{\"a\":1}")),
            (&["{\"a\": \"x", "={\"a\":\"x y\",\"b\":1}"], Some("{\"a\": \"x y\",\"b\":1}")),
            (&["{\"a\":1,\"b\":2}", "={\"b\":2,\"a\":1}"], Some("{\"a\":1,\"b\":2}")),
            (&["={}"], Some("")),
            (&["{\"a\":\"x y\"}", "={\"a\":\"xy\"}"], None),
            (&["{\"a\":1}", "={\"a\":2}"], None),
            (&["{}", "={\"a\":2}"], None),
        ] {
            assert_eq!(join(views, true).ok().as_deref(), expected, "{views:?}");
        }
    }
}

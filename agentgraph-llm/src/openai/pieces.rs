//! A text that arrives in pieces, each of them a JSON string.

use crate::error::Result;
use crate::json::RawJson;

use super::wire::broken;

/// A text that arrives in pieces. A server that cuts by UTF-16 units cuts a letter in two halves, each of
/// which is a JSON string but no text; the first half waits for the second.
#[derive(Debug, Default)]
pub(super) struct Pieces {
    pub(super) text: String,
    /// The escape of the first half of a letter.
    half: String,
}

impl Pieces {
    /// Adds a piece, and returns what it completes.
    pub(super) fn push(&mut self, piece: &RawJson) -> Result<String> {
        let text = match piece.parse::<String>() {
            Ok(text) if self.half.is_empty() => text,
            _ => self.join(piece)?,
        };
        self.text += &text;
        Ok(text)
    }

    fn join(&mut self, piece: &RawJson) -> Result<String> {
        let inside = piece.get().strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
        let inside = inside.ok_or_else(|| broken("a piece of text that is not a string"))?;
        let all = std::mem::take(&mut self.half) + inside;
        let (whole, half) = split_half(&all);
        let text = serde_json::from_str(&format!("\"{whole}\""))
            .map_err(|_| broken("half a letter without its other half"))?;
        half.clone_into(&mut self.half);
        Ok(text)
    }

    /// The whole text.
    pub(super) fn finish(self) -> Result<String> {
        match self.half.is_empty() {
            true => Ok(self.text),
            false => Err(broken("half a letter at its end")),
        }
    }
}

/// Splits the escape of a first half (`\ud800` to `\udbff`) off the end of a string's inside.
fn split_half(inside: &str) -> (&str, &str) {
    let Some(at) = inside.len().checked_sub(6).filter(|at| inside.is_char_boundary(*at)) else {
        return (inside, "");
    };
    let (head, tail) = inside.split_at(at);
    let is_half = tail.strip_prefix("\\u").is_some_and(|digits| {
        u16::from_str_radix(digits, 16).is_ok_and(|unit| (0xD800..0xDC00).contains(&unit))
    });
    // After an odd number of backslashes, the one before `u` is the end of an escape.
    let slashes = head.bytes().rev().take_while(|byte| *byte == b'\\').count();
    if is_half && slashes % 2 == 0 { (head, tail) } else { (inside, "") }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn push_all(pieces: &[String]) -> Result<String> {
        let mut text = Pieces::default();
        let mut said = String::new();
        for piece in pieces {
            said += &text.push(&RawJson::parse_text(piece.clone()).unwrap())?;
        }
        let whole = text.finish()?;
        assert_eq!(said, whole);
        Ok(whole)
    }

    fn escaped(units: &[u16]) -> String {
        let inside: String = units.iter().map(|unit| format!("\\u{unit:04x}")).collect();
        format!("\"{inside}\"")
    }

    proptest! {
        #[test]
        fn a_text_cut_at_any_unit_comes_out_whole(text in any::<String>(), size in 1usize..5) {
            let units: Vec<u16> = text.encode_utf16().collect();
            let pieces: Vec<_> = units.chunks(size).map(escaped).collect();
            prop_assert_eq!(push_all(&pieces).unwrap(), text);
        }
    }

    #[test]
    fn half_a_letter_that_stays_alone_is_an_error() {
        for pieces in [vec![r#""\ud83e""#], vec![r#""\ud83e""#, r#""a""#], vec![r#""\udd80""#], vec!["5"]] {
            let pieces: Vec<_> = pieces.into_iter().map(str::to_owned).collect();
            assert!(push_all(&pieces).is_err(), "{pieces:?}");
        }
        assert_eq!(push_all(&[r#""\\ud83e""#.to_owned()]).unwrap(), "\\ud83e");
    }
}

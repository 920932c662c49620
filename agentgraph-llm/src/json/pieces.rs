//! Text that arrives as a series of JSON strings.

use std::fmt;

use serde::de::{Deserializer, Visitor};

use super::RawJson;

/// Joins the JSON strings of a stream's deltas to one text.
///
/// Servers that count in UTF-16 cut a character such as `🦀` in two: one delta ends with the escape of a high
/// surrogate, the next one begins with that of the low one. Neither is a Rust string. The high one is kept
/// until the low one comes. Anything else that is no string is an error, so that nothing is lost in silence.
#[derive(Clone, Debug, Default)]
pub(crate) struct TextPieces {
    /// The high surrogate at the end of the last piece.
    high: Option<u16>,
}

/// Why a piece cannot be added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BadPiece {
    NotAString,
    HalfACharacter,
    /// A text that came twice, and differs.
    Contradiction,
}

impl fmt::Display for BadPiece {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            BadPiece::NotAString => "a delta that is not a string",
            BadPiece::HalfACharacter => "half of a UTF-16 pair without its other half",
            BadPiece::Contradiction => "two views of one text that contradict each other",
        })
    }
}

impl TextPieces {
    /// Adds a piece and returns the characters that it completes.
    pub(crate) fn push(&mut self, piece: &RawJson) -> Result<String, BadPiece> {
        let bytes = piece.as_string_bytes().ok_or(BadPiece::NotAString)?;
        let mut rest = bytes.as_slice();
        let mut text = String::new();
        while !rest.is_empty() {
            let whole = rest.utf8_chunks().next().map_or("", |chunk| chunk.valid());
            self.push_str(whole, &mut text)?;
            rest = &rest[whole.len()..];
            if let [0xED, second, third, after @ ..] = rest {
                // The twelve low bits of a surrogate are in the six low bits of two bytes.
                let unit = 0xD000 | u16::from(second & 0x3F) << 6 | u16::from(third & 0x3F);
                text.extend(self.push_unit(unit)?);
                rest = after;
            } else if !rest.is_empty() {
                return Err(BadPiece::NotAString);
            }
        }
        Ok(text)
    }

    /// Ends the text.
    pub(crate) fn end(&self) -> Result<(), BadPiece> {
        self.high.map_or(Ok(()), |_| Err(BadPiece::HalfACharacter))
    }

    fn push_str(&self, piece: &str, text: &mut String) -> Result<(), BadPiece> {
        if !piece.is_empty() {
            self.end()?;
            text.push_str(piece);
        }
        Ok(())
    }

    fn push_unit(&mut self, unit: u16) -> Result<Option<char>, BadPiece> {
        let Some(high) = self.high.take() else {
            let is_high = (0xD800..0xDC00).contains(&unit);
            self.high = Some(unit).filter(|_| is_high);
            return if is_high { Ok(None) } else { Err(BadPiece::HalfACharacter) };
        };
        let whole = char::decode_utf16([high, unit]).next().and_then(Result::ok);
        whole.map(Some).ok_or(BadPiece::HalfACharacter)
    }
}

impl RawJson {
    /// Whether the value is a string, even one that is not a Rust string.
    pub(crate) fn is_string(&self) -> bool {
        self.get().starts_with('"')
    }

    /// The bytes of a string: UTF-8, in which a lone surrogate has the three bytes of its code point.
    fn as_string_bytes(&self) -> Option<Vec<u8>> {
        let mut deserializer = serde_json::Deserializer::from_str(self.get());
        deserializer.deserialize_bytes(StringBytes).ok()
    }
}

struct StringBytes;

impl Visitor<'_> for StringBytes {
    type Value = Vec<u8>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a string")
    }

    fn visit_bytes<E: serde::de::Error>(self, bytes: &[u8]) -> Result<Vec<u8>, E> {
        Ok(bytes.to_vec())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn join<'a>(pieces: impl IntoIterator<Item = &'a str>) -> Result<String, BadPiece> {
        let mut text = TextPieces::default();
        let mut all = String::new();
        for piece in pieces {
            all += &text.push(&RawJson::parse_text(piece).unwrap())?;
        }
        text.end().map(|()| all)
    }

    #[test]
    fn halves_of_a_character_are_joined_and_all_else_is_an_error() {
        for (pieces, expected) in [
            (&[r#""a🦀b""#] as &[&str], Ok("a🦀b")),
            (&[r#""a\ud83e\udd80b""#], Ok("a🦀b")),
            (&[r#""a\ud83e""#, r#""\udd80b""#], Ok("a🦀b")),
            (&[r#""a\uD83E""#, r#""""#, r#""\uDD80\ud83e""#, r#""\udd80""#], Ok("a🦀🦀")),
            (&[r#""\ud7ff\ue000\u0000""#], Ok("\u{d7ff}\u{e000}\0")),
            (&[r#""a\n\"\\""#], Ok("a\n\"\\")),
            (&[r#""\ud83e""#], Err(BadPiece::HalfACharacter)),
            (&[r#""\ud83e""#, r#""b""#], Err(BadPiece::HalfACharacter)),
            (&[r#""\ud83eb""#], Err(BadPiece::HalfACharacter)),
            (&[r#""\ud83e""#, r#""\ud83e""#], Err(BadPiece::HalfACharacter)),
            (&[r#""\udd80""#], Err(BadPiece::HalfACharacter)),
            (&[r#"{"path":1}"#], Err(BadPiece::NotAString)),
            (&["[1,2]"], Err(BadPiece::NotAString)),
            (&["7"], Err(BadPiece::NotAString)),
            (&["null"], Err(BadPiece::NotAString)),
        ] {
            assert_eq!(join(pieces.iter().copied()), expected.map(str::to_owned), "{pieces:?}");
        }
    }

    /// The JSON of a string of UTF-16 units, as a server writes it that counts in them.
    fn written(units: &[u16]) -> String {
        let letters = char::decode_utf16(units.iter().copied()).map(|letter| match letter {
            Ok(letter) => {
                let quoted = serde_json::to_string(&letter).unwrap();
                quoted[1..quoted.len() - 1].to_owned()
            }
            Err(half) => format!("\\u{:04x}", half.unpaired_surrogate()),
        });
        format!("\"{}\"", letters.collect::<String>())
    }

    proptest! {
        #[test]
        fn a_text_cut_at_any_utf16_units_comes_out_whole(
            text in "[a-c\"\\\\\\n\u{0}\u{7f}é\u{d7ff}\u{e000}\u{ffff}🦀\u{10ffff}]{0,12}|\\PC{0,12}",
            sizes in prop::collection::vec(1_usize..4, 1..30),
        ) {
            let units: Vec<u16> = text.encode_utf16().collect();
            let mut rest = &units[..];
            let mut pieces = Vec::new();
            for size in sizes.iter().cycle() {
                if rest.is_empty() {
                    break;
                }
                let (piece, after) = rest.split_at((*size).min(rest.len()));
                pieces.push(written(piece));
                rest = after;
            }
            prop_assert_eq!(join(pieces.iter().map(String::as_str)), Ok(text));
        }
    }
}

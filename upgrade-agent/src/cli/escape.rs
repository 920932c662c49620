//! Escapes foreign texts for the terminal: the name of an experiment may contain any character.
//!
//! A control character is shown as a picture or number and never removed, so that the reader notices it.

use std::borrow::Cow;
use std::fmt::Write;

/// Escapes all control characters except line breaks and tabs, and the characters that change the direction
/// of the text.
pub(super) fn escape(text: &str) -> Cow<'_, str> {
    replaced(text, |c| is_unruly(c) && c != '\n' && c != '\t')
}

/// Escapes a text for one line.
pub(super) fn escape_line(text: &str) -> Cow<'_, str> {
    replaced(text, is_unruly)
}

/// Escapes a JSON text. The result is the same JSON.
pub(super) fn escape_json(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_unruly) {
        return text.into();
    }
    let escaped = |mut out: String, c: char| {
        if is_unruly(c) {
            // Writing to a string cannot fail. No such character is above U+FFFF.
            let _ = write!(out, "\\u{:04x}", u32::from(c));
        } else {
            out.push(c);
        }
        out
    };
    text.chars().fold(String::with_capacity(text.len()), escaped).into()
}

fn replaced(text: &str, is_wrong: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.chars().any(&is_wrong) {
        return text.into();
    }
    text.chars()
        .map(|c| if is_wrong(c) { picture(c) } else { Cow::Owned(c.to_string()) })
        .collect::<String>()
        .into()
}

fn is_unruly(c: char) -> bool {
    c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{2028}' | '\u{2029}')
}

fn picture(c: char) -> Cow<'static, str> {
    let pictured = match u32::from(c) {
        code @ 0..=0x1f => char::from_u32(0x2400 + code),
        0x7f => Some('\u{2421}'),
        _ => None,
    };
    pictured.map_or_else(|| format!("\\u{{{:x}}}", u32::from(c)).into(), |c| c.to_string().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped() {
        assert_eq!(escape("a\u{1b}[2Jb\u{7}\rc\u{7f}"), "a␛[2Jb␇␍c␡");
        assert_eq!(escape("\u{9b}31m\u{202e}abc"), "\\u{9b}31m\\u{202e}abc");
    }

    #[test]
    fn text_without_control_characters_is_not_changed() {
        let text = "Größe 漢字 🦀\tso\nnext שלום";
        assert!(matches!(escape(text), Cow::Borrowed(same) if same == text));
        assert_eq!(escape_line("a\nb"), "a␊b");
    }

    #[test]
    fn escaped_json_has_the_same_value() {
        let value = serde_json::json!({ "name": "a\u{1b}\u{9b}\u{7f}\u{202e}ü" });
        let text = value.to_string();
        let harmless = escape_json(&text);
        assert!(!harmless.chars().any(is_unruly), "{harmless}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&harmless).unwrap(), value);
    }
}

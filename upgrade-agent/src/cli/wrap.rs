//! Wraps lines between words while a text arrives in pieces.
//!
//! Knows columns and not terminals: it takes a width and returns the text to print.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

const TAB: &str = "    ";

/// Wraps one text. A word is held back until it is complete.
#[derive(Debug)]
pub(super) struct Wrap {
    /// The width of a line; `None` leaves lines unchanged.
    width: Option<usize>,
    /// The column of the next character.
    column: usize,
    /// Spaces that are printed only if a word follows on the line.
    gap: usize,
    word: String,
}

impl Wrap {
    pub(super) fn new(width: Option<usize>) -> Self {
        Wrap { width, column: 0, gap: 0, word: String::new() }
    }

    /// The text to print after this piece.
    pub(super) fn push(&mut self, piece: &str) -> String {
        let mut out = String::new();
        if self.width.is_none() {
            out.push_str(piece);
            return out;
        }
        for c in piece.chars() {
            match c {
                '\n' => self.end_line(&mut out),
                ' ' => self.space(1, &mut out),
                '\t' => self.space(TAB.len(), &mut out),
                c => self.word.push(c),
            }
        }
        out
    }

    /// The rest of the text.
    pub(super) fn end(&mut self) -> String {
        let mut out = String::new();
        self.end_word(&mut out);
        out
    }

    fn space(&mut self, columns: usize, out: &mut String) {
        self.end_word(out);
        self.gap += columns;
    }

    fn end_line(&mut self, out: &mut String) {
        self.end_word(out);
        out.push('\n');
        (self.column, self.gap) = (0, 0);
    }

    fn end_word(&mut self, out: &mut String) {
        if self.word.is_empty() {
            return;
        }
        let width = self.width.unwrap_or(usize::MAX);
        let word = std::mem::take(&mut self.word);
        let columns = word.width();
        if self.column > 0 && self.column + self.gap + columns > width {
            out.push('\n');
            (self.column, self.gap) = (0, 0);
        }
        out.extend(std::iter::repeat_n(' ', self.gap));
        out.push_str(&word);
        // The terminal breaks a word that is longer than a line.
        let end = self.column + self.gap + columns;
        self.column = if end > width { (end - 1) % width + 1 } else { end };
        self.gap = 0;
    }
}

/// The text in lines of at most this width.
pub(super) fn wrapped(text: &str, width: Option<usize>) -> String {
    let mut wrap = Wrap::new(width);
    let mut out = wrap.push(text);
    out.push_str(&wrap.end());
    out
}

/// The beginning of a text that fits into this width, with a mark if it was cut.
pub(super) fn cut(text: &str, columns: usize) -> String {
    if text.width() <= columns {
        return text.to_owned();
    }
    let mut left = columns.saturating_sub(1);
    let fits = |c: &char| {
        let columns = c.width().unwrap_or(0);
        let fits = columns <= left;
        left = left.saturating_sub(columns);
        fits
    };
    let kept: String = text.chars().take_while(fits).collect();
    if columns == 0 { kept } else { kept + "…" }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lines_break_between_words() {
        assert_eq!(wrapped("one two three", Some(7)), "one two\nthree");
        assert_eq!(wrapped("one\n\n  two three", Some(9)), "one\n\n  two\nthree");
        assert_eq!(wrapped("a longwordthatfitsnowhere b", Some(8)), "a\nlongwordthatfitsnowhere\nb");
        assert_eq!(wrapped("as it is", None), "as it is");
    }

    #[test]
    fn wide_characters_take_two_columns() {
        assert_eq!(wrapped("漢字 漢字", Some(8)), "漢字\n漢字");
        assert_eq!(wrapped("漢字 漢字", Some(9)), "漢字 漢字");
        assert_eq!(cut("漢字漢字", 5), "漢字…");
        assert_eq!(cut("abc", 3), "abc");
        assert_eq!(cut("abcd", 3), "ab…");
    }

    proptest! {
        #[test]
        fn no_line_is_too_wide_and_no_word_is_lost(
            words in prop::collection::vec("[a-z漢]{1,4}", 0..20), width in 8_usize..30, cut in 0_usize..100,
        ) {
            let text = words.join(" ");
            let at = text.char_indices().map(|(at, _)| at).nth(cut).unwrap_or(text.len());
            let mut wrap = Wrap::new(Some(width));
            let mut out = wrap.push(&text[..at]);
            out.push_str(&wrap.push(&text[at..]));
            out.push_str(&wrap.end());
            prop_assert_eq!(out.split_whitespace().collect::<Vec<_>>(), words.iter().map(String::as_str).collect::<Vec<_>>());
            for line in out.lines() {
                prop_assert!(line.width() <= width, "{:?}", line);
            }
        }
    }
}

//! Displays foreign texts in the agent's sentences. A name on the server may contain anything, so it must not
//! break a line of a question, hide a part of it, or push the rest off the screen.

/// The limit of a displayed text, in characters.
const LONGEST: usize = 120;

/// The text on one line, without invisible characters, cut at the limit.
pub(crate) fn display(text: &str) -> String {
    display_up_to(text, LONGEST)
}

/// The text on one line, cut at this limit.
pub(super) fn display_up_to(text: &str, longest: usize) -> String {
    let line = on_one_line(text);
    match line.char_indices().nth(longest) {
        None => line,
        Some((end, _)) => format!("{}…", &line[..end]),
    }
}

/// The text on one line, uncut, because the person has to read all of what they confirm.
pub(crate) fn on_one_line(text: &str) -> String {
    text.chars().map(|sign| if is_hidden(sign) { ' ' } else { sign }).collect()
}

/// Control characters (line breaks and escapes among them), and characters that change the direction of
/// reading or have no width.
fn is_hidden(sign: char) -> bool {
    sign.is_control()
        || matches!(sign, '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// The first few of several texts.
pub(crate) fn display_list<'a>(texts: impl IntoIterator<Item = &'a str>) -> String {
    const MOST: usize = 8;
    let all: Vec<String> = texts.into_iter().map(display).collect();
    match all.len().saturating_sub(MOST) {
        0 => all.join(", "),
        more => format!("{} and {more} more", all[..MOST].join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn displayed_text_is_one_line_without_hidden_characters_and_cut_at_120() {
        assert_eq!(display("Hints"), "Hints");
        assert_eq!(display("Hints'?\nAnswer yes"), "Hints'? Answer yes");
        assert_eq!(display("a\u{1b}[2Jb\u{202e}c\u{200b}d"), "a [2Jb c d");
        assert_eq!(display(&"ä".repeat(5000)).chars().count(), 121);
        assert_eq!(display(&"ä".repeat(120)).chars().count(), 120);
    }

    #[test]
    fn only_the_first_eight_texts_of_a_list_are_displayed() {
        assert_eq!(display_list(["a", "b"]), "a, b");
        let many: Vec<String> = (0..10).map(|n| n.to_string()).collect();
        assert_eq!(display_list(many.iter().map(String::as_str)), "0, 1, 2, 3, 4, 5, 6, 7 and 2 more");
    }
}

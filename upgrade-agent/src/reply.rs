//! Reads the answer to a confirmation, without a model and without state: a text in, a verdict out.
//!
//! The whole message counts. It is a yes if it consists of yes words, polite words and punctuation, and
//! likewise for a no. A message with any other word ("yes but", "don't delete it", "yesterday") is
//! [`Verdict::Other`], which runs nothing.

use serde::{Deserialize, Serialize};

/// The kind of answer that means yes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ConfirmKind {
    /// Any yes word.
    YesNo,
    /// Exactly `DELETE`, in capitals.
    TypeDelete,
}

/// The meaning of a message for an open confirmation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Run the action.
    Yes,
    /// Do not run it.
    No,
    /// Change something first.
    Modify,
    /// A yes in the wrong words: the question stays open.
    NotTheWord,
    /// "Why?", "are you sure?": needs an answer, and the question stays open.
    Doubt,
    /// Something else: the question is closed.
    Other,
}

/// The word for [`ConfirmKind::TypeDelete`].
pub const DELETE_WORD: &str = "DELETE";

const YES: &[&str] = &[
    "yes",
    "y",
    "ok",
    "okay",
    "sure",
    "confirm",
    "proceed",
    "go ahead",
    "do it",
    "yeah",
    "yea",
    "yep",
    "yup",
    "of course",
    "sure thing",
    "certainly",
    "absolutely",
    "definitely",
    "affirmative",
    "correct",
    "go for it",
    "please do",
    "please do it",
    "by all means",
    "sounds good",
];
const NO: &[&str] = &["no", "n", "nope"];
const MODIFY: &[&str] = &["modify", "change", "edit", "modify it", "change it", "edit it"];
const CANCEL: &[&str] = &[
    "cancel",
    "cancel it",
    "cancel that",
    "cancel this",
    "abort",
    "abort it",
    "abort that",
    "abort this",
    "stop",
    "stop it",
    "stop that",
    "stop this",
    "nevermind",
    "never mind",
    "never mind that",
    "don't",
    "dont",
    "do not",
    "don't do it",
    "don't do that",
    "do not do it",
    "do not do that",
    "forget it",
    "forget that",
    "forget about it",
    "forget about that",
    "drop it",
    "leave it",
];
/// A list rather than a measure of similarity; otherwise an experiment could not be named Cancer.
const MISTYPED_CANCEL: &[&str] = &[
    "cancle", "cacnel", "canecl", "cnacel", "acncel", "cancell", "canncel", "canccel", "cancl", "canel",
    "cacel",
];
const ALMOST_DELETE: &[&str] = &["delete", "delete it"];
/// Texts that pick the first of several answers. A word that has to be typed cannot be picked.
const PICKS: &[&str] = &[
    "one", "two", "first", "second", "1st", "2nd", "option", "answer", "number", "choice", "no", "nr", "the",
    "pick", "take", "choose",
];
/// Texts that give up a restore.
const GIVE_UP: &[&str] = &[
    "give up the restore",
    "give up restoring",
    "do not restore",
    "don't restore",
    "do not restore it",
    "don't restore it",
];
/// Doubts that need an answer and leave the question open.
const DOUBTS: &[&str] = &[
    "why",
    "why not",
    "how come",
    "what",
    "really",
    "seriously",
    "are you sure",
    "are you certain",
    "are you really sure",
    "is that safe",
    "is this safe",
    "is it safe",
    "why do you ask",
    "why are you asking",
    "what do you mean",
    "what does that mean",
    "what does this mean",
    "what happens then",
    "what will happen",
    "what would happen",
];
/// Hesitations before an answer.
const HESITANT: &[&str] =
    &["hm", "hmm", "hmmm", "um", "uh", "er", "oh", "ah", "well", "actually", "sorry", "wait"];
const POLITE: &[&str] = &["please", "pls", "thanks", "thx", "thank you", "kindly"];

/// Reads a message as the answer to a confirmation.
///
/// ```
/// use upgrade_agent::reply::{ConfirmKind, Verdict, read};
///
/// assert_eq!(read("Yes, please!", ConfirmKind::YesNo), Verdict::Yes);
/// assert_eq!(read("yes but change the name", ConfirmKind::YesNo), Verdict::Other);
/// assert_eq!(read("yes", ConfirmKind::TypeDelete), Verdict::NotTheWord);
/// assert_eq!(read("DELETE", ConfirmKind::TypeDelete), Verdict::Yes);
/// ```
pub fn read(text: &str, kind: ConfirmKind) -> Verdict {
    if kind == ConfirmKind::TypeDelete && unquoted(text) == DELETE_WORD {
        return Verdict::Yes;
    }
    if is_doubt(text) {
        return Verdict::Doubt;
    }
    let Some(words) = words(text) else { return Verdict::Other };
    let says = |phrases: &[&[&str]]| is_made_of(&words, phrases);
    match kind {
        ConfirmKind::YesNo if says(&[YES]) && is_plain(text) => Verdict::Yes,
        ConfirmKind::TypeDelete if says(&[YES, ALMOST_DELETE]) || is_pick(&words) => Verdict::NotTheWord,
        _ if says(&[NO, CANCEL]) || is_refusal(&words) => Verdict::No,
        _ if says(&[MODIFY]) => Verdict::Modify,
        _ => Verdict::Other,
    }
}

/// Whether a message cancels the pending action, if the question was not one of yes or no.
///
/// ```
/// use upgrade_agent::reply::is_cancel;
///
/// assert!(is_cancel("Never mind, thanks."));
/// assert!(is_cancel("Hmm, actually forget it"));
/// assert!(!is_cancel("stop the Math experiment") && !is_cancel("no"));
/// ```
pub fn is_cancel(text: &str) -> bool {
    words(text).is_some_and(|words| {
        let hesitant = words.iter().take_while(|word| HESITANT.contains(&word.as_str())).count();
        is_made_of(&words[hesitant..], &[CANCEL])
    })
}

/// Whether a message gives up the restores that are still due.
pub(crate) fn gives_up_a_restore(text: &str) -> bool {
    words(text).is_some_and(|words| is_made_of(&words, &[GIVE_UP]))
}

/// Whether a message is only a no, if the question was not one of yes or no.
pub(crate) fn is_no(text: &str) -> bool {
    words(text).is_some_and(|words| is_refusal(&words))
}

/// "1", "#1", "option 1", "the first": the number of a numbered answer.
fn is_pick(words: &[String]) -> bool {
    let counts = |word: &String| {
        word.chars().all(|c| c.is_ascii_digit())
            || ["one", "two", "first", "second", "1st", "2nd"].contains(&word.as_str())
    };
    let small =
        |word: &String| counts(word) || PICKS.contains(&word.as_str()) || POLITE.contains(&word.as_str());
    words.iter().any(counts) && words.iter().all(small)
}

/// A question mark counts as a word, so a doubt is neither a yes nor a no.
fn is_doubt(text: &str) -> bool {
    let Some(words) = words(&text.replace('?', " ")) else { return false };
    let firm: Vec<String> = words.into_iter().filter(|word| !HESITANT.contains(&word.as_str())).collect();
    DOUBTS.contains(&firm.join(" ").as_str())
}

/// A no may be hesitant ("no, wait"), because it runs nothing. A yes may not.
fn is_refusal(words: &[String]) -> bool {
    let firm: Vec<String> = words.iter().filter(|word| !HESITANT.contains(&word.as_str())).cloned().collect();
    is_made_of(&firm, &[NO, CANCEL])
}

/// The text without surrounding space and quotes.
fn unquoted(text: &str) -> &str {
    text.trim_matches(|c: char| c.is_whitespace() || is_quote(c))
}

fn is_quote(c: char) -> bool {
    matches!(c, '"' | '\'' | '`' | '\u{2018}'..='\u{201F}' | '«' | '»' | '‹' | '›')
}

/// Whether the non-letters of a text are only punctuation. An emoticon may reverse the meaning of the words,
/// like an emoji: brackets must be in pairs around words, and a dash or star must stand alone.
fn is_plain(text: &str) -> bool {
    let signs: Vec<char> = text.chars().collect();
    let mut open = 0_usize;
    for (at, &c) in signs.iter().enumerate() {
        let before = at.checked_sub(1).and_then(|at| signs.get(at)).copied();
        let after = signs.get(at + 1).copied();
        let fits = match c {
            c if c.is_alphanumeric() || c.is_whitespace() || is_quote(c) || is_soft(c) => true,
            '(' | '[' | '{' => {
                open += 1;
                before.is_none_or(is_edge) && after.is_some_and(begins_words)
            }
            ')' | ']' | '}' => {
                let closes = open > 0;
                open = open.saturating_sub(1);
                let words = before
                    .is_some_and(|c| c.is_alphanumeric() || is_quote(c) || matches!(c, '.' | '!' | ')'));
                closes && words && after.is_none_or(|c| is_edge(c) || is_soft(c) || c == ')')
            }
            _ => !before.is_some_and(is_sign) && !after.is_some_and(is_sign),
        };
        if !fits {
            return false;
        }
    }
    open == 0
}

/// Punctuation that may be repeated.
fn is_soft(c: char) -> bool {
    matches!(c, '.' | ',' | '!' | ';' | ':' | '…')
}

fn is_sign(c: char) -> bool {
    !c.is_alphanumeric() && !c.is_whitespace() && !is_quote(c)
}

fn is_edge(c: char) -> bool {
    c.is_whitespace() || is_quote(c) || c == '('
}

fn begins_words(c: char) -> bool {
    c.is_alphanumeric() || is_quote(c) || c == '('
}

/// The words in lower case without punctuation. `None` if there is anything else, such as an emoji, or a
/// question mark: such a text is not a plain answer.
fn words(text: &str) -> Option<Vec<String>> {
    let mut spaced = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\u{2018}' | '\u{2019}' => spaced.push('\''),
            '?' => return None,
            c if c.is_alphanumeric() || c == '\'' => spaced.extend(c.to_lowercase()),
            c if c.is_whitespace() || c.is_ascii_punctuation() || is_quote(c) => spaced.push(' '),
            '…' | '–' | '—' => spaced.push(' '),
            _ => return None,
        }
    }
    let words = spaced.split_whitespace().map(|word| word.trim_matches('\'').to_owned());
    let meant =
        |word: String| if MISTYPED_CANCEL.contains(&word.as_str()) { "cancel".to_owned() } else { word };
    Some(words.filter(|word| !word.is_empty()).map(meant).collect())
}

/// Whether words consist of these phrases, with polite words anywhere between them.
fn is_made_of(words: &[String], phrases: &[&[&str]]) -> bool {
    let mut rest = words;
    let mut found = false;
    while !rest.is_empty() {
        let phrase = phrases.iter().copied().flatten().filter_map(|phrase| starts_with(rest, phrase)).max();
        let polite = POLITE.iter().filter_map(|phrase| starts_with(rest, phrase)).max();
        match (phrase, polite) {
            (Some(taken), _) => (found, rest) = (true, &rest[taken..]),
            (None, Some(taken)) => rest = &rest[taken..],
            (None, None) => return false,
        }
    }
    found
}

/// The length of the phrase if `words` start with it.
fn starts_with(words: &[String], phrase: &str) -> Option<usize> {
    let mut taken = 0;
    for word in phrase.split(' ') {
        (words.get(taken)? == word).then(|| taken += 1)?;
    }
    Some(taken)
}

//! [`answer`]: answers by patterns, without a model. Pure, and off unless it is asked for.

use crate::tools::evaluate;

/// The answer to a question that is one arithmetic expression, or that says what to write.
pub(super) fn answer(question: &str) -> Option<String> {
    expression(question).and_then(|asked| evaluate(&asked).ok()).or_else(|| reversed(question))
}

/// The expression of a question such as `What is 17 * 3?`
pub(crate) fn expression(question: &str) -> Option<String> {
    let question = question.trim().trim_end_matches(['?', '.']).trim();
    let lower = question.to_lowercase();
    let asked = ["what is ", "calculate ", "compute "].iter().find_map(|begin| lower.strip_prefix(begin))?;
    let is_sign =
        |letter: char| letter.is_ascii_digit() || letter.is_whitespace() || "+-*/^%().,×÷".contains(letter);
    let has_operator = asked.contains(['+', '-', '*', '/', '^', '%', '×', '÷']);
    // A comma may be a separator of thousands or of arguments.
    let is_plain = asked.chars().all(is_sign) && !asked.contains(',');
    (is_plain && has_operator).then(|| asked.to_owned())
}

/// A sentence written backwards that asks for the opposite of a word.
fn reversed(question: &str) -> Option<String> {
    let forwards: String = question.trim().chars().rev().collect();
    let lower = forwards.to_lowercase();
    if !lower.starts_with("if you understand this sentence") {
        return None;
    }
    let (_, after) = lower.split_once("opposite of the word ")?;
    let word: String = after
        .chars()
        .skip_while(|letter| !letter.is_alphabetic())
        .take_while(|letter| letter.is_alphabetic())
        .collect();
    opposite(&word).map(str::to_owned)
}

const OPPOSITES: [(&str, &str); 7] = [
    ("left", "right"),
    ("up", "down"),
    ("north", "south"),
    ("east", "west"),
    ("hot", "cold"),
    ("open", "closed"),
    ("day", "night"),
];

/// The word that means the opposite of another.
pub(crate) fn opposite(word: &str) -> Option<&'static str> {
    let other = |(one, other)| [(one, other), (other, one)].into_iter().find(|(one, _)| *one == word);
    OPPOSITES.into_iter().find_map(other).map(|(_, other)| other)
}

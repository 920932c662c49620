//! [`is_right`]: the public rule by which the benchmark compares an answer with the truth; and [`are_alike`],
//! which compares two answers. Pure.
//!
//! - A truth that is a number is compared as one, after `$`, `%` and `,` are removed from the answer.
//! - A truth with `,` or `;` is a list. The answer must have as many elements, and each is compared by
//!   itself: a number as a number, anything else without white space and case, with its punctuation.
//! - Any other truth is compared without white space, punctuation and case.
//!
//! A number is what Python's `float` reads, since the rule is written in Python; digits of other scripts are
//! left out.

/// Whether an answer is right.
///
/// ```
/// use gaia_agent::score::is_right;
///
/// assert!(is_right("$1,200.00", "1200"));
/// assert!(is_right("Saint-Petersburg", "saint petersburg"));
/// assert!(is_right("b,e", "b, e"));
/// assert!(!is_right("b, e, f", "b, e"));
/// ```
pub fn is_right(answer: &str, truth: &str) -> bool {
    if let Some(truth) = number(truth) {
        return number_of_answer(answer) == truth;
    }
    if truth.contains(SEPARATORS) {
        let (answers, truths): (Vec<_>, Vec<_>) =
            (answer.split(SEPARATORS).collect(), truth.split(SEPARATORS).collect());
        let is_same = |(answer, truth): (&&str, &&str)| match number(truth) {
            Some(truth) => number_of_answer(answer) == truth,
            None => without_space(answer) == without_space(truth),
        };
        return answers.len() == truths.len() && answers.iter().zip(&truths).all(is_same);
    }
    without_punctuation(answer) == without_punctuation(truth)
}

/// Whether two answers are the same answer: one is right if the other is the truth.
///
/// ```
/// use gaia_agent::score::are_alike;
///
/// assert!(are_alike("$1,200.00", "1200") && are_alike("1200", "$1,200.00"));
/// assert!(are_alike("b; e", "b,e"));
/// assert!(!are_alike("infinity", "a text"));
/// ```
pub fn are_alike(one: &str, other: &str) -> bool {
    // By the rule, every text is right if the truth is infinite.
    let scores = |answer, truth| number(truth).is_none_or(f64::is_finite) && is_right(answer, truth);
    one.eq_ignore_ascii_case(other) || scores(one, other) || scores(other, one)
}

const SEPARATORS: [char; 2] = [',', ';'];

/// The number of an answer; infinite if it is none, which equals no finite truth.
fn number_of_answer(answer: &str) -> f64 {
    number(&answer.replace(['$', '%', ','], "")).unwrap_or(f64::INFINITY)
}

/// The number that Python's `float` reads.
fn number(text: &str) -> Option<f64> {
    let text = text.trim_matches(is_space);
    // Python allows one underscore between two digits.
    let bytes = text.as_bytes();
    let is_digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    let is_misplaced = |at: usize| bytes[at] == b'_' && !(at > 0 && is_digit(at - 1) && is_digit(at + 1));
    if (0..bytes.len()).any(is_misplaced) {
        return None;
    }
    text.replace('_', "").parse().ok()
}

fn without_space(text: &str) -> String {
    text.chars().filter(|&letter| !is_space(letter)).collect::<String>().to_lowercase()
}

fn without_punctuation(text: &str) -> String {
    without_space(text).chars().filter(|letter| !letter.is_ascii_punctuation()).collect()
}

/// White space in the sense of Python, which has four separators more.
fn is_space(letter: char) -> bool {
    letter.is_whitespace() || matches!(letter, '\u{1c}'..='\u{1f}')
}

//! [`answer`]: answers by patterns, without a model. Pure, and off unless it is asked for.

use crate::tools::evaluate;

/// The answer to a question that is one arithmetic expression, or that says what to write.
pub(super) fn answer(question: &str) -> Option<String> {
    arithmetic(question).or_else(|| reversed(question))
}

fn arithmetic(question: &str) -> Option<String> {
    evaluate(&expression(question)?).ok()
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
    let opposites = [
        ("left", "right"),
        ("up", "down"),
        ("north", "south"),
        ("east", "west"),
        ("hot", "cold"),
        ("open", "closed"),
    ];
    opposites.iter().find_map(|(one, other)| match &*word {
        word if word == *one => Some((*other).to_owned()),
        word if word == *other => Some((*one).to_owned()),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_questions_have_an_answer_by_pattern() {
        let cases = [
            ("What is 17 * 3?", Some("51")),
            ("Calculate (2 + 3) ^ 2.", Some("25")),
            (".tfel drow eht fo etisoppo eht etirw ,ecnetnes siht dnatsrednu uoy fI", Some("right")),
            ("What is 1,000 + 1?", None),
            ("What is 7?", None),
            ("What is 1 / 0?", None),
            ("What is the capital of Norway?", None),
            ("How much is 2 + 2 in the story?", None),
            ("", None),
        ];
        for (question, expected) in cases {
            assert_eq!(answer(question).as_deref(), expected, "{question}");
        }
    }
}

//! [`clean`]: the answer in the text of a model. Pure.
//!
//! The benchmark compares an answer with the truth by [a rule](crate::score), which forgives white space and
//! case, and no explanation. Models write explanations, JSON and fences all the same, so an answer goes
//! through these steps, in this order:
//!
//! 1. White space around it is removed.
//! 2. If it has exactly one JSON object with `answer`, `final_answer` or `result`, that value counts.
//! 3. Code fences go; their content stays only if there is nothing else.
//! 4. What follows the last `FINAL ANSWER:`, else the last `Answer:`, counts.
//! 5. If the first line is followed by an explanation, the first line counts.
//! 6. Quotes, emphasis and a full stop at the end go; of a plain number also `$`, `%` and thousands
//!    separators.
//!
//! Lists keep their elements: a comma is removed only where the whole text is one number.

use agentgraph_llm::json_in_text::JsonInText;
use serde_json::Value;

/// The answer of a question that has none.
pub const UNKNOWN: &str = "unknown";

const KEYS: [&str; 3] = ["final_answer", "answer", "result"];

/// The words that begin an explanation.
const EXPLAINS: [&str; 19] = [
    "because",
    "explanation",
    "reasoning",
    "since",
    "note",
    "this",
    "these",
    "that",
    "the",
    "i",
    "we",
    "it",
    "here",
    "as",
    "so",
    "in",
    "source",
    "sources",
    "according",
];

/// The answer in a text; empty if there is none.
///
/// ```
/// use gaia_agent::answer::clean;
///
/// assert_eq!(clean("Let me see.\n\n**FINAL ANSWER:** \"Oslo\"."), "Oslo");
/// assert_eq!(clean(r#"{"answer": 42}"#), "42");
/// assert_eq!(clean("$1,234.50"), "1234.50");
/// assert_eq!(clean("b, e"), "b, e");
/// ```
pub fn clean(text: &str) -> String {
    let text = text.trim();
    let of_json = json_answer(text);
    let text = of_json.as_deref().unwrap_or(text);
    let text = without_fences(text);
    let text = after_marker(&text);
    let text = without_explanation(text);
    plain_number(bare(text))
}

/// The last of several texts that has an answer; `None` if none has.
///
/// ```
/// use gaia_agent::answer::last_clean;
///
/// assert_eq!(last_clean(["Perhaps 7.", "FINAL ANSWER:"]).as_deref(), Some("Perhaps 7"));
/// assert_eq!(last_clean([" ", "```\n```"]), None);
/// ```
pub fn last_clean<'t, T>(texts: T) -> Option<String>
where
    T: IntoIterator<Item = &'t str, IntoIter: DoubleEndedIterator>,
{
    texts.into_iter().rev().map(clean).find(|answer| !answer.is_empty())
}

/// The value of the only object with one of the keys.
fn json_answer(text: &str) -> Option<String> {
    let found = JsonInText::of(text);
    let mut answers = found.all().filter_map(|json| {
        let Value::Object(object) = serde_json::from_str(json).ok()? else { return None };
        KEYS.iter().find_map(|key| object.get(*key).cloned())
    });
    match (answers.next(), answers.next()) {
        (Some(answer), None) => Some(shown(&answer)),
        _ => None,
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.trim().to_owned(),
        Value::Array(items) => items.iter().map(shown).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}

/// A text without its fenced blocks, or their content if there is nothing else.
fn without_fences(text: &str) -> String {
    let (mut outside, mut inside, mut is_inside) = (Vec::new(), Vec::new(), false);
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            is_inside = !is_inside;
        } else if is_inside {
            inside.push(line);
        } else {
            outside.push(line);
        }
    }
    let kept = if outside.iter().all(|line| line.trim().is_empty()) { inside } else { outside };
    kept.join("\n").trim().to_owned()
}

/// The text after the last marker; the whole text if nothing does.
fn after_marker(text: &str) -> &str {
    let lower = text.to_ascii_lowercase();
    let after = |marker: &str| lower.rmatch_indices(marker).map(|(at, _)| &text[at + marker.len()..]).next();
    let is_word = |marker: &str| {
        let at = lower.rfind(marker)?;
        let before = text[..at].chars().next_back();
        before.is_none_or(|before| !before.is_alphanumeric()).then(|| after(marker)).flatten()
    };
    is_word("final answer:").or_else(|| is_word("answer:")).map_or(text, str::trim)
}

/// The first line, if an explanation follows it.
fn without_explanation(text: &str) -> &str {
    let Some((first, rest)) = text.split_once('\n') else { return text };
    let is_apart = rest.starts_with(['\n', '\r']);
    let next = rest.trim_start();
    let word: String = next.chars().take_while(|letter| letter.is_alphabetic()).collect();
    let explains = EXPLAINS.contains(&word.to_lowercase().as_str());
    let line = next.lines().next().unwrap_or_default();
    let is_sentence = line.split_whitespace().count() > 5;
    if next.is_empty() || is_apart || explains || is_sentence { first.trim() } else { text.trim() }
}

/// A text without quotes, emphasis and a full stop around it.
fn bare(mut text: &str) -> &str {
    loop {
        let before = text;
        text = text.trim();
        text = text.strip_prefix("**").unwrap_or(text);
        text = text.strip_suffix("**").unwrap_or(text);
        for (open, close) in
            [('"', '"'), ('\'', '\''), ('`', '`'), ('*', '*'), ('_', '_'), ('“', '”'), ('‘', '’')]
        {
            text = text.strip_prefix(open).and_then(|rest| rest.strip_suffix(close)).unwrap_or(text);
        }
        text = without_full_stop(text);
        if text == before {
            return text;
        }
    }
}

/// A full stop of an abbreviation stays, as in `U.S.`.
fn without_full_stop(text: &str) -> &str {
    let Some(rest) = text.strip_suffix('.') else { return text };
    let last = rest.split_whitespace().next_back().unwrap_or_default();
    if last.contains('.') && !last.starts_with(|first: char| first.is_ascii_digit()) { text } else { rest }
}

/// A number without `$`, `%` and thousands separators; any other text as it is.
fn plain_number(text: &str) -> String {
    let number = text.strip_prefix('$').unwrap_or(text);
    let number = number.strip_suffix('%').unwrap_or(number).trim();
    let (whole, rest) = number.split_at(number.find('.').unwrap_or(number.len()));
    let digits = whole.strip_prefix('-').unwrap_or(whole);
    let mut groups = digits.split(',');
    let first = groups.next().unwrap_or_default();
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let has_groups = digits.contains(',');
    let is_whole = !first.is_empty()
        && is_digits(first)
        && (!has_groups || first.len() <= 3)
        && groups.all(|group| group.len() == 3 && is_digits(group));
    let is_number = is_whole && (rest.is_empty() || (rest.len() > 1 && is_digits(&rest[1..])));
    if is_number { format!("{}{rest}", whole.replace(',', "")) } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_answer_goes_through_the_steps_in_their_order() {
        let cases = [
            // 1. White space.
            ("  Oslo \n", "Oslo"),
            ("", ""),
            (" \n\t ", ""),
            // 2. JSON.
            (r#"{"answer": "Oslo"}"#, "Oslo"),
            (r#"{"final_answer": 3.5, "confidence": 1}"#, "3.5"),
            (r#"{"result": ["b", "e"]}"#, "b, e"),
            (r#"{"answer": null}"#, ""),
            (r#"{"answer": true}"#, "true"),
            ("Here it is:\n```json\n{\"answer\": \"right\"}\n```", "right"),
            (r#"I think {"answer": "Oslo"} is right."#, "Oslo"),
            (r#"{"answer": "FINAL ANSWER: Oslo."}"#, "Oslo"),
            // Two objects are two answers, and none of them is known to be the last word.
            (r#"{"answer": 1} or {"answer": 2}"#, r#"{"answer": 1} or {"answer": 2}"#),
            (r#"{"city": "Oslo"}"#, r#"{"city": "Oslo"}"#),
            (r#"{"answer": "Os"#, r#"{"answer": "Os"#),
            // 3. Fences.
            ("```\n42\n```", "42"),
            ("```python\nprint(1)\n```\n42", "42"),
            ("```", ""),
            // 4. Markers.
            ("FINAL ANSWER: 7", "7"),
            ("Final answer: 6\nNo.\nFINAL ANSWER: 7", "7"),
            ("The answer: none yet.\nAnswer: 12", "12"),
            ("Answer: see below\n\nFinal answer: right", "right"),
            ("**FINAL ANSWER:** **Saint Petersburg**", "Saint Petersburg"),
            ("FINAL ANSWER:", ""),
            ("FINAL ANSWER:\n\n42", "42"),
            ("The nonanswer: 5", "The nonanswer: 5"),
            // 5. Explanations.
            ("42\n\nThe table has six rows of seven.", "42"),
            ("42\nBecause six times seven is that.", "42"),
            ("Oslo\nNorway has one capital and it lies on a fjord", "Oslo"),
            ("red\ngreen\nblue", "red\ngreen\nblue"),
            // 6. Quotes, full stops, emphasis, numbers.
            ("\"Oslo\".", "Oslo"),
            ("'Oslo.'", "Oslo"),
            ("**Oslo**.", "Oslo"),
            ("*Oslo*", "Oslo"),
            ("`x = 3`", "x = 3"),
            ("“Oslo”", "Oslo"),
            ("it's", "it's"),
            ("U.S.", "U.S."),
            ("3.5.", "3.5"),
            ("12.", "12"),
            ("$1,234.50", "1234.50"),
            ("1,234,567", "1234567"),
            ("-1,000", "-1000"),
            ("17 %", "17"),
            ("17%", "17"),
            ("1, 2, 3", "1, 2, 3"),
            ("12,34", "12,34"),
            ("1,2", "1,2"),
            ("1234,567", "1234,567"),
            ("42 km", "42 km"),
            ("$", "$"),
            ("%", "%"),
            ("-", "-"),
            ("1.2.3", "1.2.3"),
            ("b, e", "b, e"),
        ];
        for (text, answer) in cases {
            assert_eq!(clean(text), answer, "{text:?}");
        }
    }

    #[test]
    fn the_last_text_with_an_answer_counts() {
        assert_eq!(last_clean(["1", "2", "FINAL ANSWER:", ""]).as_deref(), Some("2"));
        assert_eq!(last_clean([]), None);
    }

    proptest! {
        /// Whatever a model writes, an answer has no white space around it.
        #[test]
        fn any_text_has_an_answer_without_white_space_around_it(text in "(\\PC|[\\n\"'`*._$%,:{}\\[\\] ]|answer:|FINAL ANSWER:|```){0,40}") {
            let answer = clean(&text);
            prop_assert_eq!(answer.trim(), &answer);
        }

        /// A plain answer stays as it is, whatever is around it.
        #[test]
        fn a_marked_answer_is_found(answer in "[A-Za-z][a-z]{0,8}( [A-Z][a-z]{1,8}){0,3}", before in "[a-z .\\n]{0,30}") {
            let text = format!("{before}\nFINAL ANSWER: **{answer}**.\n\nThis follows.");
            prop_assert_eq!(clean(&text), answer);
        }
    }
}

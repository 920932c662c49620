//! [`clean`]: the answer in the text of a model. Pure.
//!
//! The benchmark compares an answer with the truth by [a rule](crate::score), which forgives white space and
//! case, and no explanation. Models mark their answers in many forms: the table `FORMS` has them. A text is
//! searched for all of them; a form of the first rank goes before one of the second, and the last of a rank
//! counts. Then:
//!
//! 1. Points of a list become elements with commas.
//! 2. If the first line is followed by an explanation or a confidence, the first line counts.
//! 3. Brackets, quotes, emphasis and a full stop go, around the whole and around each element; of a plain
//!    number also `$`, `%` and thousands separators.
//!
//! A text without a mark is no final answer. It is cleaned the same way, for an answer of last resort. What
//! is in code fences counts only if there is nothing else.

use std::ops::Range;

use agentgraph_llm::json_in_text::JsonInText;
use serde_json::Value;

/// The answer of a question that has none.
pub const UNKNOWN: &str = "unknown";

/// How models mark an answer.
#[derive(Clone, Copy)]
enum Mark {
    /// Words before a colon; with `true` also at the beginning of a line before `is`.
    Words(&'static str, bool),
    /// Words that are a line of their own, before the answer.
    Heading(&'static str),
    /// What begins and what ends the answer. Braces within are balanced.
    Enclosed(&'static str, &'static str),
    /// The value of a JSON object.
    Json(&'static str),
}

/// The forms in which models mark an answer, and their ranks: 1 goes before 2.
const FORMS: [(Mark, u8); 11] = [
    (Mark::Words("final answer", true), 1),
    (Mark::Heading("final answer"), 1),
    (Mark::Enclosed("\\boxed{", "}"), 1),
    (Mark::Enclosed("<answer>", "</answer>"), 1),
    (Mark::Enclosed("<final_answer>", "</final_answer>"), 1),
    (Mark::Json("final_answer"), 1),
    (Mark::Json("answer"), 1),
    (Mark::Json("result"), 1),
    (Mark::Words("answer", false), 2),
    (Mark::Words("answer is", false), 2),
    (Mark::Heading("answer"), 2),
];

/// What the instructions write in the place of an answer; a model that repeats them has none.
const PLACES: [&str; 5] = ["the answer", "your answer", "your final answer", "answer", "..."];

/// The words that begin an explanation.
const EXPLAINS: &str = "because explanation reasoning since note this these that the i we it here as so in source sources according \
confidence";

/// Words before the mark of a sentence such as `So the final answer is 42`.
const OPENINGS: [&str; 8] = ["so", "thus", "therefore", "hence", "and", "the", "my", "our"];
const EMPHASIS: [char; 3] = ['*', '_', '`'];

/// The answer in a text; empty if there is none.
///
/// ```
/// use gaia_agent::answer::clean;
///
/// assert_eq!(clean("Let me see.\n\n**FINAL ANSWER:** \"Oslo\"."), "Oslo");
/// assert_eq!(clean("### Final Answer\n\n**b**, **e**\n\nConfidence: 90%"), "b, e");
/// assert_eq!(clean(r#"{"answer": 42}"#), "42");
/// assert_eq!(clean("$1,234.50"), "1234.50");
/// ```
pub fn clean(text: &str) -> String {
    search(text).unwrap_or_else(|| bare_answer(&without_fences(text)))
}

/// The answer that a text marks as such; `None` if it marks none.
///
/// ```
/// use gaia_agent::answer::marked;
///
/// assert_eq!(marked(r"So it is $\boxed{42}$.").as_deref(), Some("42"));
/// assert_eq!(marked("I will now look at the file."), None);
/// ```
pub fn marked(text: &str) -> Option<String> {
    search(text).filter(|answer| !answer.is_empty())
}

/// The last of several texts that marks an answer, else the last that has one; `None` if none has.
///
/// ```
/// use gaia_agent::answer::last_clean;
///
/// assert_eq!(last_clean(["Perhaps 7.", "FINAL ANSWER:"]).as_deref(), Some("Perhaps 7"));
/// assert_eq!(last_clean(["FINAL ANSWER: 6", "Let me check."]).as_deref(), Some("6"));
/// assert_eq!(last_clean([" ", "```\n```"]), None);
/// ```
pub fn last_clean<'t, T>(texts: T) -> Option<String>
where
    T: IntoIterator<Item = &'t str, IntoIter: DoubleEndedIterator + Clone>,
{
    let texts = texts.into_iter().rev();
    let found = texts.clone().find_map(marked);
    found.or_else(|| texts.map(clean).find(|answer| !answer.is_empty()))
}

/// A mark in a text: where it is, and the answer.
struct Candidate {
    rank: u8,
    place: Range<usize>,
    answer: String,
}

/// The last marked answer, outside of fences if there is one; empty if all marks are before nothing.
fn search(text: &str) -> Option<String> {
    let is_fence = |line: &&str| line.trim_start().starts_with("```");
    let whole = || text.lines().filter(|line| !is_fence(line)).collect::<Vec<_>>().join("\n");
    last_marked(&split_fences(text).0).filter(|answer| !answer.is_empty()).or_else(|| last_marked(&whole()))
}

fn last_marked(text: &str) -> Option<String> {
    let mut found: Vec<Candidate> = Vec::new();
    for (mark, rank) in &FORMS {
        match mark {
            Mark::Words(words, _) | Mark::Heading(words) => found.extend(by_words(text, words, *mark, *rank)),
            Mark::Enclosed(open, close) => found.extend(enclosed(text, open, close, *rank)),
            Mark::Json(key) => found.extend(json(text, key, *rank)),
        }
    }
    // Words within a JSON text or a box are part of that answer.
    let is_within = |inner: &Candidate| {
        let around =
            |outer: &Candidate| outer.place.start < inner.place.start && inner.place.end <= outer.place.end;
        found.iter().any(|outer| outer.rank == 1 && around(outer) && !outer.answer.is_empty())
    };
    let counts = |candidate: &&Candidate| {
        let answer = candidate.answer.as_str();
        !answer.is_empty() && !PLACES.contains(&answer.to_lowercase().as_str()) && !is_within(candidate)
    };
    let order = |candidate: &&Candidate| (std::cmp::Reverse(candidate.rank), candidate.place.start);
    let last = found.iter().filter(counts).max_by_key(order).map(|last| last.answer.clone());
    last.or_else(|| found.first().map(|_| String::new()))
}

/// The answers after each place of the words; each ends where the next begins.
fn by_words(text: &str, words: &str, mark: Mark, rank: u8) -> Vec<Candidate> {
    let lower = text.to_ascii_lowercase();
    let is_word = |at: usize| !lower[..at].chars().next_back().is_some_and(char::is_alphanumeric);
    let places: Vec<usize> = lower.match_indices(words).map(|(at, _)| at).filter(|at| is_word(*at)).collect();
    let mut found = Vec::new();
    for (number, &at) in places.iter().enumerate() {
        let end = places.get(number + 1).copied().unwrap_or(text.len());
        let end = if end < text.len() {
            text[..end].rfind('\n').filter(|line| *line > at).unwrap_or(end)
        } else {
            end
        };
        let line = text[..at].rfind('\n').map_or(0, |line| line + 1);
        if let Some(content) = content(&text[line..at], &text[at + words.len()..end], mark) {
            // The place is that of the words alone: a box may follow in the answer.
            found.push(Candidate { rank, place: at..at + words.len(), answer: bare_answer(content) });
        }
    }
    found
}

/// What follows the words of a mark, if they are one: `before` is the line up to them.
fn content<'t>(before: &str, after: &'t str, mark: Mark) -> Option<&'t str> {
    let opening: String = before.chars().rev().take_while(|letter| EMPHASIS.contains(letter)).collect();
    let begins = before.trim_start_matches(['#', '>', '-', ' ', '\t']).trim_matches(EMPHASIS).trim();
    let rest = after.trim_start_matches(EMPHASIS).trim_start_matches([' ', '\t']);
    let rest = match mark {
        Mark::Heading(_) => {
            let (line, below) = rest.split_once('\n')?;
            return (begins.is_empty() && line.trim_matches(EMPHASIS).trim().is_empty()).then_some(below);
        }
        Mark::Words(_, takes_is) => match rest.strip_prefix([':', '：']) {
            Some(rest) => rest,
            None => {
                let opens = begins
                    .split([' ', ','])
                    .all(|word| word.is_empty() || OPENINGS.contains(&word.to_lowercase().as_str()));
                let rest = rest
                    .strip_prefix("is")
                    .filter(|rest| takes_is && opens && rest.starts_with([' ', ':', '：', '\n']))?;
                rest.trim_start().trim_start_matches([':', '：'])
            }
        },
        Mark::Enclosed(..) | Mark::Json(_) => return None,
    };
    // The emphasis that began before the words ends behind them.
    let rest = rest.trim_start_matches([' ', '\t']);
    let rest = if opening.is_empty() { rest } else { rest.strip_prefix(opening.as_str()).unwrap_or(rest) };
    // An answer on the line of its mark is that line.
    let (line, _) = rest.split_once('\n').unwrap_or((rest, ""));
    Some(if line.trim().is_empty() { rest } else { line })
}

fn enclosed(text: &str, open: &str, close: &str, rank: u8) -> Vec<Candidate> {
    let lower = text.to_ascii_lowercase();
    let mut found = Vec::new();
    for (at, _) in lower.match_indices(open) {
        let from = at + open.len();
        let mut depth = 0_usize;
        let is_end = |(place, letter): &(usize, char)| {
            let is_open_brace = *letter == '{';
            let is_end = depth == 0 && lower[from + place..].starts_with(close);
            depth = if is_open_brace { depth + 1 } else { depth.saturating_sub(usize::from(*letter == '}')) };
            is_end
        };
        let Some((length, _)) = lower[from..].char_indices().find(is_end) else { continue };
        let answer = clean(text[from..from + length].trim());
        found.push(Candidate { rank, place: at..from + length + close.len(), answer });
    }
    found
}

fn json(text: &str, key: &str, rank: u8) -> Vec<Candidate> {
    let found = JsonInText::of(text);
    let candidates = found.all().filter_map(|json| {
        let Value::Object(object) = serde_json::from_str(json).ok()? else { return None };
        let answer = clean(&shown(object.get(key)?));
        let at = text.rfind(json)?;
        Some(Candidate { rank, place: at..at + json.len(), answer })
    });
    candidates.collect()
}

fn shown(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.trim().to_owned(),
        Value::Array(items) => items.iter().map(shown).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}

/// The lines outside of fences, and those inside.
fn split_fences(text: &str) -> (String, String) {
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
    (outside.join("\n").trim().to_owned(), inside.join("\n").trim().to_owned())
}

/// A text without its fenced blocks, or their content if there is nothing else.
fn without_fences(text: &str) -> String {
    let (outside, inside) = split_fences(text);
    if outside.is_empty() { inside } else { outside }
}

/// The answer alone, of a text that begins with it.
fn bare_answer(text: &str) -> String {
    let text = text.trim();
    let text = match points(text) {
        Some(list) => list,
        None => without_explanation(text).to_owned(),
    };
    let text = without_confidence(&text);
    let elements: Vec<&str> = text.split(", ").collect();
    let is_list = elements.len() > 1 && elements.iter().all(|element| bare(element) != *element);
    match is_list && elements.iter().all(|element| is_enclosed(element)) {
        true => elements.iter().map(|element| bare(element)).collect::<Vec<_>>().join(", "),
        false => plain_number(bare(text)),
    }
}

/// Whether it has emphasis or quotes on both sides.
fn is_enclosed(element: &str) -> bool {
    let element = element.trim().trim_end_matches('.');
    let ends = [("**", "**"), ("*", "*"), ("_", "_"), ("`", "`"), ("\"", "\""), ("'", "'"), ("“", "”")];
    ends.iter().any(|(open, close)| {
        element.len() > open.len() && element.starts_with(open) && element.ends_with(close)
    })
}

/// The points of a list as elements; `None` for any other text.
fn points(text: &str) -> Option<String> {
    let point = |line: &str| -> Option<String> {
        let line = line.trim();
        let marked = line.strip_prefix(['-', '*', '•']).or_else(|| {
            let digits = line.trim_start_matches(|letter: char| letter.is_ascii_digit());
            digits.strip_prefix(['.', ')']).filter(|_| digits.len() < line.len())
        });
        marked.and_then(|rest| rest.strip_prefix(' ')).map(|rest| bare(rest).to_owned())
    };
    let points: Vec<String> = text.lines().map_while(point).collect();
    (points.len() > 1).then(|| points.join(", "))
}

/// `42 (confidence: 90%)` has its answer before the bracket.
fn without_confidence(text: &str) -> &str {
    let at = text.to_ascii_lowercase().find("confidence:");
    let before =
        at.map(|at| text[..at].trim_end()).filter(|before| before.ends_with(['(', ',', ';', '|', '-']));
    before.map_or(text, |before| before.trim_end_matches(['(', ',', ';', '|', '-', ' ']))
}

/// The first line, if an explanation follows it.
fn without_explanation(text: &str) -> &str {
    let Some((first, rest)) = text.split_once('\n') else { return text };
    let is_apart = rest.starts_with(['\n', '\r']);
    let next = rest.trim_start();
    let word: String = next.chars().take_while(|letter| letter.is_alphabetic()).collect();
    let explains = EXPLAINS.split(' ').any(|known| known == word.to_lowercase());
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
        for (open, close) in [("[", "]"), ("\\(", "\\)"), ("$", "$"), ("\\text{", "}")] {
            let inner = text.strip_prefix(open).and_then(|rest| rest.strip_suffix(close));
            text = inner.filter(|inner| !inner.contains(open)).unwrap_or(text);
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

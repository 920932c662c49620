//! How alike two questions are. Pure.

/// Words that turn a question round, and numbers.
const WORDS: &str = "not no never without except excluding including only before after first last least most lowest highest smallest \
largest earliest latest second zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen \
seventeen eighteen nineteen twenty hundred thousand million";

/// How alike two texts are, from 0 to 1: one less the share of letters that have to change.
///
/// ```
/// use gaia_agent::cache::likeness;
///
/// assert_eq!(likeness("Who?", "who?"), 1.0);
/// assert!(likeness("What is 2+2?", "What is 2+3?") > 0.9);
/// ```
pub fn likeness(one: &str, other: &str) -> f64 {
    let plain = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase();
    strsim::normalized_damerau_levenshtein(&plain(one), &plain(other))
}

/// Whether two questions ask the same: they are alike from the likeness `from` up, and have the same numbers,
/// names and words that turn a question round, in the same order.
///
/// ```
/// use gaia_agent::cache::are_alike;
///
/// assert!(are_alike("How many albums did Ada publish?", "How many albums has Ada published?", 0.8));
/// assert!(!are_alike("What is 2+2?", "What is 2+3?", 0.8));
/// assert!(!are_alike("How old is Ada Berg?", "How old is Ida Berg?", 0.8));
/// ```
pub fn are_alike(one: &str, other: &str, from: f64) -> bool {
    marks(one) == marks(other) && likeness(one, other) >= from
}

/// The parts that must be the same: numbers and signs of arithmetic, names, and words that turn a question
/// round.
fn marks(question: &str) -> Vec<String> {
    let mut marks = Vec::new();
    let mut is_first = true;
    let is_part = |letter: char| letter.is_alphanumeric() || matches!(letter, '\'' | '.' | ',');
    for word in
        question.split(|letter: char| letter.is_whitespace() || matches!(letter, '"' | '(' | ')' | '“' | '”'))
    {
        for sign in word
            .chars()
            .filter(|letter| matches!(letter, '+' | '-' | '*' | '/' | '^' | '%' | '=' | '<' | '>'))
        {
            marks.push(sign.to_string());
        }
        for part in word.split(|letter| !is_part(letter)) {
            let part = part.trim_end_matches(['.', ',', '\'']);
            let lower = part.to_lowercase();
            let has_digit = part.chars().any(char::is_numeric);
            let is_name = !is_first && part.chars().any(char::is_uppercase);
            if has_digit || is_name || WORDS.split(' ').any(|word| word == lower) || lower.ends_with("n't") {
                marks.push(lower);
            }
            if !part.is_empty() {
                is_first = false;
            }
        }
        if word.ends_with(['.', '?', '!', ':']) {
            is_first = true;
        }
    }
    marks
}

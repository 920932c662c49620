//! A reply as sentences and words. Knows English punctuation and nothing of actions.

/// A word of a sentence.
pub(super) struct Word {
    pub(super) low: String,
    /// Written like a name: capitalized inside the sentence, or in quotes.
    pub(super) named: bool,
    /// Capitalized.
    pub(super) leads: bool,
}

pub(super) fn is(word: &Word, any: &[&str]) -> bool {
    any.contains(&word.low.as_str())
}

/// Whether the word contains a year: "2026-04-02", "2026".
pub(super) fn is_date(low: &str) -> bool {
    let mut numbers = low.split(|sign: char| !sign.is_ascii_digit());
    numbers.any(|number| number.len() == 4 && (number.starts_with("19") || number.starts_with("20")))
}

/// Contractions are split: "I've" becomes "I" and "'ve".
pub(super) fn words(sentence: &str) -> Vec<Word> {
    let mut words = Vec::new();
    for raw in sentence
        .split(|sign: char| sign.is_whitespace() || matches!(sign, ',' | ';' | ':' | '(' | ')' | '*' | '_'))
    {
        let quoted = raw.starts_with(['\'', '"', '`']) && raw.len() > 1;
        let core = raw.trim_matches(|sign: char| !sign.is_alphanumeric());
        let (head, tail) = match core.find('\'') {
            Some(at) => core.split_at(at),
            None => (core, ""),
        };
        let (head, tail) = match head.strip_suffix('n').filter(|_| tail == "'t") {
            Some(verb) => (verb, "not"),
            None => (head, tail),
        };
        let leads = head.starts_with(char::is_uppercase);
        let first = words.is_empty();
        for part in [head, tail].into_iter().filter(|part| !part.is_empty()) {
            let low = part.to_lowercase();
            let named = quoted || leads && !first && part != "I" && !part.starts_with('\'');
            words.push(Word { low, named, leads });
        }
    }
    words
}

/// The text without the parts in double quotes, backticks or fences that are quotations rather than names.
pub(super) fn without_quotations(text: &str, is_told: fn(&str) -> bool) -> String {
    let plain: String = text
        .chars()
        .map(|sign| match sign {
            '’' | '‘' => '\'',
            '“' | '”' | '`' => '"',
            _ => sign,
        })
        .collect();
    let pieces = plain.split('"').enumerate();
    pieces.map(|(at, piece)| if at % 2 == 1 && is_told(piece) { "…" } else { piece }).collect()
}

/// Splits at full stops, exclamation and question marks and line ends; a mark stays with its sentence.
pub(super) fn sentences(text: &str) -> Vec<String> {
    let mut all = vec![String::new()];
    let mut signs = text.chars().peekable();
    while let Some(sign) = signs.next() {
        let ends = matches!(sign, '.' | '!' | '?') && signs.peek().is_none_or(|next| next.is_whitespace());
        if let Some(last) = all.last_mut().filter(|_| sign != '\n') {
            last.push(sign);
        }
        if ends || sign == '\n' {
            all.push(String::new());
        }
    }
    all.into_iter().map(|one| one.trim().to_owned()).filter(|one| !one.is_empty()).collect()
}

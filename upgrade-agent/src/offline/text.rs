//! The words of a message in a form that can be compared: lower case, stems, tolerant of misspellings.
//!
//! It knows English spelling and nothing of experiments.

use strsim::damerau_levenshtein;

/// The limit of a message's length; the rest is ignored.
const LONGEST: usize = 4_000;

/// One word of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Word {
    /// As written.
    pub(super) raw: String,
    /// In lower case.
    pub(super) low: String,
    /// The stem, in lower case.
    pub(super) stem: String,
    /// Whether the word is in quotes.
    pub(super) quoted: bool,
    /// Whether the word starts a sentence.
    pub(super) leads: bool,
    /// Whether a comma or a full stop precedes the word.
    pub(super) new_clause: bool,
}

impl Word {
    fn new(raw: &str, quoted: bool, leads: bool, new_clause: bool) -> Self {
        let low = raw.to_lowercase();
        let stem = stem(&low);
        Word { raw: raw.to_owned(), low, stem, quoted, leads, new_clause }
    }

    /// Whether it is written like a name: capitalized, not at the start of a sentence.
    pub(super) fn is_capital(&self) -> bool {
        !self.leads && self.raw.chars().next().is_some_and(char::is_uppercase) && self.low != "i"
    }

    pub(super) fn is(&self, any: &[&str]) -> bool {
        any.contains(&self.low.as_str())
    }
}

/// A message as words, and its quoted parts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Text {
    pub(super) words: Vec<Word>,
    pub(super) quotes: Vec<String>,
    pub(super) asks: bool,
}

impl Text {
    pub(super) fn read(message: &str) -> Self {
        let message: String = message.chars().take(LONGEST).map(plain).collect();
        let mut text = Text { asks: message.contains('?'), ..Text::default() };
        let mut reader = Reader { text: &mut text, leads: true, new_clause: true };
        for (piece, quoted) in split_quotes(&message) {
            reader.piece(piece, quoted);
        }
        text.rewrite_ban();
        text
    }

    /// Replaces a ban ("should not include", "must never see") by the verb "exclude".
    fn rewrite_ban(&mut self) {
        let member = self.has(&[
            "user", "users", "student", "students", "learner", "learners", "pupil", "pupils", "class",
            "classes", "school", "schools",
        ]);
        let place = self
            .find_phrase("should|must|shall not|never include|contain|admit|accept")
            .or_else(|| {
                self.find_phrase("should|must|shall not|never let|allow").filter(|at| self.names_at(at + 3))
            })
            .or_else(|| self.find_phrase("should|must|shall not|never see|join|enter").filter(|_| member))
            .map(|at| (at, at + 3))
            .or_else(|| {
                let at = self.find_phrase("never sees|joins|enters").filter(|_| member)?;
                Some((at, at + 2))
            });
        if let Some((from, to)) = place {
            let Some(first) = self.words.get(from) else { return };
            let word = Word::new("exclude", false, first.leads, first.new_clause);
            self.words.splice(from..to, [word]);
        }
    }

    /// Whether the next word is neither "it" nor "me".
    fn names_at(&self, at: usize) -> bool {
        let pronouns = ["it", "this", "that", "them", "me", "us", "you", "him", "her", "the", "a", "any"];
        self.words.get(at).is_some_and(|word| !word.is(&pronouns))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    pub(super) fn has(&self, any: &[&str]) -> bool {
        self.words.iter().any(|word| !word.quoted && word.is(any))
    }

    /// Whether these words follow each other; `|` separates alternatives.
    pub(super) fn has_phrase(&self, phrase: &str) -> bool {
        self.find_phrase(phrase).is_some()
    }

    /// The position of the phrase.
    pub(super) fn find_phrase(&self, phrase: &str) -> Option<usize> {
        let wanted: Vec<&str> = phrase.split(' ').collect();
        let fits = |(word, wanted): (&Word, &&str)| wanted.split('|').any(|any| any == word.low);
        self.words.windows(wanted.len()).position(|window| window.iter().zip(&wanted).all(fits))
    }
}

struct Reader<'a> {
    text: &'a mut Text,
    leads: bool,
    new_clause: bool,
}

impl Reader<'_> {
    fn piece(&mut self, piece: &str, quoted: bool) {
        if quoted {
            let quote = piece.trim();
            if !quote.is_empty() {
                self.text.quotes.push(quote.to_owned());
            }
        }
        for raw in piece.split_whitespace() {
            let core = signed(raw).unwrap_or_else(|| raw.trim_matches(|c: char| !c.is_alphanumeric()));
            if !core.is_empty() {
                self.word(core, quoted);
            }
            self.punctuation(raw);
        }
    }

    fn word(&mut self, core: &str, quoted: bool) {
        let parts = if quoted { vec![core.to_owned()] } else { expanded(core) };
        for part in parts {
            self.text.words.push(Word::new(&part, quoted, self.leads, self.new_clause));
            (self.leads, self.new_clause) = (false, false);
        }
    }

    fn punctuation(&mut self, raw: &str) {
        let end = raw.chars().next_back();
        self.leads |= matches!(end, Some('.' | '!' | '?'));
        self.new_clause |= matches!(end, Some('.' | '!' | '?' | ',' | ';' | ':'));
    }
}

/// A negative number: its sign is more than punctuation.
fn signed(raw: &str) -> Option<&str> {
    let core = raw.trim_end_matches(|c: char| !c.is_alphanumeric());
    let number = core.strip_prefix('-').is_some_and(|digits| digits.chars().all(|c| c.is_ascii_digit()));
    (number && core.len() > 1).then_some(core)
}

/// Replaces typographic characters with those of a keyboard.
fn plain(sign: char) -> char {
    match sign {
        '‘' | '’' | '´' => '\'',
        '“' | '”' | '„' | '«' | '»' | '`' => '"',
        '–' | '—' => '-',
        '％' => '%',
        _ => sign,
    }
}

/// The pieces of the message, and whether each was quoted. An apostrophe inside a word and an unmatched quote
/// are ordinary characters.
fn split_quotes(message: &str) -> Vec<(&str, bool)> {
    let mut pieces = Vec::new();
    let mut rest = message;
    while let Some((before, inside, after)) = first_quote(rest) {
        pieces.push((before, false));
        pieces.push((inside, true));
        rest = after;
    }
    pieces.push((rest, false));
    pieces
}

fn first_quote(text: &str) -> Option<(&str, &str, &str)> {
    text.char_indices().filter(|(at, sign)| opens(text, *at, *sign)).find_map(|(at, sign)| {
        let inside = text.get(at + 1..)?;
        let end = inside.char_indices().find(|(end, other)| *other == sign && closes(inside, *end, sign))?.0;
        Some((text.get(..at)?, inside.get(..end)?, inside.get(end + 1..)?))
    })
}

fn opens(text: &str, at: usize, sign: char) -> bool {
    let before = text.get(..at).and_then(|before| before.chars().next_back());
    sign == '"' || (sign == '\'' && !before.is_some_and(char::is_alphanumeric))
}

fn closes(text: &str, at: usize, sign: char) -> bool {
    let after = text.get(at + 1..).and_then(|after| after.chars().next());
    sign == '"' || !after.is_some_and(char::is_alphanumeric)
}

/// Expands `don't` to `do not` and `what's` to `what is`, so that negation and verb are separate words.
fn expanded(core: &str) -> Vec<String> {
    let low = core.to_lowercase();
    let whole = match low.as_str() {
        "can't" | "cant" | "cannot" => Some("can not"),
        "won't" | "wont" => Some("will not"),
        "dont" | "doesnt" | "didnt" => Some("do not"),
        "isnt" | "arent" => Some("is not"),
        "shouldnt" => Some("should not"),
        "let's" | "lets" => Some("let us"),
        "whats" => Some("what is"),
        "waht" | "hwat" | "whta" | "wat" => Some("what"),
        "whcih" | "wich" => Some("which"),
        "hwo" => Some("how"),
        "teh" | "hte" => Some("the"),
        "caled" | "calld" | "callled" | "clled" | "calles" => Some("called"),
        "naemd" | "nmaed" | "namd" => Some("named"),
        "plaese" | "pleas" | "pelase" => Some("please"),
        "wanna" => Some("want to"),
        "gimme" => Some("give me"),
        "lemme" => Some("let me"),
        _ => None,
    };
    if let Some(whole) = whole {
        return whole.split(' ').map(str::to_owned).collect();
    }
    if super::intent::Operation::of_name(core).is_some() {
        return core.split('_').map(str::to_owned).collect();
    }
    let endings =
        [("n't", "not"), ("'re", "are"), ("'ve", "have"), ("'ll", "will"), ("'d", "would"), ("'m", "am")];
    for (ending, word) in endings {
        if let Some(head) = stripped(core, ending) {
            return vec![head.to_owned(), word.to_owned()];
        }
    }
    match stripped(core, "'s") {
        Some(head) if is_asker(&head.to_lowercase()) => vec![head.to_owned(), "is".to_owned()],
        Some(head) => vec![head.to_owned()],
        None => vec![core.to_owned()],
    }
}

fn is_asker(word: &str) -> bool {
    matches!(word, "what" | "who" | "where" | "how" | "which" | "that" | "it" | "there" | "when")
}

/// The part of a word before this ASCII ending.
fn stripped<'a>(core: &'a str, ending: &str) -> Option<&'a str> {
    let at = core.len().checked_sub(ending.len())?;
    let head = core.get(..at)?;
    let tail = core.get(at..)?;
    (!head.is_empty() && tail.eq_ignore_ascii_case(ending)).then_some(head)
}

/// The stem of a word, so that `deleting`, `deletion` and `deletes` all give `delet`.
pub(super) fn stem(low: &str) -> String {
    let mut word = low;
    if let Some(head) = low.strip_suffix("ies").filter(|head| head.len() > 2) {
        return format!("{head}y");
    }
    word = ending(word, &["sses"], 2).map_or(word, |_| &word[..word.len() - 2]);
    word = match ending(word, &["xes", "ches", "shes"], 2) {
        Some(_) => &word[..word.len() - 2],
        None if word.ends_with('s') && !word.ends_with("ss") && !word.ends_with("us") && word.len() > 3 => {
            &word[..word.len() - 1]
        }
        None => word,
    };
    let head = ending(word, &["ments", "ment", "ing", "ion", "ed", "er"], 3).unwrap_or(word);
    let head = if head.len() > 3 { head.strip_suffix('e').unwrap_or(head) } else { head };
    undoubled(head).to_owned()
}

fn ending<'a>(word: &'a str, endings: &[&str], least: usize) -> Option<&'a str> {
    endings
        .iter()
        .find_map(|ending| word.strip_suffix(ending))
        .filter(|head| head.chars().count() >= least && head.chars().any(is_vowel))
}

fn is_vowel(sign: char) -> bool {
    matches!(sign, 'a' | 'e' | 'i' | 'o' | 'u' | 'y')
}

fn undoubled(word: &str) -> &str {
    let mut signs = word.chars().rev();
    match (signs.next(), signs.next()) {
        (Some(last), Some(before)) if last == before && last != 's' && word.len() > 3 => {
            &word[..word.len() - last.len_utf8()]
        }
        _ => word,
    }
}

/// Whether one word is a misspelling of the other: with one wrong letter in words of four to seven, two in
/// longer ones. The first letter must match, so that `state` does not become `date`.
pub(super) fn is_slip_of(written: &str, meant: &str) -> bool {
    let length = meant.chars().count().min(written.chars().count());
    let allowed = match length {
        0..=3 => 0,
        4..=7 => 1,
        _ => 2,
    };
    if written == meant {
        return true;
    }
    if allowed == 0 || written.chars().count().abs_diff(meant.chars().count()) > allowed {
        return false;
    }
    let same_first = written.chars().next() == meant.chars().next();
    (same_first || length >= 7) && damerau_levenshtein(written, meant) <= allowed
}

/// A name for comparisons: lower case, letters and digits only, single spaces.
pub(super) fn folded(name: &str) -> String {
    let signs = name.chars().map(plain).flat_map(char::to_lowercase);
    let spaced: String = signs.map(|sign| if sign.is_alphanumeric() { sign } else { ' ' }).collect();
    spaced.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lows(message: &str) -> Vec<String> {
        Text::read(message).words.into_iter().map(|word| word.low).collect()
    }

    #[test]
    fn forms_of_a_word_have_the_same_stem() {
        let families = [
            vec!["delete", "deletes", "deleting", "deleted", "deletion"],
            vec!["create", "creating", "creation", "created"],
            vec!["stop", "stopping", "stopped", "stops"],
            vec!["pause", "pausing", "paused"],
            vec!["enroll", "enrolling", "enrolled", "enrollment", "enrolment"],
            vec!["cancel", "cancelled", "cancelling", "canceled"],
            vec!["archive", "archiving", "archived"],
            vec!["summary", "summaries"],
        ];
        for family in families {
            let first = stem(family[0]);
            assert!(family.iter().all(|word| stem(word) == first), "{family:?} {first}");
        }
    }

    #[test]
    fn stems_of_short_words_keep_at_least_two_letters() {
        for word in ["is", "his", "bed", "sing", "ring", "us", "status", "class"] {
            assert!(word.starts_with(&stem(word)) && stem(word).len() >= 2, "{word} {}", stem(word));
        }
        assert_eq!(stem("status"), "status");
    }

    #[test]
    fn contractions_are_expanded_but_names_with_apostrophes_are_not() {
        assert_eq!(lows("Don't start it, what's up?"), ["do", "not", "start", "it", "what", "is", "up"]);
        assert_eq!(lows("O'Brien's assign-prog 50/50"), ["o'brien", "assign-prog", "50/50"]);
    }

    #[test]
    fn quotes_of_each_kind_are_found_and_apostrophes_are_not_quotes() {
        for message in [
            "start \"Math Hints\" now",
            "start 'Math Hints' now",
            "start “Math Hints” now",
            "start `Math Hints` now",
        ] {
            let text = Text::read(message);
            assert_eq!(text.quotes, ["Math Hints"], "{message}");
            assert_eq!(text.words.iter().filter(|word| word.quoted).count(), 2, "{message}");
        }
        assert!(Text::read("it's the teacher's class").quotes.is_empty());
        assert!(Text::read("an \"open end").quotes.is_empty());
    }

    #[test]
    fn typing_errors_are_tolerated_and_other_words_are_not() {
        for (written, meant) in [
            ("strat", "start"),
            ("delte", "delete"),
            ("experment", "experiment"),
            ("condtions", "conditions"),
        ] {
            assert!(is_slip_of(written, meant), "{written}");
        }
        for (written, other) in [("date", "state"), ("not", "now"), ("show", "slow down"), ("pasta", "state")]
        {
            assert!(!is_slip_of(written, other), "{written}");
        }
    }
}

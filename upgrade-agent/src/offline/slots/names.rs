//! Matches names in a message with names on the server.

use super::super::lexicon;
use super::super::text::{Text, folded, is_slip_of};
use strsim::damerau_levenshtein;

/// A name and its id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) struct KnownName {
    pub(in super::super) id: String,
    pub(in super::super) name: String,
}

/// The result of a search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) enum Match {
    One(KnownName),
    /// Several match equally well.
    Several(Vec<KnownName>),
    None,
}

/// Finds the experiment of a message: by id, by name, by a misspelled name, or by part of a name.
///
/// A `mention` with more words than a known name is another name: `Unit 2` is not `Unit`.
pub(in super::super) fn resolve(text: &Text, mention: Option<&str>, known: &[KnownName]) -> Match {
    let message: Vec<String> = text.words.iter().flat_map(|word| split(&word.low)).collect();
    let by_id = known.iter().find(|named| text.words.iter().any(|word| word.low == named.id.to_lowercase()));
    if let Some(named) = by_id.or_else(|| by_short_id(text, known)) {
        return Match::One(named.clone());
    }
    let mention = mention.map(folded);
    let scored = known.iter().map(|named| (score(named, &message, mention.as_deref()), named));
    let scored: Vec<_> = scored.filter(|(score, _)| *score > 0).collect();
    let Some(best) = scored.iter().map(|(score, _)| *score).max() else { return Match::None };
    let mut found: Vec<KnownName> =
        scored.into_iter().filter(|(score, _)| *score == best).map(|(_, named)| named.clone()).collect();
    match (found.len(), found.pop()) {
        (1, Some(named)) => Match::One(named),
        (_, Some(last)) => {
            found.push(last);
            Match::Several(found)
        }
        (_, None) => Match::None,
    }
}

/// The first characters of an id, as lists show them for experiments of the same name; long enough not to be
/// a word.
fn by_short_id<'k>(text: &Text, known: &'k [KnownName]) -> Option<&'k KnownName> {
    let short = |low: &str| {
        let hexadecimal = low.chars().all(|sign| sign.is_ascii_hexdigit() || sign == '-');
        low.len() >= SHORT_ID && hexadecimal && low.contains(|sign: char| sign.is_ascii_digit())
    };
    let written = text.words.iter().map(|word| word.low.as_str()).filter(|low| short(low));
    written.into_iter().find_map(|low| {
        let mut found = known.iter().filter(|named| named.id.to_lowercase().starts_with(low));
        found.next().filter(|_| found.next().is_none())
    })
}

/// The number of characters of a shortened id.
const SHORT_ID: usize = 8;

/// Whether a name has this word.
pub(in super::super) fn has_word(name: &str, word: &str) -> bool {
    let word = folded(word);
    let name = folded(name);
    name == word || name.split(' ').any(|part| part == word)
}

fn split(low: &str) -> Vec<String> {
    folded(low).split(' ').filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

/// Whole names before misspelled ones, those before parts; of whole names the longest.
fn score(named: &KnownName, message: &[String], mention: Option<&str>) -> usize {
    let name = folded(&named.name);
    let words: Vec<&str> = name.split(' ').filter(|word| !word.is_empty()).collect();
    if words.is_empty() || mention.is_some_and(|mention| says_more(mention, &words)) {
        return 0;
    }
    if mention == Some(name.as_str()) {
        return 10_000 + name.len();
    }
    if words.iter().all(|word| is_grammar(word)) {
        return 0;
    }
    let nearest = nearest_window(message, &name, words.len());
    match nearest {
        Some(0) => 5_000 + name.len(),
        Some(distance) if distance <= allowed(&name) && has_numbers_of(message, &words) => 1_000 - distance,
        _ => partial(message, mention, &words),
    }
}

/// A different number is not a misspelling: `Unit 2` and `Unit 3` are two names.
fn has_numbers_of(message: &[String], name: &[&str]) -> bool {
    let is_number = |word: &&&str| word.starts_with(|sign: char| sign.is_ascii_digit());
    name.iter().filter(is_number).all(|number| message.iter().any(|word| word == number))
}

fn is_grammar(word: &str) -> bool {
    let text = Text::read(word);
    text.words.iter().all(lexicon::is_function)
}

/// Whether the text contains the whole name and another meaningful word.
fn says_more(mention: &str, name: &[&str]) -> bool {
    let written: Vec<&str> = mention.split(' ').collect();
    let near = |one: &str, other: &str| one == other || is_slip_of(one, other);
    let covers = name.iter().all(|word| written.iter().any(|other| near(other, word)));
    let more = written.iter().filter(|other| !name.iter().any(|word| near(other, word)));
    let number = |word: &&&str| ["one", "two", "three", "four", "five", "second", "third"].contains(word);
    let mut more = more.filter(|other| number(other) || Text::read(other).words.iter().all(super::is_free));
    covers && more.next().is_some()
}

/// The edit distance from the name to the nearest run of words.
fn nearest_window(message: &[String], name: &str, length: usize) -> Option<usize> {
    let lengths = [length, length + 1, length.saturating_sub(1)];
    let windows = lengths.into_iter().filter(|length| *length > 0).flat_map(|length| message.windows(length));
    let solid = name.replace(' ', "");
    windows
        .filter_map(|window| {
            let written = window.concat();
            let near = written.len().abs_diff(solid.len()) <= allowed(name);
            near.then(|| damerau_levenshtein(&written, &solid))
        })
        .min()
}

/// One wrong letter in six; short names must match exactly.
fn allowed(name: &str) -> usize {
    match name.chars().count() {
        0..=3 => 0,
        length => (length / 6).max(1),
    }
}

/// A part of the name that was meant as a name: "hints" for "Math Hints".
fn partial(message: &[String], mention: Option<&str>, name: &[&str]) -> usize {
    let near = |one: &str, other: &str| one == other || is_slip_of(one, other);
    let in_name = |word: &str| name.iter().any(|part| near(word, part));
    let telling = |word: &&str| word.len() > 2 && Text::read(word).words.iter().all(super::is_free);
    if let Some(mention) = mention {
        let written: Vec<&str> = mention.split(' ').filter(telling).collect();
        let fits = !written.is_empty() && written.iter().all(|word| in_name(word));
        return if fits { 100 + written.len() } else { 0 };
    }
    message.iter().map(String::as_str).filter(telling).filter(|word| in_name(word)).count()
}

/// The known word in the message: a context, a site, a group type. Exact matches before misspellings, longer
/// before shorter.
pub(in super::super) fn word_of<'a>(
    text: &Text,
    known: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let message: Vec<String> = text.words.iter().flat_map(|word| split(&word.low)).collect();
    let scored = known.into_iter().filter_map(|word| {
        let name = folded(word);
        let distance = nearest_window(&message, &name, name.split(' ').count())?;
        (distance <= allowed(&name)).then_some((distance, std::cmp::Reverse(name.len()), word))
    });
    scored.min().map(|(_, _, word)| word)
}

#[cfg(test)]
mod tests {
    use super::super::mention;
    use super::*;

    fn known() -> Vec<KnownName> {
        ["Math Hints", "Math Hints 2", "Running Test", "Foo", "Reading hints for grade 7"]
            .into_iter()
            .enumerate()
            .map(|(at, name)| KnownName { id: format!("id-{at}"), name: name.to_owned() })
            .collect()
    }

    fn found(message: &str) -> Vec<String> {
        let text = Text::read(message);
        match resolve(&text, mention(&text).as_deref(), &known()) {
            Match::One(named) => vec![named.name],
            Match::Several(all) => all.into_iter().map(|named| named.name).collect(),
            Match::None => Vec::new(),
        }
    }

    #[test]
    fn names_are_found_in_any_case_in_quotes_and_with_typing_errors() {
        for message in [
            "start math hints",
            "start \"Math Hints\"",
            "START MATH-HINTS",
            "start mathhints",
            "start Maht Hints please",
        ] {
            assert_eq!(found(message), ["Math Hints"], "{message}");
        }
        assert_eq!(found("halt the running test experiment"), ["Running Test"]);
        assert_eq!(found("delete id-3"), ["Foo"]);
    }

    #[test]
    fn names_with_extra_words_and_misspelt_short_names_do_not_match() {
        assert_eq!(found("start Math Hints 2"), ["Math Hints 2"]);
        assert_eq!(found("start \"Math Hints Three\""), Vec::<String>::new());
        assert_eq!(found("delete experiment Fop"), Vec::<String>::new());
    }

    #[test]
    fn a_part_of_several_names_matches_all_of_them() {
        assert_eq!(found("pause hints").len(), 3);
        assert_eq!(found("pause the grade 7 reading one"), ["Reading hints for grade 7"]);
    }

    #[test]
    fn known_words_are_found_despite_typing_errors() {
        let contexts = ["assign-prog", "mathstream"];
        let find = |message| word_of(&Text::read(message), contexts);
        assert_eq!(find("for assing-prog"), Some("assign-prog"));
        assert_eq!(find("in the MathStream app"), Some("mathstream"));
        assert_eq!(find("assign prog"), Some("assign-prog"));
        assert_eq!(find("in nowhere"), None);
    }
}

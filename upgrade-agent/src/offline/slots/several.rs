//! Messages about more than one experiment. An action takes one, and the model does not choose for the
//! person.

use std::ops::Range;

use super::super::lexicon::{self, Concept as C};
use super::super::text::{Text, Word, folded};
use super::names::KnownName;

/// "All experiments", "every running test", "all of them", "delete everything".
pub(in super::super) fn wants_all(text: &Text) -> bool {
    let alone = |at: usize| text.words.get(at + 1).is_none_or(|next| next.new_clause || is_small(next));
    // "Exclude all" is a filter mode.
    let filters = |at: usize| {
        let before = at.checked_sub(1).and_then(|at| text.words.get(at));
        before.is_some_and(|word| word.is(&["exclude", "include"]))
    };
    let words = text.words.iter().enumerate().filter(|(at, word)| !word.quoted && !filters(*at));
    words.into_iter().any(|(at, word)| match word.low.as_str() {
        "everything" => alone(at),
        "all" | "every" | "each" | "both" | "any" => is_of_experiments(text, at + 1),
        _ => false,
    })
}

/// After a quantifier: a few adjectives, then the noun or a pronoun.
fn is_of_experiments(text: &Text, from: usize) -> bool {
    let mut rest = text.words.iter().skip(from).take(5);
    let noun = rest.find(|word| !is_small(word) && super::status_of(word).is_none());
    match noun {
        None => text.words.get(from).is_none_or(|word| word.is(&["of", "now", "please"])),
        Some(word) if word.quoted || word.is_capital() => false,
        Some(word) => {
            word.is(&["them", "those", "these"]) || lexicon::concepts(word).contains(&C::Experiment)
        }
    }
}

fn is_small(word: &Word) -> bool {
    word.is(&[
        "of", "the", "my", "our", "your", "other", "single", "now", "please", "at", "once", "two", "three",
        "and",
    ])
}

/// The experiments whose whole names occur in the message, without overlap. "Foo test" is one name, even if
/// an experiment is called Test.
pub(in super::super) fn named(text: &Text, known: &[KnownName]) -> Vec<KnownName> {
    let end = new_name_from(text);
    let mut found: Vec<(Range<usize>, &KnownName)> =
        known.iter().filter_map(|named| Some((place(text, &named.name, end)?, named))).collect();
    let inside = |inner: &Range<usize>, outer: &Range<usize>| {
        inner != outer && inner.start >= outer.start && inner.end <= outer.end
    };
    let all: Vec<Range<usize>> = found.iter().map(|(place, _)| place.clone()).collect();
    found.retain(|(place, _)| !all.iter().any(|other| inside(place, other)));
    found.sort_by_key(|(place, _)| place.start);
    found.dedup_by(|next, first| next.0.start <= first.0.end);
    found.into_iter().map(|(_, named)| named.clone()).collect()
}

/// "Rename Foo to Hints": the name after "to" is not an experiment.
fn new_name_from(text: &Text) -> usize {
    let renames = text.has(&["rename", "renamed", "name", "call", "title", "called", "named"]);
    let to = || text.words.iter().position(|word| word.is(&["to", "into", "as", "called", "named"]));
    to().filter(|_| renames).unwrap_or(text.words.len())
}

fn place(text: &Text, name: &str, end: usize) -> Option<Range<usize>> {
    let name = folded(name);
    let length = name.split(' ').count();
    let words = text.words.get(..end)?;
    let at = words.windows(length).position(|window| {
        let written: Vec<String> = window.iter().map(|word| folded(&word.low)).collect();
        let telling = window.iter().any(|word| word.is_capital() || super::is_free(word));
        telling && written.join(" ") == name
    })?;
    Some(at..at + length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_about_all_experiments_are_detected() {
        for message in [
            "delete all experiments",
            "stop every running experiment",
            "remove all of them",
            "delete everything",
            "archive all my tests now",
            "delete them all",
            "pause both experiments",
        ] {
            assert!(wants_all(&Text::read(message)), "{message}");
        }
        for message in
            ["delete Foo", "include all students in Hints", "remove all tags of Hints", "delete All Stars"]
        {
            assert!(!wants_all(&Text::read(message)), "{message}");
        }
    }

    #[test]
    fn all_experiments_named_without_overlap_are_found() {
        let known: Vec<KnownName> = ["Foo", "Hints", "Math Hints", "Test"]
            .into_iter()
            .map(|name| KnownName { id: name.to_owned(), name: name.to_owned() })
            .collect();
        let of = |message: &str| {
            let found = named(&Text::read(message), &known).into_iter();
            found.map(|named| named.name).collect::<Vec<_>>()
        };
        assert_eq!(of("delete Foo and Hints"), ["Foo", "Hints"]);
        assert_eq!(of("start Foo, stop Math Hints"), ["Foo", "Math Hints"]);
        assert_eq!(of("start Math Hints"), ["Math Hints"]);
        assert_eq!(of("start the Foo test"), ["Foo"]);
        assert_eq!(of("rename Foo to Hints"), ["Foo"]);
    }
}

//! The terms of the glossary that a message names.

use super::lexicon;
use super::text::{Text, Word, is_slip_of, stem};
use crate::glossary::{self, Term};

/// The terms that a message names, in the order of its words. A word belongs to one term, the one with the
/// longest alias that fits.
pub(super) fn term_mentions(text: &Text) -> Vec<TermMention> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < text.words.len() {
        match longest_at(text, at) {
            Some(hit) => {
                at = hit.end;
                found.push(hit);
            }
            None => at += 1,
        }
    }
    found
}

/// A term in a message, and the range of its words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TermMention {
    pub(super) term: &'static Term,
    pub(super) start: usize,
    pub(super) end: usize,
}

fn longest_at(text: &Text, start: usize) -> Option<TermMention> {
    let all = glossary::terms()
        .enumerate()
        .flat_map(|(at, term)| term.aliases().iter().map(move |alias| (at, term, *alias)));
    let fitting = all.filter_map(|(at, term, alias)| {
        let exactness = fit(text, start, alias)?;
        let end = start + alias.split(' ').count();
        Some(((end, exactness, std::cmp::Reverse(at)), TermMention { term, start, end }))
    });
    fitting.max_by_key(|(rank, _)| *rank).map(|(_, found)| found)
}

/// The quality of the match of an alias with the words from `start` on: 2 as written, 1 by stems, 0 with
/// spelling mistakes.
fn fit(text: &Text, start: usize, alias: &str) -> Option<u8> {
    let mut words = text.words.iter().skip(start);
    alias
        .split(' ')
        .map(|wanted| fit_word(words.next()?, wanted))
        .try_fold(2, |least, fit| Some(fit?.min(least)))
}

fn fit_word(word: &Word, wanted: &str) -> Option<u8> {
    let slip = || {
        let long = wanted.len() > 5 && !lexicon::is_plain(word);
        long && (is_slip_of(&word.low, wanted) || is_slip_of(&word.stem, &stem(wanted)))
    };
    match word {
        word if word.quoted => None,
        word if word.low == wanted => Some(2),
        word if word.stem == stem(wanted) => Some(1),
        _ => slip().then_some(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn titles(message: &str) -> Vec<&'static str> {
        term_mentions(&Text::read(message)).into_iter().map(|found| found.term.title()).collect()
    }

    #[test]
    fn the_longest_alias_wins_and_typing_errors_are_tolerated() {
        assert_eq!(titles("what is exclude if reached"), ["Exclude if reached"]);
        assert_eq!(titles("the consistancy rule and the wieghts"), ["Consistency rule", "Weight"]);
        assert_eq!(titles("decision points or conditions?"), ["Decision point", "Condition"]);
        assert_eq!(titles("who invented tea"), Vec::<&str>::new());
    }

    #[test]
    fn each_term_is_found_by_each_of_its_aliases() {
        for term in glossary::terms() {
            for alias in term.aliases() {
                let found = term_mentions(&Text::read(alias));
                assert!(found.iter().any(|found| found.term.title() == term.title()), "{alias}");
            }
        }
    }
}

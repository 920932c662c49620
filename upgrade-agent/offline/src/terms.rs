//! The words of UpGrade and of A/B testing that the model explains by itself.

use std::sync::LazyLock;

use crate::token::Token;

/// A word that can be explained.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Term {
    title: &'static str,
    /// The words by which people ask for the term, in lower case.
    aliases: Vec<&'static str>,
    pub(crate) text: &'static str,
}

/// The term with the longest alias that the tokens begin with, and the number of its tokens.
pub(crate) fn at(tokens: &[Token<'_>]) -> Option<(&'static Term, usize)> {
    let aliases = TERMS.iter().flat_map(|term| term.aliases.iter().map(move |alias| (term, *alias)));
    aliases.filter_map(|(term, alias)| Some((term, fit(tokens, alias)?))).max_by_key(|(_, used)| *used)
}

/// The explanations of a term by one of its names.
pub(crate) fn explained(name: &str) -> Option<&'static Term> {
    let tokens = crate::token::tokens(name);
    at(&tokens).filter(|(_, used)| *used == tokens.len()).map(|(term, _)| term)
}

fn fit(tokens: &[Token<'_>], alias: &str) -> Option<usize> {
    let words = alias.split(' ').count();
    let typed = tokens.get(..words)?.iter().zip(alias.split(' '));
    typed.clone().all(|(token, word)| token.is_word() && is_form(&token.low, word)).then_some(words)
}

/// Whether a word is this one, its plural, or mistyped by one letter.
fn is_form(low: &str, word: &str) -> bool {
    let singular = low.strip_suffix("es").unwrap_or_default();
    low == word
        || low.strip_suffix('s') == Some(word)
        || singular == word
        || (word.len() >= 5 && low.len() >= 4 && strsim::osa_distance(low, word) == 1)
}

/// The words of all aliases.
pub(crate) fn words() -> impl Iterator<Item = &'static str> {
    TERMS.iter().flat_map(|term| term.aliases.iter().flat_map(|alias| alias.split(' ')))
}

/// The terms: of each a line with its name and the words by which people ask for it, and its explanation.
static TERMS: LazyLock<Vec<Term>> = LazyLock::new(|| {
    let blocks = include_str!("terms.txt").split("\n\n").filter_map(|block| block.trim().split_once('\n'));
    let term = |(head, text): (&'static str, &'static str)| {
        let (title, aliases) = head.split_once(": ").unwrap_or((head, head));
        Term { title, aliases: aliases.split(", ").collect(), text }
    };
    blocks.map(term).collect()
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_term_is_found_by_each_of_its_aliases() {
        for term in TERMS.iter() {
            for alias in &term.aliases {
                assert_eq!(explained(alias).map(|found| found.title), Some(term.title), "{alias}");
            }
        }
    }

    #[test]
    fn plurals_and_typing_errors_are_found() {
        for (name, title) in [
            ("decision points", "Decision point"),
            ("decison point", "Decision point"),
            ("statuses", "Experiment status"),
        ] {
            assert_eq!(explained(name).map(|found| found.title), Some(title), "{name}");
        }
        assert_eq!(explained("tea"), None);
    }
}

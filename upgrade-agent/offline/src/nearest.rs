//! The forms nearest to a text that was not understood, by the edit distance of their words.

use crate::grammar::FORMS;
use crate::reading::{Clause, Reading};
use crate::token::{Token, tokens};

/// How many words of a text are compared, so that the work does not grow with its length.
const WORDS: usize = 12;

/// The examples of the nearest forms: those of the act that was understood, then those with the nearest
/// words.
pub(crate) fn forms(reading: &Reading, message: &str) -> Vec<&'static str> {
    let act = reading.clauses.first().map(Clause::act);
    let words = words(&tokens(message));
    let mut near: Vec<(bool, usize, &'static str)> = FORMS
        .iter()
        .filter(|form| form.asked.is_empty())
        .map(|form| {
            let own = self::words(&tokens(form.example));
            // A share of the words of both, so that short examples are not near to everything.
            let share = 1_000 * distance(&words, &own) / (words.len() + own.len()).max(1);
            (Some(form.act) != act, share, form.example)
        })
        .collect();
    near.sort_by_key(|(other, share, _)| (*other, *share));
    near.into_iter().take(3).map(|(_, _, example)| example).collect()
}

fn words(tokens: &[Token<'_>]) -> Vec<String> {
    tokens.iter().filter(|token| token.is_word()).take(WORDS).map(|token| token.low.clone()).collect()
}

/// The edit distance of two texts: a word that differs by one typing error costs one, any other change two.
fn distance(one: &[String], other: &[String]) -> usize {
    let mut row: Vec<usize> = (0..=other.len()).map(|at| 2 * at).collect();
    for (line, word) in one.iter().enumerate() {
        let mut before = row[0];
        row[0] = 2 * (line + 1);
        for (at, wanted) in other.iter().enumerate() {
            let change = if word == wanted {
                0
            } else if strsim::osa_distance(word, wanted) == 1 {
                1
            } else {
                3
            };
            let best = (before + change).min(row[at] + 2).min(row[at + 1] + 2);
            before = row[at + 1];
            row[at + 1] = best;
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_form_shares_the_most_words() {
        let near = |message: &str| forms(&Reading::default(), message)[0];
        assert_eq!(near("begin to test the balance in Hints"), "test the balance of Hints with 200 users");
        assert_eq!(near("which experiments exist"), "which experiments are there?");
    }
}

//! Sentences about membership without a verb of listing: "zoe should not be in Hints", "make zoe part of
//! Hints", "keep zoe away from Hints".

use std::ops::Range;

use super::super::text::{Text, Word};
use super::lists::Side;
use super::students;

/// The members, and whether they are included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) struct Membership {
    pub(in super::super) side: Side,
    /// The members as written; the id of a group comes after its kind.
    pub(in super::super) members: Vec<String>,
    /// The words of the sentence, from the first verb to the last preposition.
    pub(in super::super) words: Range<usize>,
}

/// Phrases of inclusion, after the members; `|` separates alternatives.
const JOINS: &[&str] = &[
    "take part in|at",
    "takes part in|at",
    "participate|participates in|at",
    "be part|member of",
    "be a part|member of",
    "part of",
    "a part|member of",
    "belong|belongs in|to|into",
    "be allowed|let|admitted|put|placed|enrolled|enroled in|into|to",
    "allowed|admitted in|into|to",
    "get|gets|come|comes into",
    "put|placed|enrolled|enroled|included in|into",
    "be in|on|inside|within",
    "join|joins",
    "enter|enters",
    "see|sees",
    "get|gets",
    "into",
    "in",
];

/// Phrases of exclusion, after the members.
const LEAVES: &[&str] = &[
    "be out|outside of",
    "be kept|left|held out|away of|from",
    "kept|left|held out|away of|from",
    "excluded|barred|banned|blocked from",
    "be kept|barred|banned|blocked from",
    "stay|stays|keep|keeps|be out|away of|from",
    "get|gets out of",
    "out of",
    "away from",
    "from joining|entering|seeing",
    "from",
];

/// Verbs with the members as object, followed by an inclusion or exclusion.
const PUTS: &[&str] = &[
    "make", "let", "have", "get", "bring", "allow", "admit", "want", "need", "keep", "hold", "prevent", "put",
];

/// Words that may be between the members and the phrase.
const AUXILIARIES: &[&str] = &[
    "should", "must", "shall", "may", "can", "has", "have", "needs", "need", "ought", "is", "are", "does",
    "do", "to", "not", "never", "no", "longer", "really", "also", "only",
];

/// Those of them that express a duty or an exclusion.
const DUTIES: &[&str] = &["should", "must", "shall", "may", "can", "ought", "to", "need", "needs"];

const NEGATIONS: &[&str] = &["not", "never", "no"];

/// Finds such a sentence.
pub(in super::super) fn find(text: &Text) -> Option<Membership> {
    by_subject(text).or_else(|| by_object(text))
}

/// "Zoe and kim should not take part in Hints", "zoe belongs in Hints".
fn by_subject(text: &Text) -> Option<Membership> {
    let is = |at: usize, any: &[&str]| text.words.get(at).is_some_and(|word| !word.quoted && word.is(any));
    let verb = (1..text.words.len()).find(|at| is(*at, AUXILIARIES) || is(*at, &["belong", "belongs"]))?;
    let after = (verb..text.words.len()).find(|at| !is(*at, AUXILIARIES))?;
    let any = |all: &[&str]| (verb..after).any(|at| is(at, all));
    let (side, end) = link(text, after, any(NEGATIONS))?;
    // "Zoe is in Hints" is a statement: only a duty or a ban is a request.
    let made_sure = text.has_phrase("make sure") || text.has(&["ensure"]);
    let wished = any(DUTIES) || any(NEGATIONS) || made_sure || is(after, &["belong", "belongs"]);
    let (members, from) = students::enumerated_before(text, verb)?;
    let begins = from == 0
        || text.words[from].new_clause
        || is(from - 1, &["please", "and", "but", "that", "the", "so", "sure", "ensure", "then", "now"])
        || is_kind(&text.words[from - 1]);
    let settled = wished && begins && !text.asks;
    settled.then_some(Membership { side, members, words: verb..end })
}

/// "Make zoe part of Hints", "do not let zoe into Hints", "I want zoe out of Hints".
fn by_object(text: &Text) -> Option<Membership> {
    let puts = |at: &usize| text.words[*at].is(PUTS) && !text.words[*at].quoted;
    (0..text.words.len()).filter(puts).find_map(|verb| put(text, verb))
}

fn put(text: &Text, verb: usize) -> Option<Membership> {
    let is = |at: usize, any: &[&str]| text.words.get(at).is_some_and(|word| word.is(any));
    let from = (verb + 1..text.words.len()).find(|at| !is(*at, &["the"]) && !is_kind(&text.words[*at]))?;
    let (members, end) = students::enumerated(text, from);
    let forbidden = verb > 0 && is(verb - 1, NEGATIONS);
    let not = is(end, NEGATIONS);
    let after = end + usize::from(not);
    let (side, last) = link(text, after + usize::from(is(after, &["to"])), forbidden != not)?;
    // "I want Hints in assign-prog" is about an experiment, and "put it on hold" about no member.
    let bare = last == after + 1 && is(after, &["in"]);
    let named = members.first()?.starts_with(char::is_uppercase);
    (!(bare && named)).then_some(Membership { side, members, words: verb..last })
}

fn is_kind(word: &Word) -> bool {
    students::is_person(word) || super::lists::is_group_noun(word)
}

/// The phrase at a position, and where it ends. Something must follow it.
fn link(text: &Text, at: usize, negated: bool) -> Option<(Side, usize)> {
    let found = |all: &[&str]| all.iter().find_map(|phrase| ends(text, at, phrase));
    let (out, end) = match found(LEAVES) {
        Some(end) => (true, end),
        None => (false, found(JOINS)?),
    };
    // Statements about what somebody sees or gets are not requests, unless they are forbidden.
    let weak = end == at + 1 && text.words[at].is(&["see", "sees", "get", "gets"]);
    let side = if out != negated { Side::Exclusion } else { Side::Inclusion };
    (end < text.words.len() && (!weak || negated)).then_some((side, end))
}

/// The end of a phrase that starts at a position.
fn ends(text: &Text, at: usize, phrase: &str) -> Option<usize> {
    let wanted: Vec<&str> = phrase.split(' ').collect();
    let end = at + wanted.len();
    let words = text.words.get(at..end)?;
    let fits = |(word, wanted): (&Word, &&str)| !word.quoted && wanted.split('|').any(|any| any == word.low);
    words.iter().zip(&wanted).all(fits).then_some(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(message: &str) -> Option<String> {
        let found = find(&Text::read(message))?;
        let side = if found.side == Side::Inclusion { "in" } else { "ex" };
        Some(format!("{side} {}", found.members.join(",")))
    }

    #[test]
    fn members_to_include_or_exclude_are_found() {
        for (message, wanted) in [
            ("zoe should not be in Hints", "ex zoe"),
            ("make zoe part of Hints", "in zoe"),
            ("zoe and kim shouldn't take part in Hints", "ex zoe,kim"),
            ("student s-12 must be part of Hints", "in s-12"),
            ("zoe doesn't belong in Hints", "ex zoe"),
            ("zoe, kim and bob belong in Hints", "in zoe,kim,bob"),
            ("Zoe is not allowed in Hints", "ex Zoe"),
            ("zoe needs to be kept out of Hints", "ex zoe"),
            ("please make sure zoe is not in Hints", "ex zoe"),
            ("let zoe into Hints", "in zoe"),
            ("don't let zoe into Hints", "ex zoe"),
            ("keep zoe away from Hints", "ex zoe"),
            ("I want zoe out of Hints", "ex zoe"),
            ("prevent zoe from joining Hints", "ex zoe"),
        ] {
            assert_eq!(of(message).as_deref(), Some(wanted), "{message}");
        }
    }

    #[test]
    fn statements_and_questions_about_an_experiment_are_not_requests() {
        for message in [
            "zoe is in Hints",
            "should zoe be in Hints?",
            "is zoe part of Hints?",
            "I want Hints in assign-prog",
            "zoe sees control",
            "let zoe visit Hints",
            "keep Hints running",
            "Math Hints should not be in assign-prog",
            "it should be in assign-prog",
        ] {
            assert_eq!(of(message), None, "{message}");
        }
    }
}

//! "The second one": a position in the list of the last reply.

use super::super::text::{Text, Word, folded};
use super::names::KnownName;

/// A position in a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Place {
    /// Counted from 0.
    At(usize),
    Last,
}

const WORDS: &[(&str, usize)] = &[
    ("first", 0),
    ("1st", 0),
    ("second", 1),
    ("2nd", 1),
    ("third", 2),
    ("3rd", 2),
    ("fourth", 3),
    ("4th", 3),
    ("fifth", 4),
    ("5th", 4),
    ("sixth", 5),
    ("seventh", 6),
    ("eighth", 7),
    ("ninth", 8),
    ("tenth", 9),
];

/// "Delete the third" has no student in it.
pub(in super::super) fn is_word(word: &Word) -> bool {
    WORDS.iter().any(|(name, _)| word.low == *name)
}

/// The position in a message: "the second one", "the third", "number 2".
pub(in super::super) fn place(text: &Text) -> Option<Place> {
    let number = text.words.windows(2).find_map(|pair| {
        let named = pair[0].is(&["number", "no", "nr"]);
        pair[1].raw.parse::<usize>().ok().filter(|number| named && *number > 0)
    });
    let word = |at: usize| {
        let word = text.words.get(at).filter(|word| !word.quoted && !word.is_capital())?;
        let place = WORDS.iter().find(|(name, _)| word.low == *name).map(|(_, place)| Place::At(*place));
        let place = place.or_else(|| word.is(&["last"]).then_some(Place::Last))?;
        let next = text.words.get(at + 1).filter(|next| !next.new_clause);
        let noun =
            next.is_none_or(|next| next.is(&["one", "experiment", "test", "study", "of", "please", "now"]));
        let led = at.checked_sub(1).and_then(|at| text.words.get(at)).is_some_and(|word| word.is(&["the"]));
        (led && noun).then_some(place)
    };
    number.map(|number| Place::At(number - 1)).or_else(|| (0..text.words.len()).find_map(word))
}

/// The positions of the words for it: "the second one", "number 2".
pub(in super::super) fn words(text: &Text) -> Vec<usize> {
    let says = |(at, word): (usize, &Word)| {
        let after_number = at > 0 && text.words[at - 1].is(&["number", "no", "nr"]);
        (is_word(word) || word.is(&["last", "number", "no", "nr", "one"]) || after_number).then_some(at)
    };
    text.words.iter().enumerate().filter_map(says).collect()
}

/// The experiment at this position in a text; none if the text names fewer than two.
pub(in super::super) fn in_list(place: Place, said: &str, known: &[KnownName]) -> Option<KnownName> {
    if let Some(listed) = in_lines(said, known) {
        let at = match place {
            Place::At(at) => at,
            Place::Last => listed.len() - 1,
        };
        return listed.get(at).map(|named| (*named).clone());
    }
    let mut rest = format!(" {} ", folded(said));
    let mut names: Vec<(String, &KnownName)> =
        known.iter().map(|named| (format!(" {} ", folded(&named.name)), named)).collect();
    // "Test" does not occur in "Running Test".
    names.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
    let mut found: Vec<(usize, &KnownName)> = Vec::new();
    for (name, named) in names.iter().filter(|(name, _)| !name.trim().is_empty()) {
        while let Some(at) = rest.find(name.as_str()) {
            rest.replace_range(at + 1..at + name.len() - 1, &"\u{1}".repeat(name.len() - 2));
            found.push((at, named));
        }
    }
    found.sort_by_key(|(at, _)| *at);
    let mut seen: Vec<&KnownName> = Vec::new();
    for (_, named) in found {
        if !seen.iter().any(|other| other.id == named.id) {
            seen.push(named);
        }
    }
    let at = match place {
        _ if seen.len() < 2 => return None,
        Place::At(at) => at,
        Place::Last => seen.len() - 1,
    };
    seen.get(at).map(|named| (*named).clone())
}

/// The experiments of a list with a line each, "- Foo (inactive in assign-prog)"; none if it has fewer than
/// two. For equal names the line has the start of the id.
fn in_lines<'k>(said: &str, known: &'k [KnownName]) -> Option<Vec<&'k KnownName>> {
    let of_line = |line: &str| {
        let line = line.strip_prefix("- ")?;
        let named = |one: &&KnownName| {
            line.strip_prefix(one.name.as_str()).is_some_and(|rest| rest.starts_with(" ("))
        };
        let mut same: Vec<&KnownName> = known.iter().filter(named).collect();
        let told = |one: &&KnownName| one.id.get(..8).is_some_and(|id| line.contains(id));
        if same.len() > 1 {
            same.retain(told);
        }
        same.first().copied()
    };
    let listed: Vec<&KnownName> = said.lines().filter_map(of_line).collect();
    (listed.len() > 1).then_some(listed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_read_from_ordinals_and_numbers() {
        let of = |message| place(&Text::read(message));
        assert_eq!(of("start the second one"), Some(Place::At(1)));
        assert_eq!(of("delete the third"), Some(Place::At(2)));
        assert_eq!(of("what is the status of the last one?"), Some(Place::Last));
        assert_eq!(of("number 2, please"), Some(Place::At(1)));
        for message in ["start Second Chance", "wait a second", "the first thing to know", "start it first"] {
            assert_eq!(of(message), None, "{message}");
        }
    }

    #[test]
    fn a_position_selects_an_experiment_in_the_order_of_the_reply() {
        let named = |name: &str| KnownName { id: name.to_owned(), name: name.to_owned() };
        let known = [named("Test"), named("Foo"), named("Running Test")];
        let said = "There are 3:\n- Running Test (enrolling)\n- Foo (inactive)\n- Test (inactive)";
        let at = |place| in_list(place, said, &known).map(|named| named.name);
        assert_eq!(at(Place::At(0)).as_deref(), Some("Running Test"));
        assert_eq!(at(Place::At(2)).as_deref(), Some("Test"));
        assert_eq!(at(Place::Last).as_deref(), Some("Test"));
        assert_eq!(at(Place::At(3)), None);
        assert_eq!(in_list(Place::At(0), "Foo is inactive", &known), None);
    }
}

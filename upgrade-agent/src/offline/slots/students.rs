//! Students and groups: ids, numbers, and kinds of groups.

use super::super::lexicon::{self, Concept as C};
use super::super::text::{Text, Word};
use super::is_free;

/// Students by id: "user ann", "students ann, bob and cem".
pub(in super::super) fn users(text: &Text) -> Vec<String> {
    let noun = |word: &Word| !word.quoted && is_person(word);
    let mut found: Vec<String> = Vec::new();
    for (at, _) in text.words.iter().enumerate().filter(|(_, word)| noun(word)) {
        let skip = ["id", "ids", "with", "named", "called", "whose", "is", "are", "the"];
        let from = text.words[at + 1..].iter().take_while(|word| word.is(&skip)).count() + at + 1;
        let ids = listed(text, from);
        // "A user jounrey" is a misspelling and has no id.
        let any = at > 0 && text.words[at - 1].is(&["a", "an", "each", "every"]);
        if any && text.words.get(from).is_some_and(|word| !word.quoted && !lexicon::concepts(word).is_empty())
        {
            continue;
        }
        // "20 learners walk" has no id, "the two students ann and bob" has.
        let counted = counted_before(text, at);
        if counted.is_some_and(|count| count != ids.len() || count == 1) {
            continue;
        }
        for id in ids {
            if !found.contains(&id) {
                found.push(id);
            }
        }
    }
    found
}

/// The number before a noun: "20 learners", "twenty test users".
fn counted_before(text: &Text, noun: usize) -> Option<usize> {
    let near = noun.saturating_sub(3)..noun;
    let count = near.rev().find_map(|at| number(text, at, text.words.get(at)?))?;
    usize::try_from(count).ok()
}

/// The ids of an enumeration from a position on: unknown words with commas or "and" between them.
pub(in super::super) fn listed(text: &Text, from: usize) -> Vec<String> {
    enumerated(text, from).0
}

/// The ids, and the position after them.
pub(in super::super) fn enumerated(text: &Text, from: usize) -> (Vec<String>, usize) {
    let mut ids: Vec<String> = Vec::new();
    let mut joined = true;
    let mut end = from;
    for (at, word) in text.words.iter().enumerate().skip(from) {
        if is_quantity(text, at) || !ids.is_empty() && super::lists::is_group_noun(word) {
            break;
        }
        if word.is(&["and", "&", "or", "plus"]) && !ids.is_empty() {
            joined = true;
        } else if is_person(word) && joined && !ids.is_empty() {
            // "student ann and student bob"
        } else if (joined || word.new_clause)
            && (is_id(word) || is_announced(text, at) || !ids.is_empty() && is_joined(text, at))
            && !word.leads
        {
            ids.push(word.raw.clone());
            joined = false;
            end = at + 1;
        } else {
            break;
        }
    }
    (ids, end)
}

/// "200 users": a number and not an id.
fn is_quantity(text: &Text, at: usize) -> bool {
    let number = text.words.get(at).is_some_and(|word| word.raw.parse::<f64>().is_ok());
    number && text.words.iter().skip(at + 1).take(3).take_while(|word| !word.new_clause).any(is_person)
}

/// The ids that end before a position: "bob and ann should be excluded".
pub(in super::super) fn listed_before(text: &Text, end: usize) -> Vec<String> {
    let words = text.words[..end.min(text.words.len())].iter().rev();
    let mut ids: Vec<String> = words
        .take_while(|word| is_id(word) || word.low == "and")
        .filter(|word| word.low != "and")
        .map(|word| word.raw.clone())
        .collect();
    ids.reverse();
    ids
}

/// The ids of an enumeration that ends before a position, and the position of the first: "zoe, kim and bob".
/// Two words without a comma or an "and" between them are one name and not ids, except a kind and its id.
pub(in super::super) fn enumerated_before(text: &Text, end: usize) -> Option<(Vec<String>, usize)> {
    let mut ids: Vec<String> = Vec::new();
    let mut first = end;
    for at in (0..end).rev() {
        let word = &text.words[at];
        let apart = text.words.get(at + 1).is_some_and(|next| next.new_clause || next.low == "and");
        match word.low.as_str() {
            "and" if !ids.is_empty() => {}
            _ if !is_id(word) || is_person(word) => break,
            _ if super::lists::is_group_noun(word) && !ids.is_empty() => break,
            _ if !ids.is_empty() && !apart => return None,
            _ => {
                ids.push(word.raw.clone());
                first = at;
            }
        }
    }
    ids.reverse();
    (!ids.is_empty()).then_some((ids, first))
}

fn is_id(word: &Word) -> bool {
    let grammar = lexicon::is_function(word) && !word.is_capital();
    let number = word.raw.parse::<f64>().is_ok();
    let doing = word.low.len() > 5 && word.low.ends_with("ing");
    let place = super::ordinals::is_word(word);
    let share = super::conditions::ratio(&word.raw).is_some();
    let rule = word.is(&["consistency", "post", "post-experiment", "rule"]);
    let other = doing || grammar || place || share || rule;
    let free = is_free(word)
        || !lexicon::is_function(word) && !lexicon::is_known(word) && !super::stands_for_any(word);
    word.quoted || number || !other && (free || word.is_capital())
}

pub(in super::super) fn is_person(word: &Word) -> bool {
    lexicon::concepts(word).contains(&C::User) && !word.is_capital()
}

/// "Let bob visit", "as bob": the id after a word that introduces one, without a noun, and its position.
pub(in super::super) fn after_a_lead(text: &Text) -> Option<(usize, String)> {
    let lead = ["let", "have", "make", "send", "bring", "take", "as", "pretend", "impersonate", "for", "by"];
    let mut words = text.words.iter().enumerate();
    let view = |at: usize| {
        let before = at.checked_sub(1).and_then(|at| text.words.get(at));
        before.is_some_and(|word| word.is(&VIEWS))
    };
    words.find_map(|(at, word)| {
        let next = text.words.get(at + 1)?;
        let counts = next.raw.parse::<f64>().is_ok() || number(text, at + 1, next).is_some();
        let named = is_id(next) && !next.new_clause && !counts;
        let led = word.is(&lead) || word.is(&["of"]) && view(at);
        (led && named).then(|| (at + 1, next.raw.clone()))
    })
}

/// "Through the eyes of zoe".
pub(in super::super) const VIEWS: [&str; 6] = ["eyes", "shoes", "perspective", "viewpoint", "view", "role"];

const NUMBERS: &[(&str, i64)] = &[
    ("one", 1),
    ("two", 2),
    ("three", 3),
    ("four", 4),
    ("five", 5),
    ("six", 6),
    ("seven", 7),
    ("eight", 8),
    ("nine", 9),
    ("ten", 10),
    ("eleven", 11),
    ("twelve", 12),
    ("dozen", 12),
    ("fifteen", 15),
    ("twenty", 20),
    ("thirty", 30),
    ("forty", 40),
    ("fifty", 50),
    ("sixty", 60),
    ("seventy", 70),
    ("eighty", 80),
    ("ninety", 90),
    ("hundred", 100),
    ("hundreds", 100),
    ("thousand", 1000),
    ("million", 1_000_000),
    ("billion", 1_000_000_000),
];

/// The number of students: "200 users", "50 simulated students", "a hundred learners", "n=200", "with 200".
pub(in super::super) fn count(text: &Text) -> Option<i64> {
    let before_noun = |at: usize| {
        let near = text.words.iter().skip(at + 1).take(4);
        near.take_while(|word| !word.new_clause).position(|word| is_person(word) && word.low != "user id")
    };
    let numbers: Vec<(usize, i64)> =
        text.words.iter().enumerate().filter_map(|(at, word)| Some((at, number(text, at, word)?))).collect();
    // "Group Two with 50 users": of several numbers the nearest one counts.
    let near = numbers.iter().filter_map(|(at, number)| Some((before_noun(*at)?, *number)));
    let counted = near.min_by_key(|(distance, _)| *distance).map(|(_, number)| number);
    let alone = || {
        let led = |at: &usize| {
            let before = at.checked_sub(1).and_then(|at| text.words.get(at));
            before.is_some_and(|word| {
                word.is(&["with", "using", "on", "n", "about", "to", "of", "for", "use", "try"])
            })
        };
        numbers.iter().find(|(at, number)| led(at) && *number > 9).map(|(_, number)| *number)
    };
    let written = || text.words.iter().find_map(|word| word.low.strip_prefix("n=")?.parse().ok());
    let a_person = || {
        let at = text.words.iter().position(|word| is_person(word) && !word.low.ends_with('s'))?;
        let article = at.checked_sub(1).and_then(|at| text.words.get(at))?;
        article.is(&["a", "an", "some", "single"]).then_some(1)
    };
    counted.or_else(written).or_else(alone).or_else(a_person)
}

fn number(text: &Text, at: usize, word: &Word) -> Option<i64> {
    if word.quoted {
        return None;
    }
    let digits = word.raw.replace([',', '\''], "");
    if let Ok(number) = digits.parse() {
        // The action rejects numbers that are too small or too large.
        return Some(number);
    }
    if let Some(Ok(thousands)) = word.low.strip_suffix('k').map(str::parse::<i64>) {
        return Some(thousands.saturating_mul(1000));
    }
    let of = |word: &Word| NUMBERS.iter().find(|(name, _)| word.low == *name).map(|(_, number)| *number);
    let own = of(word)?;
    let before = at.checked_sub(1).and_then(|at| text.words.get(at));
    let times = before.and_then(|before| before.raw.parse().ok().or_else(|| of(before)));
    match times.filter(|_| own >= 100) {
        Some(times) => Some(own.saturating_mul(times)),
        // "Two hundred" is found at "hundred".
        None if text.words.get(at + 1).and_then(of).is_some_and(|next| next >= 100) => None,
        None => Some(own),
    }
}

/// Whether a word is a part of this number of students: "two hundred", "1k".
pub(in super::super) fn counts(text: &Text, at: usize, wanted: i64) -> bool {
    let numeral = |at: usize| {
        text.words.get(at).is_some_and(|word| {
            NUMBERS.iter().any(|(name, _)| word.low == *name)
                || word.raw.parse::<i64>().is_ok()
                || word.low.strip_suffix('k').is_some_and(|digits| digits.parse::<i64>().is_ok())
        })
    };
    if text.words.get(at).is_some_and(|word| word.is(&["single"])) {
        return wanted == 1;
    }
    if !numeral(at) {
        return false;
    }
    let first = (0..=at).rev().take_while(|at| numeral(*at)).last().unwrap_or(at);
    let last = (at..text.words.len()).take_while(|at| numeral(*at)).last().unwrap_or(at);
    (first..=last).any(|at| number(text, at, &text.words[at]).is_some_and(|number| number == wanted))
}

/// Words that are never ids, even after a word that introduces one: "user from", "the student should".
const NO_IDS: &str = "in from to of on at for into with without by who that which whose is are was were has have had should must shall \
    can could would does do did get gets see sees visit visits the a an and or not never only please then now id ids named called \
    simulation data account accounts list lists group groups journey journeys visits test-run";

/// Whether the word at this position is an id because it follows "user" or "student": `mark`, `will` and
/// `test` are names then.
pub(in super::super) fn is_announced(text: &Text, at: usize) -> bool {
    let Some(word) = text.words.get(at).filter(|word| !word.new_clause) else { return false };
    let noun = at.checked_sub(1).and_then(|at| text.words.get(at)).is_some_and(|noun| {
        let nouns = ["user", "student", "learner", "pupil", "users", "students", "learners", "pupils"];
        !noun.quoted && noun.is(&nouns)
    });
    let plural = at > 0 && text.words[at - 1].low.ends_with('s');
    let counted = at > 1 && number(text, at - 2, &text.words[at - 2]).is_some();
    let stops = || NO_IDS.split_whitespace().any(|stop| stop == word.low);
    let next = text.words.get(at + 1);
    let after = [
        "from", "in", "to", "on", "for", "and", "or", "at", "off", "out", "into", "with", "get", "gets",
        "see",
    ];
    let ends = next.is_none_or(|next| next.new_clause || next.is(&after));
    let led = text.words.first().is_some_and(|word| word.is(&["let", "have", "make"]));
    let article = at > 1 && text.words[at - 2].is(&["a", "an", "the", "each", "every", "per"]);
    // "A user jounrey" names nobody.
    let slip = article && !lexicon::concepts(word).is_empty();
    let certain = !lexicon::is_function(word) && !lexicon::is_known(word) && !slip;
    noun && !stops() && !counted && (certain && !plural || !article && (ends || led && !plural))
}

/// The ids after "user" or "student", and the enumeration after them.
pub(in super::super) fn announced(text: &Text) -> Vec<String> {
    let places = (0..text.words.len()).filter(|at| is_announced(text, *at));
    places.flat_map(|at| listed(text, at)).collect()
}

/// "Alice and mark from Foo": the words between an "and" and the end of the list.
fn is_joined(text: &Text, at: usize) -> bool {
    let Some(word) = text.words.get(at) else { return false };
    let joined = word.new_clause || at > 0 && text.words[at - 1].is(&["and", "&", "or"]);
    let named = word.is(&["will", "may"]) || !lexicon::is_function(word);
    joined && named && !is_person(word) && leads_to_a_place(text, at)
}

/// Whether only further words of an enumeration are between a word and the object: "from Foo".
fn leads_to_a_place(text: &Text, at: usize) -> bool {
    let mut rest = text.words.iter().skip(at + 1);
    while let Some(next) = rest.next() {
        if next.is(&["from", "in", "to", "off", "into", "out"]) {
            return true;
        }
        let goes_on = if next.is(&["and", "&", "or"]) { rest.next().is_some() } else { next.new_clause };
        if !goes_on {
            return false;
        }
    }
    false
}

/// The groups in a message, by kind: "class c1", "schools s1 and s2", "classId=c1".
pub(in super::super) fn groups(text: &Text, kinds: &[String]) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    for (at, word) in text.words.iter().enumerate().filter(|(_, word)| !word.quoted) {
        let (noun, given) = match word.raw.split_once(['=', ':']) {
            Some((noun, id)) if !id.is_empty() => (noun, Some(id)),
            _ => (word.raw.as_str(), None),
        };
        let Some(kind) = kind_of(noun, kinds) else { continue };
        let ids = match given {
            Some(id) => vec![id.to_owned()],
            None => {
                // "Class c7 and student dan": the list of classes ends at the students.
                let end =
                    text.words.iter().skip(at).position(is_person).map_or(text.words.len(), |far| at + far);
                let text = Text { words: text.words[..end].to_vec(), ..Text::default() };
                let skip = text.words[at + 1..]
                    .iter()
                    .take_while(|word| word.is(&["id", "named", "called"]))
                    .count();
                listed(&text, at + 1 + skip)
            }
        };
        found.extend(ids.into_iter().map(|id| (kind.clone(), id)));
    }
    found.dedup();
    found
}

/// The kind of group of a noun: `class` and `classes` for an application's `classId`.
pub(in super::super) fn kind_of<'k>(noun: &str, kinds: &'k [String]) -> Option<&'k String> {
    let low = noun.to_lowercase();
    let plain = |name: &str| name.trim_end_matches("id").trim_end_matches(['_', '-']).to_owned();
    let singular =
        [low.as_str(), low.strip_suffix('s').unwrap_or(&low), low.strip_suffix("es").unwrap_or(&low)];
    kinds.iter().find(|kind| {
        let whole = kind.to_lowercase();
        singular.iter().any(|noun| noun.len() > 2 && (*noun == whole || plain(noun) == plain(&whole)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn student_ids_are_found_after_a_noun_or_a_verb() {
        let of = |message| users(&Text::read(message));
        assert_eq!(of("let user ann visit X"), ["ann"]);
        assert_eq!(of("simulate students ann, bob and cem"), ["ann", "bob", "cem"]);
        assert_eq!(of("exclude user bob from Hints"), ["bob"]);
        assert_eq!(of("student ann and student bob"), ["ann", "bob"]);
        assert_eq!(of("the two students ann and bob"), ["ann", "bob"]);
        for counted in
            ["test it with 200 users in Hints", "let 20 learners walk", "what twenty users experience"]
        {
            assert_eq!(of(counted), Vec::<String>::new(), "{counted}");
        }
        let led = |message| after_a_lead(&Text::read(message)).map(|(_, id)| id);
        assert_eq!(led("let student1 visit X").as_deref(), Some("student1"));
        assert_eq!(led("let us visit X"), None);
    }

    #[test]
    fn numbers_of_students_are_read_from_digits_and_words() {
        let of = |message| count(&Text::read(message));
        for (message, wanted) in [
            ("with 200 users", Some(200)),
            ("50 simulated students", Some(50)),
            ("two hundred learners", Some(200)),
            ("walk fifteen users through Hints", Some(15)),
            ("a hundred kids", Some(100)),
            ("1,000 users", Some(1000)),
            ("1k users", Some(1000)),
            ("n=300", Some(300)),
            ("test the balance of Hints with 500", Some(500)),
            ("a single student", Some(1)),
            ("-5 users", Some(-5)),
            ("one million users", Some(1_000_000)),
            ("nine billion users", Some(9_000_000_000)),
            ("99999999999 users", Some(99_999_999_999)),
            ("test the balance of Group Two with 50 users", Some(50)),
            ("test the balance of Unit 2 with fifty users", Some(50)),
            ("make it 70/30", None),
            ("start Hints 2", None),
        ] {
            assert_eq!(of(message), wanted, "{message}");
        }
    }

    #[test]
    fn groups_are_found_after_the_name_of_their_kind() {
        let kinds = ["schoolId".to_owned(), "classId".to_owned()];
        let of = |message| groups(&Text::read(message), &kinds);
        let class = |id: &str| ("classId".to_owned(), id.to_owned());
        assert_eq!(of("include class c1"), [class("c1")]);
        assert_eq!(of("classes c1 and c2 of Hints"), [class("c1"), class("c2")]);
        assert_eq!(of("with classId=c7"), [class("c7")]);
        assert_eq!(of("exclude school s1"), [("schoolId".to_owned(), "s1".to_owned())]);
        assert!(of("per class, please").is_empty());
    }
}

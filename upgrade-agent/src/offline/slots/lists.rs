//! Changes of inclusion and exclusion lists.

use super::super::lexicon::{self, Concept as C};
use super::super::text::{Text, Word};
use super::membership::{self, Membership};
use super::students;

/// One of an experiment's two lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Side {
    Inclusion,
    Exclusion,
}

/// A change of the lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) struct Change {
    /// None if the message does not say: "remove bob from Hints".
    pub(in super::super) side: Option<Side>,
    pub(in super::super) removes: bool,
    /// The list is replaced: no one else takes part.
    pub(in super::super) only: bool,
    pub(in super::super) users: Vec<String>,
    /// Kind and id.
    pub(in super::super) groups: Vec<(String, String)>,
}

const NOUNS: &[(&str, Side)] = &[
    ("inclusion", Side::Inclusion),
    ("inclusions", Side::Inclusion),
    ("allowlist", Side::Inclusion),
    ("whitelist", Side::Inclusion),
    ("whitelisted", Side::Inclusion),
    ("exclusion", Side::Exclusion),
    ("exclusions", Side::Exclusion),
    ("blocklist", Side::Exclusion),
    ("blacklist", Side::Exclusion),
    ("blacklisted", Side::Exclusion),
    ("denylist", Side::Exclusion),
];

/// Whether the verb at this position has students or groups as its object: "add student bob to Hints",
/// "remove bob from the exclusion list".
pub(in super::super) fn is_about(text: &Text, verb: usize) -> bool {
    let rest = || text.words.iter().enumerate().skip(verb + 1).take_while(|(_, word)| !word.leads);
    if rest().any(|(_, word)| side_noun(word).is_some()) {
        return true;
    }
    let Some((at, first)) =
        rest().find(|(_, word)| !word.is(&["the", "a", "an", "only", "just", "another", "all"]))
    else {
        return false;
    };
    // "Create a group experiment in X" is about an experiment.
    let experiment =
        text.words.get(at + 1).is_some_and(|word| lexicon::concepts(word).contains(&C::Experiment));
    let person = (students::is_person(first) || is_group_noun(first)) && !experiment;
    let to =
        rest().find(|(_, word)| word.is(&["from", "to", "off", "in", "into", "on", "out"])).map(|(to, _)| to);
    // "Remove bob from Hints": an id, then the experiment.
    let id = to == Some(at + 1) && super::is_free(first) && !first.is_capital();
    (person || id) && to.is_some()
}

pub(super) fn is_group_noun(word: &Word) -> bool {
    let nouns =
        ["class", "classes", "school", "schools", "instructor", "teacher", "district", "section", "group"];
    word.is(&nouns) || word.low.ends_with("id") && word.raw.contains("Id")
}

fn side_noun(word: &Word) -> Option<Side> {
    NOUNS.iter().find(|(noun, _)| !word.quoted && word.low == *noun).map(|(_, side)| *side)
}

/// The changes in a message. `known` words name something else: a context, a place, an experiment.
pub(in super::super) fn changes(text: &Text, kinds: &[String], known: &dyn Fn(&str) -> bool) -> Vec<Change> {
    let mut starts: Vec<usize> = (0..text.words.len()).filter(|at| begins(text, *at)).collect();
    if let Some(first) = starts.first_mut() {
        *first = 0;
    } else if text.words.iter().any(|word| side_noun(word).is_some())
        || text.has(&LEADS)
        || membership::find(text).is_some()
    {
        starts.push(0);
    }
    let ends = starts.iter().skip(1).copied().chain([text.words.len()]);
    let parts = starts.iter().zip(ends).map(|(from, to)| Text {
        words: text.words[*from..to].to_vec(),
        quotes: Vec::new(),
        asks: text.asks,
    });
    parts.filter_map(|part| change(&part, kinds, known)).collect()
}

const LEADS: [&str; 9] = ["add", "put", "place", "remove", "delete", "take", "drop", "let", "only"];

/// Whether the word means to include or to exclude.
fn begins(text: &Text, at: usize) -> bool {
    side_of_verb(text, at).is_some()
}

fn side_of_verb(text: &Text, at: usize) -> Option<Side> {
    let word = text.words.get(at).filter(|word| !word.quoted && !word.is_capital())?;
    let phrase =
        lexicon::phrases(text).into_iter().find(|(place, _)| *place == at).map(|(_, concept)| concept);
    let concepts = phrase.map_or_else(|| lexicon::concepts(word), |concept| vec![concept]);
    if let Some(side) = side_noun(word) {
        return is_order(text, at).then_some(side);
    }
    let follows = |at: usize, low: &str| text.words.get(at).is_some_and(|next| next.low == low);
    if follows(at + 1, "if") && follows(at + 2, "reached") {
        return None;
    }
    match concepts.first() {
        Some(C::Include) => Some(Side::Inclusion),
        Some(C::Exclude) => Some(Side::Exclusion),
        _ => None,
    }
}

/// "Blacklist zoe", but not "the blacklist": a word at the head of a clause is a verb.
fn is_order(text: &Text, at: usize) -> bool {
    let follows = text.words.get(at + 1).is_some_and(|next| !next.is(&["of", "for", "in", "is", "has"]));
    let head = |at: usize| at.checked_sub(1).and_then(|at| text.words.get(at));
    let leads = head(at).is_none_or(|before| before.is(&["please", "and", "then", "to", "you", "not"]))
        || text.words[at].new_clause;
    follows && leads
}

fn change(text: &Text, kinds: &[String], known: &dyn Fn(&str) -> bool) -> Option<Change> {
    let noun = text.words.iter().find_map(side_noun);
    let place = (0..text.words.len()).find(|at| begins(text, *at));
    let verb = place.and_then(|at| side_of_verb(text, at));
    let takes_off = text.has(&["remove", "delete", "drop", "erase", "unblock", "off"])
        || (text.has(&["out"]) && verb.is_none())
        || text.has_phrase("no longer")
        || text.has_phrase("stop excluding|including|blocking|banning");
    let only = text.has(&["only", "just", "exclusively"]) && !takes_off;
    // "Delete Tips" is about an experiment, "remove bob from Tips" is not.
    if takes_off && noun.is_none() && verb.is_none() && !text.has(&["from", "off", "out"]) {
        return None;
    }
    let removes = takes_off && (noun.is_some() || verb.is_some());
    let says_it = |found: &Membership| place.is_none_or(|verb| found.words.contains(&verb));
    let sentence = membership::find(text).filter(|found| noun.is_none() && says_it(found));
    if let Some(sentence) = sentence {
        return Some(of_sentence(sentence, text, kinds, known, only)).filter(|change| !change.is_empty());
    }
    let side = noun.or(verb).or(if takes_off { None } else { Some(Side::Inclusion) });
    let groups = students::groups(text, kinds);
    let mut users = students::users(text);
    let in_group = |id: &String| groups.iter().any(|(_, group)| group == id);
    let announced = students::announced(text);
    users.retain(|id| (!known(id) || announced.contains(id)) && !in_group(id));
    if users.is_empty() {
        users = bare(text, kinds, known);
        users.retain(|id| !in_group(id));
    }
    let found = !users.is_empty() || !groups.is_empty();
    found.then_some(Change { side, removes, only, users, groups })
}

/// "Zoe should not be in Hints": the subject, as a student unless a kind of group is given.
fn of_sentence(
    sentence: Membership,
    text: &Text,
    kinds: &[String],
    known: &dyn Fn(&str) -> bool,
    only: bool,
) -> Change {
    let groups = students::groups(text, kinds);
    let named = sentence.members.iter().any(|id| known(id));
    let users = if named || !groups.is_empty() { students::users(text) } else { sentence.members };
    let in_group = |id: &String| groups.iter().any(|(_, group)| group == id);
    let users = users.into_iter().filter(|id| !known(id) && !in_group(id)).collect();
    let only = only && sentence.side == Side::Inclusion;
    Change { side: Some(sentence.side), removes: false, only, users, groups }
}

impl Change {
    fn is_empty(&self) -> bool {
        self.users.is_empty() && self.groups.is_empty()
    }
}

/// "Exclude bob and ann from Hints": ids without a noun, right after the verb.
fn bare(text: &Text, kinds: &[String], known: &dyn Fn(&str) -> bool) -> Vec<String> {
    let passive = text.words.iter().position(|word| word.is(&["should", "must", "shall", "needs", "has"]));
    if let Some(verb) = passive.filter(|_| text.has(&["be"])) {
        let ids = students::listed_before(text, verb);
        if !ids.is_empty() && !ids.iter().any(|id| known(id)) {
            return ids;
        }
    }
    let verb = (0..text.words.len())
        .find(|at| begins(text, *at) || text.words.get(*at).is_some_and(|word| word.is(&LEADS)));
    let Some(verb) = verb else { return Vec::new() };
    let next_is = |low: &str| text.words.get(verb + 1).is_some_and(|next| next.low == low);
    if text.words[verb].is(&["take", "takes", "taking"]) && next_is("part") {
        return Vec::new();
    }
    let skip = |word: &&Word| word.is(&["only", "just", "the", "also", "please", "me", "out"]);
    let from = verb + 1 + text.words[verb + 1..].iter().take_while(skip).count();
    let ids = students::listed(text, from);
    let group = |id: &String| students::kind_of(id, kinds).is_some();
    // "Add the decision point X", "add pilot to the tags": a part of the design, not a member.
    let of_part = text.words.get(from + 1).is_some_and(|next| {
        let parts = [C::Point, C::Tag, C::Condition, C::Weight, C::Description];
        lexicon::concepts(next).iter().any(|concept| parts.contains(concept))
    });
    if of_part || super::tags::given(text).is_some() {
        return Vec::new();
    }
    if ids.iter().any(|id| known(id) || group(id)) { Vec::new() } else { ids }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(message: &str) -> Vec<String> {
        let kinds = ["classId".to_owned(), "schoolId".to_owned()];
        let known = |word: &str| word == "Hints" || word == "hints";
        changes(&Text::read(message), &kinds, &known)
            .into_iter()
            .map(|change| {
                let groups = change.groups.iter().map(|(kind, id)| format!("{kind} {id}"));
                let members: Vec<String> = change.users.iter().cloned().chain(groups).collect();
                let side = match change.side {
                    Some(Side::Inclusion) => "in",
                    Some(Side::Exclusion) => "ex",
                    None => "?",
                };
                format!(
                    "{}{side}{} {}",
                    if change.removes { "-" } else { "+" },
                    if change.only { "!" } else { "" },
                    members.join(",")
                )
            })
            .collect()
    }

    #[test]
    fn changes_of_lists_are_read_with_side_and_members() {
        for (message, wanted) in [
            ("include class c1 in Hints", "+in classId c1"),
            ("exclude user bob from Hints", "+ex bob"),
            ("exclude bob and ann from Hints", "+ex bob,ann"),
            ("add bob to the exclusion list of Hints", "+ex bob"),
            ("put class c1 on the inclusion list", "+in classId c1"),
            ("remove bob from the exclusion list of Hints", "-ex bob"),
            ("take student bob off the inclusion list", "-in bob"),
            ("only class c1 should take part in Hints", "+in! classId c1"),
            ("remove student bob from Hints", "+? bob"),
            ("leave bob out of Hints", "+ex bob"),
            ("add student bob to Hints", "+in bob"),
            ("blacklist user bob in Hints", "+ex bob"),
            ("blacklist zoe for Hints", "+ex zoe"),
            ("please whitelist zoe and kim in Hints", "+in zoe,kim"),
            ("zoe should not be in Hints", "+ex zoe"),
            ("class c1 should not be in Hints", "+ex classId c1"),
            ("make zoe part of Hints", "+in zoe"),
            ("zoe and kim shouldn't take part in Hints", "+ex zoe,kim"),
            ("take bob off the blacklist of Hints", "-ex bob"),
        ] {
            assert_eq!(of(message), [wanted], "{message}");
        }
        assert_eq!(of("include class c1 and exclude user bob"), ["+in classId c1", "+ex bob"]);
        assert_eq!(of("exclude class c7 and student dan from Hints"), ["+ex dan,classId c7"]);
        assert_eq!(of("exclude student dan and class c7 from Hints"), ["+ex dan,classId c7"]);
        for message in [
            "delete Tips",
            "remove tips please",
            "add the decision point workspace to Hints",
            "add pilot to the tags of Hints",
        ] {
            assert_eq!(of(message), Vec::<String>::new(), "{message}");
        }
        assert_eq!(of("exclude bob and class c7 from Hints"), ["+ex bob,classId c7"]);
        assert_eq!(of("exclude Hints"), Vec::<String>::new());
    }
}

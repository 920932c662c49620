//! Tags: "with tags a, b", "tag Foo with a and b", "add the tag a to Foo".

use super::super::text::{Text, Word};
use super::is_free;

const NOUNS: [&str; 7] = ["tag", "tags", "tagged", "label", "labels", "labelled", "labeled"];
const LEADS: [&str; 6] = ["with", "as", "to", "is", "are", "be"];

/// The tags in a message; none if it mentions no tags.
pub(in super::super) fn given(text: &Text) -> Option<Vec<String>> {
    let at = text.words.iter().position(|word| !word.quoted && word.is(&NOUNS))?;
    let before = at.checked_sub(1).and_then(|at| text.words.get(at));
    let is_verb = text.words[at].is(&["tag", "label"])
        && before.is_none_or(|word| word.is(&["please", "to", "and", "then", "you"]));
    let after = text.words.iter().skip(at + 1).position(|word| !word.quoted && word.is(&LEADS));
    let led = || after.map(|far| listed(text, at + far + 2)).unwrap_or_default();
    if is_verb {
        return Some(led());
    }
    let beside = listed(text, at + 1);
    if !beside.is_empty() {
        return Some(beside);
    }
    // "Set the tags of Foo to a, b", but not "add a to the tags of Foo".
    let ahead = tags_before_noun(text, at);
    Some(if ahead.is_empty() { led() } else { ahead })
}

/// Words from a position on, with commas or "and" between them.
fn listed(text: &Text, from: usize) -> Vec<String> {
    let mut tags = Vec::new();
    let mut joined = true;
    for word in text.words.iter().skip(from) {
        let is_tag = is_free(word) || word.low.chars().count() == 1;
        if word.is(&["and", "&"]) && !tags.is_empty() {
            joined = true;
        } else if is_tag && (joined || word.new_clause) && !word.leads {
            tags.push(word.raw.clone());
            joined = false;
        } else {
            break;
        }
    }
    tags
}

/// "Add pilot to the tags", "remove pilot from the tags", "use pilot as a tag".
fn tags_before_noun(text: &Text, noun: usize) -> Vec<String> {
    let leads = |word: &Word| word.is(&["to", "from", "as"]);
    let verb = text.words[..noun]
        .iter()
        .position(|word| word.is(&["add", "put", "remove", "delete", "drop", "use"]));
    match verb {
        Some(verb) if text.words[verb..noun].iter().any(leads) => listed(text, verb + 1),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_found_before_and_after_the_word_tag() {
        for (message, wanted) in [
            ("create Foo with tags a, b and description \"x\"", &["a", "b"][..]),
            ("create Foo, tags algebra, pilot; include user ada", &["algebra", "pilot"]),
            ("create Foo tagged pilot for everybody", &["pilot"]),
            ("tag Foo with pilot and grade7", &["pilot", "grade7"]),
            ("add the tag pilot to Hints", &["pilot"]),
            ("add pilot to the tags of Hints", &["pilot"]),
            ("remove pilot from the tags of Hints", &["pilot"]),
            ("set the tags of Hints to a, b", &["a", "b"]),
            ("label it as pilot", &["pilot"]),
            ("set the tags of Hints", &[]),
        ] {
            assert_eq!(given(&Text::read(message)).unwrap(), wanted, "{message}");
        }
        assert_eq!(given(&Text::read("create Foo for everybody")), None);
    }
}

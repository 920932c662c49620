//! Sentences of several checks, with the word that may be meant.

use super::Problems;
use crate::actions::decode::nearest;
use crate::actions::display::{display, display_list};

pub(super) fn check_twice(what: &str, all: &[impl AsRef<str>], found: &mut Problems) {
    for (at, one) in all.iter().map(AsRef::as_ref).enumerate() {
        if all[..at].iter().any(|other| other.as_ref() == one) {
            found.push(format!("the {what} `{}` is there twice", display(one)));
        }
    }
}

pub(super) fn check_known(
    what: &str,
    word: &str,
    known: &[impl AsRef<str>],
    place: &str,
    found: &mut Problems,
) {
    let known: Vec<&str> = known.iter().map(AsRef::as_ref).collect();
    if known.contains(&word) {
        return;
    }
    let hint = match nearest(word, known.iter().copied()) {
        Some(near) if near.eq_ignore_ascii_case(word) => {
            format!("did you mean `{near}`? Upper and lower case differ")
        }
        Some(near) => format!("did you mean `{near}`?"),
        None if known.is_empty() => "it has none".to_owned(),
        None => format!("it has {}", display_list(known.iter().copied())),
    };
    found.push(format!("{place} has no {what} `{}`: {hint}", display(word)));
}

pub(super) fn not_a_word(what: &str, word: &str, known: &[&str]) -> String {
    match nearest(word, known.iter().copied()) {
        Some(near) => format!("`{}` is no {what}; did you mean `{near}`?", display(word)),
        None => format!("`{}` is no {what}; there are {}", display(word), known.join(", ")),
    }
}

pub(super) fn in_context(name: &str) -> String {
    format!("the context `{name}`")
}

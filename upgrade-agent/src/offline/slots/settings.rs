//! A setting with its name: "the name should be Epsilon", "description: for the pilot", "rename Foo to Bar".

use super::super::lexicon::{self, Concept as C};
use super::super::text::{Text, Word, is_slip_of};

/// Words that introduce the value.
const TO: [&str; 7] = ["to", "into", "as", "be", "is", "it", "="];
/// Words at the end of a request that are not part of a value.
const AFTER: [&str; 14] = [
    "please", "instead", "thanks", "thank", "you", "pls", "plz", "now", "rather", "kindly", "then", "ok",
    "thx", "cheers",
];

/// "Name: Epsilon", "the name should be Epsilon", "the name is Epsilon".
pub(in super::super) fn is_set(text: &Text, nouns: &[&str]) -> bool {
    noun(text, nouns).is_some_and(|at| {
        let next = text.words.get(at + 1);
        let colon = next.is_some_and(|next| next.new_clause) && at < 2;
        colon || text.words[at..].iter().any(|word| word.is(&["be", "is", "="]))
    })
}

/// Whether an experiment is to be renamed.
pub(in super::super) fn renames(text: &Text) -> bool {
    let slip = |word: &Word| !word.quoted && !word.is_capital() && is_slip_of(&word.low, "rename");
    text.has(&["rename", "renamed", "renaming"]) || text.words.iter().any(slip)
}

/// The message up to the new name.
pub(in super::super) fn before_the_new_name(text: &Text) -> Text {
    let from = verb(text);
    let to = text.words[from..].iter().position(|word| !word.quoted && word.is(&["to", "into", "as"]));
    let end = to.map_or(text.words.len(), |far| from + far);
    let words = text.words[..end].to_vec();
    let within = |quote: &&String| {
        let first = quote.split_whitespace().next().unwrap_or_default();
        words.iter().any(|word| word.quoted && first.contains(word.raw.as_str()))
    };
    let quotes = text.quotes.iter().filter(within).cloned().collect();
    Text { words, quotes, asks: text.asks }
}

/// The new name: up to another order, without polite words.
pub(in super::super) fn name(text: &Text) -> Option<String> {
    let from = match noun(text, &["name", "title"])
        .filter(|at| text.words.get(at + 1).is_some_and(|next| next.new_clause))
    {
        Some(at) => at + 1,
        None => {
            let to = |word: &Word| !word.quoted && word.is(&["to", "into"]);
            let leads = |word: &Word| !word.quoted && word.is(&TO);
            let from = verb(text);
            let place = text.words[from..].iter().position(to).map(|far| from + far);
            place.or_else(|| text.words.iter().rposition(leads))? + 1
        }
    };
    let rest = text.words.get(from..)?;
    if rest.first()?.quoted {
        let first = &rest[0].raw;
        return text.quotes.iter().find(|quote| quote.starts_with(first.as_str())).cloned();
    }
    let acts = |word: &Word| lexicon::concepts(word).first().is_some_and(|concept| *concept <= C::Mark);
    let breaks = |at: usize| {
        let word = &rest[at];
        at > 0 && word.new_clause
            || word.is(&["and", "then", "but"])
                && rest.get(at + 1).is_some_and(|next| acts(next) && !next.is_capital())
    };
    let mut end = (0..rest.len()).find(|at| breaks(*at)).unwrap_or(rest.len());
    while end > 1 && rest[end - 1].is(&AFTER) {
        end -= 1;
    }
    let words: Vec<&str> = rest[..end].iter().map(|word| word.raw.as_str()).collect();
    (!words.is_empty()).then(|| words.join(" "))
}

/// The start of a request for another name: "I want to rename ...".
fn verb(text: &Text) -> usize {
    let names =
        |word: &Word| word.is(&["name", "title"]) || is_slip_of(&word.low, "rename") || word.stem == "renam";
    text.words.iter().position(|word| !word.quoted && names(word)).unwrap_or_default()
}

/// The description as written, without quotes: after a colon, or after "to" and "be".
pub(in super::super) fn description(text: &Text, message: &str) -> Option<String> {
    let at = noun(text, &["description"])?;
    let low = message.to_lowercase();
    let from = low.find("description")? + "description".len();
    let rest = message.get(from..)?;
    let colon = || rest.trim_start().strip_prefix([':', '=']);
    let led = || {
        let words = text.words.get(at + 1..)?;
        let verb = words.iter().find(|word| word.is(&["to", "be", "is"]))?;
        let place = rest.to_lowercase().find(&format!(" {} ", verb.low))?;
        rest.get(place + verb.low.len() + 2..)
    };
    let value = colon().or_else(led)?.trim().trim_end_matches(['.', '!']).trim();
    (!value.is_empty()).then(|| value.to_owned())
}

fn noun(text: &Text, nouns: &[&str]) -> Option<usize> {
    text.words.iter().position(|word| !word.quoted && word.is(nouns))
}

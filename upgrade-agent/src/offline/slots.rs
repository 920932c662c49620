//! The names and values in a request: an experiment, a status, a user.
//!
//! These functions find the written text; `names.rs` finds the matching name on the server.

pub(super) mod conditions;
pub(super) mod lists;
pub(super) mod membership;
pub(super) mod names;
pub(super) mod ordinals;
pub(super) mod points;
pub(super) mod settings;
pub(super) mod several;
pub(super) mod students;
pub(super) mod tags;

use super::lexicon::{self, Concept as C};
use super::text::{Text, Word, is_slip_of};

const STATUSES: &[(&str, &[&str])] = &[
    ("inactive", &["inactive", "dormant", "unstarted"]),
    ("draft", &["draft"]),
    ("preview", &["preview", "previewing"]),
    ("scheduled", &["scheduled"]),
    ("enrolling", &["enrolling", "running", "live", "active", "started", "ongoing", "underway"]),
    ("enrollmentComplete", &["enrollmentcomplete", "paused", "stopped", "suspended", "halted"]),
    ("cancelled", &["cancelled", "canceled", "completed", "ended", "finished", "aborted"]),
    ("archived", &["archived", "shelved"]),
];

/// Words that end a name.
const STOPS: &[&str] = &[
    "in",
    "with",
    "for",
    "using",
    "on",
    "from",
    "to",
    "of",
    "by",
    "and",
    "or",
    "but",
    "having",
    "where",
    "that",
    "which",
    "has",
    "have",
    "is",
    "are",
    "be",
    "was",
    "as",
    "at",
    "so",
    "now",
    "please",
    "right",
    "should",
    "needs",
    "need",
    "must",
    "into",
    "within",
    "under",
    "then",
    "because",
    "if",
    "when",
    "can",
    "will",
    "called",
    "named",
    "titled",
    "doing",
    "away",
    "off",
    "out",
    "down",
    "up",
    "live",
    "today",
    "again",
    "instead",
    "forever",
    "entirely",
    "anymore",
    "asap",
    "does",
    "do",
    "did",
    "gets",
    "get",
    "like",
    "we",
    "i",
    "you",
    "me",
    "about",
    "plz",
    "pls",
    "thanks",
    "thank",
    "thx",
    "kindly",
    "cheers",
    "immediately",
    "urgently",
];

/// Words for the manner of an action, which are not part of a name.
const MANNERS: &[&str] = &["permanently", "completely", "immediately"];

fn ends_a_name(word: &Word) -> bool {
    word.is(STOPS) || word.is(MANNERS)
}

/// Whether a word means "although you advise against it".
pub(super) fn is_insisting(word: &Word) -> bool {
    word.is(&["force", "forced", "forcibly", "anyway", "anyways", "insist", "regardless", "nevertheless"])
}

/// Whether the message has such a word.
pub(super) fn insists(text: &Text) -> bool {
    text.words.iter().any(|word| !word.quoted && is_insisting(word))
}

/// The status that a word names.
pub(super) fn status_of(word: &Word) -> Option<&'static str> {
    let exact = STATUSES.iter().find(|(_, words)| word.is(words));
    let near = || {
        let slip = |written: &&str| written.len() > 6 && is_slip_of(&word.low, written);
        STATUSES.iter().find(|(_, words)| words.iter().any(slip))
    };
    exact.or_else(near).map(|(status, _)| *status)
}

/// The status that the message mentions.
pub(super) fn status_word(text: &Text) -> Option<&'static str> {
    text.words.iter().filter(|word| !word.quoted && !word.is_capital()).find_map(status_of)
}

/// Whether the status is denied: "not started yet", "never ran".
pub(super) fn status_is_denied(text: &Text) -> bool {
    text.words.iter().enumerate().any(|(at, word)| {
        let before = &text.words[at.saturating_sub(3)..at];
        let named = !word.quoted && !word.is_capital() && status_of(word).is_some();
        named && before.iter().any(|word| word.is(&["not", "never", "neither"]))
    })
}

/// The target status: after "to" and the like, or at the very end.
pub(super) fn target_status(text: &Text) -> Option<&'static str> {
    let count = text.words.len();
    text.words.iter().enumerate().rev().filter(|(_, word)| !word.quoted).find_map(|(at, word)| {
        let before = at.checked_sub(1).and_then(|at| text.words.get(at));
        let led = before.is_some_and(|word| {
            word.is(&["to", "as", "into", "be", "status", "state", "it", "becomes", "become", "back", "one"])
        });
        let complete = before.is_some_and(|word| word.stem == "enroll" || word.stem == "enrol");
        if complete && word.is(&["complete", "completed"]) {
            return Some("enrollmentComplete");
        }
        (led || at + 1 == count).then(|| status_of(word)).flatten()
    })
}

/// "That experiment", "it", "the one we made".
pub(super) fn refers_back(text: &Text) -> bool {
    let noun = "experiment|experiments|test|study|trial|one|exp";
    let points_back = "that|this|same|said|latest|last|previous|above|former|recent";
    let near_noun = text.words.iter().enumerate().any(|(at, word)| {
        word.is(&points_back.split('|').collect::<Vec<_>>())
            && text.words.iter().skip(at + 1).take(2).any(|next| {
                let nouns: Vec<&str> = noun.split('|').collect();
                next.is(&nouns) || (lexicon::concepts(next).contains(&C::Experiment) && !next.is_capital())
            })
    });
    near_noun || pronoun(text)
}

fn pronoun(text: &Text) -> bool {
    let idle =
        ["possible", "safe", "ok", "okay", "take", "takes", "mean", "works", "work", "clear", "time", "true"];
    text.words.iter().enumerate().any(|(at, word)| {
        let next = text.words.get(at + 1);
        word.is(&["it", "its"]) && !next.is_some_and(|next| next.is(&idle) || next.is(&["is"]) && at == 0)
    })
}

/// A word that can only be a name: neither a function word nor an UpGrade term.
pub(super) fn is_free(word: &Word) -> bool {
    word.quoted
        || (!lexicon::is_function(word) && lexicon::concepts(word).is_empty() && !stands_for_any(word))
}

/// A word that stands for any experiment: "is anything paused?".
pub(super) fn stands_for_any(word: &Word) -> bool {
    let any = ["anything", "something", "everything", "nothing", "none", "ones"];
    let slip = || any.iter().any(|written| word.low.len() > 6 && is_slip_of(&word.low, written));
    !word.quoted && (word.leads || !word.is_capital()) && (word.is(&any) || slip())
}

/// Whether the message asks for a status of any experiment: "is everything paused?".
pub(super) fn asks_any_status(text: &Text) -> bool {
    text.words.iter().any(stands_for_any) && status_word(text).is_some()
}

/// The experiment that a message names, as written.
pub(super) fn mention(text: &Text) -> Option<String> {
    let quoted = text.quotes.first().cloned();
    quoted
        .or_else(|| after_called(text))
        .or_else(|| capitals(text))
        .or_else(|| beside_noun(text))
        .or_else(|| after_word(text))
        .filter(|name| !name.trim().is_empty())
}

/// Whether a name is marked as one: in quotes, with a capital, or next to "experiment".
pub(super) fn is_written_as_name(text: &Text, name: &str) -> bool {
    let named = |found: Option<String>| found.as_deref() == Some(name);
    text.quotes.iter().any(|quote| quote == name) || named(capitals(text)) || named(after_called(text)) || {
        let noun = text.words.iter().any(|word| word.is(&["experiment", "study"]));
        noun && named(beside_noun(text))
    }
}

/// The name of a new experiment.
pub(super) fn new_name(text: &Text) -> Option<String> {
    let described = text.has(&["description", "described", "describe"]);
    let quoted = text.quotes.first().cloned().filter(|_| !described || text.quotes.len() > 1);
    let beside = || beside_noun(text).filter(|name| name.chars().any(char::is_alphanumeric));
    quoted.or_else(|| after_called(text)).or_else(beside).or_else(|| capitals(text))
}

fn after_called(text: &Text) -> Option<String> {
    let at = text.words.iter().position(|word| word.is(&["called", "named", "titled"]))?;
    let first = text.words.get(at + 1)?;
    joined(std::iter::once(first).chain(name_run(&text.words[at + 2..])))
}

/// The words of a name, up to a clause, a word that ends names, or a participle with more details: "Foo9
/// assigned by group", "Foo9 comparing control and variant".
fn name_run(words: &[Word]) -> impl Iterator<Item = &Word> {
    let tells = |at: usize, word: &Word| {
        let participle = word.low.len() > 4 && (word.low.ends_with("ed") || word.low.ends_with("ing"));
        let leads_on =
            words.get(at + 1).is_some_and(|next| ends_a_name(next) || next.is(&["the", "a", "an", "both"]));
        let own = [
            "comparing",
            "assigning",
            "using",
            "including",
            "excluding",
            "targeting",
            "containing",
            "consisting",
        ];
        !word.quoted && !word.is_capital() && (participle && leads_on || word.is(&own))
    };
    let ends = |(at, word): (usize, &Word)| word.new_clause || ends_a_name(word) || tells(at, word);
    let length = words.iter().enumerate().position(ends).unwrap_or(words.len());
    words[..length].iter()
}

/// The longest run of capitalized words, except at the start of a sentence.
fn capitals(text: &Text) -> Option<String> {
    let mut best: &[Word] = &[];
    let mut at = 0;
    while at < text.words.len() {
        let run = text.words[at..].iter().take_while(|word| belongs_to_name(word)).count();
        if run > best.len() && text.words[at..at + run].iter().any(starts_upper) {
            best = &text.words[at..at + run];
        }
        at += run.max(1);
    }
    joined(best.iter())
}

fn belongs_to_name(word: &Word) -> bool {
    let known = word.is(&["upgrade", "a/b", "ab", "i", "delete", "ok"]) || stands_for_any(word);
    let leads = word.leads && (lexicon::is_function(word) || !lexicon::concepts(word).is_empty());
    let numbered = word.raw.chars().all(|sign| sign.is_ascii_digit()) && word.raw.len() < 3;
    !known && !leads && (starts_upper(word) || numbered)
}

fn starts_upper(word: &Word) -> bool {
    word.raw.chars().next().is_some_and(char::is_uppercase)
}

/// "Experiment foo bar", "the foo bar experiment".
fn beside_noun(text: &Text) -> Option<String> {
    let noun = text.words.iter().position(|word| {
        !word.quoted
            && !word.is_capital()
            && lexicon::concepts(word).contains(&C::Experiment)
            && !word.low.ends_with('s')
    })?;
    let after: Vec<&Word> = name_run(&text.words[noun + 1..]).collect();
    if after.iter().any(|word| is_free(word)) {
        return joined(after.into_iter());
    }
    let before: Vec<&Word> = text.words[..noun].iter().rev().take_while(|word| is_free(word)).collect();
    joined(before.into_iter().rev()).or_else(|| after_article(text))
}

/// "The running test experiment": the words between the article and the noun, if there are several.
fn after_article(text: &Text) -> Option<String> {
    let noun = text.words.iter().position(|word| word.is(&["experiment", "study", "trial"]))?;
    let article = text.words[..noun].iter().rposition(lexicon::is_function)?;
    let between = &text.words[article + 1..noun];
    let article = text.words[article].is(&["the", "my", "our", "this", "that"]);
    (article && between.len() > 1).then(|| joined(between.iter())).flatten()
}

/// "Status of foo", "tell me about foo", "pause foo": unknown words after a word that introduces a name.
fn after_word(text: &Text) -> Option<String> {
    let leads = |word: &Word| {
        word.is(&["of", "about", "is", "for", "in", "has", "show", "pause", "did", "on", "through"])
            || lexicon::concepts(word).first().is_some_and(|concept| *concept <= C::Mark)
    };
    let mut words = text.words.iter().enumerate();
    words.find_map(|(at, word)| {
        if word.quoted || !leads(word) {
            return None;
        }
        let articles = ["the", "my", "our", "me", "us"];
        let rest = text.words.iter().skip(at + 1).skip_while(|word| word.is(&articles));
        let free = joined(rest.clone().take_while(|word| is_free(word) && !word.new_clause));
        // "Status of runing test": two words after "of" are a name whatever they look like.
        let run: Vec<&Word> = rest
            .take_while(|word| !word.new_clause && !ends_a_name(word) && !lexicon::is_function(word))
            .collect();
        let named =
            word.is(&["of", "about"]) && run.len() > 1 && run.iter().all(|word| !word.low.ends_with("ments"));
        free.or_else(|| named.then(|| joined(run.into_iter())).flatten())
    })
}

fn joined<'a>(words: impl Iterator<Item = &'a Word>) -> Option<String> {
    let name = words.map(|word| word.raw.as_str()).collect::<Vec<_>>().join(" ");
    (!name.is_empty()).then_some(name)
}

/// The user that a message mentions: the word after "user" or "student".
pub(super) fn user(text: &Text) -> Option<String> {
    let mut words = text.words.iter().enumerate();
    words.find_map(|(at, word)| {
        let next = text
            .words
            .iter()
            .skip(at + 1)
            .find(|next| !next.is(&["id", "with", "named", "called", "whose", "is"]))?;
        let noun = lexicon::concepts(word).contains(&C::User) && !word.low.ends_with('s');
        let announced = || students::is_announced(text, at + 1) && text.words[at + 1].raw == next.raw;
        let known = lexicon::is_function(next) || lexicon::is_known(next);
        let free = is_free(next) || starts_upper(next) || !known;
        (noun && (free || announced()) && !next.new_clause).then(|| next.raw.clone())
    })
}

/// "Which condition does ada get?", "what will ada see?": the name between the two verbs.
pub(super) fn assigned_user(text: &Text) -> Option<String> {
    let asked = ["what", "which"];
    let helps = ["does", "do", "did", "will", "would", "should"];
    let gets = ["get", "gets", "see", "sees", "receive", "receives", "have"];
    let ask = text.words.iter().position(|word| word.is(&asked))?;
    let at = text.words.iter().enumerate().skip(ask + 1).find(|(_, word)| word.is(&helps))?.0;
    let [who, verb] = text.words.get(at + 1..at + 3)? else { return None };
    let named = is_free(who) || who.is_capital() && lexicon::concepts(who).is_empty();
    (named && verb.is(&gets)).then(|| who.raw.clone())
}

/// "Initialize ada": the name after the verb.
pub(super) fn initialized(text: &Text) -> Option<String> {
    let verb = text.words.iter().position(|word| lexicon::concepts(word).contains(&C::Init))?;
    let ids = students::listed(text, verb + 1);
    <[String; 1]>::try_from(ids).ok().map(|[id]| id)
}

/// A time other than now: "tomorrow", "on Monday", "next week".
pub(super) fn later(text: &Text) -> Option<String> {
    let days = "tomorrow tonight monday tuesday wednesday thursday friday saturday sunday";
    let day = text.words.iter().find(|word| !word.quoted && days.split(' ').any(|day| day == word.low));
    let week = || text.has_phrase("next week|month|year").then(|| "then".to_owned());
    day.map(|word| word.raw.clone()).or_else(week)
}

/// The filter mode, if the message mentions it.
pub(super) fn filter_mode(text: &Text) -> Option<&'static str> {
    let all = text.has(&["everyone", "everybody", "includeall", "anyone"])
        || text.has_phrase("include all")
        || text.has_phrase("all students|users|learners|pupils");
    let none = text.has(&["excludeall", "nobody"]) || text.has_phrase("exclude all|everyone|everybody");
    if none { Some("excludeAll") } else { all.then_some("includeAll") }
}

/// Whether the message has shares: "70/30", "40 percent".
pub(super) fn has_weights(text: &Text) -> bool {
    let number = |word: &Word| word.raw.trim_end_matches('%').parse::<f64>().ok().filter(|_| !word.quoted);
    let numbers: Vec<f64> = text.words.iter().filter_map(number).collect();
    text.words.iter().any(|word| !word.quoted && conditions::ratio(&word.raw).is_some())
        || (numbers.len() > 1 && (numbers.iter().sum::<f64>() - 100.0).abs() < 0.01)
}

//! The topic of a question.

use super::super::lexicon::{self, Concept as C};
use super::super::mentions::TermMention;
use super::super::slots;
use super::super::text::Text;
use super::hits::Hits;
use super::{Meaning, Operation, Part, Request, certain, likely};

pub(super) const GREETINGS: &[&str] = &[
    "hi",
    "hello",
    "hey",
    "hiya",
    "howdy",
    "greetings",
    "morning",
    "afternoon",
    "evening",
    "yo",
    "good",
    "day",
];
pub(super) const THANKS: &[&str] =
    &["thanks", "thank", "thx", "cheers", "ta", "great", "perfect", "awesome", "nice"];
pub(super) const FAREWELLS: &[&str] =
    &["bye", "goodbye", "farewell", "cya", "exit", "quit", "see", "later", "good", "ok"];
/// Thanks, and words before them.
pub(super) const PLEASED: &[&str] =
    &["thanks", "thank", "thx", "cheers", "ta", "great", "perfect", "awesome", "nice", "ok", "okay", "cool"];
pub(super) const YES: &[&str] = &[
    "yes",
    "y",
    "yep",
    "yeah",
    "yup",
    "ok",
    "okay",
    "sure",
    "confirm",
    "confirmed",
    "proceed",
    "affirmative",
    "do",
];
pub(super) const NO: &[&str] =
    &["no", "n", "nope", "nah", "nevermind", "never", "abort", "cancel", "forget", "nothing", "not"];
/// Words that may surround such words.
pub(super) const FILLERS: &[&str] = &[
    "please", "you", "there", "it", "that", "so", "much", "very", "a", "lot", "all", "and", "well", "then",
    "to", "mind", "for", "the", "help", "thanks", "thank", "ahead", "go", "is", "right", "now", "everyone",
    "folks", "again",
];

pub(super) fn asks_for_abilities(text: &Text) -> bool {
    let alone =
        text.words.len() <= 3 && text.has(&["help", "commands", "usage", "capabilities", "abilities"]);
    alone
        || text.has_phrase("can|could you do|help|assist")
            && !text.has_phrase("help me|us")
            && text.has(&["what", "how"])
        || text.has_phrase("you help me|us|with") && text.has(&["what", "how"])
        || text.has_phrase("who|what are you")
        || text.has_phrase("your name")
        || text.has_phrase("you capable of")
        || text.has_phrase("you able to") && text.has(&["what"])
        || text.has_phrase("are you good") && text.has(&["what"])
}

/// "Can you delete experiments?" is about experiments in general, while "can you delete an experiment?" is a
/// polite order.
pub(super) fn asks_if_able(text: &Text) -> bool {
    let opens =
        text.find_phrase("can|could|do you") == Some(0) || text.find_phrase("are you able to") == Some(0);
    let general = text.words.iter().enumerate().any(|(at, word)| {
        let before = at.checked_sub(1).and_then(|at| text.words.get(at));
        let plural = word.is(&["experiments", "studies", "trials"]);
        plural
            && before.is_some_and(|verb| {
                lexicon::concepts(verb).first().is_some_and(|concept| *concept <= C::Mark)
            })
    });
    opens && general && !text.has(&["please"])
}

/// A recap of the conversation; a recap of one experiment is about the experiment.
pub(super) fn asks_for_report(text: &Text, hits: &Hits) -> bool {
    let together =
        text.has(&["we", "you", "us", "our", "i", "session", "today", "far", "conversation", "chat"]);
    let past = text.has(&[
        "done",
        "did",
        "changed",
        "accomplished",
        "achieved",
        "happened",
        "made",
        "completed",
        "finished",
        "performed",
        "executed",
        "managed",
        "through",
    ]);
    let asks = text.has(&["what", "which", "list", "show", "tell", "give", "summarize", "summarise"]);
    let recaps = hits.has(C::Recap);
    let strong = text.words.iter().any(|word| {
        ["recap", "accomplish", "achiev"].iter().any(|stem| super::super::text::is_slip_of(&word.stem, stem))
    });
    let about_one = hits.has(C::Experiment) && !together;
    let helps = text.has_phrase("how") && text.has_phrase("do i|we");
    (strong && !about_one)
        || (recaps && (together || text.words.len() <= 3) && !helps && !is_list_of_experiments(text, hits))
        || text.has_phrase("so far") && asks
        || (asks && past && together && text.has_phrase("have|has|did|was|were|had") && !hits.has(C::User))
        || (past
            && text.has(&["anything", "something", "everything"])
            && text.has_phrase("did|have|has we|you"))
        || (text.has_phrase("did|have|has we|you do|done anything|something"))
        || (asks && text.has_phrase("been done|changed|made|accomplished"))
        || text.has_phrase("what happened")
}

fn is_list_of_experiments(text: &Text, hits: &Hits) -> bool {
    hits.has(C::Experiment) && !text.has(&["session", "far", "done", "did"])
}

/// Whether the message asks for the meaning of its terms.
pub(super) fn defines(text: &Text, hits: &Hits, terms: &[TermMention]) -> bool {
    let available = hits.has(C::Available) || text.has(&["have", "there", "list", "many"]);
    let explains = hits.has(C::Explain) || hits.has(C::Difference);
    let asks_why = text.has(&["why", "purpose", "idea", "point"]) && text.has_phrase("of|behind|use|do|is");
    let about = text.has_phrase("tell|teach me about|more") || text.has_phrase("tell|teach us about");
    let puzzled =
        text.has(&["understand", "get", "grasp", "know", "wonder", "wondering", "confused", "unsure"])
            && text.has(&["what", "how", "why"]);
    let works = text.has_phrase("how") && text.has(&["work", "works", "function", "matter"]);
    let learns = text.has(&["learn", "new", "unfamiliar"]) && text.has(&["about", "with", "to"]);
    let kinds = text.has(&["statuses", "states"]) && text.has(&["what", "which", "all", "possible", "valid"]);
    kinds
        || ((explains || puzzled || works || about || asks_why || learns) && !available)
        || is_what_is(text, terms)
}

/// "What's the status?" asks for the status of an experiment, not for the meaning of the word.
pub(super) fn is_about_one_status(text: &Text, hits: &Hits) -> bool {
    let the = text.words.windows(2).any(|pair| {
        pair[0].is(&["the", "its", "current"])
            && lexicon::concepts(&pair[1]).contains(&C::Status)
            && !pair[1].is(&["statuses", "states"])
    });
    the && !hits.has(C::Explain) && !text.has(&["mean", "means"])
}

/// "What is a decision point (exactly, in UpGrade)?", and not "what are the decision points of X?".
fn is_what_is(text: &Text, terms: &[TermMention]) -> bool {
    let Some(ask) = text.find_phrase("what|whats is|are|does|do") else { return false };
    let Some(first) = terms.first() else { return false };
    let Some(last) = terms.last() else { return false };
    let small = |from: usize, to: usize| {
        let between = text.words.iter().take(to).skip(from);
        between
            .filter(|word| {
                !word.is(&["a", "an", "the", "exactly", "this", "meant", "by", "it", "is", "thing"])
            })
            .count()
    };
    let rest = text.words.iter().skip(last.end);
    let generic = [
        "in", "on", "upgrade", "exactly", "here", "about", "all", "mean", "and", "for", "good", "then",
        "really", "do", "does", "simply", "again",
    ];
    first.start > ask
        && small(ask + 2, first.start) == 0
        && rest.filter(|word| !word.is(&generic)).count() == 0
}

/// "Which condition does student ada get in assign-prog?"
pub(super) fn assignment(text: &Text, hits: &Hits) -> Option<Meaning> {
    let named = slots::user(text).is_some() || slots::assigned_user(text).is_some();
    let gets =
        hits.has(C::Assign) || (hits.has(C::Condition) && text.has(&["get", "gets", "got", "see", "sees"]));
    let asks_get =
        text.has(&["what", "which"]) && text.has(&["get", "gets", "receive", "receives", "see", "sees"]);
    (named && (gets || asks_get)).then(|| certain(Request::Do(Operation::Assign)))
}

pub(super) fn health(text: &Text, hits: &Hits) -> Option<Meaning> {
    let platform = text.has(&["upgrade", "server", "backend", "service", "platform", "system", "api"]);
    let lives =
        text.has(&["up", "running", "alive", "online", "down", "reachable", "working", "connected", "ok"]);
    let known = hits.of_concept(C::Health).any(|hit| !hit.masked);
    let fits =
        (known && (platform || text.words.len() <= 5) && !hits.has(C::Experiment)) || (platform && lives);
    fits.then(|| certain(Request::Health))
}

pub(super) fn enrollment(text: &Text, hits: &Hits) -> Option<Meaning> {
    let counts =
        text.has_phrase("how many") && (hits.has(C::User) || hits.has(C::Group) || hits.has(C::Enrollment));
    let who = text.has(&["who"]) && (hits.has(C::Enrollment) || text.has_phrase("who is in"));
    let noun = hits.of_concept(C::Enrollment).any(|hit| !hit.masked && !hit.low.ends_with("ing"));
    let fits = counts || who || (noun && !is_many(text, hits));
    fits.then(|| certain(Request::Enrollment))
}

pub(super) fn status(text: &Text, hits: &Hits, asks: bool) -> Option<Meaning> {
    if is_many(text, hits) {
        return None;
    }
    let named = slots::mention(text).is_some() || slots::refers_back(text);
    if hits.has(C::Status) && !text.has(&["statuses", "states"]) {
        return Some(if named {
            certain(Request::StatusOf)
        } else {
            Meaning { ask: Request::StatusOf, confidence: 0.5 }
        });
    }
    let begins = text
        .words
        .first()
        .is_some_and(|word| word.is(&["is", "has", "did", "was", "are", "when", "how", "why"]));
    let lives = slots::status_word(text).is_some()
        || hits.actions().next().is_some()
        || text.has(&["doing", "going"]);
    (asks && begins && lives && named).then(|| certain(Request::StatusOf))
}

pub(super) fn of_context(hits: &Hits) -> Option<Meaning> {
    let part = [(C::Group, Part::Groups), (C::Point, Part::Points), (C::Condition, Part::Conditions)];
    let found = part.into_iter().find(|(concept, _)| hits.has(*concept))?;
    Some(certain(Request::OfContext(found.1)))
}

pub(super) fn contexts(text: &Text, hits: &Hits) -> Option<Meaning> {
    let about_experiments = hits.has(C::Experiment) && is_many(text, hits);
    (hits.has(C::Context) && !about_experiments).then(|| certain(Request::Contexts))
}

pub(super) fn experiments(text: &Text, hits: &Hits) -> Option<Meaning> {
    if hits.has(C::Experiment) {
        let one = (slots::mention(text).is_some() || slots::refers_back(text)) && !is_many(text, hits);
        return Some(if one { certain(Request::Details) } else { certain(Request::Experiments) });
    }
    let which = text.has(&["which", "what", "all"]) || text.words.iter().any(slots::stands_for_any);
    let lives = slots::status_word(text).is_some() && slots::mention(text).is_none();
    (which && lives).then(|| likely(Request::Experiments))
}

/// "Experiments", "which test", "all studies": more than one experiment.
fn is_many(text: &Text, hits: &Hits) -> bool {
    if slots::asks_any_status(text) {
        return true;
    }
    hits.of_concept(C::Experiment).any(|hit| {
        let before = hit.at.checked_sub(1).and_then(|at| text.words.get(at));
        let each =
            before.is_some_and(|word| word.is(&["every", "each", "all", "any", "which", "what", "many"]));
        (hit.low.ends_with('s') || hit.low.ends_with("ies") || each) && !hit.masked
    }) && lexicon_allows(text)
}

fn lexicon_allows(text: &Text) -> bool {
    !text.words.iter().any(|word| word.quoted || (word.is_capital() && !lexicon::is_function(word)))
}

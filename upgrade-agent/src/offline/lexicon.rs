//! The concepts of words and of verbs with particles, as data. `intent.rs` reads the meaning of messages.

use std::collections::HashSet;
use std::sync::LazyLock;

use super::text::{Text, Word, is_slip_of, stem};

/// The concept of a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Concept {
    // Actions.
    Create,
    Delete,
    Start,
    Stop,
    Pause,
    Resume,
    Cancel,
    Archive,
    Change,
    Init,
    Assign,
    Include,
    Exclude,
    Visit,
    Balance,
    Journey,
    Simulate,
    Mark,
    // Requests for information.
    Show,
    Explain,
    Recap,
    // Topics.
    Experiment,
    Condition,
    Point,
    Context,
    Group,
    Parameter,
    Status,
    Enrollment,
    Health,
    Weight,
    Name,
    Description,
    Tag,
    User,
    Filter,
    // Modes of speech.
    Available,
    Difference,
    Desire,
}

use Concept as C;

/// Single words by concept, separated by spaces.
const WORDS: &[(Concept, &str)] = &[
    (C::Create, "create make build add establish setup compose craft generate"),
    (
        C::Delete,
        "delete remove erase destroy purge wipe trash scrap drop discard dump dispose ditch kill \
         nuke eliminate bin",
    ),
    (C::Start, "start begin launch activate enable commence initiate run open deploy release"),
    (C::Stop, "stop halt end finish terminate close conclude deactivate disable complete"),
    (C::Pause, "pause suspend freeze hold"),
    (C::Resume, "resume continue restart revive unpause reopen reactivate unfreeze"),
    (C::Cancel, "cancel abort abandon"),
    (C::Archive, "archive shelve mothball"),
    (
        C::Change,
        "change update modify edit set adjust rename alter tweak switch rebalance revise revert turn move put",
    ),
    (C::Init, "initialize initialise init register enlist"),
    (C::Assign, "assign allocate receive"),
    (C::Include, "include whitelist allowlist"),
    (C::Exclude, "exclude blacklist blocklist denylist ban block"),
    (C::Visit, "visit"),
    (C::Balance, "balance imbalance fairness"),
    (C::Journey, "journey walkthrough"),
    (C::Simulate, "simulate simulation emulate mimic imitate"),
    (C::Mark, "mark record"),
    (C::Show, "show list display see view give fetch get find print enumerate tell look check read"),
    (
        C::Explain,
        "explain describe mean define understand clarify definition meaning concept elaborate teach",
    ),
    (
        C::Recap,
        "recap accomplish achieve summary summarize summarise session history log accomplishment \
         overview report",
    ),
    (C::Experiment, "experiment test study trial exp expt"),
    (C::Condition, "condition variant arm treatment variation cohort"),
    (C::Point, "point site target partition spot place location"),
    (C::Context, "context app application program product"),
    (C::Group, "group grouping"),
    (
        C::Parameter,
        "parameter param field argument input schema require requirement property attribute \
         mandatory necessary optional setting option specify provide information info",
    ),
    (C::Status, "status state phase stage"),
    (C::Enrollment, "enrollment enrolment participant number count statistic figure population headcount"),
    (
        C::Health,
        "health alive online reachable version connection server backend uptime ping healthy respond",
    ),
    (C::Weight, "weight split ratio percent percentage allocation distribution share proportion weighting"),
    (C::Name, "name title rename"),
    (C::Description, "description"),
    (C::Tag, "tag label"),
    (C::User, "user student learner pupil kid people child"),
    (C::Filter, "filter everyone everybody anyone includeall excludeall"),
    (
        C::Available,
        "available possible exist offer support supported choose usable valid pick allow defined \
         configured",
    ),
    (C::Difference, "difference differ versus vs compare distinguish"),
    (C::Desire, "want need please would wish should must let go time ready"),
];

/// Verbs that get their meaning from a particle, which may be up to five words later, names not counted.
const PHRASES: &[(&str, &str, Concept)] = &[
    ("turn", "on", C::Start),
    ("switch", "on", C::Start),
    ("kick", "off", C::Start),
    ("go", "live", C::Start),
    ("set", "live", C::Start),
    ("make", "live", C::Start),
    ("put", "live", C::Start),
    ("take", "live", C::Start),
    ("bring", "live", C::Start),
    ("push", "live", C::Start),
    ("fire", "up", C::Start),
    ("get", "going", C::Start),
    ("get", "rolling", C::Start),
    ("get", "moving", C::Start),
    ("get", "underway", C::Start),
    ("get", "ground", C::Start),
    ("set", "rolling", C::Start),
    ("set", "going", C::Start),
    ("set", "motion", C::Start),
    ("turn", "off", C::Stop),
    ("switch", "off", C::Stop),
    ("shut", "down", C::Stop),
    ("wind", "down", C::Stop),
    ("wrap", "up", C::Stop),
    ("bring", "end", C::Stop),
    ("bring", "halt", C::Stop),
    ("bring", "stop", C::Stop),
    ("bring", "standstill", C::Stop),
    ("come", "halt", C::Stop),
    ("put", "stop", C::Stop),
    ("put", "halt", C::Stop),
    ("run", "enough", C::Stop),
    ("run", "course", C::Stop),
    ("put", "end", C::Stop),
    ("bring", "close", C::Stop),
    ("come", "end", C::Stop),
    ("get", "enrolling", C::Start),
    ("take", "offline", C::Stop),
    ("put", "hold", C::Pause),
    ("put", "ice", C::Pause),
    ("pick", "again", C::Resume),
    ("wake", "up", C::Resume),
    ("bring", "back", C::Resume),
    ("start", "again", C::Resume),
    ("call", "off", C::Cancel),
    ("put", "away", C::Archive),
    ("get", "rid", C::Delete),
    ("throw", "away", C::Delete),
    ("throw", "out", C::Delete),
    ("throw", "bin", C::Delete),
    ("throw", "trash", C::Delete),
    ("put", "bin", C::Delete),
    ("put", "trash", C::Delete),
    ("move", "bin", C::Delete),
    ("move", "trash", C::Delete),
    ("take", "out", C::Delete),
    ("set", "up", C::Create),
    ("spin", "up", C::Create),
    ("put", "together", C::Create),
    ("make", "list", C::Show),
    ("sign", "up", C::Init),
    ("set", "apart", C::Explain),
    ("tell", "apart", C::Difference),
    ("make", "stop", C::Stop),
    ("make", "start", C::Start),
    ("make", "run", C::Start),
    ("leave", "out", C::Exclude),
    ("left", "out", C::Exclude),
    ("kept", "out", C::Exclude),
    ("take", "off", C::Change),
    ("make", "sure", C::Desire),
    ("keep", "out", C::Exclude),
    ("take", "part", C::Include),
    ("log", "visit", C::Mark),
    ("report", "visit", C::Mark),
    ("stop", "by", C::Visit),
    ("drop", "by", C::Visit),
    ("sum", "up", C::Recap),
    ("catch", "up", C::Recap),
    ("get", "done", C::Recap),
    ("look", "back", C::Recap),
];

/// Function words, which name nothing.
const FUNCTION: &str = "a/b current exact actual overall latest recent main full a about actually after again ahead all \
    already also am an and another any are around as at back be because been before being below \
    between both but by call called can could currently did do does doing done down each else ever \
    every everything exactly first following for from go going good got great had has have having he \
    hello help her here hey hi him his how i if in instead into is it its just kind know last later \
    let like live lot many may maybe me might mind more most much must my named need needs never new \
    next no not nothing now of off ok okay old on once one ones only or other our out over please \
    put quick quickly really right same say she shall should so some something soon sort still such \
    sure take than thank thanks that the their them then there these they thing things this those \
    through to today together too two under until up us use used using very want wants was way we \
    well permanently pls plz thx cheers kindly urgently whenever forever completely entirely immediately anymore asap were what when where whether which while who whole whose why will wish with within without \
    word words work works would yes yet you your";

/// Words that look like others and mean something else.
const LOOKALIKES: &str = "addition copy duplicate exit export import quit best car cat class contact content data date edition hint hints half joke lunch mask \
    math maths part party real rest review school story taste tea team text trail train weather \
    chance charge stand store stone price create-prog design resign assume report-card random";

static FUNCTION_WORDS: LazyLock<HashSet<&str>> = LazyLock::new(|| FUNCTION.split(' ').collect());
static LOOKALIKE_WORDS: LazyLock<HashSet<&str>> = LazyLock::new(|| LOOKALIKES.split(' ').collect());

struct Entry {
    concept: Concept,
    low: &'static str,
    stem: String,
}

static ENTRIES: LazyLock<Vec<Entry>> = LazyLock::new(|| {
    let words = WORDS.iter().flat_map(|(concept, words)| words.split(' ').map(|word| (*concept, word)));
    words.map(|(concept, low)| Entry { concept, low, stem: stem(low) }).collect()
});

/// Whether a word has this concept in its exact spelling.
pub(super) fn is_exact(word: &Word) -> bool {
    ENTRIES.iter().any(|entry| entry.low == word.low)
}

/// The concept of a word: by its spelling, otherwise by its stem, otherwise by the most similar word.
pub(super) fn concepts(word: &Word) -> Vec<Concept> {
    let by = |fits: &dyn Fn(&Entry) -> bool| -> Vec<Concept> {
        let mut found: Vec<_> =
            ENTRIES.iter().filter(|entry| fits(entry)).map(|entry| entry.concept).collect();
        found.dedup();
        found
    };
    let exact = by(&|entry| entry.low == word.low);
    if !exact.is_empty() || is_plain(word) {
        return exact;
    }
    if word.low.contains(|sign: char| sign.is_ascii_digit()) {
        // `student1` is an id and not a misspelling of `student`.
        return Vec::new();
    }
    let stemmed = by(&|entry| entry.stem == word.stem);
    if !stemmed.is_empty() {
        return stemmed;
    }
    let slip = |entry: &Entry| is_slip_of(&word.low, entry.low) || is_slip_of(&word.stem, &entry.stem);
    by(&slip).into_iter().take(1).collect()
}

/// Whether a word that ends like a form of another one is a misspelling of the word itself: "inclued".
pub(super) fn is_slip_of_base(word: &Word) -> bool {
    let known = ENTRIES.iter().any(|entry| entry.stem == word.stem);
    !known && ENTRIES.iter().any(|entry| is_slip_of(&word.low, entry.low))
}

/// Whether the concept of a word is certain enough for an order: not if one letter differs in a short word.
pub(super) fn is_sure(word: &Word) -> bool {
    let letters = |low: &str| {
        let mut all: Vec<char> = low.chars().collect();
        all.sort_unstable();
        all
    };
    let near = |entry: &Entry| {
        let long = entry.low.len() > 4 && is_slip_of(&word.low, entry.low);
        entry.stem == word.stem || letters(entry.low) == letters(&word.low) || long
    };
    is_exact(word) || word.low.chars().count() > 4 || ENTRIES.iter().any(near)
}

/// Whether a word has this concept by its spelling or stem, not by similarity.
pub(super) fn is_known(word: &Word) -> bool {
    !is_plain(word) && ENTRIES.iter().any(|entry| entry.low == word.low || entry.stem == word.stem)
}

/// Whether a word is not a misspelling.
pub(super) fn is_plain(word: &Word) -> bool {
    is_function(word) || LOOKALIKE_WORDS.contains(word.low.as_str())
}

/// Whether a word is a function word.
pub(super) fn is_function(word: &Word) -> bool {
    FUNCTION_WORDS.contains(word.low.as_str())
}

/// The concepts of verbs with particles, each with the position of its verb.
pub(super) fn phrases(text: &Text) -> Vec<(usize, Concept)> {
    let mut found = Vec::new();
    for (at, word) in text.words.iter().enumerate().filter(|(_, word)| !word.quoted) {
        let near = text.words.iter().skip(at + 1).filter(|word| !word.quoted && !word.is_capital()).take(5);
        let low: Vec<&str> = near.map(|word| word.low.as_str()).collect();
        let fits = |(verb, particle, _): &&(&str, &str, Concept)| {
            is_form_of(word, verb) && low.iter().any(|near| near == particle)
        };
        found.extend(PHRASES.iter().find(fits).map(|(_, _, concept)| (at, *concept)));
    }
    found
}

/// The same with the position of the particle.
pub(super) fn particles(text: &Text) -> Vec<(usize, usize, Concept)> {
    let verbs = phrases(text);
    let particle = |(at, concept): (usize, Concept)| {
        let verb = text.words.get(at)?;
        let fits = |place: &usize| {
            text.words.get(*place).is_some_and(|word| {
                let known = |(known, particle, other): &(&str, &str, Concept)| {
                    *other == concept && *particle == word.low && is_form_of(verb, known)
                };
                !word.quoted && PHRASES.iter().any(known)
            })
        };
        (at + 1..text.words.len()).find(fits).map(|place| (at, place, concept))
    };
    verbs.into_iter().filter_map(particle).collect()
}

fn is_form_of(word: &Word, verb: &str) -> bool {
    word.low == verb || word.stem == stem(verb)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(word: &str) -> Vec<Concept> {
        concepts(&Text::read(word).words[0])
    }

    #[test]
    fn forms_and_misspellings_have_the_concept_of_the_word() {
        assert_eq!(of("deleting"), [C::Delete]);
        assert_eq!(of("experimnets"), [C::Experiment]);
        assert_eq!(of("conditons"), [C::Condition]);
        assert_eq!(of("strat"), [C::Start]);
        assert_eq!(of("paramters"), [C::Parameter]);
        assert_eq!(of("enrolled"), [C::Enrollment]);
    }

    #[test]
    fn words_that_look_alike_are_not_confused() {
        for word in ["state", "stats"] {
            assert_eq!(of(word), [C::Status], "{word}");
        }
        for word in ["weather", "date", "team", "show-off", "zebra", "the", "party"] {
            assert!(of(word).is_empty(), "{word} {:?}", of(word));
        }
    }

    #[test]
    fn a_particle_changes_the_meaning_of_a_verb() {
        let found = |message| phrases(&Text::read(message)).first().map(|(_, concept)| *concept);
        assert_eq!(found("please turn the hints study off"), Some(C::Stop));
        assert_eq!(found("get rid of it"), Some(C::Delete));
        assert_eq!(found("let it go live"), Some(C::Start));
        assert_eq!(found("turn left"), None);
    }
}

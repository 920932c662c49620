//! Detects claims of actions that were not executed in a text that a model wrote. The person must not believe
//! that something was changed if nothing ran.
//!
//! Only a plain claim counts: "I have deleted the experiment", "Hints has been deleted", "Deleted Hints".
//! Questions, offers, plans, denials, quotations and statements about earlier times do not count, and neither
//! do claims that the execution log confirms. In doubt a sentence is not a claim.

mod text;

use crate::actions::ActionKind::{self, *};
use text::{Word, is, is_date, sentences, without_quotations, words};

/// The executed actions of the conversation: the kind of each one that succeeded, and the experiment's name.
pub(super) type ExecutedActions = [(ActionKind, Option<String>)];

/// The note for a claim in a turn without any action.
pub(super) const NOTHING_DONE: &str = "Note: nothing was changed in this turn, whatever is said above. I change something only \
                                       after I have shown you what, and you have said yes.";

/// Participles of actions, and the actions that they claim.
const DEEDS: &[(&str, &[ActionKind])] = &[
    ("deleted removed erased", &[DeleteExperiment, UpdateExperiment]),
    ("created", &[CreateExperiment]),
    ("added included excluded", &[UpdateExperiment, CreateExperiment]),
    ("updated changed modified renamed set adjusted edited", &[UpdateExperiment, UpdateExperimentStatus]),
    (
        "started launched activated stopped paused ended resumed restarted cancelled canceled archived deactivated \
         reactivated terminated halted",
        &[UpdateExperimentStatus, TestConditionBalance, SimulateUserJourney],
    ),
    ("initialized initialised registered", &[InitExperimentUser, VisitDecisionPoint, SimulateUserJourney]),
    ("marked enrolled", &[MarkDecisionPoint, VisitDecisionPoint, SimulateUserJourney, TestConditionBalance]),
    ("simulated", &[SimulateUserJourney, TestConditionBalance]),
];

/// Words that may be between "I" and the participle.
const ON_THE_WAY: &[&str] = &[
    "have",
    "'ve",
    "had",
    "just",
    "now",
    "already",
    "successfully",
    "also",
    "gone",
    "went",
    "ahead",
    "and",
    "then",
    "finally",
    "as",
    "requested",
    "both",
];

/// Words that may be between the subject of a passive and the participle.
const PASSIVE: &[&str] = &["just", "now", "already", "successfully", "also", "permanently", "finally"];

/// Words that turn the rest into a condition, an offer, a denial or hearsay.
const HEDGES: &[&str] = &[
    "if", "once", "when", "after", "before", "until", "unless", "whether", "would", "will", "'ll", "can",
    "could", "should", "shall", "may", "might", "must", "to", "not", "never", "no", "nothing", "none",
    "neither", "nobody", "cannot", "how", "why", "which", "that", "who", "what", "see", "says", "said",
    "because", "since", "while", "as",
];

/// Words that place an action in earlier times.
const EARLIER: &[&str] = &[
    "earlier",
    "previously",
    "yesterday",
    "ago",
    "last",
    "since",
    "formerly",
    "originally",
    "recently",
    "by",
    "first",
    "initially",
    "far",
    "before",
    "session",
    "conversation",
    "turn",
];

/// The things of an action that such a verb can be applied to.
const OBJECTS: &[&str] = &[
    "experiment",
    "experiments",
    "it",
    "them",
    "study",
    "test",
    "weights",
    "weight",
    "status",
    "condition",
    "conditions",
    "user",
    "student",
    "students",
    "users",
    "point",
    "points",
    "segment",
    "rule",
    "name",
    "tags",
    "visit",
    "everything",
];

/// Things made of words: a summary of an experiment can be created without an action.
const OF_WORDS: &[&str] = &[
    "summary",
    "list",
    "overview",
    "table",
    "draft",
    "plan",
    "example",
    "explanation",
    "details",
    "note",
    "answer",
    "report",
    "section",
    "question",
    "proposal",
    "mind",
    "below",
    "above",
];

/// Whether the text claims an action that the log does not confirm.
pub(super) fn claims_a_deed(text: &str, done: &ExecutedActions) -> bool {
    sentences(&without_quotations(text, speaks_of_deeds))
        .iter()
        .any(|sentence| is_false_claim(sentence, done))
}

fn is_false_claim(sentence: &str, done: &ExecutedActions) -> bool {
    if sentence.ends_with('?') {
        return false;
    }
    let words = words(sentence);
    (0..words.len()).any(|at| {
        let Some(kinds) = deed(&words[at].low) else { return false };
        is_claimed(&words, at) && !is_confirmed(sentence, kinds, done)
    })
}

/// One of the three forms of a claim, about something that an action can change.
fn is_claimed(words: &[Word], at: usize) -> bool {
    let earlier = words.iter().any(|word| is(word, EARLIER) || is_date(&word.low));
    if earlier || words.iter().any(|word| is(word, OF_WORDS)) {
        return false;
    }
    is_active_claim(words, at) || is_passive_claim(words, at) || is_participle_claim(words, at)
}

/// "I have just deleted the experiment".
fn is_active_claim(words: &[Word], at: usize) -> bool {
    let me = words[..at].iter().rposition(|word| is(word, &["i", "we"]));
    let straight = |me: usize| words[me + 1..at].iter().all(|word| is(word, ON_THE_WAY));
    let hedged = |me: usize| words[..me].iter().any(|word| is(word, HEDGES));
    me.is_some_and(|me| straight(me) && !hedged(me)) && has_object(words, at)
}

/// "The experiment has been deleted", "Hints is now deleted". A participle that is also a status ("has been
/// paused") may be true without an action, so it counts only together with a word of success.
fn is_passive_claim(words: &[Word], at: usize) -> bool {
    let Some(from) = words[..at].iter().rposition(|word| !is(word, PASSIVE)) else { return false };
    let between = &words[from + 1..at];
    let perfect = from > 1 && is(&words[from], &["been"]) && is(&words[from - 1], &["has", "have"]);
    let simple = is(&words[from], &["is", "are", "was", "were"]) && !between.is_empty();
    let subject = if perfect { &words[..from - 1] } else { &words[..from] };
    let succeeded = between.iter().any(|word| is(word, &["successfully", "just", "now"]));
    let alone = subject.len() == 1 && subject.iter().all(|word| word.leads);
    let about = alone || subject.iter().any(|word| is(word, OBJECTS) || word.named);
    let state = deed(&words[at].low).is_some_and(|kinds| kinds.contains(&UpdateExperimentStatus));
    let hedged = subject.iter().any(|word| is(word, HEDGES));
    (perfect || simple) && about && !hedged && (succeeded || perfect && !state)
}

/// "Deleted Hints.", "Done, created the experiment.", and not "Deleted experiments are gone".
fn is_participle_claim(words: &[Word], at: usize) -> bool {
    let opens = ["done", "ok", "okay", "alright", "great", "successfully"];
    let opened = words[..at].iter().all(|word| is(word, &opens)) && words[0].leads;
    let one =
        words.get(at + 1).is_some_and(|next| is(next, &["the", "your", "it", "experiment"]) || next.named);
    opened && one && has_object(words, at)
}

/// Whether an UpGrade noun or a name directly follows.
fn has_object(words: &[Word], at: usize) -> bool {
    let ends = ["of", "about", "for", "with", "from", "in", "so", "and", "but", "nothing", "none", "no"];
    let object = words[at + 1..].iter().take(5).take_while(|word| !is(word, &ends));
    object.into_iter().any(|word| is(word, OBJECTS) || word.named)
}

/// Whether the log has such an action on the experiment that the sentence names, or on any if it names none.
fn is_confirmed(sentence: &str, kinds: &[ActionKind], done: &ExecutedActions) -> bool {
    let low = sentence.to_lowercase();
    let fits = |name: &Option<String>| match name {
        Some(name) => low.contains(&name.to_lowercase()) || !words(sentence).iter().any(|word| word.named),
        None => true,
    };
    done.iter().any(|(kind, name)| kinds.contains(kind) && fits(name))
}

fn deed(low: &str) -> Option<&'static [ActionKind]> {
    DEEDS.iter().find(|(words, _)| words.split_whitespace().any(|word| word == low)).map(|(_, kinds)| *kinds)
}

/// Whether a quotation is a sentence about actions rather than a name.
fn speaks_of_deeds(quotation: &str) -> bool {
    quotation.split_whitespace().any(|word| deed(&word.to_lowercase()).is_some())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_text_can_be_judged(
            words in prop::collection::vec("I|I've|have|has|been|is|now|deleted|it|Foo|'|\"|`|n't|[.?!]|\\PC{0,3}", 0..12)
        ) {
            claims_a_deed(&words.join(" "), &[]);
            claims_a_deed(&words.concat(), &[(DeleteExperiment, Some("Foo".to_owned()))]);
        }
    }

    #[test]
    fn claims_of_actions_that_were_not_executed_are_detected() {
        for text in [
            "I have deleted the experiment.",
            "I've deleted Foo for you!",
            "Sure. I just started the experiment 'Hints'.",
            "I went ahead and created the experiment.",
            "Done! The experiment has been deleted.",
            "The experiment \"Foo\" has been successfully paused.",
            "Foo was successfully created.",
            "The weights are now updated.",
            "Deleted the experiment.",
            "Done: updated the weights of Hints to 70/30.",
            "I’ve excluded the student from Hints.",
            "We have now renamed it.",
            "Here is what I did.\nI have set the weights to 70/30.",
        ] {
            assert!(claims_a_deed(text, &[]), "{text}");
        }
    }

    #[test]
    fn questions_offers_plans_and_denials_are_not_claims() {
        for text in [
            "Have I deleted the experiment?",
            "Shall I say when I have deleted the experiment?",
            "I can delete the experiment for you.",
            "Once I have deleted the experiment, it is gone.",
            "If the experiment has been deleted, it cannot come back.",
            "I have not deleted the experiment.",
            "I haven't started the experiment.",
            "Nothing has been deleted.",
            "No experiment has been created.",
            "I would have started the experiment after your yes.",
            "To have the experiment deleted, type DELETE.",
            "You have deleted the experiment.",
            "Say \"I have deleted the experiment\" and I will not believe you.",
            "I have created a summary of the experiment.",
            "I've included the details of the experiment below.",
            "I have listed the experiments.",
        ] {
            assert!(!claims_a_deed(text, &[]), "{text}");
        }
    }

    #[test]
    fn statements_about_states_and_earlier_times_are_not_claims() {
        for text in [
            "Hints has been paused, so nobody new is enrolled.",
            "Hints is now enrolling.",
            "The experiment was created on 2026-04-02.",
            "I deleted the experiment earlier.",
            "So far I have created the experiment Hints.",
            "It was started by somebody else.",
            "The experiment was stopped last week.",
            "An experiment that has been archived cannot be started.",
            "The experiment has been started previously.",
            "Deleted experiments cannot come back.",
            "Created: 12 May.",
        ] {
            assert!(!claims_a_deed(text, &[]), "{text}");
        }
    }

    #[test]
    fn claims_that_the_log_confirms_are_not_reported() {
        let done =
            [(CreateExperiment, Some("Foo".to_owned())), (UpdateExperimentStatus, Some("Foo".to_owned()))];
        for text in
            ["I have created Foo.", "I've created the experiment and started it.", "Foo has been created."]
        {
            assert!(!claims_a_deed(text, &done), "{text}");
        }
        for text in [
            "I have deleted Foo.",
            "I have created the experiment Bar.",
            "I've updated Foo. I have deleted it.",
        ] {
            assert!(claims_a_deed(text, &done), "{text}");
        }
    }
}

//! The mood of a message: an order, a wish or a question.

use super::super::text::Text;
use super::hits::Hits;

const ASKERS: &[&str] = &[
    "what", "which", "who", "whose", "when", "where", "why", "how", "is", "are", "was", "were", "does",
    "did", "has", "have", "should", "may", "might", "am",
];

/// The mood of a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Mood {
    /// A question.
    pub(super) asks: bool,
    /// A question about how something is done, or about its effect.
    pub(super) how_to: bool,
    /// A question about requirements.
    pub(super) needs: bool,
    /// A request for a list, without a question.
    pub(super) lists: bool,
    /// A wish for an action.
    pub(super) wishes: bool,
    /// A wish for a state: "I want it paused", "get it started".
    pub(super) wishes_for: bool,
    requests: bool,
    imperative: bool,
}

impl Mood {
    pub(super) fn of(text: &Text, hits: &Hits) -> Self {
        let begins = text.words.first().is_some_and(|word| word.is(ASKERS))
            || text.find_phrase("do|can|could you|we|i|they|students|any") == Some(0);
        let inside = text.has_phrase(
            "know|wonder|wondering|ask|tell|curious|understand|learn what|which|who|how|whether|if|where|when|why",
        );
        let requests = is_request(text);
        let asks_aloud = text.words.iter().any(|word| (word.leads || word.new_clause) && word.is(ASKERS));
        let imperative = hits.first().is_some_and(|hit| hit.at <= 1 && !hit.describes && hit.is_action());
        let how_to = asks_how(text) && !requests_by_asking(text);
        Mood {
            asks: begins || asks_aloud || inside || text.asks,
            how_to,
            needs: text.has(&["need", "needed", "needs", "must", "required", "takes", "take"]),
            lists: text.words.first().is_some_and(|word| word.is(&["list", "show", "any", "all", "every"])),
            wishes: (requests || wishes(text)) && !how_to,
            wishes_for: (wishes(text) || text.has(&["be", "get", "getting"]) || text.has_phrase("you mind"))
                && !how_to,
            requests,
            imperative,
        }
    }

    /// A question that is neither a polite order ("can you start it?") nor an order with a question mark
    /// ("start it?").
    pub(super) fn is_question(&self) -> bool {
        self.how_to || (self.asks && !self.orders())
    }

    pub(super) fn orders(&self) -> bool {
        !self.how_to && (self.requests || self.imperative)
    }
}

/// "Could you start it", "why not start it", "can it be started".
fn is_request(text: &Text) -> bool {
    let polite = text.has(&["please", "kindly", "pls", "plz"]);
    polite
        || text.has_phrase("can|could|would|will you")
        || (text.has_phrase("can|could we") && !is_general(text))
        || text.has_phrase("you mind")
        || text.has_phrase("why not")
        || text.has_phrase("how about")
        || text.has_phrase("let us")
        || text.has_phrase("go ahead")
        || is_passive_request(text)
}

fn is_passive_request(text: &Text) -> bool {
    let opens = text.words.first().is_some_and(|word| word.is(&["can", "could", "would"]));
    opens && text.has(&["be"]) && !text.has(&["i", "we", "an"])
}

fn wishes(text: &Text) -> bool {
    let needs = "want|need|wish|like|love|prefer";
    text.has_phrase(&format!("i|we {needs}"))
        || text.has_phrase(&format!("i|we would {needs}"))
        || text.has_phrase("i|we have to")
        || text.has_phrase("should|must|can be")
        || text.has_phrase("should now be")
        || text.has_phrase("needs|need|has|have|ought to be")
        || text.has_phrase("time to")
        || text.has_phrase("ready to|for")
        || text.has_phrase("can go")
}

fn requests_by_asking(text: &Text) -> bool {
    let tells = text.has_phrase("how to") || text.has_phrase("how do|can|would|should|could i|we|one|you");
    !tells
        && (text.has_phrase("can|could|would|will you")
            || text.has_phrase("why not")
            || text.has_phrase("how about"))
}

fn asks_how(text: &Text) -> bool {
    text.has_phrase("how do|does|can|could|would|should|might|must|to")
        || (text.has_phrase("how is|are") && !text.has(&["doing", "going", "it", "performing", "things"]))
        || text.has_phrase("how exactly")
        || text.has_phrase("what happens|happen|changes|follows")
        || text.has_phrase("what would|will|does|do")
        || text.has_phrase("what if")
        || text.has_phrase("what it takes")
        || text.has_phrase("way|ways|steps|step|instructions|guide|procedure|process to|for|of")
        || text.has_phrase("may|should|shall i|we")
        || text.has_phrase("can|could i|one")
        || text.has_phrase("am i able|allowed")
        || text.has_phrase("is|are it|they possible|safe|okay|ok|allowed|reversible|wise|better")
        || is_general(text)
}

/// "Can we delete an experiment?" is about experiments in general, while "can we delete Foo?" is about Foo.
fn is_general(text: &Text) -> bool {
    text.asks && text.has_phrase("can|could we") && (text.has(&["a", "an", "any", "experiments"]))
}

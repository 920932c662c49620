//! The words of a message with a concept, except in names and under a negation.

use super::super::lexicon::{self, Concept as C};
use super::super::slots::{self, lists::Side, membership, students};
use super::super::text::{Text, Word};
use super::simulations;

/// The reach of a negation, in words.
const REACH: usize = 5;

/// A word with a concept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Hit {
    pub(super) at: usize,
    pub(super) concept: C,
    pub(super) low: String,
    pub(super) negated: bool,
    /// Whether it may be part of a name.
    pub(super) masked: bool,
    /// Whether its form describes (`paused`, `running`) rather than orders.
    pub(super) describes: bool,
}

impl Hit {
    pub(super) fn counts(&self) -> bool {
        !self.negated
    }

    pub(super) fn is_action(&self) -> bool {
        self.concept <= C::Mark
    }

    pub(super) fn is_simulation(&self) -> bool {
        matches!(self.concept, C::Balance | C::Journey | C::Visit)
    }

    fn is_head(&self) -> bool {
        self.is_action() || matches!(self.concept, C::Show | C::Explain)
    }
}

/// All of them, in order.
#[derive(Clone, Debug, Default)]
pub(super) struct Hits(Vec<Hit>);

impl Hits {
    pub(super) fn of(text: &Text) -> Self {
        let phrases = lexicon::phrases(text);
        let names = named_from(text);
        let mut hits = Vec::new();
        for (at, word) in text.words.iter().enumerate().filter(|(_, word)| !word.quoted) {
            let whole = phrases.iter().find(|(place, _)| *place == at).map(|(_, concept)| *concept);
            let concepts = whole.map_or_else(|| lexicon::concepts(word), |concept| vec![concept]);
            let masked =
                word.is_capital() || names.is_some_and(|from| at >= from) || students::is_announced(text, at);
            hits.extend(concepts.into_iter().map(|concept| Hit {
                at,
                concept,
                low: word.low.clone(),
                negated: is_negated(text, at),
                masked,
                describes: whole.is_none() && (describes(word) || follows_has(text, at)),
            }));
        }
        let hits = Hits(hits).unmasked_if_nothing_else();
        hits.with_membership(text).unwrap_or_else(|hits| hits.with_simulation(text))
    }

    /// A message in Title Case has verbs, too.
    fn unmasked_if_nothing_else(mut self) -> Self {
        if !self.0.iter().any(|hit| hit.is_head() && !hit.masked) {
            self.0.iter_mut().for_each(|hit| hit.masked = false);
        }
        self
    }

    /// "Zoe should not be in Hints": the membership replaces the verbs of its phrase, unless another verb
    /// gives an order before.
    fn with_membership(mut self, text: &Text) -> Result<Self, Self> {
        let Some(found) = membership::find(text).filter(|_| slots::target_status(text).is_none()) else {
            return Err(self);
        };
        let inside = |hit: &Hit| found.words.contains(&hit.at);
        if self
            .0
            .iter()
            .any(|hit| hit.is_head() && hit.counts() && !hit.describes && !hit.masked && !inside(hit))
        {
            return Err(self);
        }
        self.0.retain(|hit| !hit.is_head());
        let at = found.words.start;
        let concept = if found.side == Side::Inclusion { C::Include } else { C::Exclude };
        let low = text.words.get(at).map(|word| word.low.clone()).unwrap_or_default();
        let hit = Hit { at, concept, low, negated: false, masked: false, describes: false };
        let place = self.0.iter().position(|other| other.at > at).unwrap_or(self.0.len());
        self.0.insert(place, hit);
        Ok(self)
    }

    /// A request for a simulation replaces the verbs of its phrase.
    fn with_simulation(mut self, text: &Text) -> Self {
        let Some((at, concept)) = simulations::find(text, &self) else { return self };
        let negated =
            is_negated(text, at) || self.0.iter().any(|hit| hit.is_head() && hit.at < at && hit.negated);
        self.0.retain(|hit| !hit.is_head() && (hit.at != at || hit.concept == C::User));
        let low = text.words.get(at).map(|word| word.low.clone()).unwrap_or_default();
        let hit = Hit { at, concept, low, negated, masked: false, describes: false };
        let place = self.0.iter().position(|other| other.at > at).unwrap_or(self.0.len());
        self.0.insert(place, hit);
        self
    }

    /// Whether the message is about a simulation.
    pub(super) fn simulation(&self) -> Option<&Hit> {
        self.0.iter().find(|hit| matches!(hit.concept, C::Balance | C::Journey | C::Visit) && !hit.masked)
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Hit> {
        self.0.iter()
    }

    pub(super) fn any(&self) -> bool {
        self.0.iter().any(|hit| hit.concept != C::Desire)
    }

    pub(super) fn has(&self, concept: C) -> bool {
        self.0.iter().any(|hit| hit.concept == concept && !hit.masked)
    }

    pub(super) fn first(&self) -> Option<&Hit> {
        self.0.iter().find(|hit| hit.is_head() && !hit.masked)
    }

    /// The first word of a later sentence.
    pub(super) fn first_in_later_sentence(&self, text: &Text) -> Option<&Hit> {
        self.0.iter().find(|hit| hit.at > 0 && text.words.get(hit.at).is_some_and(|word| word.leads))
    }

    pub(super) fn of_concept(&self, concept: C) -> impl Iterator<Item = &Hit> {
        self.0.iter().filter(move |hit| hit.concept == concept)
    }

    pub(super) fn actions(&self) -> impl Iterator<Item = &Hit> {
        self.0.iter().filter(|hit| hit.is_action() && !hit.masked)
    }

    /// The verb of an order: the first that orders; in a wish also one that describes ("I want it paused").
    pub(super) fn head(&self, text: &Text, describing: bool) -> Option<&Hit> {
        let orders =
            |hit: &&Hit| hit.is_head() && !hit.masked && hit.counts() && (describing || !hit.describes);
        let noun = |hit: &&Hit| follows_article(text, hit) && !hit.is_simulation();
        let heads = || self.0.iter().filter(orders).filter(|hit| !noun(hit));
        // "Running Test should be stopped": among describing forms, the last one is the wish.
        let first = heads().find(|hit| !hit.describes).or_else(|| heads().next_back())?;
        // "See to it that X is deleted", "get X started": a helping verb before the one that counts.
        if matches!(first.low.as_str(), "get" | "see" | "have") {
            let later =
                self.0.iter().find(|hit| hit.at > first.at && hit.is_action() && !hit.masked && hit.counts());
            return later.or(Some(first));
        }
        Some(first)
    }

    /// "Look at it, then delete it": an order in a clause after a look.
    pub(super) fn order_after(&self, text: &Text, look: &Hit) -> Option<&Hit> {
        let begins = |hit: &&Hit| {
            let clause =
                text.words.iter().take(hit.at + 1).skip(look.at + 1).rposition(|word| word.new_clause);
            clause.is_some_and(|place| place + look.at + 3 > hit.at)
        };
        self.actions().filter(|hit| hit.at > look.at && hit.counts() && !hit.describes).find(begins)
    }

    /// The object of a verb: the first noun after it, up to a "with" or the end of the clause.
    pub(super) fn object_after(&self, text: &Text, at: usize, parts: &[C]) -> Option<C> {
        let stop = text.words.iter().enumerate().skip(at + 1).find(|(_, word)| {
            word.new_clause
                || word.quoted
                || word.is(&["with", "using", "having", "in", "called", "named", "where"])
        });
        let end = stop.map_or(text.words.len(), |(place, _)| place);
        let nouns = self.0.iter().filter(|hit| hit.at > at && hit.at < end && !hit.masked);
        nouns.map(|hit| hit.concept).find(|concept| *concept == C::Experiment || parts.contains(concept))
    }
}

/// The start of a name: after `called` or `named`.
fn named_from(text: &Text) -> Option<usize> {
    text.words.iter().position(|word| word.is(&["called", "named", "titled"])).map(|at| at + 1)
}

fn describes(word: &Word) -> bool {
    let ends = |ending: &str| word.low.ends_with(ending) && word.low.len() > ending.len() + 2;
    (ends("ing") || ends("ed") || ends("ion")) && !lexicon::is_slip_of_base(word)
}

/// "It has run", "it had begun".
fn follows_has(text: &Text, at: usize) -> bool {
    let before = at.checked_sub(1).and_then(|at| text.words.get(at));
    before.is_some_and(|word| word.is(&["has", "had", "been"]))
}

/// "the start", "a run", "your visit": a noun.
fn follows_article(text: &Text, hit: &Hit) -> bool {
    let before = hit.at.checked_sub(1).and_then(|at| text.words.get(at));
    before.is_some_and(|word| word.is(&["the", "a", "an", "its", "his", "your", "our", "of"]))
}

/// A "not" before the verb in its clause. "Why not start it?" is no negation.
fn is_negated(text: &Text, at: usize) -> bool {
    let mut place = at;
    for _ in 0..REACH {
        if text.words.get(place).is_some_and(|word| word.new_clause) {
            return false;
        }
        let Some(before) = place.checked_sub(1) else { return false };
        let Some(word) = text.words.get(before) else { return false };
        if word.is(&["but", "then", "rather"]) {
            return false;
        }
        if word.is(&["not", "never", "without", "nor"])
            || is_no_need(text, before)
            || is_instead_of(text, before)
        {
            return !before
                .checked_sub(1)
                .and_then(|at| text.words.get(at))
                .is_some_and(|word| word.is(&["why"]));
        }
        place = before;
    }
    false
}

fn is_no_need(text: &Text, at: usize) -> bool {
    let follows = |any: &[&str]| text.words.get(at + 1).is_some_and(|word| word.is(any));
    text.words.get(at).is_some_and(|word| word.is(&["no"])) && follows(&["need", "reason", "point", "wish"])
}

fn is_instead_of(text: &Text, at: usize) -> bool {
    let is = |place: usize, word: &str| text.words.get(place).is_some_and(|found| found.low == word);
    is(at, "of") && at > 0 && is(at - 1, "instead")
}

//! The request of a message, from its verbs, its mood and its topics.
//!
//! No whole sentences are compared. Verbs come from `lexicon.rs` with all forms and misspellings; `mood.rs`
//! distinguishes an order from a question about it; `hits.rs` removes negated words and parts of names.
//! Experiments and contexts need the server's names and are found later, in `slots.rs`.

mod ask;
mod hits;
mod mood;
mod simulations;
mod topics;

use super::language;
use super::lexicon::{self, Concept as C};
use super::mentions::{self, TermMention};
use super::slots::{self, lists};
use super::text::Text;
use super::unsupported;
pub(super) use ask::{Meaning, Operation, Part, Request};
use ask::{certain, likely, unclear};
use hits::{Hit, Hits};
use mood::Mood;

/// The term for the draw of conditions, whatever else a question about it mentions.
const DRAW: &str = "Assignment algorithm";

/// Reads the request of a message.
pub(super) fn understand(text: &Text) -> Meaning {
    if text.is_empty() {
        return unclear();
    }
    if language::is_other(text) {
        return Meaning { ask: Request::OtherLanguage, ..unclear() };
    }
    let hits = Hits::of(text);
    let reader = Reader { text, mood: Mood::of(text, &hits), terms: mentions::term_mentions(text), hits };
    let readings = [
        Reader::courtesy,
        Reader::undo,
        Reader::session,
        Reader::balance,
        Reader::how_to,
        Reader::refusal,
        Reader::order,
        Reader::assignment,
        Reader::explanation,
        Reader::question,
        Reader::named,
    ];
    let meaning = readings.into_iter().find_map(|reading| reading(&reader)).unwrap_or_else(unclear);
    match meaning.ask {
        // A question or a wish about something that the agent cannot do.
        Request::HowTo(_) | Request::Schema(_) | Request::Unclear if unsupported::wish(text).is_some() => {
            certain(Request::Beyond)
        }
        _ => meaning,
    }
}

struct Reader<'a> {
    text: &'a Text,
    hits: Hits,
    mood: Mood,
    terms: Vec<TermMention>,
}

impl Reader<'_> {
    /// Greetings, thanks, yes and no.
    fn courtesy(&self) -> Option<Meaning> {
        if let [word] = self.text.words.as_slice()
            && word.raw == "DELETE"
        {
            // An answer to a question that is not open any more.
            return Some(certain(Request::Yes));
        }
        let only = |words: &[&str]| {
            self.text.words.len() <= 5
                && self.text.words.iter().all(|word| word.is(words) || word.is(topics::FILLERS))
        };
        let has = |words: &[&str]| self.text.has(words);
        if has(topics::THANKS) && only(topics::PLEASED) {
            return Some(certain(Request::Thanks));
        }
        let parts =
            has(&["bye", "goodbye", "farewell", "cya", "exit", "quit"]) || self.text.has_phrase("see you");
        if parts && only(topics::FAREWELLS) {
            return Some(certain(Request::Farewell));
        }
        let wants_else = self.hits.actions().any(|hit| hit.counts() && hit.concept != C::Change);
        if self.text.has_phrase("changed|change my mind") && !wants_else {
            return Some(certain(Request::No));
        }
        if has(topics::NO) && only(topics::NO) {
            return Some(certain(Request::No));
        }
        if has(topics::YES) && only(topics::YES) {
            return Some(certain(Request::Yes));
        }
        let greets = self.text.words.first().is_some_and(|word| word.is(topics::GREETINGS));
        if greets && (only(topics::GREETINGS) || !self.hits.any()) && self.terms.is_empty() {
            return Some(certain(Request::Greeting));
        }
        topics::asks_for_abilities(self.text).then(|| certain(Request::Abilities))
    }

    /// "Undo that", "roll it back". "Revert Hints to inactive" names the new status, so it is an order.
    fn undo(&self) -> Option<Meaning> {
        let undoes = self.text.has(&["undo", "undoing", "revert", "rollback"])
            || self.text.has_phrase("roll|rolling it|that|this|everything back")
            || self.text.has_phrase("roll|rolling back")
            || self.text.has_phrase("take|taking it|that|this back");
        let instead = slots::target_status(self.text).is_some() || slots::has_weights(self.text);
        (undoes && !instead).then(|| certain(Request::Undo))
    }

    /// A question about finished actions.
    fn session(&self) -> Option<Meaning> {
        topics::asks_for_report(self.text, &self.hits).then(|| certain(Request::Report))
    }

    /// "Is the split of Hints fair?" is answered by a test, which changes nothing without a confirmation.
    fn balance(&self) -> Option<Meaning> {
        let hit = self.hits.simulation().filter(|hit| hit.concept == C::Balance && hit.counts())?;
        let asks = self.mood.is_question() && simulations::is_concrete(self.text);
        asks.then(|| {
            if hit.at == 0 {
                likely(Request::Do(Operation::Balance))
            } else {
                certain(Request::Do(Operation::Balance))
            }
        })
    }

    /// A question about an action (how, with which parameters, with which effect) is not an order.
    fn how_to(&self) -> Option<Meaning> {
        let action = self.topic_action();
        if self.hits.has(C::Parameter) && !self.mood.orders() {
            let new = self.text.has(&["new"]) && self.hits.has(C::Experiment);
            let action = action.or(new.then_some(Operation::Create));
            if let Some(action) =
                action.filter(|_| self.mood.asks || self.shows() || self.text.words.len() < 8)
            {
                return Some(certain(Request::Schema(action)));
            }
        }
        let action = action?;
        if self.asks_for_a_meaning() {
            return None;
        }
        if topics::asks_if_able(self.text) {
            return Some(certain(Request::HowTo(action)));
        }
        if self.mood.needs && self.mood.asks {
            return Some(certain(Request::Schema(action)));
        }
        let asks_last =
            self.hits.first_in_later_sentence(self.text).is_some_and(|hit| hit.concept == C::Show);
        (self.mood.how_to && !asks_last).then(|| certain(Request::HowTo(action)))
    }

    /// "What does completed mean?" is about the word, not about an action.
    fn asks_for_a_meaning(&self) -> bool {
        let of_a_verb = |hit: &Hit| self.terms.iter().any(|term| (term.start..term.end).contains(&hit.at));
        let means = self.text.has(&["mean", "means", "meant", "meaning"]) || self.hits.has(C::Difference);
        means && self.hits.actions().any(of_a_verb)
    }

    fn shows(&self) -> bool {
        self.hits.first().is_some_and(|hit| matches!(hit.concept, C::Show | C::Explain))
    }

    fn refusal(&self) -> Option<Meaning> {
        // "Stop! Don't delete it": the first word is for the agent, not about an experiment.
        let to_me = |hit: &Hit| hit.at == 0 && self.text.words.get(1).is_some_and(|word| word.new_clause);
        let counts = |hit: &Hit| hit.counts() && !to_me(hit);
        let refused = self.hits.actions().any(|hit| hit.negated) && !self.hits.actions().any(counts);
        (refused && !self.mood.is_question()).then(|| certain(Request::Refused))
    }

    /// An order: the first verb that counts decides.
    fn order(&self) -> Option<Meaning> {
        if self.mood.is_question() && !self.lets_play() {
            return None;
        }
        if self.text.words.first().is_some_and(|word| word.is(&["tag", "label"])) && self.text.words.len() > 2
        {
            return Some(certain(Request::Do(Operation::Update)));
        }
        if self.wants_to_compare() {
            return Some(likely(Request::Do(Operation::Create)));
        }
        if self.gives_shares() || self.gives_a_part() {
            return Some(certain(Request::Do(Operation::Update)));
        }
        let opens_doors =
            self.text.has_phrase("let students|learners|pupils|users|people|kids|everyone|them in");
        if opens_doors && !self.hits.actions().any(|hit| hit.counts() && !hit.describes) {
            return Some(likely(Request::Do(Operation::Status(Some("enrolling")))));
        }
        let Some(head) = self.hits.head(self.text, self.mood.wishes_for) else {
            // "We need a new experiment" has no verb of action.
            let new = self.text.has(&["new", "another", "named", "called"]) && self.hits.has(C::Experiment);
            let begins = self.text.words.first().is_some_and(|word| word.is(&["new", "another"]));
            return (new && (self.mood.wishes || begins)).then(|| certain(Request::Do(Operation::Create)));
        };
        let head = match head.concept {
            C::Show | C::Explain => self.hits.order_after(self.text, head)?,
            _ => head,
        };
        let action = self.action_of(head)?;
        Some(if self.mood.wishes || head.at <= 1 {
            certain(Request::Do(action))
        } else {
            likely(Request::Do(action))
        })
    }

    /// "I want control 30 and variant 70 in Hints", "give variant 70%, control 30%".
    fn gives_shares(&self) -> bool {
        let gives = self.mood.wishes || self.text.words.first().is_some_and(|word| word.is(&["give"]));
        let tests = self.hits.simulation().is_some();
        gives && !tests && slots::has_weights(self.text) && self.hits.actions().all(|hit| hit.describes)
    }

    /// "Give Foo a description", "clear the exclusion list of Foo": verbs that are orders only in such
    /// phrases.
    fn gives_a_part(&self) -> bool {
        let mut words = self.text.words.iter().skip_while(|word| word.is(&["please", "pls", "kindly"]));
        let leads = words.next().is_some_and(|word| word.is(&["give", "clear", "empty"]));
        let parts =
            ["description", "name", "title", "tag", "tags", "list", "lists", "exclusions", "inclusions"];
        let tests = self.hits.simulation().is_some();
        leads && !tests && self.text.has(&parts) && self.hits.actions().all(|hit| hit.describes)
    }

    /// "I'd like to compare control and variant": a comparison is the purpose of an experiment.
    fn wants_to_compare(&self) -> bool {
        let compares = self.text.has(&["compare", "contrast", "pit"]) && self.mood.wishes;
        let conditions = self.hits.has(C::Condition) || self.text.has(&["control"]);
        compares && conditions && !self.hits.actions().any(|hit| hit.counts() && !hit.describes)
    }

    /// "Have bob visit X" is not a question.
    fn lets_play(&self) -> bool {
        let leads = self.text.words.first().is_some_and(|word| word.is(&["let", "have", "make", "get"]));
        leads && !self.text.asks && !self.mood.how_to && self.hits.simulation().is_some()
    }

    /// The action in a message, whatever its mood.
    fn topic_action(&self) -> Option<Operation> {
        let in_term = |hit: &&Hit| {
            let wide = self.terms.iter().filter(|found| found.end - found.start > 1);
            wide.into_iter().any(|found| (found.start..found.end).contains(&hit.at))
        };
        let hit = self.hits.actions().find(|hit| !hit.masked && !in_term(hit))?;
        self.action_of(hit)
    }

    fn action_of(&self, hit: &Hit) -> Option<Operation> {
        let status = |word| Some(Operation::Status(Some(word)));
        match hit.concept {
            C::Start if self.begins_something_new(hit) => Some(Operation::Create),
            C::Start | C::Resume => status("enrolling"),
            C::Stop | C::Pause => status("enrollmentComplete"),
            C::Cancel => status("cancelled"),
            C::Archive => status("archived"),
            C::Init => Some(Operation::Init),
            C::Mark => Some(Operation::Mark),
            C::Assign => Some(Operation::Assign),
            C::Visit => Some(Operation::Visit),
            C::Balance => Some(Operation::Balance),
            C::Journey | C::Simulate => Some(Operation::Journey),
            C::Include | C::Exclude => Some(Operation::Update),
            C::Create if self.changes_a_part(hit) => Some(self.change()),
            C::Create => Some(Operation::Create),
            C::Delete if self.changes_a_part(hit) => Some(Operation::Update),
            C::Delete => Some(Operation::Delete),
            C::Change => Some(self.change()),
            _ => None,
        }
    }

    /// "Run an A/B test", "start a new experiment": the experiment does not exist yet.
    fn begins_something_new(&self, verb: &Hit) -> bool {
        let after = self.text.words.iter().skip(verb.at + 1).take(2);
        let new = after.clone().any(|word| word.is(&["new", "another"]));
        let any = verb.low == "run" && after.clone().any(|word| word.is(&["a", "an"]));
        (new || any) && self.hits.has(C::Experiment)
    }

    /// "Add a condition", "remove the tag", "make it 70/30": the object is a part of an experiment.
    fn changes_a_part(&self, verb: &Hit) -> bool {
        if lists::is_about(self.text, verb.at) || verb.low == "make" && self.makes_a_setting() {
            return true;
        }
        let parts = [C::Condition, C::Point, C::Tag, C::Weight, C::Description, C::Status];
        let object = self.hits.object_after(self.text, verb.at, &parts);
        let experiment = self.hits.has(C::Experiment) || self.text.has(&["new"]);
        match object {
            Some(C::Experiment) => false,
            Some(_) => true,
            None => {
                !experiment
                    && verb.low == "make"
                    && (slots::has_weights(self.text) || self.target().is_some())
            }
        }
    }

    /// "Make Foo take everybody", "make the consistency rule of Foo group".
    fn makes_a_setting(&self) -> bool {
        let all = "everybody|everyone|anyone|nobody|all";
        let takes = format!("take|takes|include|includes|accept|accepts|admit|admits|exclude|excludes {all}");
        self.text.has_phrase(&takes)
            || self.text.has_phrase("consistency|post-experiment|post rule of|for|in")
    }

    fn change(&self) -> Operation {
        match self.target() {
            Some(status) => Operation::Status(Some(status)),
            None if self.hits.has(C::Status) => Operation::Status(None),
            None => Operation::Update,
        }
    }

    /// A status in the position of a target: after "to", "as", "it", or at the end.
    fn target(&self) -> Option<&'static str> {
        slots::target_status(self.text)
    }

    /// "What condition does ada get?" mentions a term, but does not ask for its meaning.
    fn assignment(&self) -> Option<Meaning> {
        topics::assignment(self.text, &self.hits).filter(|_| self.mood.asks)
    }

    /// A question for the meaning of a term.
    fn explanation(&self) -> Option<Meaning> {
        if self.terms.is_empty() || slots::refers_back(self.text) || self.names_something() {
            return None;
        }
        let found = || self.terms.iter().map(|found| found.term).collect::<Vec<_>>();
        if self.mood.asks
            && self.terms.iter().any(|found| found.end - found.start > 2 || found.term.title() == DRAW)
        {
            return Some(likely(Request::Explain(found())));
        }
        let counts = self.text.has(&["list", "many", "which"]);
        if self.terms.iter().any(|found| found.term.title() == "A/B testing") && !counts {
            return Some(likely(Request::Explain(found())));
        }
        let lives = !self.hits.has(C::Explain) && topics::health(self.text, &self.hits).is_some();
        if lives || topics::is_about_one_status(self.text, &self.hits) {
            return None;
        }
        if topics::defines(self.text, &self.hits, &self.terms) {
            return Some(certain(Request::Explain(found())));
        }
        let only_terms = self.text.words.iter().enumerate().all(|(at, word)| {
            lexicon::is_function(word)
                || self.terms.iter().any(|found| (found.start..found.end).contains(&at))
        });
        let lists = self.mood.lists
            || self.text.has(&["which", "how", "any", "many", "there", "have"])
            || slots::asks_any_status(self.text)
            || self
                .terms
                .first()
                .is_some_and(|found| self.text.find_phrase("what") == found.start.checked_sub(1))
            || self.hits.of_concept(C::Experiment).any(|hit| hit.low.ends_with('s'));
        (only_terms && !lists).then(|| likely(Request::Explain(found())))
    }

    fn names_something(&self) -> bool {
        let covered = |at| self.terms.iter().any(|found| (found.start..found.end).contains(&at));
        let mut words = self.text.words.iter().enumerate();
        words.any(|(at, word)| word.quoted || (word.is_capital() && !covered(at) && word.low != "upgrade"))
    }

    /// A question about the server's data.
    fn question(&self) -> Option<Meaning> {
        let noun =
            [C::Enrollment, C::Status, C::Health, C::Available].into_iter().any(|topic| self.hits.has(topic));
        let asks =
            self.mood.asks || self.mood.lists || noun || self.hits.has(C::Show) || self.text.words.len() <= 4;
        if !asks {
            return None;
        }
        topics::assignment(self.text, &self.hits)
            .or_else(|| topics::health(self.text, &self.hits))
            .or_else(|| topics::enrollment(self.text, &self.hits))
            .or_else(|| topics::status(self.text, &self.hits, self.mood.asks))
            .or_else(|| topics::of_context(&self.hits))
            .or_else(|| topics::contexts(self.text, &self.hits))
            .or_else(|| topics::experiments(self.text, &self.hits))
    }

    /// "Tell me about Math Hints": a name without an action.
    fn named(&self) -> Option<Meaning> {
        let curious = self.hits.has(C::Show) || self.hits.has(C::Explain);
        let named = slots::refers_back(self.text) || slots::mention(self.text).is_some();
        let aloud = self.mood.asks && (self.names_something() || slots::refers_back(self.text));
        (aloud || curious && named).then(|| likely(Request::Details))
    }
}

#[cfg(test)]
mod tests;

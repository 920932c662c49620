//! The words of an order that were not used: neither its verb, nor a kind of thing, a name, a value or a
//! filler.
//!
//! This rule makes sure that no part of a message is ignored. The reader of an order reports what it used;
//! each word is compared with that, and an order with an unused word is not carried out. Unknown words count
//! as unused, so an unknown phrase fails safely.

mod fillers;

use serde_json::Value;

use fillers::{GRAMMAR, PHRASES, SIMULATIONS, VISITS};

use super::intent::Operation;
use super::lexicon::{self, Concept as C};
use super::slots::{self, conditions, students};
use super::text::{Text, Word, folded, is_slip_of};

/// The parts of a message that were used.
pub(super) struct Interpretation<'a> {
    pub(super) action: Operation,
    pub(super) params: &'a serde_json::Map<String, Value>,
    pub(super) missing: &'a [&'static str],
    /// Names on the server that the message refers to, possibly misspelled.
    pub(super) names: Vec<String>,
    /// Other values taken literally: ids, tags.
    pub(super) words: Vec<String>,
    /// Whether the message answers a question or changes the pending action.
    pub(super) answers: bool,
    /// Positions of words that were understood as a phrase.
    pub(super) places: Vec<usize>,
}

/// The unused words, as runs of the message.
pub(super) fn left_over(text: &Text, taken: &Interpretation<'_>) -> Vec<String> {
    let reader = Reader { text, taken, shouts: is_all_caps(text) };
    let mut open: Vec<bool> =
        text.words.iter().enumerate().map(|(at, word)| !reader.is_taken(at, word)).collect();
    for phrase in PHRASES.iter().chain(reader.own_phrases()) {
        cover(text, phrase, &mut open);
    }
    reader.cover_reasons(&mut open);
    reader.cover_beginnings(&mut open);
    for (verb, particle, concept) in lexicon::particles(text) {
        if reader.fits(concept) {
            (open[verb], open[particle]) = (false, false);
        }
    }
    runs(text, &open)
}

struct Reader<'a> {
    text: &'a Text,
    taken: &'a Interpretation<'a>,
    /// Whether the message is all in capitals, so that capitals mean nothing.
    shouts: bool,
}

impl Reader<'_> {
    fn is_taken(&self, at: usize, word: &Word) -> bool {
        if self.taken.places.contains(&at) || self.is_value(word) || self.is_name(at, word) {
            return true;
        }
        if word.quoted {
            return false;
        }
        let named = word.is_capital() && !self.shouts;
        let ours = word.is(&["a/b", "ab", "upgrade", "ok"]);
        ours || !named && (is_in(GRAMMAR, word) || is_polite_slip(word))
            || self.is_number(at, word)
            || (!named || word.leads) && self.is_of_the_order(at, word)
    }

    /// A value of the action, taken literally.
    fn is_value(&self, word: &Word) -> bool {
        let plain = folded(&word.raw);
        let parts = || plain.split(' ');
        let has = |value: &str| {
            let value = folded(value);
            !plain.is_empty() && parts().all(|part| value.split(' ').any(|of_value| of_value == part))
        };
        let mut found = self.taken.words.iter().any(|value| has(value));
        self.taken.params.values().for_each(|value| each_text(value, &mut |text| found |= has(text)));
        found
    }

    /// A part of a name on the server, possibly misspelled or written as one word.
    fn is_name(&self, at: usize, word: &Word) -> bool {
        let plain = folded(&word.raw);
        let near = |one: &str, other: &str| one == other || is_slip_of(one, other);
        let next = self.text.words.get(at + 1).map(|next| folded(&next.raw)).unwrap_or_default();
        let before = at.checked_sub(1).and_then(|at| self.text.words.get(at)).map(|word| folded(&word.raw));
        let before = before.unwrap_or_default();
        self.taken.names.iter().any(|name| {
            let name = folded(name);
            let solid = name.replace(' ', "");
            let parts = plain.split(' ').filter(|part| !part.is_empty());
            let all = parts.clone().all(|part| name.split(' ').any(|known| near(part, known)));
            let whole = |written: String| near(&written.replace(' ', ""), &solid);
            !plain.is_empty()
                && (all
                    || whole(plain.clone())
                    || whole(format!("{plain}{next}"))
                    || whole(format!("{before}{plain}")))
        })
    }

    fn has(&self, name: &str) -> bool {
        self.taken.params.contains_key(name) || self.taken.missing.contains(&name)
    }

    fn has_any(&self, names: &[&str]) -> bool {
        names.iter().any(|name| self.has(name))
    }

    /// A number that is a value, alone or in a ratio.
    fn is_number(&self, at: usize, word: &Word) -> bool {
        let numbers = self.numbers();
        let is = |number: f64| numbers.iter().any(|known| (known - number).abs() < 0.01);
        if let Some(ratio) = conditions::ratio(&word.raw) {
            // Whether the word states the expected result of a balance test.
            return self.taken.action == Operation::Balance || ratio.into_iter().all(is);
        }
        let plain = word.raw.trim_end_matches('%').replace([',', '\''], "");
        let plain = plain.strip_prefix("n=").unwrap_or(&plain);
        if let Ok(number) = plain.parse::<f64>() {
            let thousands = |signs: &str| signs.chars().all(|sign| sign.is_ascii_digit() || sign == '.');
            let signed = plain.strip_prefix('-').filter(|_| self.has("num_users"));
            return thousands(signed.unwrap_or(plain)) && is(number);
        }
        let shares = self.has("conditions");
        let parts: Vec<&str> = word.raw.split(['=', ':']).collect();
        if let (true, [code, share]) = (shares, parts.as_slice()) {
            let known = self.taken.names.iter().any(|name| folded(name) == folded(code));
            return known && share.trim_end_matches('%').parse().is_ok_and(is);
        }
        let counted = || {
            let wanted = self.taken.params.get("num_users").and_then(Value::as_i64);
            wanted.is_some_and(|wanted| students::counts(self.text, at, wanted))
        };
        let fraction = || {
            shares
                && word.is(&[
                    "one", "two", "three", "third", "thirds", "quarter", "quarters", "fifth", "fifths",
                    "tenth", "tenths",
                ])
        };
        counted() || fraction()
    }

    fn numbers(&self) -> Vec<f64> {
        let mut all = Vec::new();
        self.taken.params.values().for_each(|value| each_number(value, &mut |number| all.push(number)));
        all
    }

    /// Whether this order can use a word of this concept.
    fn fits(&self, concept: C) -> bool {
        let lists = ["inclusion_users", "inclusion_groups", "exclusion_users", "exclusion_groups"];
        let design = matches!(self.taken.action, Operation::Create | Operation::Update);
        match concept {
            C::Desire => true,
            C::Experiment => {
                !matches!(self.taken.action, Operation::Init | Operation::Assign | Operation::Mark)
                    || self.has_any(&["assigned_condition"])
            }
            C::Name => self.has("name"),
            C::Condition | C::Weight => {
                self.has_any(&["conditions", "assigned_condition"])
                    || matches!(self.taken.action, Operation::Assign | Operation::Balance)
            }
            C::Point => self.has_any(&["decision_points", "decision_point", "site", "target", "steps"]),
            C::Context => self.has("context"),
            C::Group => self.has_any(&["group_type", "group", "assignment_unit", "working_group"]),
            C::Description => self.has("description"),
            C::Tag => self.has("tags"),
            C::Filter => self.has("filter_mode"),
            C::Include => self.has_any(&lists[..2]) || self.has_any(&lists) || self.has("filter_mode"),
            C::Exclude => self.has_any(&lists) || self.has("filter_mode"),
            C::User => {
                self.has_any(&lists)
                    || self.has_any(&["user_id", "user_ids", "num_users", "filter_mode"])
                    || self.taken.params.get("assignment_unit").is_some()
            }
            C::Change => {
                matches!(
                    self.taken.action,
                    Operation::Create | Operation::Update | Operation::Status(_) | Operation::Journey
                )
            }
            C::Create => design,
            C::Difference => self.has("conditions"),
            C::Assign => {
                matches!(
                    self.taken.action,
                    Operation::Assign | Operation::Balance | Operation::Journey | Operation::Visit
                ) || design && self.has_any(&["group_type", "assignment_unit", "conditions"])
            }
            C::Delete => self.taken.action == Operation::Delete,
            C::Start | C::Resume | C::Stop | C::Pause | C::Cancel | C::Archive => {
                self.is_status_verb(concept)
            }
            C::Status => matches!(self.taken.action, Operation::Status(_)) || self.has("steps"),
            C::Enrollment => matches!(self.taken.action, Operation::Status(_)),
            C::Init => matches!(self.taken.action, Operation::Init),
            C::Mark => matches!(self.taken.action, Operation::Mark),
            C::Visit => matches!(self.taken.action, Operation::Visit | Operation::Journey | Operation::Mark),
            C::Balance | C::Journey | C::Simulate => {
                matches!(self.taken.action, Operation::Balance | Operation::Journey | Operation::Visit)
            }
            C::Show | C::Explain => matches!(
                self.taken.action,
                Operation::Assign | Operation::Balance | Operation::Journey | Operation::Visit
            ),
            _ => false,
        }
    }

    fn is_status_verb(&self, verb: C) -> bool {
        if self.has("steps") || self.taken.action == Operation::Create && verb == C::Start {
            return true;
        }
        let Operation::Status(_) = self.taken.action else { return false };
        match self.status() {
            Some("enrolling") => matches!(verb, C::Start | C::Resume),
            Some("enrollmentComplete") => matches!(verb, C::Stop | C::Pause),
            Some("cancelled") => matches!(verb, C::Cancel),
            Some("archived") => matches!(verb, C::Archive),
            _ => false,
        }
    }

    fn status(&self) -> Option<&str> {
        self.taken.params.get("status").and_then(Value::as_str)
    }

    /// A word with a concept, or a word that belongs to a value of the order.
    fn is_of_the_order(&self, at: usize, word: &Word) -> bool {
        let concepts = if lexicon::is_sure(word) { lexicon::concepts(word) } else { Vec::new() };
        let fits = |concept: &C| self.fits(*concept) && (*concept != C::Start || self.starts(at));
        if concepts.iter().any(fits) || slots::is_insisting(word) && self.may_insist() {
            return true;
        }
        let known = |words: &str| is_in(words, word);
        let lists = ["inclusion_users", "inclusion_groups", "exclusion_users", "exclusion_groups"];
        match self.taken.action {
            Operation::Status(_) => {
                self.status().is_some() && slots::status_of(word) == self.status()
                    || known("students users learners pupils kids")
            }
            Operation::Delete => known("permanently completely forever entirely totally gone rid"),
            Operation::Create | Operation::Update => {
                let design =
                    known("new another add adding added fresh brand simple basic small little a/b ab split")
                        && self.taken.action == Operation::Create
                        || known("add adding added change changed");
                design
                    || self.has("conditions")
                        && known(
                            "even evenly equal equally half halves fifty-fifty same uniform uniformly balanced rest remainder \
                            remaining both each percent per cent between against versus vs share shares gets get %",
                        )
                    || self.has_any(&lists)
                        && known(
                            "only just list lists inclusion inclusions exclusion exclusions allowlist whitelist blocklist \
                            blacklist denylist part whitelisted blacklisted remove removed take off no longer let never not \
                            keep kept out away leave left join participate class classes school schools him her them",
                        )
                    || self.has("filter_mode")
                        && known(
                            "all every everyone everybody anyone nobody includeall excludeall mode filter student students \
                            users learners pupils include exclude",
                        )
                    || self.has_any(&["group_type", "assignment_unit"])
                        && known(
                            "per by each whole unit assignment individual individually group level class classes school \
                            student assigned grouped",
                        )
                    || self.has("consistency_rule") && known("consistency rule individual group experiment")
                    || self.has("post_experiment_rule")
                        && known(
                            "post post-experiment experiment rule after continue keep assign enrolment enrollment",
                        )
                    || self.has("name") && known("rename renamed name title call called")
                    || self.has("decision_points")
                        && known(
                            "decision place places where site target exclude if reached add also another additional extra \
                            second remove drop delete without /",
                        )
                    || self.has("tags") && known("remove drop delete add tagged labelled labeled")
                    || self.has("description") && known("description described describe")
                    || self.taken.answers
                        && known(
                            "any whatever whichever anything either default defaults first random choose pick decide mind \
                            care preference do not no",
                        )
                        && points_are_open(self.text)
            }
            Operation::Init | Operation::Mark | Operation::Visit => {
                known("class classes school schools user student register visited visits decision point")
                    || self.taken.action == Operation::Visit && is_in(VISITS, word)
            }
            Operation::Assign => known(
                "class classes school schools user student what which how condition conditions see sees",
            ),
            Operation::Balance | Operation::Journey => {
                is_in(SIMULATIONS, word)
                    || known("class classes school schools steps step")
                    || self.has("steps") && known("then afterwards next finally first once")
            }
        }
    }

    /// A new experiment is not started: "run an A/B test" and "running at X" create it, "and start it" does
    /// not.
    fn starts(&self, at: usize) -> bool {
        let acts = |word: &Word| lexicon::concepts(word).first().is_some_and(|concept| *concept <= C::Mark);
        let next = self.text.words.get(at + 1);
        self.taken.action != Operation::Create
            || next.is_some_and(|next| next.is(&["in", "at", "on"]))
            || !self.text.words[..at].iter().any(acts)
    }

    fn may_insist(&self) -> bool {
        matches!(self.taken.action, Operation::Status(_) | Operation::Update | Operation::Journey)
    }

    fn own_phrases(&self) -> &'static [&'static str] {
        match self.taken.action {
            Operation::Update if self.has_any(&["exclusion_users", "exclusion_groups"]) => {
                &["do|does|should|must|shall|may|can not", "no longer", "not|never"]
            }
            Operation::Status(_) => &[
                "new|more|further students|users|learners|pupils|participants|people",
                "from inactive|draft|preview|scheduled|enrolling|running|paused|cancelled|archived",
                "the|my|our \
                inactive|running|enrolling|paused|stopped|cancelled|completed|finished",
            ],
            _ => &[],
        }
    }

    /// "No, first ...", "then ...", "modify: ...": openings of a message that continues.
    fn cover_beginnings(&self, open: &mut [bool]) {
        let begins = [
            "no", "nope", "first", "then", "next", "finally", "wait", "stop", "sorry", "modify", "change",
            "edit",
        ];
        let words = self.text.words.iter().zip(open).enumerate();
        for (at, (word, open)) in words {
            let verb = word.is(&["stop", "modify", "change", "edit", "next"]);
            let apart = self.text.words.get(at + 1).is_none_or(|next| next.new_clause);
            if *open && !(word.is(&begins) && (!verb || apart && self.taken.answers)) {
                return;
            }
            *open = false;
        }
    }

    /// "Because it is broken": a reason does not change the request.
    fn cover_reasons(&self, open: &mut [bool]) {
        let subjects = ["it", "we", "i", "they", "this", "that", "there", "he", "she"];
        let reason = |at: &usize| {
            let follows = self.text.words.get(at + 1).is_some_and(|next| next.is(&subjects));
            self.text.words[*at].is(&["because", "cuz", "coz"]) && follows
        };
        let Some(from) = (0..open.len()).find(reason) else { return };
        let end = (from + 1..open.len()).find(|at| self.text.words[*at].new_clause).unwrap_or(open.len());
        let orders = |word: &Word| {
            let action = lexicon::concepts(word).iter().any(|concept| *concept <= C::Mark);
            action || word.raw.contains(|sign: char| sign.is_ascii_digit())
        };
        if !self.text.words[from..end].iter().any(orders) {
            open[from..end].fill(false);
        }
    }
}

fn points_are_open(text: &Text) -> bool {
    slots::points::leaves_it_open(text)
}

fn is_in(list: &str, word: &Word) -> bool {
    list.split_whitespace().any(|known| known == word.low)
}

fn is_polite_slip(word: &Word) -> bool {
    ["please", "thanks", "kindly", "experiment"].iter().any(|polite| is_slip_of(&word.low, polite))
}

/// `START FOO NOW`: a message in capitals has no capitalized names.
fn is_all_caps(text: &Text) -> bool {
    let lower = |word: &Word| word.raw.chars().any(char::is_lowercase);
    text.words.len() > 1 && !text.words.iter().any(lower)
}

/// Marks the words of every occurrence of the phrase.
fn cover(text: &Text, phrase: &str, open: &mut [bool]) {
    let wanted: Vec<&str> = phrase.split_whitespace().collect();
    let fits = |(word, wanted): (&Word, &&str)| !word.quoted && wanted.split('|').any(|any| any == word.low);
    for at in 0..(text.words.len() + 1).saturating_sub(wanted.len()) {
        if text.words[at..at + wanted.len()].iter().zip(&wanted).all(fits) {
            open[at..at + wanted.len()].fill(false);
        }
    }
}

/// Unused words as they are in the message, with the function words between and before them.
fn runs(text: &Text, open: &[bool]) -> Vec<String> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < open.len() {
        if !open[at] {
            at += 1;
            continue;
        }
        let mut from = at;
        let leads = |word: &Word| {
            let joins = word.is(&["and", "or", "so", "please", "now", "also", "it", "them", "me"]);
            is_in(GRAMMAR, word) && !joins && !word.quoted
        };
        while from > 0 && !text.words[from].new_clause && leads(&text.words[from - 1]) && from + 5 > at {
            from -= 1;
        }
        let mut end = at + 1;
        loop {
            let next = (end..(end + 3).min(open.len())).find(|place| open[*place]);
            let Some(next) = next.filter(|next| !text.words[end..=*next].iter().any(|word| word.leads))
            else {
                break;
            };
            if text.words[end..next].iter().any(|word| !is_in(GRAMMAR, word)) {
                break;
            }
            end = next + 1;
        }
        // "After 200 students": the noun belongs to its number.
        if text.words[end - 1].raw.parse::<f64>().is_ok() {
            let counted = |next: &Word| !next.new_clause && students::is_person(next);
            end += usize::from(text.words.get(end).is_some_and(counted));
        }
        found.push(text.words[from..end].iter().map(|word| word.raw.as_str()).collect::<Vec<_>>().join(" "));
        at = end;
    }
    found
}

fn each_text(value: &Value, take: &mut dyn FnMut(&str)) {
    match value {
        Value::String(text) => take(text),
        Value::Array(all) => all.iter().for_each(|one| each_text(one, take)),
        Value::Object(map) => map.iter().for_each(|(key, one)| {
            // Kinds of groups are keys.
            take(key);
            each_text(one, take);
        }),
        _ => {}
    }
}

fn each_number(value: &Value, take: &mut dyn FnMut(f64)) {
    match value {
        Value::Number(number) => take(number.as_f64().unwrap_or_default()),
        Value::Array(all) => all.iter().for_each(|one| each_number(one, take)),
        Value::Object(map) => map.values().for_each(|one| each_number(one, take)),
        _ => {}
    }
}

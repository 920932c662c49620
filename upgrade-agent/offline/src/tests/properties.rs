//! Properties of the grammar: sentences generated from the productions are read back to the same act, and
//! no word that is put in goes unheard.

use proptest::prelude::*;

use super::{known, reading};
use crate::grammar::{FORMS, Form, Group, grammar};
use crate::matcher::Matcher;
use crate::notation::Node;
use crate::reading::Reading;
use crate::slots::{Known, Scene};
use crate::token::tokens;

/// Writes a sentence of a production: the choices come from random numbers.
struct Writer<'r> {
    choices: &'r [u8],
    at: usize,
    depth: usize,
    words: Vec<String>,
    slots: Vec<(&'static str, String)>,
}

impl Writer<'_> {
    fn choice(&mut self, of: usize) -> usize {
        let choice = self.choices.get(self.at).copied().unwrap_or_default();
        self.at += 1;
        usize::from(choice) % of.max(1)
    }

    fn write(&mut self, node: &Node) {
        match node {
            Node::Word(word) => self.words.push((*word).to_owned()),
            Node::Slot { name, kind } => {
                let filler = self.filler(kind);
                self.slots.push((name, filler.clone()));
                // Without quotes a new name would go on to the next keyword.
                let quoted = *kind == "name" || (*kind == "experiment" && filler.contains(' '));
                self.words.push(if quoted { format!("\"{filler}\"") } else { filler });
            }
            Node::Set { name, value } => self.slots.push((name, (*value).to_owned())),
            Node::Class(name) => self.write(&grammar().lexicon.classes[name]),
            Node::Seq(all) => all.iter().for_each(|node| self.write(node)),
            Node::Alt(all) => {
                let choice = self.choice(all.len());
                self.write(&all[choice]);
            }
            Node::Opt(inner) | Node::Star(inner) => {
                self.depth += 1;
                if self.depth < 6 && self.choice(3) == 0 {
                    self.write(inner);
                }
                self.depth -= 1;
            }
        }
    }

    fn filler(&mut self, kind: &str) -> String {
        let fillers: &[&str] = match kind {
            "experiment" => &["Foo", "Hints", "Math Hints", "Running Test", "C++ vs C#", "Tom and Jerry"],
            "name" => &["Bar", "Zeta 2", "A&B", "Ünï", "🦀"],
            "value" => &["for the pilot"],
            "context" => &["assign-prog", "mathstream"],
            "id" | "ids" => &["ada", "bob", "s-77", "mark"],
            "code" | "codes" => &["workspace", "analyzing_step_functions", "pilot"],
            "group_type" => &["class", "school"],
            "number" => &["200", "50", "a hundred"],
            "weights" => &["70/30", "control 40, variant 60", "evenly"],
            "status" => &["enrolling", "paused", "cancelled"],
            "date" => &["2026-01-31"],
            "term" => &["decision point", "payload", "segment"],
            "json" => &["{\"name\": \"Bar\"}"],
            "rest" => &["something else"],
            other => panic!("no filler of the kind {other}"),
        };
        let choice = self.choice(fillers.len());
        fillers[choice].to_owned()
    }
}

fn written(form: usize, choices: &[u8]) -> (String, Vec<(&'static str, String)>) {
    let mut writer = Writer { choices, at: 0, depth: 0, words: Vec::new(), slots: Vec::new() };
    writer.write(&grammar().forms[form].1);
    (writer.words.join(" ").replace(" 's", "'s"), writer.slots)
}

/// Whether a sentence gives an order two values where it can heed one. Steps and lists take several.
fn says_two_values(form: &Form, slots: &[(&'static str, String)]) -> bool {
    let takes_one =
        |name: &str| !["step", "add_", "remove_", "include", "exclude"].iter().any(|of| name.starts_with(of));
    form.group != Group::Questions
        && slots.iter().any(|(name, value)| {
            takes_one(name) && slots.iter().any(|(other, second)| other == name && second != value)
        })
}

fn read_as(form: &'static Form, sentence: &str) -> Reading {
    crate::reading::read(sentence, &known(), form.asked)
}

/// The readings of a message, each as its acts with their slots in any order.
fn senses(reading: &Reading) -> Vec<Vec<String>> {
    let others = reading.others.iter();
    let sense = |clauses: &Vec<crate::reading::Clause>| {
        let mut parts: Vec<String> = clauses
            .iter()
            .flat_map(|clause| {
                clause
                    .slots
                    .iter()
                    .map(|slot| format!("{} {}={}", clause.act(), slot.name, slot.value))
                    .chain([clause.act().to_owned()])
            })
            .collect();
        parts.sort();
        parts
    };
    std::iter::once(&reading.clauses).chain(others).map(sense).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn sentences_of_a_production_are_read_back(form in 0..FORMS.len(), choices in prop::collection::vec(any::<u8>(), 60)) {
        let (sentence, slots) = written(form, &choices);
        let form = &FORMS[form];
        let reading = read_as(form, &sentence);
        let mut wanted: Vec<String> = slots.iter().map(|(name, value)| format!("{} {name}={value}", form.act)).chain([form.act.to_owned()]).collect();
        wanted.sort();
        // A sentence that other productions make, too, may be asked about, or is the other one by rule.
        let senses = senses(&reading);
        if says_two_values(form, &slots) {
            prop_assert!(!senses.contains(&wanted), "{}: {}", sentence, reading.shown());
            return Ok(());
        }
        prop_assert!(reading.is_whole(), "{}: {}", sentence, reading.shown());
        prop_assert!(senses.contains(&wanted) || is_shared(form, &sentence), "{}: {}", sentence, reading.shown());
    }

    #[test]
    fn a_word_that_is_put_in_is_quoted_or_changes_the_sense(
        form in 0..FORMS.len(),
        choices in prop::collection::vec(any::<u8>(), 60),
        word in "[bcdfghjklmnpqrstvwxz]{6,9}",
        place in any::<prop::sample::Index>(),
    ) {
        let (sentence, _) = written(form, &choices);
        let form = &FORMS[form];
        let before = read_as(form, &sentence);
        let mut words: Vec<&str> = sentence.split(' ').collect();
        words.insert(place.index(words.len() + 1), &word);
        let with = words.join(" ");
        let after = read_as(form, &with);
        let heard = after.left.iter().any(|left| left.contains(&word))
            || after.clauses.iter().chain(after.others.iter().flatten()).any(|clause| clause.slots.iter().any(|slot| slot.value.contains(&word)));
        prop_assert!(heard, "{}: {} / {}", with, before.shown(), after.shown());
    }

    #[test]
    fn nothing_is_lost_between_a_message_and_its_reading(message in "(start|Foo|\"|'|delete|[a-z]{1,6}|[,.!?]|70/30|in|to|and|🦀| ){1,40}") {
        let reading = reading(&message);
        let known = known();
        let all = tokens(&message);
        let covered = reading.clauses.iter().map(|clause| clause.source.as_str()).chain(reading.left.iter().map(String::as_str)).collect::<Vec<_>>();
        let filler = Matcher::new(Scene::new(&message, &all, &known), &grammar().lexicon);
        for (at, token) in all.iter().enumerate().filter(|(_, token)| token.is_word()) {
            let text = &message[token.span.clone()];
            let near = at.saturating_sub(4)..=at;
            let is_filler = near.clone().any(|start| filler.ways(&grammar().filler, start).iter().any(|(end, _)| *end > at));
            prop_assert!(is_filler || covered.iter().any(|part| part.contains(text)), "{:?} is not in {}", text, reading.shown());
        }
    }
}

/// Whether another production reads the sentence in the same words.
fn is_shared(form: &Form, sentence: &str) -> bool {
    let all = tokens(sentence);
    let known = known();
    let matcher = Matcher::new(Scene::new(sentence, &all, &known), &grammar().lexicon);
    let reads = |(other, node): &(&'static Form, Node)| {
        !std::ptr::eq(*other, form)
            && (other.asked.is_empty() || other.asked == form.asked)
            && matcher.ways(node, 0).iter().any(|(end, _)| *end == all.len())
    };
    grammar().forms.iter().any(reads)
}

#[test]
fn the_work_grows_linearly_with_the_message() {
    let work = |text: &str, length: usize| {
        let message: String = text.chars().cycle().take(length).collect();
        crate::reading::read(&message, &Known::default(), "").work
    };
    for text in [
        "start Foo and ",
        "blorp ",
        "\"",
        "'a ",
        "{\"a\": ",
        "exclude a, ",
        "delete experiment x y z because it is so. ",
        "control 70, ",
        "user a ",
        "in ",
        "called ",
        "Foo, ",
        "Tom and ",
        "what is a condition? ",
        "“a ",
        "a ",
        "x",
        "please ",
        "and ",
        "visit, then ",
    ] {
        let (small, large) = (work(text, 1_000), work(text, 20_000));
        assert!(large <= 22 * small, "{text:?}: {small} steps at 1,000 characters, {large} at 20,000");
    }
}

#[test]
fn a_message_over_the_limit_is_refused_and_names_it() {
    let reading = reading(&"start ".repeat(20_000));
    let words = crate::speech::not_understood(&reading, "", &[]).unwrap();
    assert!(words.contains("120000 characters") && words.contains("at most 100000"), "{words}");
    assert!(reading.clauses.is_empty());
}

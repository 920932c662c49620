//! The experiment that the message is about.

use serde_json::{Value, json};

use super::super::slots::names::{KnownName, Match};
use super::super::slots::{self, names, ordinals, several};
use super::super::text::{Text, Word, folded};
use super::super::wire;
use super::{Draft, Flow, Gatherer, NextStep, Params, error};

/// The experiment that a message is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Subject {
    One(KnownName),
    /// The name matches several.
    Several(Vec<KnownName>),
    /// The name matches none.
    Unknown(String),
    /// The message has no name.
    Unsaid,
}

impl Gatherer<'_> {
    /// By name, or as "that experiment".
    pub(super) fn subject(&self) -> Flow<Subject> {
        self.subject_in(self.text)
    }

    /// The same for a part of the message.
    pub(super) fn subject_in(&self, text: &Text) -> Flow<Subject> {
        let known = wire::names(self.need("get_experiment_names", json!({}))?);
        if let Some(named) = self.in_the_list(text, &known) {
            return Ok(Subject::One(named));
        }
        if several::wants_all(text) {
            return Ok(Subject::Unsaid);
        }
        let named = several::named(text, &known);
        if named.len() > 1 {
            return Ok(Subject::Several(named));
        }
        let mention = slots::mention(text).filter(|mention| !is_pointer(mention));
        Ok(match names::resolve(text, mention.as_deref(), &known) {
            Match::One(named) => Subject::One(named),
            Match::Several(all) => Subject::Several(all),
            Match::None => match (self.referenced_experiment(&known), mention) {
                (Some(named), None) => Subject::One(named),
                (Some(named), Some(_)) if slots::refers_back(self.text) => Subject::One(named),
                (_, Some(name)) => Subject::Unknown(name),
                (None, None) => Subject::Unsaid,
            },
        })
    }

    /// "The second one" of a list in the last reply. A whole name that contains the word takes precedence.
    fn in_the_list(&self, text: &Text, known: &[KnownName]) -> Option<KnownName> {
        let place = ordinals::place(text)?;
        let said = format!(" {} ", folded(&self.facts.message));
        let named = known.iter().any(|named| said.contains(&format!(" {} ", folded(&named.name))));
        ordinals::in_list(place, &self.facts.before, known).filter(|_| !named)
    }

    /// The experiment that "that experiment" refers to, if the message uses such words.
    fn referenced_experiment(&self, known: &[KnownName]) -> Option<KnownName> {
        let that = self.facts.situation_field("that_experiment");
        let id = that["id"].as_str().filter(|_| slots::refers_back(self.text) || self.names_nothing())?;
        known.iter().find(|named| named.id == id).cloned()
    }

    /// "Pause!", "what's the status?": only a verb, so the last experiment is meant.
    fn names_nothing(&self) -> bool {
        slots::mention(self.text).is_none() && self.text.words.len() <= 6
    }

    /// The parameters of an action on an experiment, starting with its id.
    pub(super) fn of_experiment(&self, draft: Option<&Draft>) -> Flow<(Params, Vec<&'static str>)> {
        let mut params = draft.map(|draft| draft.params.clone()).unwrap_or_default();
        if params.get("experiment_id").is_some_and(Value::is_string) {
            return Ok((params, Vec::new()));
        }
        let subject = match draft {
            Some(_) => self.answered()?,
            None if slots::settings::renames(self.text) => {
                // "Rename Foo to Hints": the name after "to" is not an experiment.
                self.subject_in(&slots::settings::before_the_new_name(self.text))?
            }
            None => match self.without_members()? {
                Some(text) => self.subject_in(&text)?,
                None => self.subject()?,
            },
        };
        match subject {
            Subject::One(named) => {
                params.insert("experiment_id".into(), json!(named.id));
                Ok((params, Vec::new()))
            }
            Subject::Unknown(name) => Err(self.unknown(&name)?),
            Subject::Unsaid if several::wants_all(self.text) => Err(self.one_at_a_time()?),
            Subject::Several(_) | Subject::Unsaid => Ok((params, vec!["experiment_id"])),
        }
    }

    /// The whole message as the answer to "which experiment?".
    pub(super) fn answered(&self) -> Flow<Subject> {
        let known = wire::names(self.need("get_experiment_names", json!({}))?);
        let whole = self.facts.message.trim();
        if let Some(named) = self.in_the_list(self.text, &known) {
            return Ok(Subject::One(named));
        }
        let mention = slots::mention(self.text);
        Ok(match names::resolve(self.text, mention.as_deref().or(Some(whole)), &known) {
            Match::One(named) => Subject::One(named),
            Match::Several(all) => Subject::Several(all),
            // "Yes", "modify": neither a name nor an answer.
            Match::None if mention.is_none() && !self.text.words.iter().any(may_name) => Subject::Unsaid,
            Match::None => Subject::Unknown(mention.unwrap_or_else(|| whole.to_owned())),
        })
    }

    /// The error for an unknown name.
    pub(super) fn unknown(&self, name: &str) -> Flow<NextStep> {
        let known = wire::names(self.need("get_experiment_names", json!({}))?);
        let there = existing_experiments(&known);
        Ok(error("not_found", format!("there is no experiment called '{}'; {there}", short(name))))
    }

    /// The answer to a request about all experiments.
    fn one_at_a_time(&self) -> Flow<NextStep> {
        let known = wire::names(self.need("get_experiment_names", json!({}))?);
        let message = format!(
            "I do such things to one experiment at a time, so say which; {}",
            existing_experiments(&known)
        );
        Ok(error("validation", message))
    }

    pub(super) fn ambiguous(&self, all: &[KnownName]) -> NextStep {
        let names: Vec<String> =
            all.iter().map(|named| format!("{} ({})", wire::on_one_line(&named.name), named.id)).collect();
        error("not_found", format!("that could be any of these, say which: {}", names.join("; ")))
    }
}

fn may_name(word: &Word) -> bool {
    slots::is_free(word) && word.raw.parse::<f64>().is_err()
}

fn existing_experiments(known: &[KnownName]) -> String {
    let mut all: Vec<String> = known.iter().map(|named| wire::on_one_line(&named.name)).collect();
    all.sort_unstable();
    match all.len() {
        0 => "there are no experiments yet".to_owned(),
        1..=10 => format!("there are: {}", all.join(", ")),
        more => format!("there are {more}; ask me for the list"),
    }
}

fn is_pointer(mention: &str) -> bool {
    Text::read(mention)
        .words
        .iter()
        .all(|word| word.is(&["that", "this", "it", "one", "last", "same", "the"]))
}

fn short(name: &str) -> String {
    name.chars().take(80).collect()
}

//! Compares an order with its message before it is proposed, and asks back about unused words.

use serde_json::{Value, json};

use super::super::intent::Operation;
use super::super::remainder::{self, Interpretation};
use super::super::slots::{self, lists, membership, names, ordinals, several, students, tags};
use super::super::unsupported;
use super::super::wire;
use super::subject::Subject;
use super::{Draft, Flow, Gatherer, NextStep, Params};

impl Gatherer<'_> {
    /// The proposal, or the words that were not understood.
    pub(super) fn account(
        &self,
        action: Operation,
        params: Params,
        missing: Vec<&'static str>,
        draft: Option<&Draft>,
    ) -> Flow<NextStep> {
        let answers = draft.is_some() || !self.facts.situation_field("dropped").is_null();
        let taken = Interpretation { answers, ..self.taken(action, &params, &missing)? };
        let left = remainder::left_over(self.text, &taken);
        if left.is_empty() {
            return Ok(self.propose(action, params, missing, draft.is_none()));
        }
        let quoted = left.iter().map(|run| format!("'{run}'")).collect::<Vec<_>>().join(", ");
        if let Some(topic) = unsupported::topic(self.text, Some(action), &left) {
            return Ok(report_not_understood(&format!(
                "{} (You said {quoted}.) Nothing was changed.",
                topic.refusal()
            )));
        }
        let again = if unsupported::is_another_order(&left) {
            " I do one thing at a time: say the other one after it."
        } else {
            ""
        };
        if missing.is_empty() {
            let rest = if draft.is_some_and(|draft| !draft.asked.is_empty() || self.waits()) {
                "so I have taken nothing of that message."
            } else {
                "so I did nothing. Please say it in other words, or without that."
            };
            return Ok(report_not_understood(&format!("I did not understand {quoted}, {rest}{again}")));
        }
        let mut step = self.propose(action, params, missing.clone(), draft.is_none());
        if let NextStep::Call(calls) = &mut step {
            let words = format!("I did not understand {quoted} and left it out.{again}");
            let note = json!({ "missing_params": missing, "not_understood": words });
            calls.retain(|(tool, _)| *tool != "set_missing_params");
            calls.push(("set_missing_params", note));
        }
        Ok(step)
    }

    /// An order for something unsupported: nothing of the message is used.
    pub(super) fn orders_things_beyond(
        &self,
        action: Operation,
        draft: Option<&Draft>,
    ) -> Flow<Option<NextStep>> {
        let free = ["name", "description"];
        let asked = draft.is_some_and(|draft| draft.asked.iter().any(|name| free.contains(&name.as_str())));
        let previews = slots::status_word(self.text) == Some("preview")
            || slots::settings::is_set(self.text, &free)
            || slots::settings::renames(self.text);
        if asked || previews || tags::given(self.text).is_some_and(|tags| !tags.is_empty()) {
            Ok(None)
        } else {
            self.things_beyond(Some(action))
        }
    }

    /// The same for a question.
    pub(super) fn speaks_of_things_beyond(&self) -> Flow<Option<NextStep>> {
        self.things_beyond(None)
    }

    fn things_beyond(&self, action: Option<Operation>) -> Flow<Option<NextStep>> {
        if unsupported::mentioned_topic(self.text, |_| false).is_none() {
            return Ok(None);
        }
        let known = wire::names(self.need("get_experiment_names", json!({}))?);
        let new =
            action.filter(|action| *action == Operation::Create).and_then(|_| slots::new_name(self.text));
        let is_name = |word: &str| {
            known.iter().any(|named| names::has_word(&named.name, word))
                || new.as_ref().is_some_and(|name| names::has_word(name, word))
        };
        let found = unsupported::mentioned_topic(self.text, is_name);
        Ok(found.map(|(topic, word)| {
            report_not_understood(&format!("{} (You said '{word}'.) Nothing was changed.", topic.refusal()))
        }))
    }

    /// A wish for something unsupported.
    pub(super) fn beyond(&self) -> NextStep {
        match unsupported::wish(self.text) {
            Some(topic) => report_not_understood(&format!("{} Nothing was changed.", topic.refusal())),
            None => super::done(),
        }
    }

    fn waits(&self) -> bool {
        !self.facts.situation_field("pending").is_null()
    }

    fn taken<'p>(
        &self,
        action: Operation,
        params: &'p Params,
        missing: &'p [&'static str],
    ) -> Flow<Interpretation<'p>> {
        let known = wire::names(self.need("get_experiment_names", json!({}))?);
        let contexts = self.contexts()?;
        let kinds: Vec<String> = contexts.iter().flat_map(|context| context.groups.clone()).collect();
        let mut taken = Interpretation {
            action,
            params,
            missing,
            names: Vec::new(),
            words: Vec::new(),
            answers: false,
            places: Vec::new(),
        };
        let id = params.get("experiment_id").and_then(Value::as_str);
        let subject = known.iter().find(|named| Some(named.id.as_str()) == id);
        if let Some(subject) = subject {
            let option = format!("{} (id {}", subject.name, subject.id.get(..8).unwrap_or_default());
            if self.facts.message.trim().starts_with(&option) {
                taken.places.extend(0..self.text.words.len());
            }
            taken.names.push(subject.name.clone());
            taken.words.push(subject.id.clone());
            taken.words.extend(self.short_id(&subject.id));
            if ordinals::place(self.text)
                .and_then(|place| ordinals::in_list(place, &self.facts.before, &known))
                .as_ref()
                == Some(subject)
            {
                taken.places.extend(ordinals::words(self.text));
            }
        }
        // "Stop Foo in assign-prog": the context is mentioned, and is correct.
        if let (Some(named), Some(id)) = (self.named_context(&contexts), id)
            && action != Operation::Create
            && wire::context_of(self.need("get_experiment_details", json!({ "experiment_id": id }))?).as_ref()
                == Some(&named.name)
        {
            taken.names.push(named.name.clone());
        }
        if matches!(action, Operation::Assign | Operation::Visit | Operation::Mark)
            && let Subject::One(named) = self.subject()?
        {
            taken.names.push(named.name);
        }
        if missing.contains(&"experiment_id") {
            // Several experiments match, and the message chooses one.
            taken.names.extend(several::named(self.text, &known).into_iter().map(|named| named.name));
        }
        for context in &contexts {
            let here = |name: &String| mentions(params, name);
            taken.names.extend(std::iter::once(&context.name).filter(|name| here(name)).cloned());
            let parts = context
                .sites
                .iter()
                .chain(&context.targets)
                .chain(&context.conditions)
                .chain(&context.groups);
            taken.names.extend(parts.filter(|name| here(name)).cloned());
        }
        if matches!(action, Operation::Create | Operation::Update) {
            self.members(&mut taken, &kinds, &|word| {
                known.iter().any(|named| names::has_word(&named.name, word))
            });
            if params.contains_key("tags") {
                taken.words.extend(tags::given(self.text).unwrap_or_default());
            }
            if action == Operation::Update && params.contains_key("decision_points") {
                let (site, target) = contexts
                    .iter()
                    .map(|context| slots::points::point(self.text, &context.sites, &context.targets))
                    .find(|(site, target)| site.is_some() || target.is_some())
                    .unwrap_or_default();
                taken.names.extend(site.into_iter().chain(target));
            }
        }
        if matches!(
            action,
            Operation::Init
                | Operation::Visit
                | Operation::Mark
                | Operation::Assign
                | Operation::Balance
                | Operation::Journey
        ) {
            for (kind, id) in students::groups(self.text, &kinds) {
                if mentions(params, &id) {
                    taken.words.extend([kind.trim_end_matches("Id").to_owned(), kind]);
                }
            }
        }
        Ok(taken)
    }

    /// The members that are added to a list or removed, with the words that say so.
    fn members(&self, taken: &mut Interpretation<'_>, kinds: &[String], known: &dyn Fn(&str) -> bool) {
        for change in lists::changes(self.text, kinds, known) {
            taken.words.extend(change.users);
            taken.words.extend(change.groups.into_iter().map(|(_, id)| id));
        }
        if let Some(found) = membership::find(self.text)
            && taken.params.keys().any(|name| name.starts_with("inclusion") || name.starts_with("exclusion"))
        {
            taken.places.extend(found.words);
        }
    }

    fn short_id(&self, id: &str) -> Option<String> {
        let begins = |word: &&super::super::text::Word| {
            word.low.len() >= 6 && id.to_lowercase().starts_with(&word.low)
        };
        self.text.words.iter().find(begins).map(|word| word.raw.clone())
    }
}

fn report_not_understood(words: &str) -> NextStep {
    NextStep::Call(vec![("set_missing_params", json!({ "missing_params": [], "not_understood": words }))])
}

/// Whether a value is this name.
fn mentions(params: &Params, name: &str) -> bool {
    fn has(value: &Value, name: &str) -> bool {
        match value {
            Value::String(text) => text == name,
            Value::Array(all) => all.iter().any(|one| has(one, name)),
            Value::Object(map) => map.iter().any(|(key, one)| key == name || has(one, name)),
            _ => false,
        }
    }
    params.values().any(|value| has(value, name))
}

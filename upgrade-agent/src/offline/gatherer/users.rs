//! Actions with one student.

use serde_json::{Value, json};

use super::super::slots::{self, names, points};
use super::super::wire::{self, ContextInfo};
use super::create::is_absent;
use super::subject::Subject;
use super::{Draft, Flow, Gatherer, Params};
use crate::actions::half_place::{self, HalfPlace};

impl Gatherer<'_> {
    pub(super) fn init(&self, draft: Option<&Draft>) -> Flow<(Params, Vec<&'static str>)> {
        let mut params = self.with_user(draft);
        if is_absent(&params, "user_id") {
            params.extend(slots::initialized(self.text).map(|user| ("user_id".to_owned(), json!(user))));
        }
        let contexts = self.contexts()?;
        if let Some((kind, id)) = self.membership(&contexts) {
            let of = json!({ kind.clone(): [id.clone()] });
            let at = json!({ kind: id });
            params.insert("group".into(), of);
            params.insert("working_group".into(), at);
        }
        let missing = if is_absent(&params, "user_id") { vec!["user_id"] } else { Vec::new() };
        Ok((params, missing))
    }

    pub(super) fn assign(&self, draft: Option<&Draft>) -> Flow<(Params, Vec<&'static str>)> {
        let mut params = self.with_user(draft);
        let contexts = self.contexts()?;
        let named = self.named_context(&contexts).map(|context| context.name.clone());
        let only = contexts.first().filter(|_| contexts.len() == 1).map(|context| context.name.clone());
        match named.or(only) {
            Some(context) => {
                params.insert("context".into(), json!(context));
            }
            None if is_absent(&params, "context") => {
                match (self.subject()?, points::context_guess(self.text)) {
                    (Subject::One(experiment), _) => {
                        let details =
                            self.need("get_experiment_details", json!({ "experiment_id": experiment.id }))?;
                        params.extend(
                            wire::context_of(details).map(|context| ("context".to_owned(), json!(context))),
                        );
                    }
                    (_, Some(guess)) if draft.is_none() => {
                        return Err(self.unknown_context(&guess, &contexts));
                    }
                    _ => {}
                }
            }
            None => {}
        }
        let missing = ["user_id", "context"].into_iter().filter(|name| is_absent(&params, name)).collect();
        Ok((params, missing))
    }

    pub(super) fn mark(&self, draft: Option<&Draft>) -> Flow<(Params, Vec<&'static str>)> {
        let mut params = self.with_user(draft);
        let contexts = self.contexts()?;
        if let Some((site, target)) = contexts.iter().find_map(|context| self.marked_place(context, &params))
        {
            params.insert("decision_point".into(), json!({ "site": site, "target": target }));
        }
        if let Subject::One(experiment) = self.subject()? {
            let codes = contexts.iter().flat_map(|context| context.conditions.iter().map(String::as_str));
            let code = names::word_of(self.text, codes);
            params.insert(
                "assigned_condition".into(),
                json!({ "condition_code": code, "experiment_id": experiment.id }),
            );
        }
        let lacks = |name: &&str| is_absent(&params, name) || half_place::of(&params, name).is_some();
        let missing = ["user_id", "decision_point"].into_iter().filter(lacks).collect();
        Ok((params, missing))
    }

    /// The place in the message in this context, with the half that was given before.
    fn marked_place(
        &self,
        context: &ContextInfo,
        params: &Params,
    ) -> Option<(Option<String>, Option<String>)> {
        let named = points::point(self.text, &context.sites, &context.targets);
        if named == (None, None) {
            return None;
        }
        let only = |all: &[String]| all.first().filter(|_| all.len() == 1).cloned();
        let known = |half: HalfPlace<'_>| match half {
            HalfPlace::Site(site) => (Some(site.to_owned()), None),
            HalfPlace::Target(target) => (None, Some(target.to_owned())),
        };
        let before = half_place::of(params, "decision_point").map(known).unwrap_or_default();
        let site = named.0.or(before.0).or_else(|| only(&context.sites));
        let target = named.1.or(before.1).or_else(|| only(&context.targets));
        Some((site, target))
    }

    fn with_user(&self, draft: Option<&Draft>) -> Params {
        let mut params = draft.map(|draft| draft.params.clone()).unwrap_or_default();
        let asked = draft.and_then(Draft::asked_for) == Some("user_id");
        let names = self.text.words.iter().any(slots::is_free);
        let answer = || (asked && names).then(|| self.facts.message.trim().to_owned());
        if is_absent(&params, "user_id") {
            let user = slots::user(self.text)
                .or_else(|| slots::assigned_user(self.text))
                .or_else(|| self.text.quotes.first().cloned())
                .or_else(answer);
            params.extend(user.map(|user| ("user_id".to_owned(), Value::String(user))));
        }
        params
    }

    /// "In class c1": the group, and its kind in the application's spelling (`classId`).
    fn membership(&self, contexts: &[ContextInfo]) -> Option<(String, String)> {
        let kinds: Vec<&String> = contexts.iter().flat_map(|context| &context.groups).collect();
        self.text.words.iter().enumerate().find_map(|(at, word)| {
            let low = word.low.trim_end_matches("id");
            let kind = kinds.iter().find(|kind| low.len() > 3 && kind.to_lowercase().starts_with(low))?;
            let id = self.text.words.get(at + 1).filter(|next| !next.new_clause)?;
            Some(((*kind).clone(), id.raw.clone()))
        })
    }
}

//! The parameters of a change.

use serde_json::{Value, json};

use super::super::intent::Operation;
use super::super::slots::{self, conditions, points, tags};
use super::super::text::{Text, Word};
use super::super::wire;
use super::create::listed;
use super::{Draft, Flow, Gatherer, Params};
use crate::actions::half_place;

impl Gatherer<'_> {
    pub(super) fn update(&self, draft: Option<&Draft>) -> Flow<(Params, Vec<&'static str>)> {
        let (mut params, mut missing) =
            self.of_experiment(draft.filter(|draft| draft.action == Operation::Update))?;
        let id = params.get("experiment_id").and_then(Value::as_str).map(str::to_owned);
        let Some(id) = id else { return Ok((params, missing)) };
        let experiment = self.need("get_experiment_details", json!({ "experiment_id": id }))?.clone();
        let contexts = self.contexts()?;
        let own = wire::context_of(&experiment);
        self.take_other_context(&mut params, &contexts, own.as_deref());
        let context =
            contexts.into_iter().find(|known| Some(&known.name) == own.as_ref()).unwrap_or_default();
        let asked = draft.and_then(Draft::asked_for);
        if asked == Some("description") && !self.text.has(&["description"]) {
            params.insert("description".into(), json!(self.answer_in_full()));
            return Ok((params, missing));
        }
        let changes_name = self.take_new_name(&mut params, asked);
        if !changes_name {
            self.take_weights(&mut params, &experiment, &context.conditions);
            self.take_point_change(&mut params, &experiment, &context);
            self.take_group(&mut params, &context);
        }
        self.take_lists(&mut params, Some(&experiment), &context)?;
        self.take_filter(&mut params);
        self.take_description(&mut params);
        self.take_tags(&mut params, &experiment);
        self.take_rules(&mut params, &context.conditions);
        if self.insists() {
            params.insert("force".into(), json!(true));
        }
        if params.keys().all(|name| name == "experiment_id" || name == "force") {
            missing.extend(self.wanted());
        }
        Ok((params, missing))
    }

    /// The part that the person wants to change, without its new value.
    fn wanted(&self) -> Option<&'static str> {
        let topics: [(&[&str], &'static str); 7] = [
            (&["exclude", "exclusion", "blacklist", "ban", "block"], "exclusion_users"),
            (&["include", "inclusion", "whitelist", "user", "student", "class"], "inclusion_users"),
            (
                &[
                    "weight",
                    "weights",
                    "split",
                    "ratio",
                    "percentage",
                    "condition",
                    "conditions",
                    "distribution",
                ],
                "conditions",
            ),
            (&["name", "title", "rename"], "name"),
            (&["description"], "description"),
            (&["point", "points", "site", "target"], "decision_points"),
            (&["filter", "mode"], "filter_mode"),
        ];
        let found = topics.iter().find(|(words, _)| self.text.has(words));
        Some(found.map_or("conditions", |(_, name)| *name))
    }

    /// "Rename A to B", "call it B", "change its name to B".
    fn take_new_name(&self, params: &mut Params, asked: Option<&str>) -> bool {
        let renames = slots::settings::renames(self.text)
            || self.text.has_phrase("call it|that|this")
            || (self.text.has(&["name", "title"]) && self.text.has(&["to", "into"]))
            || slots::settings::is_set(self.text, &["name", "title"]);
        if !renames && asked == Some("name") {
            params.insert("name".into(), json!(self.answer_in_full()));
            return true;
        }
        if !renames {
            return false;
        }
        let quoted = (self.text.quotes.len() > 1).then(|| self.text.quotes.last().cloned()).flatten();
        let last =
            self.text.words.last().filter(|word| word.quoted).and_then(|_| self.text.quotes.last().cloned());
        let set = || slots::settings::name(self.text);
        let name = quoted.or(last).or_else(set);
        params.extend(name.map(|name| ("name".to_owned(), json!(name))));
        true
    }

    fn take_weights(&self, params: &mut Params, experiment: &Value, known: &[String]) {
        let current = wire::conditions(experiment);
        let codes: Vec<String> = current.iter().map(|(code, _)| code.clone()).collect();
        let mut all = codes.clone();
        all.extend(known.iter().filter(|code| !codes.contains(code)).cloned());
        let text = self.without_name(experiment);
        if conditions::unknown_condition(&text, &all).is_some() {
            return;
        }
        if let Some(shares) = conditions::shares(&text, &all, &codes) {
            params.insert("conditions".into(), listed(&shares));
        }
    }

    /// The message without the experiment's name, whose numbers are not weights.
    fn without_name(&self, experiment: &Value) -> Text {
        let name = wire::text(experiment, &["name"]).unwrap_or_default();
        let mut text = self.text.clone();
        let words: Vec<String> = Text::read(name).words.into_iter().map(|word| word.low).collect();
        let fits = |at: usize| {
            text.words
                .get(at..at + words.len())
                .is_some_and(|run| run.iter().map(|word| &word.low).eq(words.iter()))
        };
        let place = (0..text.words.len()).find(|at| !words.is_empty() && fits(*at));
        if let Some(at) = place {
            text.words.drain(at..at + words.len());
        }
        text
    }

    fn take_point_change(&self, params: &mut Params, experiment: &Value, context: &wire::ContextInfo) {
        let (site, target) = points::point(self.text, &context.sites, &context.targets);
        if site.is_none() && target.is_none() {
            return;
        }
        if half_place::of(params, "decision_points").is_none() {
            params.remove("decision_points");
        }
        self.take_points(params, context, None);
        let adds = self.text.has(&["add", "also", "another", "second", "additional", "extra", "too"]);
        let takes_off = self.text.has(&["remove", "delete", "drop", "without"]);
        let Some(Value::Array(named)) = params.get_mut("decision_points").filter(|_| adds || takes_off)
        else {
            return;
        };
        let place = |point: &Value| (point["site"].clone(), point["target"].clone());
        let mut all: Vec<Value> =
            wire::field(experiment, &["decision_points"]).as_array().cloned().unwrap_or_default();
        all.iter_mut().for_each(|point| *point = as_param(point));
        all.retain(|point| named.iter().all(|one| place(one) != place(point)));
        if !takes_off {
            all.append(named);
        }
        *named = all;
    }

    /// "Change the context of Foo to mathstream".
    fn take_other_context(&self, params: &mut Params, contexts: &[wire::ContextInfo], own: Option<&str>) {
        let speaks = self.text.has(&["context", "app", "application"]) || self.text.has(&["move", "switch"]);
        let other = self.named_context(contexts).filter(|context| Some(context.name.as_str()) != own);
        let to = self.text.has(&["to", "into"]);
        params.extend(other.filter(|_| speaks && to).map(|other| ("context".to_owned(), json!(other.name))));
    }

    /// A free-text answer to the last question.
    fn answer_in_full(&self) -> &str {
        let whole = self.facts.message.trim().trim_end_matches(['.', '!']);
        self.text.quotes.first().map_or(whole, String::as_str)
    }

    /// With "set" the old tags are replaced.
    fn take_tags(&self, params: &mut Params, experiment: &Value) {
        let Some(new) = tags::given(self.text).filter(|new| !new.is_empty()) else { return };
        let replaces = self.text.has(&["set", "replace", "change"]);
        let mut tags = if replaces { Vec::new() } else { wire::texts(wire::field(experiment, &["tags"])) };
        let takes_off = self.text.has(&["remove", "delete", "drop"]);
        tags.retain(|known| !takes_off || !new.contains(known));
        for tag in new.into_iter().filter(|_| !takes_off) {
            if !tags.contains(&tag) {
                tags.push(tag);
            }
        }
        params.insert("tags".into(), json!(tags));
    }

    /// Rules with names of their own.
    pub(super) fn take_rules(&self, params: &mut Params, known: &[String]) {
        let post =
            [("post experiment rule", 3), ("post-experiment rule", 2), ("post-experiment|post rule", 2)];
        let place = post.iter().find_map(|(phrase, length)| Some(self.text.find_phrase(phrase)? + length));
        if let Some(from) = place {
            let rest = Text { words: self.text.words[from..].to_vec(), ..Text::default() };
            let rule = rest.words.iter().take(4).find(|word| word.is(&["continue", "keep", "assign"]));
            let code = slots::names::word_of(&rest, known.iter().map(String::as_str));
            let rule = rule.map(|word| {
                if word.is(&["assign"]) {
                    json!({ "rule": "assign", "condition_code": code })
                } else {
                    json!({ "rule": "continue" })
                }
            });
            params.extend(rule.map(|rule| ("post_experiment_rule".to_owned(), rule)));
        }
        if let Some(at) = self.text.words.iter().position(|word| !word.quoted && word.is(&["consistency"])) {
            let rules = ["individual", "group", "experiment"];
            let named = |word: &&Word| word.is(&rules);
            let rest = &self.text.words[at + 1..];
            let clause = rest.iter().position(|word| word.new_clause).unwrap_or(rest.len());
            // "The consistency rule of experiment Foo to group": the new value comes last.
            let to = rest[..clause]
                .windows(2)
                .find(|pair| pair[0].is(&["to", "be", "as", "is"]) && named(&&pair[1]));
            let near = || rest.iter().take(2).find(named);
            let last = || rest[..clause].iter().rfind(|word| named(word) && word.low != "experiment");
            let before = || at.checked_sub(1).and_then(|at| self.text.words.get(at)).filter(named);
            let rule = to
                .map(|pair| &pair[1])
                .or_else(near)
                .or_else(last)
                .or_else(before)
                .map(|word| word.low.clone());
            params.extend(rule.map(|rule| ("consistency_rule".to_owned(), json!(rule))));
        }
    }
}

/// A decision point of an experiment as a parameter.
fn as_param(point: &Value) -> Value {
    let mut param = json!({ "site": point["site"], "target": point["target"] });
    if point["exclude_if_reached"] == true {
        param["exclude_if_reached"] = json!(true);
    }
    param
}

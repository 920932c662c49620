//! The parameters of a new experiment.

use serde_json::{Value, json};

use super::super::slots::{self, conditions, names, points, tags};
use super::super::text::{Text, folded};
use super::super::wire::ContextInfo;
use super::{Draft, Flow, Gatherer, Params, error};
use crate::actions::half_place;

impl Gatherer<'_> {
    pub(super) fn create(&self, draft: Option<&Draft>) -> Flow<(Params, Vec<&'static str>)> {
        if let Some(design) = other_design(self.text) {
            let message = format!(
                "I create simple experiments that give a student one condition; {design} one is made on UpGrade's own screen"
            );
            return Err(error("validation", message));
        }
        let mut params = draft.map(|draft| draft.params.clone()).unwrap_or_default();
        let asked = draft.and_then(Draft::asked_for);
        let contexts = self.contexts()?;
        self.take_name(&mut params, asked, &contexts);
        self.take_context(&mut params, &contexts, draft.is_some())?;
        let name = params.get("context").and_then(Value::as_str).map(str::to_owned);
        if let Some(context) = contexts.iter().find(|context| Some(&context.name) == name.as_ref()) {
            self.take_points(&mut params, context, asked);
            self.take_conditions(&mut params, context, asked);
            self.take_group(&mut params, context);
            self.take_lists(&mut params, None, context)?;
            self.take_rules(&mut params, &context.conditions);
        }
        self.take_filter(&mut params);
        self.take_description(&mut params);
        self.take_first_tags(&mut params);
        let by_group = params.get("assignment_unit").and_then(Value::as_str) == Some("group");
        let needed = ["name", "context", "decision_points", "conditions"].into_iter();
        let needed = needed.chain(by_group.then_some("group_type"));
        let lacks = |name: &&str| is_absent(&params, name) || half_place::of(&params, name).is_some();
        let missing = needed.filter(lacks).collect();
        Ok((params, missing))
    }

    fn take_first_tags(&self, params: &mut Params) {
        let given = tags::given(self.text).filter(|given| !given.is_empty());
        params.extend(given.map(|given| ("tags".to_owned(), json!(given))));
    }

    fn take_name(&self, params: &mut Params, asked: Option<&str>, contexts: &[ContextInfo]) {
        let renames = self.text.has(&["name", "call", "called", "rename", "named", "title"]);
        if !is_absent(params, "name") && !renames {
            return;
        }
        let answer = || {
            let whole = self.facts.message.trim().trim_end_matches(['.', '!']);
            (asked == Some("name")).then(|| after_lead(whole).to_owned())
        };
        let renamed = || slots::settings::name(self.text).filter(|_| renames);
        let name =
            if asked == Some("name") { self.text.quotes.first().cloned().or_else(answer) } else { None };
        let name = name.or_else(|| {
            let fresh = is_absent(params, "name");
            if fresh && asked.is_none() {
                slots::new_name(self.text)
            } else {
                self.text.quotes.first().cloned().or_else(renamed)
            }
        });
        let is_quoted = |name: &String| self.text.quotes.contains(name);
        let free = name.filter(|name| !name.is_empty() && (is_quoted(name) || !is_place(name, contexts)));
        if let Some(name) = free {
            params.insert("name".into(), json!(name));
        }
    }

    /// A known context. An unknown one is kept, so that the check can list the known ones.
    fn take_context(&self, params: &mut Params, contexts: &[ContextInfo], drafted: bool) -> Flow<()> {
        let named = self.named_context(contexts).map(|context| context.name.clone());
        let quoted = |context: &String| self.text.quotes.iter().any(|quote| quote == context) && !drafted;
        match named.filter(|context| !quoted(context)) {
            Some(context) => {
                params.insert("context".into(), json!(context));
            }
            None if is_absent(params, "context") && !drafted => {
                if let Some(guess) = points::context_guess(self.text) {
                    return Err(self.unknown_context(&guess, contexts));
                }
            }
            None => {}
        }
        if is_absent(params, "context") && points::leaves_it_open(self.text) && drafted {
            params.extend(contexts.first().map(|context| ("context".to_owned(), json!(context.name))));
        }
        Ok(())
    }

    /// The place in the message. Its halves may come one after the other, and one may be changed alone.
    pub(super) fn take_points(&self, params: &mut Params, context: &ContextInfo, asked: Option<&str>) {
        let named = points::point(self.text, &context.sites, &context.targets);
        let before = the_point(params);
        let said = |half: &str| before.get(half).and_then(Value::as_str).map(str::to_owned);
        let open = asked == Some("decision_points") && points::leaves_it_open(self.text);
        let settled =
            !is_absent(params, "decision_points") && half_place::of(params, "decision_points").is_none();
        if named == (None, None) && settled && !open {
            return;
        }
        let choice = |all: &[String]| all.first().filter(|_| open || all.len() == 1).cloned();
        let site = named.0.or_else(|| said("site")).or_else(|| choice(&context.sites));
        let target = named.1.or_else(|| said("target")).or_else(|| choice(&context.targets));
        if site.is_none() && target.is_none() {
            return;
        }
        let mut point = before;
        point.extend([("site".to_owned(), json!(site)), ("target".to_owned(), json!(target))]);
        if self.text.has_phrase("exclude if reached") {
            point.insert("exclude_if_reached".into(), json!(true));
        }
        params.insert("decision_points".into(), json!([point]));
    }

    fn take_conditions(&self, params: &mut Params, context: &ContextInfo, asked: Option<&str>) {
        if asked == Some("conditions") && self.names_other_conditions(context)
            || conditions::unknown_condition(self.text, &context.conditions).is_some()
        {
            return;
        }
        let open = asked == Some("conditions") && points::leaves_it_open(self.text);
        let given = given_codes(params);
        let shares = conditions::shares(self.text, &context.conditions, &given);
        let one = || names::word_of(self.text, context.conditions.iter().map(String::as_str));
        let only =
            (asked == Some("conditions")).then(one).flatten().map(|code| vec![(code.to_owned(), 100.0)]);
        let even = || conditions::evenly(&context.conditions);
        let shares = shares.or_else(|| (open && !context.conditions.is_empty()).then(even)).or(only);
        if let Some(shares) = shares {
            params.insert("conditions".into(), listed(&shares));
        }
    }

    /// "Red 50, blue 50" in a context without these codes: the numbers do not belong to its own conditions.
    fn names_other_conditions(&self, context: &ContextInfo) -> bool {
        let known =
            context.conditions.iter().any(|code| names::word_of(self.text, [code.as_str()]).is_some());
        let named = self.text.words.iter().filter(|word| {
            word.raw.chars().all(char::is_alphabetic)
                && (word.raw.chars().count() == 1 || slots::is_free(word))
        });
        !known && named.count() > 1
    }

    pub(super) fn take_group(&self, params: &mut Params, context: &ContextInfo) {
        let whole = names::word_of(self.text, context.groups.iter().map(String::as_str)).map(str::to_owned);
        let per =
            self.text.words.iter().enumerate().find(|(_, word)| word.is(&["per", "by", "each", "whole"]));
        let short = per.and_then(|(at, _)| self.text.words.get(at + 1)).and_then(|word| {
            // People say "per class" where the application has `classId`.
            context
                .groups
                .iter()
                .find(|group| word.stem.len() > 2 && group.to_lowercase().starts_with(&word.stem))
        });
        if let Some(group) = whole.or_else(|| short.cloned()) {
            params.insert("assignment_unit".into(), json!("group"));
            params.insert("group_type".into(), json!(group));
        } else if is_by_group(self.text) && is_absent(params, "group_type") {
            params.insert("assignment_unit".into(), json!("group"));
        } else if self.text.has_phrase("individual|individually") || self.text.has_phrase("per|each student")
        {
            params.remove("group_type");
            params.insert("assignment_unit".into(), json!("individual"));
        }
    }

    pub(super) fn take_filter(&self, params: &mut Params) {
        let mode = slots::filter_mode(self.text);
        params.extend(mode.map(|mode| ("filter_mode".to_owned(), json!(mode))));
    }

    pub(super) fn take_description(&self, params: &mut Params) {
        let described = self.text.has(&["description", "described", "describe"]);
        let quoted = self
            .text
            .quotes
            .last()
            .filter(|_| described)
            .filter(|quote| params.get("name").and_then(Value::as_str) != Some(quote.as_str()));
        let said = || slots::settings::description(self.text, &self.facts.message);
        if let Some(description) = quoted.cloned().or_else(said) {
            params.insert("description".into(), json!(description));
        }
    }
}

/// "SelectSection", "SelectSection / absolute_value_plot_equality": a decision point, not the experiment's
/// name.
fn is_place(name: &str, contexts: &[ContextInfo]) -> bool {
    let name = folded(name);
    contexts.iter().any(|context| {
        let alone = context.sites.iter().chain(&context.targets).any(|place| folded(place) == name);
        let pair = |site: &String| {
            let rest = name.strip_prefix(&folded(site)).map(str::trim_start);
            rest.is_some_and(|rest| context.targets.iter().any(|target| folded(target) == rest))
        };
        alone || context.sites.iter().any(pair)
    })
}

/// A kind of experiment that the action cannot create.
fn other_design(text: &Text) -> Option<&'static str> {
    let has = |words: &[&str], phrase: &str| text.has(words) || text.has_phrase(phrase);
    if has(&["within-subject", "within-subjects"], "within subject|subjects") {
        Some("a within-subjects")
    } else if text.has(&["factorial"]) {
        Some("a factorial")
    } else if has(&["stratified"], "stratification sampling") {
        Some("a stratified")
    } else if text.has(&["bandit", "ts_configurable", "thompson", "adaptive"]) {
        Some("an adaptive")
    } else {
        None
    }
}

/// "A group experiment", "assigned by group": groups without a kind.
fn is_by_group(text: &Text) -> bool {
    text.has_phrase("group|grouped experiment|test|study|assignment|level|unit")
        || text.has_phrase("by|per group|groups")
}

/// The only decision point so far, whole or half.
fn the_point(params: &Params) -> Params {
    match params.get("decision_points").and_then(Value::as_array).map(Vec::as_slice) {
        Some([Value::Object(one)]) => one.clone(),
        _ => Params::new(),
    }
}

/// Whether a parameter is missing.
pub(super) fn is_absent(params: &Params, name: &str) -> bool {
    match params.get(name) {
        None | Some(Value::Null) => true,
        Some(Value::String(text)) => text.trim().is_empty(),
        Some(Value::Array(list)) => list.is_empty(),
        Some(_) => false,
    }
}

pub(super) fn listed(shares: &[conditions::Share]) -> Value {
    shares.iter().map(|(code, weight)| json!({ "code": code, "weight": weight })).collect()
}

fn given_codes(params: &Params) -> Vec<String> {
    let given = params.get("conditions").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    given.iter().filter_map(|one| one["code"].as_str().map(str::to_owned)).collect()
}

/// "Call it Foo" answers with `Foo`.
fn after_lead(answer: &str) -> &str {
    let leads = ["call it", "name it", "it is", "it's", "let's call it", "the name is", "named", "called"];
    let low = answer.to_lowercase();
    let lead = leads.into_iter().filter(|lead| low.starts_with(lead)).max_by_key(|lead| lead.len());
    lead.and_then(|lead| answer.get(lead.len()..)).map_or(answer, str::trim)
}

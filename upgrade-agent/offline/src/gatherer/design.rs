//! The parameters of a design: of a new experiment, a copy, or a change.

use serde_json::{Value, json};

use super::people::{count, listed, user};
use super::targets::folded;
use super::{Draft, Flow, Gatherer, Params, Proposal, error, force, status};
use crate::reading::Clause;
use crate::token::tokens;
use crate::understanding::earlier_clause;
use crate::values::{self, Share, Weights};
use crate::wire;

impl Gatherer<'_> {
    /// A new experiment, with these parameters before.
    pub(super) fn create(&self, clause: &Clause, mut params: Params) -> Flow<Proposal> {
        let changes = self.applied(clause, &params)?;
        params.extend(changes);
        let missing = missing_group(&params);
        Ok((params, missing))
    }

    /// All settings of an experiment, then the changes.
    pub(super) fn copy(&self, clause: &Clause) -> Flow<Proposal> {
        let Some(known) = self.target(clause)? else { return Ok((Params::new(), vec!["experiment_id"])) };
        let source = self.details(&known.id)?;
        let left: Vec<&str> = ["payloads", "inclusion_segments", "exclusion_segments"]
            .into_iter()
            .filter(|part| wire::field(source, &[part]).as_array().is_some_and(|all| !all.is_empty()))
            .collect();
        if !left.is_empty() {
            let why = format!(
                "'{}' has {}, which I cannot copy; UpGrade's own screen copies a whole experiment",
                wire::on_one_line(&known.name),
                left.join(" and ").replace('_', " ")
            );
            return Err(error("unknown", why));
        }
        let mut params = of_details(source);
        params.remove("name");
        self.create(clause, params)
    }

    /// A pasted experiment, in UpGrade's field names or the agent's.
    pub(super) fn of_json(&self, clause: &Clause) -> Flow<Proposal> {
        let pasted: Value =
            clause.slot("json").and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
        let (params, unknown) = of_pasted(&pasted);
        if !unknown.is_empty() {
            let why =
                format!("I cannot make an experiment with {}; nothing of it was taken", unknown.join(", "));
            return Err(error("validation", why));
        }
        let missing = missing_group(&params);
        Ok((params, missing))
    }

    pub(super) fn update(&self, clause: &Clause) -> Flow<Proposal> {
        let that = self.facts.situation_field("that_experiment")["id"].as_str();
        let unsaid = clause.slots.iter().all(|slot| slot.name != "experiment");
        let id = match self.target(clause)? {
            Some(known) => known.id,
            None if unsaid && that.is_some() => that.unwrap_or_default().to_owned(),
            None => return Ok((Params::new(), vec!["experiment_id"])),
        };
        let existing = of_details(self.details(&id)?);
        let changes = self.applied(clause, &existing)?;
        let missing = match clause.slot("ask") {
            Some("name") => vec!["name"],
            Some("description") => vec!["description"],
            _ if changes.keys().all(|name| name == "force") => vec!["conditions"],
            _ => Vec::new(),
        };
        let missing = missing.into_iter().filter(|name| !changes.contains_key(*name)).collect();
        let mut params = Params::from_iter([("experiment_id".to_owned(), json!(id))]);
        params.extend(changes);
        Ok((params, missing))
    }

    /// The parameters of a draft that a clause gives or changes, and those that must still be asked for.
    pub(super) fn changed(&self, draft: &Draft, clause: &Clause) -> Flow<Proposal> {
        let mut params = Params::new();
        let named = clause.slot("experiment").is_some() && draft.action != "create_experiment";
        if named && (clause.act() == "answer" || clause.act() == "reference") {
            let Some(known) = self.target(clause)? else { return Ok((params, Vec::new())) };
            let earlier =
                earlier_clause(self.facts, "update").filter(|_| draft.action == "update_experiment");
            if let Some(earlier) = earlier {
                params.extend(self.applied(&earlier, &of_details(self.details(&known.id)?))?);
            }
            params.insert("experiment_id".to_owned(), json!(known.id));
            return Ok((params, Vec::new()));
        }
        match draft.action {
            "create_experiment" => params = self.applied(clause, &draft.params)?,
            "update_experiment" => {
                let id = draft.params.get("experiment_id").and_then(Value::as_str);
                let mut existing = match id {
                    Some(id) => of_details(self.details(id)?),
                    None => Params::new(),
                };
                existing.extend(draft.params.clone());
                params = self.applied(clause, &existing)?;
            }
            _ => {
                params.extend(user(clause));
                count(clause, &mut params);
                params.extend(status(clause).map(|status| ("status".to_owned(), json!(status))));
                params.extend(
                    self.named_context(clause)?.map(|context| ("context".to_owned(), json!(context.name))),
                );
                self.placed(draft, clause, &mut params)?;
                let steps = self.steps(clause, &draft.params)?;
                params.extend((!steps.is_empty()).then(|| ("steps".to_owned(), json!(steps))));
                force(clause, &mut params);
            }
        }
        let mut whole = draft.params.clone();
        whole.extend(params.clone());
        Ok((params, if draft.action == "create_experiment" { missing_group(&whole) } else { Vec::new() }))
    }

    /// The place of a student, perhaps half of it at a time.
    fn placed(&self, draft: &Draft, clause: &Clause, params: &mut Params) -> Flow<()> {
        let Some(place) = self.place(clause, "site", "target")? else { return Ok(()) };
        if draft.action != "mark_decision_point" {
            params.extend(place.as_object().cloned().unwrap_or_default());
            return Ok(());
        }
        params.insert("decision_point".to_owned(), joined(draft.params.get("decision_point"), &place));
        Ok(())
    }

    /// The parameters of a design that a clause sets, given those before.
    fn applied(&self, clause: &Clause, before: &Params) -> Flow<Params> {
        let mut params = Params::new();
        let mut put =
            |name: &str, value: Option<Value>| params.extend(value.map(|value| (name.to_owned(), value)));
        let text = |name: &str| clause.slot(name).map(|text| json!(text));
        put("name", text("name"));
        put("description", text("description"));
        put("filter_mode", text("filter"));
        put("assignment_unit", text("unit"));
        put("consistency_rule", text("consistency"));
        put("force", clause.slot("force").map(|_| json!(true)));
        put(
            "group_type",
            clause.slot("group_type").map(|said| self.group_type(said)).transpose()?.map(|kind| json!(kind)),
        );
        let post = |rule| json!({ "rule": rule, "condition_code": clause.slot("post_code") });
        put(
            "post_experiment_rule",
            clause
                .slot("post")
                .map(|rule| if rule == "assign" { post(rule) } else { json!({ "rule": rule }) }),
        );
        put("tags", tags(clause, before));
        put("decision_points", self.points(clause, before)?);
        let context = match self.named_context(clause)? {
            Some(context) => {
                put("context", Some(json!(context.name)));
                Some(context)
            }
            None => {
                before.get("context").and_then(Value::as_str).map(|name| self.context(name)).transpose()?
            }
        };
        let codes = codes(before.get("conditions"));
        let known = context.map(|context| context.conditions).unwrap_or_default();
        let codes = if codes.is_empty() { known.clone() } else { codes };
        put("conditions", conditions(clause, &codes).filter(|all| self.are_known(all, &known)));
        for (list, added, removed) in
            [("inclusion", "include", "uninclude"), ("exclusion", "exclude", "unexclude")]
        {
            let (users, groups) = (format!("{list}_users"), format!("{list}_groups"));
            put(&users, members(before.get(&users), clause.all(added), clause.all(removed)));
            let (kinds, ids) = (format!("{added}_group_type"), format!("{added}_group"));
            let mut all = before.get(&groups).and_then(Value::as_array).cloned().unwrap_or_default();
            for (kind, some) in clause.all(&kinds).zip(clause.all(&ids)) {
                let kind = self.group_type(kind)?;
                all.extend(listed(some).into_iter().map(|id| json!({ "type": kind, "group_id": id })));
            }
            put(&groups, clause.slot(&ids).map(|_| json!(all)));
        }
        Ok(params)
    }

    /// Whether the context has all of these conditions; if not, the person is told which it has not.
    fn are_known(&self, conditions: &Value, known: &[String]) -> bool {
        let codes = codes(Some(conditions));
        let wrong: Vec<&str> = codes
            .iter()
            .filter(|code| !known.is_empty() && !known.contains(code))
            .map(String::as_str)
            .collect();
        if !wrong.is_empty() {
            let why = format!("The context has no condition {}.", wrong.join(" and no condition "));
            self.refused.borrow_mut().push(wire::on_one_line(&why));
        }
        wrong.is_empty()
    }

    /// The decision points, as a clause sets, adds or removes one.
    fn points(&self, clause: &Clause, before: &Params) -> Flow<Option<Value>> {
        let known = before.get("decision_points").and_then(Value::as_array).cloned().unwrap_or_default();
        if let Some(added) = self.place(clause, "add_site", "add_target")? {
            return Ok(Some(json!(known.into_iter().chain([added]).collect::<Vec<_>>())));
        }
        if let Some(removed) = self.place(clause, "remove_site", "remove_target")? {
            let is_removed =
                |one: &Value| one["site"] == removed["site"] && one["target"] == removed["target"];
            return Ok(Some(json!(known.into_iter().filter(|one| !is_removed(one)).collect::<Vec<_>>())));
        }
        let Some(place) = self.place(clause, "site", "target")? else { return Ok(None) };
        let half = known.first().filter(|one| one["site"].is_null() || one["target"].is_null());
        let mut place = joined(half, &place);
        if clause.slot("if_reached").is_some() {
            place["exclude_if_reached"] = json!(true);
        }
        Ok(Some(json!([place])))
    }
}

/// A place with the half that was known before.
fn joined(before: Option<&Value>, place: &Value) -> Value {
    let mut whole = before.and_then(Value::as_object).cloned().unwrap_or_default();
    whole.extend(place.as_object().cloned().unwrap_or_default());
    Value::Object(whole)
}

fn missing_group(params: &Params) -> Vec<&'static str> {
    let needs = params.get("assignment_unit").is_some_and(|unit| unit == "group")
        && !params.contains_key("group_type");
    if needs { vec!["group_type"] } else { Vec::new() }
}

fn tags(clause: &Clause, before: &Params) -> Option<Value> {
    if let Some(tags) = clause.slot("tags") {
        return Some(json!(listed(tags)));
    }
    members(before.get("tags"), clause.all("add_tags"), clause.all("remove_tags"))
}

/// A list with some added and some removed; none if nothing changes.
fn members<'c>(
    before: Option<&Value>,
    added: impl Iterator<Item = &'c str>,
    removed: impl Iterator<Item = &'c str>,
) -> Option<Value> {
    let added: Vec<String> = added.flat_map(listed).collect();
    let removed: Vec<String> = removed.flat_map(listed).collect();
    if added.is_empty() && removed.is_empty() {
        return None;
    }
    let mut all = before.map(wire::texts).unwrap_or_default();
    all.retain(|one| !removed.contains(one));
    for one in added {
        if !all.contains(&one) {
            all.push(one);
        }
    }
    Some(json!(all))
}

fn codes(conditions: Option<&Value>) -> Vec<String> {
    let all = conditions.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    all.iter().filter_map(|one| wire::text(one, &["code"]).map(str::to_owned)).collect()
}

/// The conditions of a clause with their weights in percent; none if it has none, or not as many as there
/// are.
fn conditions(clause: &Clause, known: &[String]) -> Option<Value> {
    let spelt = |said: &String| known.iter().find(|one| folded(one) == folded(said)).unwrap_or(said).clone();
    let equal = |codes: Vec<String>| {
        Some(json!(codes.iter().map(|code| json!({ "code": code })).collect::<Vec<_>>()))
    };
    let Some(said) = clause.slot("weights") else {
        let said = clause.slot("codes")?;
        return equal(listed(said).iter().map(spelt).collect());
    };
    let (weights, _) = values::weights(&tokens(said))?;
    let (shares, relative) = match weights {
        Weights::Equal(codes) if codes.is_empty() => {
            return equal(known.to_vec()).filter(|_| !known.is_empty());
        }
        Weights::Equal(codes) => return equal(codes.iter().map(spelt).collect()),
        Weights::Shares(shares) => (shares, false),
        Weights::Ratio(shares) => (shares, true),
    };
    let named: Vec<String> = shares.iter().filter_map(|share| share.code.as_ref().map(spelt)).collect();
    let codes = if named.is_empty() { known.to_vec() } else { named };
    // "70/30" needs as many conditions as it has numbers.
    if codes.len() != shares.len() {
        return None;
    }
    let (codes, shares) = with_the_other(codes, shares, known);
    let percents = percents(&shares, relative);
    let all = codes.iter().zip(percents).map(|(code, weight)| json!({ "code": code, "weight": weight }));
    Some(json!(all.collect::<Vec<_>>()))
}

/// "control 70" of two conditions leaves the rest to the other one.
fn with_the_other(
    mut codes: Vec<String>,
    mut shares: Vec<Share>,
    known: &[String],
) -> (Vec<String>, Vec<Share>) {
    let others: Vec<&String> = known.iter().filter(|one| !codes.contains(one)).collect();
    if let ([other], 1) = (others.as_slice(), codes.len())
        && known.len() == 2
    {
        codes.push((*other).clone());
        shares.push(Share { code: None, share: None });
    }
    (codes, shares)
}

/// Shares in percent. Those left open divide the rest.
fn percents(shares: &[Share], relative: bool) -> Vec<f64> {
    let round = |share: f64| (share * 100.0).round() / 100.0;
    let sum: f64 = shares.iter().filter_map(|share| share.share).sum();
    let open = shares.iter().filter(|share| share.share.is_none()).count().max(1) as f64;
    let scale = if relative && sum > 0.0 { 100.0 / sum } else { 1.0 };
    let mut all: Vec<f64> = shares
        .iter()
        .map(|share| round(share.share.map_or((100.0 - sum) / open, |share| share * scale)))
        .collect();
    // Rounded parts of a whole still sum to the whole.
    let exact = relative || (sum - 100.0).abs() < 0.01 || shares.iter().any(|share| share.share.is_none());
    if let (Some(last), true) = (all.pop(), exact) {
        let rest = round(100.0 - all.iter().sum::<f64>());
        all.push(if (rest - last).abs() < 0.1 { rest } else { last });
        return all;
    }
    shares.iter().map(|share| share.share.unwrap_or_default()).collect()
}

/// The parameters of an experiment, as its details tell them.
fn of_details(experiment: &Value) -> Params {
    let mut params = Params::new();
    let mut put = |name: &str, value: Value| {
        let empty = value.is_null() || value == json!("") || value == json!([]);
        if !empty {
            params.insert(name.to_owned(), value);
        }
    };
    for field in
        ["name", "description", "tags", "assignment_unit", "group_type", "consistency_rule", "filter_mode"]
    {
        put(field, experiment[field].clone());
    }
    put("context", wire::context_of(experiment).map_or(Value::Null, Value::String));
    let conditions = wire::conditions(experiment);
    put(
        "conditions",
        conditions.iter().map(|(code, weight)| json!({ "code": code, "weight": weight })).collect(),
    );
    let points = experiment["decision_points"].as_array().cloned().unwrap_or_default();
    let point = |one: &Value| {
        let early = one["exclude_if_reached"] == true;
        let mut point = json!({ "site": one["site"], "target": one["target"] });
        if early {
            point["exclude_if_reached"] = json!(true);
        }
        point
    };
    put("decision_points", points.iter().map(point).collect());
    let rule = wire::field(experiment, &["post_rule"]);
    let mut post = json!({ "rule": rule["rule"] });
    if rule["condition_code"].is_string() {
        post["condition_code"] = rule["condition_code"].clone();
    }
    put("post_experiment_rule", if rule["rule"].is_string() { post } else { Value::Null });
    for list in ["inclusion", "exclusion"] {
        put(&format!("{list}_users"), experiment[list]["users"].clone());
        let groups = experiment[list]["groups"].as_array().cloned().unwrap_or_default();
        let group = |one: &Value| json!({ "type": one["group_type"], "group_id": one["group_id"] });
        put(&format!("{list}_groups"), groups.iter().map(group).collect());
    }
    params
}

/// The parameters of the fields of a pasted experiment. Those with a value of their own on each server have
/// none.
const FIELDS: &str = "name=name description=description context=context tags=tags assignmentUnit=assignment_unit \
    group=group_type consistencyRule=consistency_rule filterMode=filter_mode conditions=conditions \
    partitions=decision_points postExperimentRule=post_experiment_rule assignment_unit=assignment_unit \
    group_type=group_type consistency_rule=consistency_rule filter_mode=filter_mode decision_points=decision_points \
    post_experiment_rule=post_experiment_rule inclusion_users=inclusion_users inclusion_groups=inclusion_groups \
    exclusion_users=exclusion_users exclusion_groups=exclusion_groups id= createdAt= updatedAt= versionNumber= state= \
    backendVersion=";
const NESTED: &str = "conditionCode=code code=code assignmentWeight=weight weight=weight site=site target=target \
    excludeIfReached=exclude_if_reached exclude_if_reached=exclude_if_reached id= createdAt= updatedAt= \
    versionNumber= order= twoCharacterId= experimentId=";

/// The parameters of a pasted experiment, and the fields that none of them takes.
fn of_pasted(pasted: &Value) -> (Params, Vec<String>) {
    let mut unknown = Vec::new();
    let mut params = taken(pasted, FIELDS, "", &mut unknown);
    if let Some([context]) = params.get("context").and_then(Value::as_array).map(Vec::as_slice) {
        let context = context.clone();
        params.insert("context".to_owned(), context);
    }
    if let Some(rule) = params.get("post_experiment_rule").filter(|rule| rule.is_string()) {
        let rule = json!({ "rule": rule });
        params.insert("post_experiment_rule".to_owned(), rule);
    }
    for list in ["conditions", "decision_points"] {
        if let Some(Value::Array(all)) = params.get_mut(list) {
            let prefix = format!("{list}.");
            all.iter_mut().for_each(|one| *one = Value::Object(taken(one, NESTED, &prefix, &mut unknown)));
        }
    }
    (params, unknown)
}

/// The fields of an object that have a value, under the names of parameters.
fn taken(object: &Value, fields: &'static str, prefix: &str, unknown: &mut Vec<String>) -> Params {
    let empty = [json!(null), json!(""), json!([]), json!({}), json!(false)];
    let mut params = Params::new();
    for (field, value) in object.as_object().into_iter().flatten().filter(|(_, value)| !empty.contains(value))
    {
        match values::lookup(fields, field) {
            Some("") => {}
            Some(name) => drop(params.insert(name.to_owned(), value.clone())),
            None if field == "type" && value == "Simple" => {}
            None => unknown.push(format!("`{prefix}{field}`")),
        }
    }
    params
}

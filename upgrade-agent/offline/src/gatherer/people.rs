//! Students: made known, asked about, marked, and simulated.

use serde_json::{Value, json};

use super::targets::folded;
use super::{Flow, Gatherer, Params, Proposal, force};
use crate::reading::Clause;
use crate::token::tokens;
use crate::{values, wire};

/// The items of a list.
pub(super) fn listed(text: &str) -> Vec<String> {
    let all = tokens(text);
    let items = all.iter().filter(|token| !token.is_sign(&[","]) && (!token.is_word() || token.low != "and"));
    items.map(|token| token.text.to_owned()).collect()
}

impl Gatherer<'_> {
    pub(super) fn init(&self, clause: &Clause) -> Flow<Proposal> {
        let mut params = user(clause);
        self.groups(clause, &mut params)?;
        Ok((params, Vec::new()))
    }

    pub(super) fn assign(&self, clause: &Clause) -> Flow<Proposal> {
        let mut params = user(clause);
        self.context_of(clause, &mut params)?;
        Ok((params, Vec::new()))
    }

    pub(super) fn mark(&self, clause: &Clause) -> Flow<Proposal> {
        let mut params = user(clause);
        params
            .extend(self.place(clause, "site", "target")?.map(|place| ("decision_point".to_owned(), place)));
        Ok((params, Vec::new()))
    }

    pub(super) fn visit(&self, clause: &Clause) -> Flow<Proposal> {
        let mut params = user(clause);
        self.context_of(clause, &mut params)?;
        if let Some(Value::Object(place)) = self.place(clause, "site", "target")? {
            params.extend(place);
        }
        Ok((params, Vec::new()))
    }

    pub(super) fn balance(&self, clause: &Clause) -> Flow<Proposal> {
        let (mut params, mut missing) = self.of_experiment(clause)?;
        let that = self.facts.situation_field("that_experiment")["id"].as_str();
        if let Some(id) = that.filter(|_| clause.act() == "mode") {
            params.insert("experiment_id".to_owned(), json!(id));
            missing.clear();
        }
        count(clause, &mut params);
        if let Some(Value::Object(place)) = self.place(clause, "site", "target")? {
            params.extend(place);
        }
        self.groups(clause, &mut params)?;
        Ok((params, missing))
    }

    pub(super) fn journey(&self, clause: &Clause) -> Flow<Proposal> {
        let mut params = Params::new();
        let mut missing = Vec::new();
        if let Some(known) = self.target(clause)? {
            let context = wire::context_of(self.details(&known.id)?);
            params.insert("experiment_id".to_owned(), json!(known.id));
            params.extend(context.map(|context| ("context".to_owned(), json!(context))));
        } else if clause.slot("experiment").is_some() {
            missing.push("experiment_id");
        }
        if let Some(context) = self.named_context(clause)? {
            params.insert("context".to_owned(), json!(context.name));
        }
        params.extend(clause.slot("users").map(|users| ("user_ids".to_owned(), json!(listed(users)))));
        count(clause, &mut params);
        self.groups(clause, &mut params)?;
        let steps = self.steps(clause, &params)?;
        if !steps.is_empty() {
            params.insert("steps".to_owned(), json!(steps));
        }
        force(clause, &mut params);
        Ok((params, missing))
    }

    /// The steps of a journey. A visit without a place is one at each decision point of the experiment.
    pub(super) fn steps(&self, clause: &Clause, params: &Params) -> Flow<Vec<Value>> {
        let points = match params.get("experiment_id").and_then(Value::as_str) {
            Some(id) => wire::points(self.details(id)?),
            None => Vec::new(),
        };
        let visit = |site: &str, target: &str| json!({ "do": "visit", "site": site, "target": target });
        let mut steps: Vec<Value> = Vec::new();
        for (at, slot) in clause.slots.iter().enumerate().filter(|(_, slot)| slot.name == "step") {
            let own = |name: &str| {
                let mut own = clause.slots[at + 1..].iter().take_while(|slot| slot.name != "step");
                own.find(|slot| slot.name == name).map(|slot| slot.value.as_str())
            };
            match slot.value.as_str() {
                "visit" => match (own("step_site"), own("step_target")) {
                    (Some(site), Some(target)) => steps.push(visit(site, target)),
                    _ => steps.extend(points.iter().map(|(site, target)| visit(site, target))),
                },
                "assign" => steps.push(json!({ "do": "assign" })),
                "group" => {
                    let kind = self.group_type(own("step_group_type").unwrap_or_default())?;
                    steps.push(
                        json!({ "do": "set_working_group", "working_group": { kind: own("step_group") } }),
                    );
                }
                "status" => {
                    let said = tokens(own("step_status").unwrap_or_default());
                    let status = values::status_at(&said).map(|(status, _)| status);
                    steps.push(json!({ "do": "set_status", "status": status }));
                }
                status => steps.push(json!({ "do": "set_status", "status": status })),
            }
        }
        Ok(steps)
    }

    /// The context of a question about a student: named, or that of the experiment.
    fn context_of(&self, clause: &Clause, params: &mut Params) -> Flow<()> {
        let context = match (self.named_context(clause)?, self.target(clause)?) {
            (Some(context), _) => Some(context.name),
            (None, Some(known)) => wire::context_of(self.details(&known.id)?),
            (None, None) => None,
        };
        params.extend(context.map(|context| ("context".to_owned(), json!(context))));
        Ok(())
    }

    /// The groups of the students.
    fn groups(&self, clause: &Clause, params: &mut Params) -> Flow<()> {
        let (Some(kind), Some(group)) = (clause.slot("group_type"), clause.slot("group")) else {
            return Ok(());
        };
        let kind = self.group_type(kind)?;
        params.insert("group".to_owned(), json!({ kind.as_str(): [group] }));
        params.insert("working_group".to_owned(), json!({ kind: group }));
        Ok(())
    }

    /// The group type in the server's spelling: "class" is `classId`.
    pub(super) fn group_type(&self, said: &str) -> Flow<String> {
        let folded_said = folded(said);
        let contexts = self.contexts()?;
        let mut known = contexts.iter().flat_map(|context| &context.groups);
        let fits = |one: &&String| {
            let one = folded(one);
            let stem = one.strip_suffix("id").unwrap_or(&one);
            one == folded_said
                || stem == folded_said
                || format!("{stem}s") == folded_said
                || format!("{stem}es") == folded_said
        };
        Ok(known.find(fits).cloned().unwrap_or_else(|| said.to_owned()))
    }

    /// A site and a target, in the server's spelling.
    pub(super) fn place(&self, clause: &Clause, site: &str, target: &str) -> Flow<Option<Value>> {
        let (site, target) = (clause.slot(site), clause.slot(target));
        if site.is_none() && target.is_none() {
            return Ok(None);
        }
        let contexts = self.contexts()?;
        let sites: Vec<&String> = contexts.iter().flat_map(|context| &context.sites).collect();
        let targets: Vec<&String> = contexts.iter().flat_map(|context| &context.targets).collect();
        let spelt = |said: &str, known: &[&String]| {
            let one = known.iter().find(|one| folded(one) == folded(said));
            one.map_or_else(|| said.to_owned(), |one| (*one).clone())
        };
        let mut place = Params::new();
        place.extend(site.map(|said| ("site".to_owned(), json!(spelt(said, &sites)))));
        place.extend(target.map(|said| ("target".to_owned(), json!(spelt(said, &targets)))));
        Ok(Some(Value::Object(place)))
    }
}

pub(super) fn user(clause: &Clause) -> Params {
    clause.slot("user").map(|user| ("user_id".to_owned(), json!(user))).into_iter().collect()
}

/// The number of students and the mode of a test.
pub(super) fn count(clause: &Clause, params: &mut Params) {
    let number = clause.slot("number").and_then(|said| values::number(&tokens(said)));
    params.extend(number.map(|(number, _)| ("num_users".to_owned(), json!(number))));
    params.extend(clause.slot("mode").map(|mode| ("mode".to_owned(), json!(mode))));
}

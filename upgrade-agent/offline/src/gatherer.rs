//! The model as information gatherer: chooses the next tool calls until all data are there.
//!
//! Every round starts from the beginning with the results of all earlier rounds. The code asks for a result
//! with `need`; if it is missing, that call is the next step. So the code reads as if all results were
//! present.

mod design;
mod people;
mod questions;
mod targets;

use std::cell::RefCell;

use serde_json::{Map, Value, json};

use crate::facts::Facts;
use crate::reading::{Clause, Reading};
use crate::slots::Known;
use crate::understanding::{asked, understand};
use crate::wire::{self, ContextInfo, KnownName};
use crate::{nearest, speech, values};

/// The next step.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum NextStep {
    /// Call these tools.
    Call(Vec<(&'static str, Value)>),
    /// Everything is collected.
    Done(String),
}

/// A value, or the step that is needed first.
type Flow<T> = Result<T, NextStep>;

/// Parameters in the form of tools.
type Params = Map<String, Value>;

/// The parameters of an action, and those that the person must still give.
type Proposal = (Params, Vec<&'static str>);

/// The next step.
pub(crate) fn next(facts: &Facts) -> NextStep {
    let settled =
        ["set_action_needed", "add_error", "update_action_params", "set_missing_params", "set_action_params"];
    if settled.iter().any(|tool| facts.was_called(tool)) {
        return NextStep::Done("That is all.".to_owned());
    }
    let gatherer =
        Gatherer { facts, refused: RefCell::default(), further: RefCell::default(), asked: asked(facts) };
    gatherer.run().unwrap_or_else(|step| step)
}

struct Gatherer<'a> {
    facts: &'a Facts,
    /// What could not be taken, said with the question for it.
    refused: RefCell<Vec<String>>,
    /// What the message asks for beside its first request.
    further: RefCell<Vec<String>>,
    /// The parameter that the person was asked for.
    asked: &'static str,
}

/// The action that the message may go on with.
struct Draft {
    action: &'static str,
    params: Params,
    /// Whether it waits for parameters. Otherwise its confirmation was not answered.
    waits: bool,
}

/// The actions by the acts that start them.
pub(crate) const ACTIONS: &[(&str, &str)] = &[
    ("create", "create_experiment"),
    ("copy", "create_experiment"),
    ("update", "update_experiment"),
    ("set_status", "update_experiment_status"),
    ("delete", "delete_experiment"),
    ("init", "init_experiment_user"),
    ("assign", "get_decision_point_assignments"),
    ("mark", "mark_decision_point"),
    ("visit", "visit_decision_point"),
    ("balance", "test_condition_balance"),
    ("journey", "simulate_user_journey"),
];

/// The action of an act.
fn action_of(act: &str) -> Option<&'static str> {
    ACTIONS.iter().find(|(known, _)| *known == act).map(|(_, action)| *action)
}

impl Gatherer<'_> {
    fn run(&self) -> Flow<NextStep> {
        let reading = self.reading()?;
        if let Some(words) = speech::not_understood(
            &reading,
            &self.facts.message,
            &nearest::forms(&reading, &self.facts.message),
        ) {
            return Ok(self.left_over(words));
        }
        let Some((clause, further)) = reading.first() else { return Ok(done()) };
        self.further.borrow_mut().extend(further);
        if let Some(draft) = self.draft()
            && let Some(step) = self.go_on(&draft, clause)?
        {
            return Ok(step);
        }
        self.begin(clause)
    }

    /// The reading with the names of the experiments, if there may be one in the message.
    fn reading(&self) -> Flow<Reading> {
        let plain = understand(self.facts, &Known::default());
        let may_name = |clause: &Clause| {
            let names = ["experiment", "name", "context", "term"];
            clause.slots.iter().any(|slot| names.contains(&slot.name))
                || clause.act() == "answer"
                || action_of(clause.act()).is_some()
        };
        let is_sure = plain.is_whole() && plain.others.is_empty() && !plain.clauses.iter().any(may_name);
        if is_sure || plain.too_long.is_some() {
            return Ok(plain);
        }
        let names = self.names()?.into_iter().map(|known| known.name);
        let contexts = self.contexts()?.into_iter().map(|context| context.name).collect();
        Ok(understand(self.facts, &Known::new(names, contexts)))
    }

    /// Nothing is proposed, and the person is told why. An open question stays open.
    fn left_over(&self, words: String) -> NextStep {
        let missing = wire::texts(&self.facts.situation_field("pending")["missing"]);
        let asks =
            [("missing_params".to_owned(), json!(missing)), ("not_understood".to_owned(), json!(words))];
        let asks = asks.into_iter().chain(self.further()).collect();
        NextStep::Call(vec![("set_missing_params", Value::Object(asks))])
    }

    fn draft(&self) -> Option<Draft> {
        let of = |field: &str, waits: bool| {
            let draft = self.facts.situation_field(field);
            let named = draft["action"].as_str()?;
            let action = ACTIONS.iter().find(|(_, action)| *action == named).map(|(_, action)| *action)?;
            Some(Draft { action, params: draft["params"].as_object().cloned().unwrap_or_default(), waits })
        };
        of("pending", true).or_else(|| of("dropped", false))
    }

    /// Goes on with the draft, if the message answers its question or changes it.
    fn go_on(&self, draft: &Draft, clause: &Clause) -> Flow<Option<NextStep>> {
        let of_draft = self.is_of(draft, clause)?;
        let changes = match (clause.act(), draft.action) {
            ("answer", _) => true,
            ("update", "create_experiment" | "update_experiment") => of_draft,
            ("weights", "create_experiment" | "update_experiment") => true,
            ("count" | "mode", "test_condition_balance" | "simulate_user_journey") => true,
            ("set_status", "update_experiment_status") => {
                of_draft && (draft.waits || clause.slot("status").is_some())
            }
            ("create", "create_experiment") => draft.waits && of_draft && clause.slot("anew").is_none(),
            ("balance", "test_condition_balance") | ("journey", "simulate_user_journey") => {
                draft.waits && of_draft
            }
            ("reference", _) => self.asked == "experiment_id",
            _ => false,
        };
        if !changes {
            return Ok(None);
        }
        let (params, missing) = self.changed(draft, clause)?;
        if params.is_empty() && missing.is_empty() && self.refused.borrow().is_empty() {
            return Ok(Some(self.left_over(speech::no_answer(&self.facts.message))));
        }
        if draft.waits {
            return Ok(Some(self.propose(draft.action, params, missing, false)));
        }
        let change = |(key, value)| ("update_action_params", json!({ "key": key, "value": value }));
        let further =
            self.further().map(|further| ("set_missing_params", Value::Object(Params::from_iter([further]))));
        Ok(Some(NextStep::Call(params.into_iter().map(change).chain(further).collect())))
    }

    /// Whether a clause speaks of the draft's experiment, or of none.
    fn is_of(&self, draft: &Draft, clause: &Clause) -> Flow<bool> {
        if draft.action == "create_experiment" {
            let given = draft.params.get("name").and_then(Value::as_str);
            let named = clause.slot("name").filter(|_| clause.act() == "create");
            let other = named.is_some_and(|named| given.is_some_and(|given| given != named));
            return Ok(!other && clause.all("experiment").all(|name| name == "that" || Some(name) == given));
        }
        match clause.slots.iter().find(|slot| slot.name == "experiment") {
            None => Ok(true),
            Some(slot) if !slot.said && slot.value == "that" => Ok(true),
            Some(_) => {
                let named = self.target(clause)?;
                Ok(named.as_ref().map(|known| json!(known.id)).as_ref() == draft.params.get("experiment_id"))
            }
        }
    }

    fn begin(&self, clause: &Clause) -> Flow<NextStep> {
        if let Some(step) = self.question(clause)? {
            return Ok(step);
        }
        let act = if clause.act() == "mode" { "balance" } else { clause.act() };
        let Some(action) = action_of(act) else {
            return Ok(self.left_over(speech::no_answer(&clause.source)));
        };
        let (params, missing) = match act {
            "create" if clause.slot("json").is_some() => self.of_json(clause)?,
            "create" => self.create(clause, Params::new())?,
            "copy" => self.copy(clause)?,
            "update" => self.update(clause)?,
            "set_status" => self.status(clause)?,
            "delete" => self.of_experiment(clause)?,
            "init" => self.init(clause)?,
            "assign" => self.assign(clause)?,
            "mark" => self.mark(clause)?,
            "visit" => self.visit(clause)?,
            "balance" => self.balance(clause)?,
            _ => self.journey(clause)?,
        };
        Ok(self.propose(action, params, missing, true))
    }

    /// Stores the findings, in one round.
    fn propose(&self, action: &str, params: Params, missing: Vec<&'static str>, anew: bool) -> NextStep {
        let mut needed = json!({ "action": action, "reasoning": "the person asks for it" });
        if anew && self.facts.situation_field("pending")["action"] == action {
            needed["begins_anew"] = json!(true);
        }
        let mut calls =
            vec![("set_action_needed", needed), ("set_action_params", json!({ "action_params": params }))];
        let refused = self.refused.borrow().join(" ");
        let mut asks = Params::new();
        if !missing.is_empty() || !refused.is_empty() {
            asks.insert("missing_params".to_owned(), json!(missing));
        }
        if !refused.is_empty() {
            asks.insert("not_understood".to_owned(), json!(refused));
        }
        asks.extend(self.further());
        if !asks.is_empty() {
            calls.push(("set_missing_params", Value::Object(asks)));
        }
        NextStep::Call(calls)
    }

    /// The further requests as a parameter of a tool, if there are any.
    fn further(&self) -> Option<(String, Value)> {
        let further = self.further.borrow();
        (!further.is_empty()).then(|| ("further_requests".to_owned(), json!(*further)))
    }

    /// The end of a question: further requests are kept for later.
    fn answered(&self) -> NextStep {
        match self.further() {
            Some(further) => {
                NextStep::Call(vec![("set_missing_params", Value::Object(Params::from_iter([further])))])
            }
            None => done(),
        }
    }

    /// The experiment of an action, or the question for it.
    fn of_experiment(&self, clause: &Clause) -> Flow<Proposal> {
        Ok(match self.target(clause)? {
            Some(known) => (Params::from_iter([("experiment_id".to_owned(), json!(known.id))]), Vec::new()),
            None => (Params::new(), vec!["experiment_id"]),
        })
    }

    fn status(&self, clause: &Clause) -> Flow<Proposal> {
        let (mut params, mut missing) = self.of_experiment(clause)?;
        match status(clause) {
            Some(status) => drop(params.insert("status".to_owned(), json!(status))),
            None => missing.push("status"),
        }
        force(clause, &mut params);
        Ok((params, missing))
    }

    /// The result of a tool. If it was not called yet, the call is the next step.
    fn need(&self, tool: &'static str, input: Value) -> Flow<&Value> {
        match self.facts.answer(tool, &input) {
            Some(answer) if answer.failed => Err(NextStep::Done(format!("{tool} failed."))),
            Some(answer) => Ok(&answer.output),
            None if self.facts.offers(tool) => Err(NextStep::Call(vec![(tool, input)])),
            None => Err(NextStep::Done(format!("there is no tool {tool}."))),
        }
    }

    fn names(&self) -> Flow<Vec<KnownName>> {
        Ok(wire::names(self.need("get_experiment_names", json!({}))?))
    }

    fn contexts(&self) -> Flow<Vec<ContextInfo>> {
        Ok(wire::contexts(self.need("get_context_metadata", json!({}))?))
    }

    fn details(&self, id: &str) -> Flow<&Value> {
        self.need("get_experiment_details", json!({ "experiment_id": id }))
    }
}

/// The status of a clause, in the server's spelling.
fn status(clause: &Clause) -> Option<&'static str> {
    const STATUSES: &[&str] = &["enrolling", "enrollmentComplete", "cancelled", "archived"];
    if let Some(said) = clause.slot("status") {
        return values::status_at(&crate::token::tokens(said)).map(|(status, _)| status);
    }
    let to = clause.slot("to")?;
    STATUSES.iter().find(|status| **status == to).copied()
}

fn force(clause: &Clause, params: &mut Params) {
    if clause.slot("force").is_some() {
        params.insert("force".to_owned(), json!(true));
    }
}

fn done() -> NextStep {
    NextStep::Done("Everything that was asked for is collected.".to_owned())
}

fn error(class: &str, message: String) -> NextStep {
    NextStep::Call(vec![("add_error", json!({ "error_type": class, "message": message }))])
}

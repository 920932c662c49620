//! The offline model as information gatherer: chooses the next tool calls until all data are there.
//!
//! Every round starts from the beginning, with the results of all earlier rounds. The code asks for a result
//! with `need`; if it is missing, that call is the next step. So the code reads as if all results were
//! present.

mod account;
mod create;
mod lists;
mod simulations;
mod subject;
mod update;
mod users;

use serde_json::{Map, Value, json};

use super::facts::Facts;
use super::intent::{Operation, Part, Request, understand};
use super::lexicon::{self, Concept as C};
use super::slots::{self, names, points};
use super::text::{Text, folded};
use super::wire::{self, ContextInfo};
use subject::Subject;

/// The gatherer's next step.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum NextStep {
    /// Call these tools.
    Call(Vec<(&'static str, Value)>),
    /// Everything is collected.
    Done(String),
}

/// A value, or the step that is needed first.
type Flow<T> = Result<T, NextStep>;

/// Parameters in the form of tools.
type Params = Map<String, Value>;

/// The next step.
pub(super) fn next(facts: &Facts) -> NextStep {
    let text = Text::read(&facts.message);
    let gatherer = Gatherer { facts, text: &text };
    gatherer.run().unwrap_or_else(|step| step)
}

struct Gatherer<'a> {
    facts: &'a Facts,
    text: &'a Text,
}

/// The pending action of an earlier message.
struct Draft {
    action: Operation,
    params: Params,
    /// The parameter that the person was asked for, if any.
    asked: Vec<String>,
}

impl Draft {
    /// The parameter of the last question: the context before all that depend on it.
    fn asked_for(&self) -> Option<&str> {
        let context = self.asked.iter().find(|name| *name == "context");
        context.or(self.asked.first()).map(String::as_str)
    }
}

impl Gatherer<'_> {
    fn run(&self) -> Flow<NextStep> {
        let settled = ["set_action_needed", "add_error", "update_action_params", "set_missing_params"];
        if settled.iter().any(|tool| self.facts.was_called(tool)) {
            return Ok(NextStep::Done("That is all.".to_owned()));
        }
        let ask = understand(self.text).ask;
        match self.draft(&ask)? {
            Some(draft) => self.act(draft.action, Some(&draft)),
            None => self.begin(&ask),
        }
    }

    /// The pending action that the message continues. A clear request for something else starts anew.
    fn draft(&self, ask: &Request) -> Flow<Option<Draft>> {
        let pending = self.facts.situation_field("pending");
        if let Some(action) = pending["action"].as_str().and_then(Operation::of_name) {
            let params = pending["params"].as_object().cloned().unwrap_or_default();
            let goes_on = match ask {
                Request::Do(Operation::Create) if action == Operation::Create => !self.wants_another(&params),
                // "Modify" alone is not a request for something else.
                Request::Do(Operation::Update) => {
                    self.may_change(action) || !self.text.words.iter().any(slots::is_free)
                }
                Request::Do(other) => other.name() == action.name(),
                Request::HowTo(_)
                | Request::Schema(_)
                | Request::Contexts
                | Request::Experiments
                | Request::Health
                | Request::Report
                | Request::Abilities
                | Request::Greeting
                | Request::Thanks
                | Request::Farewell
                | Request::Undo
                | Request::Beyond
                | Request::No
                | Request::Refused => false,
                // A name may be a word of any language.
                Request::OtherLanguage => {
                    let missing = wire::texts(&pending["missing"]);
                    missing.iter().any(|name| ["name", "user_id", "description"].contains(&name.as_str()))
                }
                Request::Explain(_) => {
                    !self.text.asks && !self.text.has(&["what", "explain", "define", "describe"])
                }
                Request::OfContext(_) | Request::Details | Request::StatusOf | Request::Enrollment => {
                    !self.text.asks
                }
                _ => true,
            };
            return Ok(goes_on.then(|| Draft { action, params, asked: wire::texts(&pending["missing"]) }));
        }
        let dropped = self.facts.situation_field("dropped");
        let Some(action) = dropped["action"].as_str().and_then(Operation::of_name) else { return Ok(None) };
        let params = dropped["params"].as_object().cloned().unwrap_or_default();
        let changes = matches!(ask, Request::Do(Operation::Update) | Request::Unclear)
            && self.may_change(action)
            && self.names_no_other(&params)?;
        Ok(changes.then(|| Draft { action, params, asked: Vec::new() }))
    }

    /// Whether a change can belong to the pending action: "make it 30/70", "rename it" cannot start or delete
    /// an experiment.
    fn may_change(&self, action: Operation) -> bool {
        let designs = slots::has_weights(self.text)
            || slots::filter_mode(self.text).is_some()
            || self.text.has(&["rename", "renamed"])
            || self.text.has_phrase("call it|that|this");
        match action {
            Operation::Create | Operation::Update => true,
            Operation::Delete => false,
            Operation::Status(_) => slots::status_word(self.text).is_some() || self.insists(),
            _ => !designs,
        }
    }

    fn names_no_other(&self, params: &Params) -> Flow<bool> {
        let name = params.get("name").and_then(Value::as_str).unwrap_or_default();
        if self.text.has(&["name", "call", "called", "rename", "named"]) {
            return Ok(true);
        }
        // "And exclude bob" names a student.
        let text = self.without_members()?;
        let mention = slots::mention(text.as_ref().unwrap_or(self.text));
        Ok(mention.is_none_or(|mention| folded(&mention) == folded(name) || slots::has_weights(self.text)))
    }

    fn begin(&self, ask: &Request) -> Flow<NextStep> {
        if matches!(
            ask,
            Request::Details | Request::Experiments | Request::Enrollment | Request::OfContext(_)
        ) && let Some(step) = self.speaks_of_things_beyond()?
        {
            return Ok(step);
        }
        match ask {
            Request::Do(action) => self.act(*action, None),
            Request::Refused | Request::No => {
                Ok(error("unknown", "you do not want it, so I left it alone".to_owned()))
            }
            Request::Schema(action) | Request::HowTo(action) => {
                self.need(schema_tool(*action), json!({}))?;
                Ok(done())
            }
            Request::Explain(_) => {
                self.need("get_core_terms", json!({}))?;
                Ok(done())
            }
            Request::Contexts => {
                self.need("get_available_contexts", json!({}))?;
                Ok(done())
            }
            Request::OfContext(part) => self.of_context(*part),
            Request::Experiments => {
                self.need("get_all_experiments", json!({}))?;
                if let Some(guess) = points::named_context(self.text) {
                    let contexts = self.contexts()?;
                    if self.named_context(&contexts).is_none() {
                        return Err(self.unknown_context(&guess, &contexts));
                    }
                }
                Ok(done())
            }
            Request::Health => {
                self.need("check_upgrade_health", json!({}))?;
                Ok(done())
            }
            Request::Beyond => Ok(self.beyond()),
            Request::Details | Request::StatusOf => self.about_one(&["get_experiment_details"]),
            Request::Enrollment => self.about_one(&["get_experiment_details", "get_enrollment_details"]),
            _ => Ok(done()),
        }
    }

    /// The vocabulary of a context; of every context if none is named, of an experiment if one is.
    fn of_context(&self, part: Part) -> Flow<NextStep> {
        let contexts = self.contexts()?;
        let tool = match part {
            Part::Conditions => "get_conditions_for_context",
            Part::Points => "get_decision_points_for_context",
            Part::Groups => "get_group_types_for_context",
        };
        if let Some(context) = self.named_context(&contexts) {
            self.need(tool, json!({ "context": context.name }))?;
            return Ok(done());
        }
        if let Subject::One(experiment) = self.subject()? {
            self.need("get_experiment_details", json!({ "experiment_id": experiment.id }))?;
            return Ok(done());
        }
        if let Some(guess) = points::context_guess(self.text) {
            return Err(self.unknown_context(&guess, &contexts));
        }
        for context in &contexts {
            self.need(tool, json!({ "context": context.name }))?;
        }
        Ok(done())
    }

    fn about_one(&self, tools: &[&'static str]) -> Flow<NextStep> {
        let experiment = match self.subject()? {
            Subject::One(experiment) => experiment,
            Subject::Several(all) => return Err(self.ambiguous(&all)),
            Subject::Unknown(name) => return self.all_of_context(&name),
            Subject::Unsaid => {
                self.need("get_all_experiments", json!({}))?;
                return Ok(done());
            }
        };
        for tool in tools {
            self.need(tool, json!({ "experiment_id": experiment.id }))?;
        }
        Ok(done())
    }

    /// The name is not an experiment; it may be a context.
    fn all_of_context(&self, name: &str) -> Flow<NextStep> {
        let contexts = self.contexts()?;
        let Some(context) = self.named_context(&contexts) else { return self.unknown(name) };
        for tool in
            ["get_conditions_for_context", "get_decision_points_for_context", "get_group_types_for_context"]
        {
            self.need(tool, json!({ "context": context.name }))?;
        }
        Ok(done())
    }

    /// "Create an experiment Bar" while Foo is pending starts anew; "create it" continues with Foo.
    fn wants_another(&self, params: &Params) -> bool {
        let given = params.get("name").and_then(Value::as_str).unwrap_or_default();
        let named = slots::new_name(self.text).is_some_and(|name| folded(&name) != folded(given));
        let experiment = self.text.words.iter().any(|word| lexicon::concepts(word).contains(&C::Experiment));
        let another = self.text.has(&["another", "new", "second", "different", "separate"]);
        !given.is_empty() && experiment && (named || another)
    }

    fn act(&self, action: Operation, draft: Option<&Draft>) -> Flow<NextStep> {
        if let Some(step) = self.orders_things_beyond(action, draft)? {
            return Ok(step);
        }
        let (params, missing) = match action {
            Operation::Create => self.create(draft)?,
            Operation::Update => self.update(draft)?,
            Operation::Status(status) => self.status(status, draft)?,
            Operation::Delete => self.delete(draft)?,
            Operation::Init => self.init(draft)?,
            Operation::Assign => self.assign(draft)?,
            Operation::Mark => self.mark(draft)?,
            Operation::Visit => self.visit(draft)?,
            Operation::Balance => self.balance(draft)?,
            Operation::Journey => self.journey(draft)?,
        };
        self.account(action, params, missing, draft)
    }

    /// Stores the findings, in one round.
    fn propose(&self, action: Operation, params: Params, missing: Vec<&'static str>, anew: bool) -> NextStep {
        let mut needed = json!({ "action": action.name(), "reasoning": "the person asks for it" });
        if anew && self.facts.situation_field("pending")["action"] == action.name() {
            needed["begins_anew"] = json!(true);
        }
        let mut calls =
            vec![("set_action_needed", needed), ("set_action_params", json!({ "action_params": params }))];
        if !missing.is_empty() {
            calls.push(("set_missing_params", json!({ "missing_params": missing })));
        }
        NextStep::Call(calls)
    }

    fn status(
        &self,
        status: Option<&'static str>,
        draft: Option<&Draft>,
    ) -> Flow<(Params, Vec<&'static str>)> {
        if let Some(when) = slots::later(self.text) {
            let message = format!(
                "I change a status at once and not {when}; UpGrade's own screen can schedule a start"
            );
            return Err(error("validation", message));
        }
        let (mut params, mut missing) = self.of_experiment(draft)?;
        let status = status.or_else(|| slots::target_status(self.text)).or_else(|| {
            draft.and_then(|_| match understand(self.text).ask {
                Request::Do(Operation::Status(status)) => status,
                _ => slots::status_word(self.text),
            })
        });
        if let Some(status) = status {
            params.insert("status".into(), json!(status));
        }
        if self.insists() {
            params.insert("force".into(), json!(true));
        }
        if !params.contains_key("status") {
            missing.push("status");
        }
        Ok((params, missing))
    }

    fn delete(&self, draft: Option<&Draft>) -> Flow<(Params, Vec<&'static str>)> {
        self.of_experiment(draft)
    }

    fn insists(&self) -> bool {
        slots::insists(self.text)
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

    fn contexts(&self) -> Flow<Vec<ContextInfo>> {
        Ok(wire::contexts(self.need("get_context_metadata", json!({}))?))
    }

    fn named_context<'c>(&self, contexts: &'c [ContextInfo]) -> Option<&'c ContextInfo> {
        let name = names::word_of(self.text, contexts.iter().map(|context| context.name.as_str()))?;
        contexts.iter().find(|context| context.name == name)
    }

    fn unknown_context(&self, guess: &str, contexts: &[ContextInfo]) -> NextStep {
        let known: Vec<&str> = contexts.iter().map(|context| context.name.as_str()).collect();
        error("validation", format!("there is no context `{guess}`; there are {}", known.join(", ")))
    }
}

fn schema_tool(action: Operation) -> &'static str {
    match action {
        Operation::Create => "get_create_experiment_schema",
        Operation::Update => "get_update_experiment_schema",
        Operation::Status(_) => "get_update_experiment_status_schema",
        Operation::Delete => "get_delete_experiment_schema",
        Operation::Init => "get_init_experiment_user_schema",
        Operation::Assign => "get_get_decision_point_assignments_schema",
        Operation::Mark => "get_mark_decision_point_schema",
        Operation::Visit => "get_visit_decision_point_schema",
        Operation::Balance => "get_test_condition_balance_schema",
        Operation::Journey => "get_simulate_user_journey_schema",
    }
}

fn done() -> NextStep {
    NextStep::Done("Everything that was asked for is collected.".to_owned())
}

fn error(class: &str, message: String) -> NextStep {
    NextStep::Call(vec![("add_error", json!({ "error_type": class, "message": message }))])
}

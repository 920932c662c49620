//! Questions: the look-ups that their answers need, and the requests that cannot be met.

use serde_json::json;

use super::{Flow, Gatherer, NextStep, error};
use crate::reading::Clause;
use crate::{speech, wire};

impl Gatherer<'_> {
    /// The next step of a question. `None` if the clause is an order.
    pub(super) fn question(&self, clause: &Clause) -> Flow<Option<NextStep>> {
        match clause.act() {
            "schema" | "howto" => {
                let action = clause.slot("action").unwrap_or_default();
                self.need(speech::schema_tool(action), json!({}))?;
            }
            "contexts" => {
                self.need("get_available_contexts", json!({}))?;
            }
            "health" => {
                self.need("check_upgrade_health", json!({}))?;
            }
            "experiments" => {
                if let Some(said) = clause.slot("context") {
                    self.context(said)?;
                }
                let input =
                    if clause.slot("author").is_some() { json!({ "with_authors": true }) } else { json!({}) };
                self.need("get_all_experiments", input)?;
            }
            "conditions" => return self.of_context(clause, "get_conditions_for_context").map(Some),
            "points" => return self.of_context(clause, "get_decision_points_for_context").map(Some),
            "groups" => return self.of_context(clause, "get_group_types_for_context").map(Some),
            "details" | "status_of" | "and" | "reference" => {
                return self.about_one(clause, &["get_experiment_details"]).map(Some);
            }
            "enrollment" => {
                return self
                    .about_one(clause, &["get_experiment_details", "get_enrollment_details"])
                    .map(Some);
            }
            "compare" => {
                for slot in clause.slots.iter().filter(|slot| slot.name == "experiment") {
                    if let Some(known) = self.experiment(slot)? {
                        self.details(&known.id)?;
                    }
                }
            }
            "every" => {
                let names: Vec<String> =
                    self.names()?.iter().map(|known| wire::on_one_line(&known.name)).collect();
                let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
                let why = format!("I change one experiment at a time; there are {names}");
                return Ok(Some(self.refusal("validation", why)));
            }
            "beyond" | "cannot" => {
                let topic = clause.slot("topic").unwrap_or_default();
                return Ok(Some(self.refusal("unknown", speech::beyond(topic).to_owned())));
            }
            "yes" if self.facts.situation_field("pending")["action"].is_string() => {
                return Ok(Some(self.left_over(speech::no_answer(&self.facts.message))));
            }
            "refuse" | "no" => {
                return Ok(Some(error("unknown", "you do not want it, so I left it alone".to_owned())));
            }
            "explain" | "report" | "help" | "greeting" | "thanks" | "farewell" | "undo" | "yes" => {}
            _ => return Ok(None),
        }
        Ok(Some(self.answered()))
    }

    /// What cannot be done. A question for parameters stays open.
    fn refusal(&self, class: &str, why: String) -> NextStep {
        if self.asked.is_empty() { error(class, why) } else { self.left_over(why) }
    }

    /// The vocabulary of a context, or that of an experiment.
    fn of_context(&self, clause: &Clause, tool: &'static str) -> Flow<NextStep> {
        if let Some(context) = self.named_context(clause)? {
            self.need(tool, json!({ "context": context.name }))?;
        } else if let Some(known) = self.target(clause)? {
            self.details(&known.id)?;
        }
        Ok(self.answered())
    }

    fn about_one(&self, clause: &Clause, tools: &[&'static str]) -> Flow<NextStep> {
        let unsaid = clause.slots.iter().all(|slot| slot.name != "experiment");
        let that = self.facts.situation_field("that_experiment")["id"].as_str().filter(|_| unsaid);
        let id = match self.target(clause)? {
            Some(known) => Some(known.id),
            None => that.map(str::to_owned),
        };
        let Some(id) = id else {
            self.need("get_all_experiments", json!({}))?;
            return Ok(self.answered());
        };
        for tool in tools {
            self.need(tool, json!({ "experiment_id": id }))?;
        }
        Ok(self.answered())
    }
}

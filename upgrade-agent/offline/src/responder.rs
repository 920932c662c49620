//! The model as response generator: reads the gathered data and writes the answer.

use serde_json::{Value, json};

use crate::facts::Facts;
use crate::gatherer::NextStep;
use crate::reading::{Clause, Reading};
use crate::slots::Known;
use crate::understanding::understand;
use crate::{nearest, sentences, speech, terms, wire};

/// The next step: a look-up of stored data, or the answer.
pub(crate) fn next(facts: &Facts) -> NextStep {
    let responder = Responder { facts };
    let mut reading = understand(facts, &Known::default());
    if !reading.is_whole() || !reading.others.is_empty() {
        const NAMES: &str = "get_stored_experiment_names";
        if facts.offers(NAMES) && !facts.was_called(NAMES) {
            return NextStep::Call(vec![(NAMES, json!({}))]);
        }
        let names = wire::names(responder.stored(NAMES)).into_iter().map(|known| known.name);
        reading = understand(facts, &Known::new(names, Vec::new()));
    }
    match responder.wanted(&reading) {
        Some(tool) => NextStep::Call(vec![(tool, json!({}))]),
        None => NextStep::Done(responder.answer(&reading)),
    }
}

struct Responder<'a> {
    facts: &'a Facts,
}

impl Responder<'_> {
    /// The stored data that the answer needs and that were not read yet.
    fn wanted(&self, reading: &Reading) -> Option<&'static str> {
        let act = reading.first().map(|(clause, _)| clause.act()).unwrap_or_default();
        let needs: &[&'static str] = match act {
            _ if self.facts.has_any("errors") => &["get_errors"],
            "report" => &["get_execution_log"],
            "experiments" | "details" | "status_of" | "enrollment" | "and" | "reference" => {
                &["get_all_gathered_info", "get_stored_experiments"]
            }
            _ if self.facts.has_any("gathered") => &["get_all_gathered_info"],
            _ => &[],
        };
        needs.iter().copied().find(|tool| self.facts.offers(tool) && !self.facts.was_called(tool))
    }

    fn stored(&self, tool: &str) -> &Value {
        let answer = self.facts.answer(tool, &Value::Null).filter(|answer| !answer.failed);
        answer.map_or(&Value::Null, |answer| &answer.output)
    }

    /// The data gathered under a name.
    fn gathered(&self, name: &str) -> Option<&Value> {
        self.stored("get_all_gathered_info").get(name).filter(|value| !value.is_null())
    }

    /// The values gathered under a name by id.
    fn gathered_by_id(&self, name: &str) -> Vec<&Value> {
        match self.gathered(name) {
            Some(value) if value.get("name").is_some() => vec![value],
            Some(Value::Object(all)) => all.values().collect(),
            _ => Vec::new(),
        }
    }

    fn answer(&self, reading: &Reading) -> String {
        if let Some(errors) = self.errors() {
            return errors;
        }
        let near = nearest::forms(reading, &self.facts.message);
        if let Some(words) = speech::not_understood(reading, &self.facts.message, &near) {
            return format!("{} {words}", speech::UNCLEAR);
        }
        let unclear = self.facts.situation_field("reply_kind") == "clarification";
        // What needs the server is met one at a time, and the agent offers the rest.
        let needs_nothing = |clause: &Clause| {
            matches!(
                clause.act(),
                "explain"
                    | "report"
                    | "help"
                    | "undo"
                    | "greeting"
                    | "thanks"
                    | "farewell"
                    | "yes"
                    | "no"
                    | "refuse"
            )
        };
        let met: Vec<&Clause> = match reading.first() {
            Some((first, _)) if !reading.clauses.iter().all(needs_nothing) => vec![first],
            _ => reading.clauses.iter().collect(),
        };
        let answers: Vec<String> = met
            .into_iter()
            .map(|clause| if unclear { self.clarification(clause, &near) } else { self.answer_to(clause) })
            .collect();
        if answers.is_empty() { GREETING.to_owned() } else { answers.join("\n\n") }
    }

    fn answer_to(&self, clause: &Clause) -> String {
        match clause.act() {
            "greeting" => GREETING.to_owned(),
            "thanks" => "You're welcome. Is there anything else?".to_owned(),
            "farewell" => "Goodbye. This conversation is kept; you can go on with it at any time.".to_owned(),
            "help" => speech::help(),
            "undo" => UNDO.to_owned(),
            "no" | "refuse" => "All right, nothing is done. Is there something else?".to_owned(),
            "explain" => {
                let mut told: Vec<&str> = Vec::new();
                for term in clause.all("term").filter_map(terms::explained) {
                    if !told.contains(&term.text) {
                        told.push(term.text);
                    }
                }
                told.join("\n\n")
            }
            "report" => sentences::report(self.stored("get_execution_log")),
            "schema" => self.needs_of(clause.slot("action").unwrap_or_default()),
            "howto" => {
                let action = clause.slot("action").unwrap_or_default();
                format!("{}\n\n{}", sentences::how_to(action), self.needs_of(action))
            }
            "contexts" => self.contexts(),
            "conditions" | "points" | "groups" => self.of_context(clause.act()),
            "experiments" => self.experiments(Some(clause)),
            "compare" => match self.gathered_by_id("experiment_details").as_slice() {
                [one, other] => sentences::compared(one, other),
                _ => "Which two experiments should I compare? Name both.".to_owned(),
            },
            "details" | "status_of" | "and" | "reference" => self.experiment(clause),
            "enrollment" => match self.gathered_by_id("enrollment_details").as_slice() {
                [one, ..] => sentences::enrollment(one),
                [] => format!(
                    "Of which experiment do you want to know the enrolment?\n\n{}",
                    self.experiments(None)
                ),
            },
            "health" => sentences::health(self.gathered("upgrade_health")),
            _ => self.clarification(clause, &nearest::forms(&Reading::default(), &self.facts.message)),
        }
    }

    fn errors(&self) -> Option<String> {
        let told = self.facts.situation_field("errors").as_array().filter(|errors| !errors.is_empty())?;
        let lines: Vec<&str> = told.iter().filter_map(|error| wire::text(error, &["message"])).collect();
        Some(format!("That did not work: {}", lines.join("; ")))
    }

    fn clarification(&self, clause: &Clause, near: &[&str]) -> String {
        match clause.act() {
            "status_of" => "Of which experiment do you want to know the status? Tell me its name, or ask me for the list of experiments.".to_owned(),
            "yes" | "no" => "There is no question open. What would you like to do?".to_owned(),
            _ => format!("{} I do not know what '{}' is about. Near it I understand: {}.", speech::UNCLEAR, wire::on_one_line(&clause.source), speech::examples(near)),
        }
    }

    fn needs_of(&self, action: &str) -> String {
        let schema = speech::schema_tool(action);
        let found = self.gathered(schema.strip_prefix("get_").unwrap_or(schema));
        sentences::schema(action, found)
    }

    fn contexts(&self) -> String {
        let names = self.gathered("available_contexts").map(wire::texts).unwrap_or_default();
        match names.as_slice() {
            [] => "The server told no contexts.".to_owned(),
            [one] => format!("There is one context: {one}."),
            names => format!("There are {} contexts: {}.", names.len(), names.join(", ")),
        }
    }

    fn of_context(&self, part: &str) -> String {
        let prefix = match part {
            "conditions" => "conditions_for_",
            "points" => "decision_points_for_",
            _ => "group_types_for_",
        };
        let all = self.stored("get_all_gathered_info").as_object();
        let found =
            all.into_iter().flatten().filter_map(|(key, value)| Some((key.strip_prefix(prefix)?, value)));
        let lines: Vec<String> =
            found.map(|(context, value)| sentences::part(part, context, value)).collect();
        match self.gathered_by_id("experiment_details").first() {
            _ if !lines.is_empty() => lines.join("\n"),
            Some(experiment) => sentences::part_of_experiment(part, experiment),
            None => {
                "I did not find out which context that is about. Ask me for the list of contexts.".to_owned()
            }
        }
    }

    fn experiments(&self, clause: Option<&Clause>) -> String {
        let stored =
            Some(self.stored("get_stored_experiments")).filter(|value| !wire::experiments(value).is_empty());
        let all =
            stored.or_else(|| self.gathered("all_experiments")).map(wire::experiments).unwrap_or_default();
        let filter = clause.map(|clause| clause.slots.as_slice()).unwrap_or_default();
        if filter.iter().all(|slot| slot.name != "author") {
            return sentences::list(&all, filter);
        }
        let authors =
            self.gathered("experiment_authors").and_then(Value::as_object).filter(|all| !all.is_empty());
        let Some(authors) = authors else {
            return "UpGrade's audit log names nobody who made an experiment: it does so only for those who log in.".to_owned();
        };
        let with_author = |one: &&Value| {
            let mut one = (*one).clone();
            one["author"] =
                wire::text(&one, &["id"]).and_then(|id| authors.get(id)).cloned().unwrap_or_default();
            one
        };
        let all: Vec<Value> = all.iter().map(with_author).collect();
        sentences::list(&all.iter().collect::<Vec<_>>(), filter)
    }

    fn experiment(&self, clause: &Clause) -> String {
        match (self.gathered_by_id("experiment_details").first(), clause.act()) {
            (Some(experiment), "status_of") => sentences::status(experiment),
            (Some(experiment), _) => sentences::details(experiment),
            (None, _) => format!("Which experiment do you mean?\n\n{}", self.experiments(None)),
        }
    }
}

const UNDO: &str = "I cannot take back what was done; what was only asked about has changed nothing. A status can be changed once \
    more (\"start Hints\", \"stop Hints\"), a setting set to what it was, and an experiment that was created deleted. What was \
    deleted is gone, and students who were enrolled stay enrolled. Ask \"what did we do so far?\" to see what there is.";

const GREETING: &str = "Hello! I can explain A/B testing, show you contexts and experiments, and create, change, start, stop and \
    delete experiments; whatever changes something I ask back first. What would you like to do?";

//! The offline model as response generator: reads the gathered data and writes the answer.

mod sentences;

use serde_json::{Value, json};

use super::facts::Facts;
use super::gatherer::NextStep;
use super::intent::{Operation, Part, Request, understand};
use super::slots;
use super::text::Text;
use super::unsupported;
use super::wire;

/// The next step: a look-up of stored data, or the answer.
pub(super) fn next(facts: &Facts) -> NextStep {
    let text = Text::read(&facts.message);
    let ask = understand(&text).ask;
    let responder = Responder { facts, text: &text };
    match responder.wanted(&ask) {
        Some(tool) => NextStep::Call(vec![(tool, json!({}))]),
        None => NextStep::Done(responder.answer(&ask)),
    }
}

struct Responder<'a> {
    facts: &'a Facts,
    text: &'a Text,
}

impl Responder<'_> {
    /// The stored data that the answer needs and that were not read yet.
    fn wanted(&self, ask: &Request) -> Option<&'static str> {
        let gathered =
            self.facts.situation_field("gathered").as_array().is_some_and(|names| !names.is_empty());
        let needs: &[&'static str] = match ask {
            Request::Report => &["get_execution_log"],
            Request::Experiments | Request::Details | Request::StatusOf | Request::Enrollment => {
                &["get_all_gathered_info", "get_stored_experiments"]
            }
            _ if gathered => &["get_all_gathered_info"],
            _ => &[],
        };
        let errors = self.facts.situation_field("errors").as_array().is_some_and(|errors| !errors.is_empty());
        let needs = if errors { &["get_errors"] } else { needs };
        needs.iter().copied().find(|tool| self.facts.offers(tool) && !self.facts.was_called(tool))
    }

    fn stored(&self, tool: &str) -> &Value {
        self.facts
            .answer(tool, &Value::Null)
            .filter(|answer| !answer.failed)
            .map_or(&Value::Null, |answer| &answer.output)
    }

    /// The data gathered under a name, or under the first name that starts with it.
    fn gathered(&self, name: &str) -> Option<&Value> {
        let all = self.stored("get_all_gathered_info").as_object()?;
        let value = all
            .get(name)
            .or_else(|| all.iter().find(|(key, _)| key.starts_with(name)).map(|(_, value)| value));
        value.filter(|value| !value.is_null())
    }

    /// The single value gathered under a name and its id.
    fn gathered_one(&self, name: &str) -> Option<&Value> {
        let value = self.gathered(name)?;
        match value.get("name") {
            Some(_) => Some(value),
            None => value.as_object()?.values().next(),
        }
    }

    fn answer(&self, ask: &Request) -> String {
        if let Some(errors) = self.errors() {
            return errors;
        }
        let unclear = self.facts.situation_field("reply_kind") == "clarification";
        let answer = if unclear { self.clarification(ask) } else { self.answer_to(ask) };
        let is_told = !unclear && ask.is_about_data();
        match unsupported::time_other_than_now(self.text).filter(|_| is_told) {
            Some(time) => format!("{answer}\n\nThat is how things are now; I cannot tell it for '{time}'."),
            None => answer,
        }
    }

    fn answer_to(&self, ask: &Request) -> String {
        match ask {
            Request::Greeting => GREETING.to_owned(),
            Request::Thanks => "You're welcome. Is there anything else?".to_owned(),
            Request::Farewell => {
                "Goodbye. This conversation is kept; you can go on with it at any time.".to_owned()
            }
            Request::Abilities => ABILITIES.to_owned(),
            Request::Yes => "There is nothing open to say yes to. What would you like to do?".to_owned(),
            Request::No | Request::Refused => {
                "All right, nothing is done. Is there something else?".to_owned()
            }
            Request::Explain(terms) => {
                let mut told: Vec<&str> = Vec::new();
                for term in terms {
                    if !told.contains(&term.text()) {
                        told.push(term.text());
                    }
                }
                told.join("\n\n")
            }
            Request::Report => sentences::report(self.stored("get_execution_log")),
            Request::Schema(action) => self.needs_of(*action),
            Request::HowTo(action) => format!("{}\n\n{}", sentences::how_to(*action), self.needs_of(*action)),
            Request::Contexts => self.contexts(),
            Request::OfContext(part) => self.of_context(*part),
            Request::Experiments => self.experiments(),
            Request::Details | Request::StatusOf => self.experiment(ask),
            Request::Enrollment => self.enrollment(),
            Request::Health => sentences::health(self.gathered("upgrade_health")),
            Request::Undo => UNDO.to_owned(),
            Request::Do(_) | Request::Beyond | Request::Unclear | Request::OtherLanguage => {
                self.clarification(ask)
            }
        }
    }

    fn errors(&self) -> Option<String> {
        let told = self.facts.situation_field("errors").as_array().filter(|errors| !errors.is_empty())?;
        let lines: Vec<&str> = told.iter().filter_map(|error| wire::text(error, &["message"])).collect();
        Some(format!("That did not work: {}", lines.join("; ")))
    }

    fn clarification(&self, ask: &Request) -> String {
        match ask {
            Request::StatusOf => {
                "Of which experiment do you want to know the status? Tell me its name, or ask me for the \
                              list of experiments."
                    .to_owned()
            }
            Request::Yes | Request::No => "There is no question open. What would you like to do?".to_owned(),
            Request::Do(action) => format!(
                "Do you want me to {}? Say it with the experiment's name, please.",
                sentences::verb(*action)
            ),
            Request::OtherLanguage => OTHER_LANGUAGE.to_owned(),
            _ => UNCLEAR.to_owned(),
        }
    }

    fn needs_of(&self, action: Operation) -> String {
        let schema = match action {
            Operation::Create => "create_experiment_schema",
            Operation::Update => "update_experiment_schema",
            Operation::Status(_) => "update_experiment_status_schema",
            Operation::Delete => "delete_experiment_schema",
            Operation::Init => "init_experiment_user_schema",
            Operation::Assign => "get_decision_point_assignments_schema",
            Operation::Mark => "mark_decision_point_schema",
            Operation::Visit => "visit_decision_point_schema",
            Operation::Balance => "test_condition_balance_schema",
            Operation::Journey => "simulate_user_journey_schema",
        };
        let found = self.gathered(schema).or_else(|| self.gathered(&format!("get_{schema}")));
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

    fn of_context(&self, part: Part) -> String {
        let prefix = match part {
            Part::Conditions => "conditions_for_",
            Part::Points => "decision_points_for_",
            Part::Groups => "group_types_for_",
        };
        let all = self.stored("get_all_gathered_info").as_object();
        let found =
            all.into_iter().flatten().filter_map(|(key, value)| Some((key.strip_prefix(prefix)?, value)));
        let lines: Vec<String> =
            found.map(|(context, value)| sentences::part(part, context, value)).collect();
        if !lines.is_empty() {
            return lines.join("\n");
        }
        match self.gathered_one("experiment_details") {
            Some(experiment) => sentences::part_of_experiment(part, experiment),
            None => {
                "I did not find out which context that is about. Ask me for the list of contexts.".to_owned()
            }
        }
    }

    fn experiments(&self) -> String {
        let gathered = self.gathered("all_experiments").or_else(|| self.gathered("experiments"));
        let value = gathered.filter(|value| !wire::experiments(value).is_empty());
        let all = wire::experiments(value.unwrap_or_else(|| self.stored("get_stored_experiments")));
        let status = slots::status_word(self.text);
        let listed: Vec<String> = all.iter().filter_map(|one| wire::context_of(one)).collect();
        let context = slots::names::word_of(self.text, listed.iter().map(String::as_str)).map(str::to_owned);
        let context = context.or_else(|| slots::points::named_context(self.text));
        sentences::list(&all, status, slots::status_is_denied(self.text), context.as_deref())
    }

    fn experiment(&self, ask: &Request) -> String {
        match (self.gathered_one("experiment_details"), ask) {
            (Some(experiment), Request::StatusOf) => sentences::status(experiment),
            (Some(experiment), _) => sentences::details(experiment),
            (None, Request::Details) if self.gathered("conditions_for_").is_some() => {
                [Part::Conditions, Part::Points, Part::Groups].map(|part| self.of_context(part)).join("\n")
            }
            (None, Request::StatusOf) => format!("{}\n\nTell me a name for more.", self.experiments()),
            (None, _) => self.experiments(),
        }
    }

    fn enrollment(&self) -> String {
        match self.gathered_one("enrollment_details") {
            Some(enrollment) => sentences::enrollment(enrollment),
            None => {
                format!("Of which experiment do you want to know the enrolment?\n\n{}", self.experiments())
            }
        }
    }
}

/// The answer to "what can you do?".
const ABILITIES: &str = "I am the offline model: I work without any network or language model, by rules, so I \
understand plain requests about UpGrade and little else. I can explain A/B testing and UpGrade's terms; list contexts \
and experiments, and show an experiment, its status and its enrolment; tell which conditions, decision points and group \
types a context offers and what an action needs; create, update, start, stop, pause, resume, cancel, archive and delete \
experiments; try out a student (initialise, assign, mark, or all three as a visit); test the balance of an experiment's \
conditions; play a journey of simulated students; and sum up what we did. Whatever changes something is asked back first. With ANTHROPIC_API_KEY set, a language model answers instead.";

const UNCLEAR: &str = "I did not understand that: I am the offline model and know plain requests about UpGrade only, in English. Could \
                       you say it in other words, for example \"list the experiments\" or \"start experiment Hints\"? \
                       Say \"help\" for all that I can do.";

const OTHER_LANGUAGE: &str = "I am the offline model and understand English only. Could you say it in English, for example \"list \
                              the experiments\"? With ANTHROPIC_API_KEY set, a language model answers, in your language too.";

const UNDO: &str = "I cannot take back what was done; what was only asked about has changed nothing. A status can be changed once \
                    more (\"start Hints\", \"stop Hints\"), a setting set to what it was, and an experiment that was created \
                    deleted. What was deleted is gone, and students who were enrolled stay enrolled. Ask \"what did we do so \
                    far?\" to see what there is.";

const GREETING: &str = "Hello! I can explain A/B testing, show you contexts and experiments, and create, change, start, stop \
                        and delete experiments; whatever changes something I ask back first. What would you like to do?";

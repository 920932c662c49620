//! Data as sentences. Knows no request; the caller chooses the data.

use serde_json::Value;

use crate::reading::Slot;
use crate::token::tokens;
use crate::{values, wire};

pub(crate) fn verb(action: &str) -> &'static str {
    match action {
        "create_experiment" => "create an experiment",
        "update_experiment" => "change an experiment",
        "delete_experiment" => "delete an experiment",
        "init_experiment_user" => "initialise a student",
        "get_decision_point_assignments" => "get a student's conditions",
        "mark_decision_point" => "mark a decision point for a student",
        "visit_decision_point" => "let a student visit a decision point",
        "test_condition_balance" => "test the balance of an experiment's conditions",
        "simulate_user_journey" => "simulate students who go through an experiment",
        _ => "change an experiment's status",
    }
}

/// The phrases for an action, and its effect.
pub(crate) fn how_to(action: &str) -> String {
    let status = match action {
        "start" => "enrolling",
        "stop" => "enrollmentComplete",
        "cancel" => "cancelled",
        "archive" => "archived",
        _ => "",
    };
    if !status.is_empty() {
        return format!(
            "Say it with the experiment's name, for example: {action} Hints. I show you the status it has and the one it would get \
             ({status}), and do it after your yes. Then {}.",
            effect_of(status)
        );
    }
    HOW_TO.iter().find(|(known, _)| *known == action).map_or_else(String::new, |(_, text)| (*text).to_owned())
}

const HOW_TO: &[(&str, &str)] = &[
    (
        "create_experiment",
        "To create an experiment, say for example: create experiment Hints in assign-prog. I ask for what is \
                           missing, show you the whole and create it after your yes. It begins as inactive.",
    ),
    (
        "update_experiment",
        "To change an experiment, say what shall change, for example: set the weights of Hints to 70/30. I \
                           ask back first. The conditions and decision points of an experiment that runs or is paused \
                           are changed only if you insist.",
    ),
    (
        "update_experiment_status",
        "Say which experiment and which status, for example: start Hints, stop Hints, cancel Hints. I \
                                 show you both statuses and do it after your yes.",
    ),
    (
        "delete_experiment",
        "To delete an experiment, say for example: delete experiment Hints. I show you its name and id, and you \
                           type DELETE. It is gone for good then, with all its enrolments; stopping or archiving it would \
                           keep them.",
    ),
    (
        "init_experiment_user",
        "To try out a student, say for example: initialise user ada in class c1. I ask back first.",
    ),
    (
        "get_decision_point_assignments",
        "Say for example: which conditions does user ada get in assign-prog? That enrols nobody.",
    ),
    (
        "mark_decision_point",
        "Say for example: mark SelectSection for user ada. Marking enrols the student for good; the server cannot \
                         take it back.",
    ),
    (
        "visit_decision_point",
        "To let a student visit a decision point, say for example: let student ada visit SelectSection / \
                          absolute_value_plot_equality in assign-prog. The student is made known, assigned and marked, after your yes.",
    ),
    (
        "test_condition_balance",
        "To test the balance, say for example: test the balance of Hints with 200 users. For an experiment that \
                            is live I compute it from ids and weights, which leaves nothing on the server; else, or if you say \
                            live, I show you a plan, and after your yes play students and restore the status.",
    ),
    (
        "simulate_user_journey",
        "To simulate students, say for example: simulate 50 students going through Hints, or: simulate a journey \
                            of user ada in assign-prog: visit SelectSection / absolute_value_plot_equality, then switch to class \
                            c2. I show you the steps and take them after your yes.",
    ),
];

/// The effect of a change to this status.
fn effect_of(status: &str) -> &'static str {
    match status {
        "enrolling" => "students are assigned and enrolled from then on",
        "enrollmentComplete" => "nobody new is enrolled, and those enrolled keep their condition",
        "cancelled" => "it is over for everybody, and the application shows its default again",
        "archived" => "it is put away for good",
        "preview" => "only preview users see it",
        "scheduled" => "it starts by itself at its date",
        _ => "it assigns nobody",
    }
}

/// The parameters of an action, from its JSON schema.
pub(crate) fn schema(action: &str, schema: Option<&Value>) -> String {
    let Some((properties, required)) = schema.and_then(properties) else {
        return format!("I have no list of what is needed to {}.", verb(action));
    };
    let is_required = |name: &str| required.iter().any(|known| known == name);
    let line = |name: &String, about: &Value| {
        let text = wire::text(about, &["description"]).unwrap_or_default().replace('\n', " ");
        if text.is_empty() { format!("- {name}") } else { format!("- {name}: {text}") }
    };
    let lines = |wanted: bool| {
        let fitting = properties.iter().filter(|(name, _)| is_required(name) == wanted);
        fitting.map(|(name, about)| line(name, about)).collect::<Vec<_>>().join("\n")
    };
    let must = lines(true);
    let may = lines(false);
    let may = if may.is_empty() { String::new() } else { format!("\n\nOptional:\n{may}") };
    let rules = schema.map(|schema| wire::texts(wire::field(schema, &["rules"]))).unwrap_or_default();
    let rules: String = rules.iter().map(|rule| format!("\n- {rule}")).collect();
    let rules = if rules.is_empty() { rules } else { format!("\n\nRules:{rules}") };
    format!("To {}, these parameters are required:\n{must}{may}{rules}", verb(action))
}

/// The properties of a schema, at any depth.
fn properties(value: &Value) -> Option<(&serde_json::Map<String, Value>, Vec<String>)> {
    if let Some(properties) = value.get("properties").and_then(Value::as_object) {
        return Some((properties, wire::texts(wire::field(value, &["required"]))));
    }
    value.as_object()?.values().find_map(properties)
}

pub(crate) fn part(part: &str, context: &str, value: &Value) -> String {
    match part {
        "points" => points_of_context(context, value),
        "conditions" => listed("conditions", context, value),
        _ => listed("group types", context, value),
    }
}

fn listed(what: &str, context: &str, value: &Value) -> String {
    let words = words(value);
    if words.is_empty() {
        return format!("The context {context} has no {what}.");
    }
    format!("The {what} of {context} are: {}.", words.join(", "))
}

fn points_of_context(context: &str, value: &Value) -> String {
    let sites = wire::texts(wire::field(value, &["sites"]));
    let targets = wire::texts(wire::field(value, &["targets"]));
    if sites.is_empty() && targets.is_empty() {
        return listed("decision points", context, value);
    }
    format!(
        "A decision point of {context} is made of a site and a target. Sites: {}. Targets: {}.",
        sites.join(", "),
        targets.join(", ")
    )
}

/// The texts in a value, at any depth, in order.
fn words(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => vec![text.clone()],
        Value::Array(all) => all.iter().flat_map(words).collect(),
        Value::Object(map) => match (wire::text(value, &["site"]), wire::text(value, &["target"])) {
            (Some(site), target) => vec![format!("{site} / {}", target.unwrap_or_default())],
            (None, _) => match wire::text(value, &["code", "condition_code"]) {
                Some(code) => vec![code.to_owned()],
                None => map
                    .iter()
                    .filter(|(name, _)| *name != "context")
                    .flat_map(|(_, value)| words(value))
                    .collect(),
            },
        },
        _ => Vec::new(),
    }
}

pub(crate) fn part_of_experiment(part: &str, experiment: &Value) -> String {
    let name = name(experiment);
    match part {
        "conditions" => format!("The conditions of {name} are: {}.", conditions(experiment)),
        "points" => format!("The decision points of {name} are: {}.", points(experiment)),
        _ => match wire::text(experiment, &["group_type"]) {
            Some(kind) => format!("{name} assigns whole groups of the type {kind}."),
            None => format!("{name} assigns students one by one, not groups."),
        },
    }
}

fn name(experiment: &Value) -> String {
    format!("'{}'", wire::name(experiment))
}

fn conditions(experiment: &Value) -> String {
    let all = wire::conditions(experiment);
    let each = all.iter().map(|(code, weight)| format!("{code} {weight}%"));
    or_none(each.collect::<Vec<_>>().join(", "))
}

fn points(experiment: &Value) -> String {
    let all = wire::points(experiment);
    or_none(all.iter().map(|(site, target)| format!("{site} / {target}")).collect::<Vec<_>>().join(", "))
}

fn or_none(text: String) -> String {
    if text.is_empty() { "none".to_owned() } else { text }
}

pub(crate) fn status(experiment: &Value) -> String {
    let status = wire::status(experiment);
    format!("Experiment {} is {status}: {}.", name(experiment), effect_of(status))
}

/// The students and groups of a list; none if it is empty.
fn members(list: &Value) -> Option<String> {
    let groups = wire::field(list, &["groups"]).as_array().into_iter().flatten();
    let groups = groups.filter_map(|group| {
        let kind = wire::text(group, &["group_type", "type"])?;
        Some(format!("{kind} {}", wire::text(group, &["group_id", "id"])?))
    });
    let all: Vec<String> = wire::texts(wire::field(list, &["users"])).into_iter().chain(groups).collect();
    (!all.is_empty()).then(|| all.join(", "))
}

pub(crate) fn details(experiment: &Value) -> String {
    let mut lines = vec![format!(
        "Experiment {} ({})",
        name(experiment),
        wire::text(experiment, &["id"]).unwrap_or("no id")
    )];
    let mut line =
        |title: &str, text: Option<String>| lines.extend(text.map(|text| format!("- {title}: {text}")));
    let plain = |names: &[&str]| wire::text(experiment, names).map(str::to_owned);
    line("status", Some(format!("{}: {}", wire::status(experiment), effect_of(wire::status(experiment)))));
    line("context", wire::context_of(experiment));
    line("description", plain(&["description"]));
    line("conditions", Some(conditions(experiment)));
    line("decision points", Some(points(experiment)));
    line("assigned", plain(&["assignment_unit"]));
    line("group type", plain(&["group_type"]));
    line("consistency rule", plain(&["consistency_rule"]));
    let rule = wire::field(experiment, &["post_rule", "post_experiment_rule"]);
    let code = wire::text(rule, &["condition_code"]).map(|code| format!(" {code}")).unwrap_or_default();
    line("after enrolment", wire::text(rule, &["rule"]).map(|rule| format!("{rule}{code}")));
    line("filter mode", plain(&["filter_mode"]));
    for (title, side) in [("included", "inclusion"), ("excluded", "exclusion")] {
        line(title, members(wire::field(experiment, &[side])));
    }
    let tags = wire::texts(wire::field(experiment, &["tags"]));
    line("tags", (!tags.is_empty()).then(|| tags.join(", ")));
    lines.join("\n")
}

/// The differences between two experiments.
pub(crate) fn compared(one: &Value, other: &Value) -> String {
    let lines = |experiment: &Value| -> Vec<(String, String)> {
        let details = details(experiment);
        let line = |line: &str| {
            line.strip_prefix("- ")?.split_once(": ").map(|(title, text)| (title.to_owned(), text.to_owned()))
        };
        details.lines().filter_map(line).collect()
    };
    let (mine, its) = (lines(one), lines(other));
    let of = |all: &[(String, String)], title: &str| {
        all.iter()
            .find(|(known, _)| known == title)
            .map_or_else(|| "none".to_owned(), |(_, text)| text.clone())
    };
    let mut titles: Vec<&String> = Vec::new();
    for (title, _) in mine.iter().chain(&its) {
        if !titles.contains(&title) {
            titles.push(title);
        }
    }
    let differs = titles.iter().filter(|title| of(&mine, title) != of(&its, title));
    let differences: Vec<String> =
        differs.map(|title| format!("- {title}: {} / {}", of(&mine, title), of(&its, title))).collect();
    let names = format!("{} and {}", name(one), name(other));
    match differences.as_slice() {
        [] => format!("Experiments {names} have the same settings."),
        all => format!("Experiments {names} differ in:\n{}", all.join("\n")),
    }
}

/// Whether an experiment has what a filter asks for: alternatives of properties, each perhaps denied.
fn fits(filter: &[Slot], experiment: &Value) -> bool {
    filter.split(|slot| slot.name == "or").any(|all| all_hold(all, experiment))
}

fn all_hold(properties: &[Slot], experiment: &Value) -> bool {
    let mut denied = false;
    properties.iter().all(|slot| {
        if slot.name == "not" {
            denied = true;
            return true;
        }
        let holds = holds(slot, experiment);
        let wanted = !std::mem::take(&mut denied);
        holds == wanted
    })
}

fn holds(slot: &Slot, experiment: &Value) -> bool {
    let value = slot.value.as_str();
    let made =
        wire::text(experiment, &["created_at", "createdAt"]).and_then(|at| at.get(..10)).unwrap_or_default();
    match slot.name {
        "status" => {
            values::status_at(&tokens(value)).is_some_and(|(status, _)| wire::status(experiment) == status)
        }
        "context" => wire::context_of(experiment).is_some_and(|context| context.eq_ignore_ascii_case(value)),
        "tag" => {
            wire::texts(wire::field(experiment, &["tags"])).iter().any(|tag| tag.eq_ignore_ascii_case(value))
        }
        "name" => wire::name(experiment).to_lowercase().contains(&value.to_lowercase()),
        "author" => wire::text(experiment, &["author"])
            .unwrap_or_default()
            .to_lowercase()
            .contains(&value.to_lowercase()),
        "after" => !made.is_empty() && made >= value,
        "before" => !made.is_empty() && made < value,
        "on" => made == value,
        _ => true,
    }
}

/// A filter in words.
fn described(filter: &[Slot], is_one: bool) -> String {
    let verb = if is_one { "is" } else { "are" };
    let mut words = String::new();
    let mut denied = "";
    let mut joiner = "";
    for slot in filter {
        let value = wire::on_one_line(&slot.value);
        let part = match slot.name {
            "not" => {
                denied = "not ";
                continue;
            }
            "or" => {
                joiner = " or";
                continue;
            }
            "status" => {
                let status = values::status_at(&tokens(&value)).map_or(value.as_str(), |(status, _)| status);
                format!("that {verb} {denied}{status}")
            }
            "context" => format!("{denied}in {value}"),
            "tag" => format!("{denied}tagged {value}"),
            "name" => format!("{denied}with '{value}' in the name"),
            "author" => format!("{denied}made by {value}"),
            "after" => format!("{denied}created from {value} on"),
            "before" => format!("{denied}created before {value}"),
            "on" => format!("{denied}created on {value}"),
            _ => continue,
        };
        words = format!("{words}{joiner} {part}");
        (denied, joiner) = ("", "");
    }
    words
}

/// The experiments that a filter lets through, in alphabetical order.
pub(crate) fn list(all: &[&Value], filter: &[Slot]) -> String {
    let mut fitting: Vec<&&Value> = all.iter().filter(|one| fits(filter, one)).collect();
    fitting.sort_by_key(|one| wire::text(one, &["name"]).unwrap_or_default().to_lowercase());
    let of = described(filter, fitting.len() == 1);
    if fitting.is_empty() {
        return format!("There are no experiments{}.", if of.is_empty() { " yet".to_owned() } else { of });
    }
    let line = |one: &&&Value| {
        let context = wire::context_of(one).map_or_else(String::new, |context| format!(" in {context}"));
        let twins = all.iter().filter(|other| wire::name(other) == wire::name(one)).count() > 1;
        let which = if twins { distinguishing_data(one) } else { String::new() };
        format!("- {} ({which}{}{context})", wire::name(one), wire::status(one))
    };
    let (verb, noun) = if fitting.len() == 1 { ("is", "experiment") } else { ("are", "experiments") };
    let head = format!("There {verb} {} {noun}{of}:", fitting.len());
    std::iter::once(head).chain(fitting.iter().map(line)).collect::<Vec<_>>().join("\n")
}

/// The data that distinguish experiments of the same name.
fn distinguishing_data(experiment: &Value) -> String {
    let id = wire::text(experiment, &["id"]).and_then(|id| id.get(..8)).unwrap_or_default();
    let made = wire::text(experiment, &["created_at", "createdAt"]).and_then(|at| at.get(..10));
    let made = made.map_or_else(String::new, |date| format!("created {date}, "));
    format!("id {id}, {made}")
}

pub(crate) fn enrollment(enrollment: &Value) -> String {
    let count = |value: &Value, name: &str| value.get(name).and_then(Value::as_u64).unwrap_or(0);
    let users = count(enrollment, "users");
    let groups = count(enrollment, "groups");
    let mut lines = vec![format!(
        "Experiment {} has {} and {} enrolled.",
        name(enrollment),
        counted(users, "student"),
        counted(groups, "group")
    )];
    let excluded = (count(enrollment, "users_excluded"), count(enrollment, "groups_excluded"));
    if excluded != (0, 0) {
        lines.push(format!(
            "Excluded: {}, {}.",
            counted(excluded.0, "student"),
            counted(excluded.1, "group")
        ));
    }
    let all = wire::field(enrollment, &["conditions"]).as_array().map(Vec::as_slice).unwrap_or_default();
    lines.extend(all.iter().map(|one| {
        let code = wire::text(one, &["condition", "code"]).unwrap_or("a removed condition");
        let (users, groups) =
            (counted(count(one, "users"), "student"), counted(count(one, "groups"), "group"));
        format!("- {code}: {users}, {groups}")
    }));
    lines.join("\n")
}

fn counted(count: u64, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

pub(crate) fn health(health: Option<&Value>) -> String {
    match health {
        Some(health) => {
            let version = wire::text(health, &["version"])
                .map_or_else(String::new, |version| format!(" version {version}"));
            let name = wire::text(health, &["name"]).unwrap_or("UpGrade");
            format!("The server is up: {name}{version}.")
        }
        None => "I could not find out how the server is.".to_owned(),
    }
}

/// The actions of this conversation.
pub(crate) fn report(log: &Value) -> String {
    let entries = log.as_array().or_else(|| wire::field(log, &["execution_log", "entries"]).as_array());
    let entries = entries.map(Vec::as_slice).unwrap_or_default();
    if entries.is_empty() {
        return "Nothing was changed in this conversation so far.".to_owned();
    }
    let line = |(at, entry): (usize, &Value)| {
        let failed = wire::text(entry, &["status"]) == Some("error");
        let text =
            wire::text(entry, &["summary"]).or_else(|| wire::text(entry, &["action"])).unwrap_or("an action");
        format!("{}. {}{text}", at + 1, if failed { "failed: " } else { "" })
    };
    let lines: Vec<String> = entries.iter().enumerate().map(line).collect();
    let noun = if entries.len() == 1 { "action" } else { "actions" };
    format!("So far we did {} {noun}:\n{}", entries.len(), lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_list_is_filtered_by_author_together_with_other_properties() {
        let slot = |name, value: &str| Slot { name, value: value.to_owned(), said: true };
        let experiments = [
            json!({ "name": "A", "status": "enrolling", "context": ["c"], "author": "Ada Byron ada@example.org" }),
            json!({ "name": "B", "status": "inactive", "context": ["c"], "author": "Ada Byron ada@example.org" }),
            json!({ "name": "C", "status": "enrolling", "context": ["c"], "author": "Bob" }),
            json!({ "name": "D", "status": "enrolling", "context": ["c"], "author": null }),
        ];
        let all: Vec<&Value> = experiments.iter().collect();
        let told = list(&all, &[slot("author", "ada"), slot("status", "enrolling")]);
        assert_eq!(told, "There is 1 experiment made by ada that is enrolling:\n- A (enrolling in c)");
        assert_eq!(list(&all, &[slot("author", "eve")]), "There are no experiments made by eve.");
    }
}

//! Data as sentences. Knows no request; the caller chooses the data.

use serde_json::Value;

use super::super::intent::{Operation, Part};
use super::super::wire;

pub(super) fn verb(action: Operation) -> &'static str {
    match action {
        Operation::Create => "create an experiment",
        Operation::Update => "change an experiment",
        Operation::Status(_) => "change an experiment's status",
        Operation::Delete => "delete an experiment",
        Operation::Init => "initialise a student",
        Operation::Assign => "get a student's conditions",
        Operation::Mark => "mark a decision point for a student",
        Operation::Visit => "let a student visit a decision point",
        Operation::Balance => "test the balance of an experiment's conditions",
        Operation::Journey => "simulate students who go through an experiment",
    }
}

/// The phrases for an action, and its effect.
pub(super) fn how_to(action: Operation) -> String {
    match action {
        Operation::Create => "To create an experiment, say for example: create experiment Hints in assign-prog. I ask for what is \
                           missing, show you the whole and create it after your yes. It begins as inactive."
            .to_owned(),
        Operation::Update => "To change an experiment, say what shall change, for example: set the weights of Hints to 70/30. I \
                           ask back first. The conditions and decision points of an experiment that runs or is paused \
                           are changed only if you insist."
            .to_owned(),
        Operation::Status(Some(status)) => format!(
            "Say it with the experiment's name, for example: {} Hints. I show you the status it has and the one it would get \
             ({status}), and do it after your yes. Then {}.",
            word_for(status),
            effect_of(status)
        ),
        Operation::Status(None) => "Say which experiment and which status, for example: start Hints, stop Hints, cancel Hints. I \
                                 show you both statuses and do it after your yes."
            .to_owned(),
        Operation::Delete => "To delete an experiment, say for example: delete experiment Hints. I show you its name and id, and you \
                           type DELETE. It is gone for good then, with all its enrolments; stopping or archiving it would \
                           keep them."
            .to_owned(),
        Operation::Init => "To try out a student, say for example: initialise user ada in class c1. I ask back first.".to_owned(),
        Operation::Assign => "Say for example: which conditions does user ada get in assign-prog? That enrols nobody.".to_owned(),
        Operation::Mark => "Say for example: mark SelectSection for user ada. Marking enrols the student for good; the server cannot \
                         take it back."
            .to_owned(),
        Operation::Visit => "To let a student visit a decision point, say for example: let student ada visit SelectSection / \
                          absolute_value_plot_equality in assign-prog. He is made known, assigned and marked, after your yes."
            .to_owned(),
        Operation::Balance => "To test the balance, say for example: test the balance of Hints with 200 users. For an experiment that \
                            is live I compute it from ids and weights, which leaves nothing on the server; else, or if you say \
                            live, I show you a plan, and after your yes play students and restore the status."
            .to_owned(),
        Operation::Journey => "To simulate students, say for example: simulate 50 students going through Hints, or: simulate a journey \
                            of user ada in assign-prog: visit SelectSection / absolute_value_plot_equality, then switch to class \
                            c2. I show you the steps and take them after your yes."
            .to_owned(),
    }
}

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

fn word_for(status: &str) -> &'static str {
    match status {
        "enrolling" => "start",
        "enrollmentComplete" => "stop",
        "cancelled" => "cancel",
        "archived" => "archive",
        _ => "move",
    }
}

/// The parameters of an action, from its JSON schema.
pub(super) fn schema(action: Operation, schema: Option<&Value>) -> String {
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

pub(super) fn part(part: Part, context: &str, value: &Value) -> String {
    match part {
        Part::Points => points_of_context(context, value),
        Part::Conditions => listed("conditions", context, value),
        Part::Groups => listed("group types", context, value),
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

pub(super) fn part_of_experiment(part: Part, experiment: &Value) -> String {
    let name = name(experiment);
    match part {
        Part::Conditions => format!("The conditions of {name} are: {}.", conditions(experiment)),
        Part::Points => format!("The decision points of {name} are: {}.", points(experiment)),
        Part::Groups => match wire::text(experiment, &["group_type"]) {
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

pub(super) fn status(experiment: &Value) -> String {
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

pub(super) fn details(experiment: &Value) -> String {
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

/// The experiments in alphabetical order, optionally with or without a status.
pub(super) fn list(all: &[&Value], wanted: Option<&str>, denied: bool, context: Option<&str>) -> String {
    let here = |one: &Value| context.is_none_or(|context| wire::context_of(one).as_deref() == Some(context));
    let fits =
        |one: &&&Value| here(one) && wanted.is_none_or(|wanted| (wire::status(one) == wanted) != denied);
    let mut fitting: Vec<&&Value> = all.iter().filter(fits).collect();
    fitting.sort_by_key(|one| wire::text(one, &["name"]).unwrap_or_default().to_lowercase());
    let of = wanted.map_or_else(String::new, |status| {
        let verb = if fitting.len() == 1 { "is" } else { "are" };
        format!(" that {verb}{} {status}", if denied { " not" } else { "" })
    });
    let of = context.map_or(of.clone(), |context| format!("{of} in {context}"));
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

pub(super) fn enrollment(enrollment: &Value) -> String {
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

pub(super) fn health(health: Option<&Value>) -> String {
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
pub(super) fn report(log: &Value) -> String {
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

//! The question for missing parameters, with the answers that the server allows.

use serde_json::Value;

use crate::actions::half_place::{self, HalfPlace};
use crate::actions::{self, ActionKind};
use crate::client::{Context, Experiment, ExperimentName};
use crate::state::{ConversationState, Params};
use crate::tools::Desk;

/// The limit of suggested answers.
const OPTIONS: usize = 8;

/// A question and its suggested answers.
pub(super) struct Question {
    pub(super) text: String,
    pub(super) options: Vec<String>,
}

impl Question {
    /// Asks for the first missing parameter with its options, and names the others. Options that the server
    /// does not report are left out, because a question is better than an error about its options.
    pub(super) async fn about(
        desk: &Desk,
        state: &ConversationState,
        action: Option<ActionKind>,
        params: &Params,
        missing: &[String],
    ) -> Self {
        let Some((kind, first)) = action.zip(missing.first()) else {
            return Question { text: without_parameter(action, missing), options: vec!["Cancel".to_owned()] };
        };
        // All other parameters depend on the context.
        let first = if missing.iter().any(|name| name == "context") { "context" } else { first };
        let options = options(desk, first, params).await;
        let mut text = asking(kind, first, params, state);
        if !options.first.is_empty() {
            let shown: Vec<String> = options.first.iter().map(|option| actions::display(option)).collect();
            let more = match options.count.saturating_sub(shown.len()) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            text = format!("{text} There are: {}{more}.", shown.join(", "));
        }
        let others: Vec<String> =
            missing.iter().filter(|name| *name != first).map(|name| name.replace('_', " ")).collect();
        if !others.is_empty() {
            text = format!("{text} I also need: {}.", others.join(", "));
        }
        let likely = likely(first, options.first).into_iter().take(OPTIONS).chain(["Cancel".to_owned()]);
        Question { text, options: likely.collect() }
    }
}

/// A single condition is no comparison, so the suggested answer has all of them.
fn likely(name: &str, options: Vec<String>) -> Vec<String> {
    match name {
        "conditions" if options.len() > 1 => vec![format!("{}, equally", options.join(", "))],
        _ => options,
    }
}

fn without_parameter(action: Option<ActionKind>, missing: &[String]) -> String {
    match action {
        None if !missing.is_empty() => {
            let names: Vec<String> = missing.iter().map(|name| name.replace('_', " ")).collect();
            format!("I still need to know: {}.", names.join(", "))
        }
        Some(action) => format!("What should I change before I {}?", action.in_words()),
        None => "What would you like me to do with this?".to_owned(),
    }
}

fn asking(kind: ActionKind, name: &str, params: &Params, state: &ConversationState) -> String {
    let whose = match (kind, params.get("name").and_then(Value::as_str)) {
        (ActionKind::CreateExperiment, Some(name)) => format!("experiment '{name}'"),
        (ActionKind::CreateExperiment, None) => "the experiment".to_owned(),
        _ => String::new(),
    };
    match half_place::of(params, name) {
        Some(HalfPlace::Site(site)) => {
            return format!("Which target at the site {}?", actions::display(site));
        }
        Some(HalfPlace::Target(target)) => {
            return format!("At which site is the target {}?", actions::display(target));
        }
        None => {}
    }
    match (kind, name) {
        (ActionKind::CreateExperiment, "context") => format!("Which context should {whose} run in?"),
        (ActionKind::CreateExperiment, "name") => "What should the experiment be called?".to_owned(),
        (ActionKind::UpdateExperiment, "name") => "Which name should it get?".to_owned(),
        (ActionKind::UpdateExperiment, "description") => "Which description should it get?".to_owned(),
        (ActionKind::UpdateExperiment, "conditions") => {
            "What should change, and to what? For the conditions, give each its weight in percent.".to_owned()
        }
        (ActionKind::SimulateUserJourney, "steps") => {
            "Which steps should they take, one after the other? For example: visit, then pause it, then visit again.".to_owned()
        }
        (ActionKind::CreateExperiment, "decision_points") => {
            format!("At which decision points (site / target) should {whose} run?")
        }
        (ActionKind::CreateExperiment, "conditions") => {
            format!("Which conditions should {whose} compare, and with which weights (percent)?")
        }
        (_, "experiment_id") => match &state.last_experiment {
            Some(last) => {
                format!("Which experiment do you mean? The last one was '{}'.", actions::display(&last.name))
            }
            None => "Which experiment do you mean?".to_owned(),
        },
        (_, "status") => "Which status should it get?".to_owned(),
        (_, "user_id") => "Which user (id) do you mean?".to_owned(),
        (_, "context") => "For which context?".to_owned(),
        (_, "site") => "At which site?".to_owned(),
        (_, "target") => "At which target?".to_owned(),
        (_, "decision_point") => "At which decision point (site / target)?".to_owned(),
        (kind, other) => format!("To {}, I need: {}.", kind.in_words(), other.replace('_', " ")),
    }
}

/// The answers that the server allows.
#[derive(Default)]
struct Options {
    /// The first of them.
    first: Vec<String>,
    count: usize,
}

impl From<Vec<String>> for Options {
    fn from(all: Vec<String>) -> Self {
        Options { count: all.len(), first: all }
    }
}

async fn options(desk: &Desk, name: &str, params: &Params) -> Options {
    match name {
        "experiment_id" => experiments(desk).await,
        "status" => ["enrolling", "enrollmentComplete", "cancelled"].map(str::to_owned).to_vec().into(),
        "context" => match desk.contexts().await {
            Ok(contexts) => contexts.names().map(str::to_owned).collect::<Vec<_>>().into(),
            Err(_) => Options::default(),
        },
        "conditions" => of_context(desk, params, |context| context.conditions.clone().into()).await,
        "decision_points" | "decision_point" => match half_place::of(params, name) {
            None => of_context(desk, params, points).await,
            Some(HalfPlace::Site(_)) => of_context(desk, params, |context| some(&context.targets)).await,
            Some(HalfPlace::Target(_)) => of_context(desk, params, |context| some(&context.sites)).await,
        },
        "site" => of_context(desk, params, |context| some(&context.sites)).await,
        "target" => of_context(desk, params, |context| some(&context.targets)).await,
        "group_type" => of_context(desk, params, |context| context.group_types.clone().into()).await,
        _ => Options::default(),
    }
}

async fn experiments(desk: &Desk) -> Options {
    let names = desk.names().await.unwrap_or_default();
    let shown = &names[..names.len().min(OPTIONS)];
    let twins = shown.windows(2).any(|pair| pair[0].name == pair[1].name);
    let all = if twins { desk.client().experiments().await.unwrap_or_default() } else { Vec::new() };
    let label = |known: &ExperimentName| {
        let alike = shown.iter().filter(|other| other.name == known.name).count() > 1;
        if alike { distinguishing_data(known, &all) } else { known.name.clone() }
    };
    Options { first: shown.iter().map(label).collect(), count: names.len() }
}

/// The data that distinguish experiments of the same name; the id in it is enough as an answer.
fn distinguishing_data(known: &ExperimentName, all: &[Experiment]) -> String {
    let id = known.id.get(..8).unwrap_or(&known.id);
    let one = all.iter().find(|one| one.id == known.id);
    let context =
        one.and_then(|one| one.context.first()).map_or_else(String::new, |name| format!(", {name}"));
    let made = one.and_then(|one| one.created_at.as_deref()).and_then(|at| at.get(..10));
    let made = made.map_or_else(String::new, |date| format!(", created {date}"));
    format!("{} (id {id}{context}{made})", known.name)
}

async fn of_context(desk: &Desk, params: &Params, part: fn(&Context) -> Options) -> Options {
    let Some(name) = params.get("context").and_then(Value::as_str) else { return Options::default() };
    match desk.contexts().await {
        Ok(contexts) => contexts.get(name).map(part).unwrap_or_default(),
        Err(_) => Options::default(),
    }
}

/// Limited, because a context may have hundreds.
fn some(names: &[String]) -> Options {
    Options { first: names.iter().take(OPTIONS).cloned().collect(), count: names.len() }
}

/// The server lists sites and targets separately; the person knows which pairs exist.
fn points(context: &Context) -> Options {
    let pairs = context
        .sites
        .iter()
        .flat_map(|site| context.targets.iter().map(move |target| format!("{site} / {target}")));
    Options { first: pairs.take(OPTIONS).collect(), count: context.sites.len() * context.targets.len() }
}

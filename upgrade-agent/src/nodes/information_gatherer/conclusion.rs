//! Turns the notes of a gathering into an outcome.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::facts::ServerFacts;
use super::question::Question;
use crate::actions::{
    self, Action, ActionKind, BalanceMode, DecodeError, DesignSnapshot, ExperimentRef, Facts, Problem,
    Proposal, TestConditionBalance,
};
use crate::agent::Settings;
use crate::balance::{self, BalanceReport};
use crate::client::{ClientError, ContextMetadata, ErrorKind, Experiment, ExperimentName};
use crate::nodes::failure;
use crate::nodes::tool_executor::crowd;
use crate::plan::Plan;
use crate::server::timestamp;
use crate::state::{
    ConversationState, ConversationStateUpdate, ErrorClass, IncompleteAction, LogEntry, LogStatus, Params,
    Pending, PresetReply, ResponseKind, TurnError,
};
use crate::tools::{AbandonedAction, Desk, Draft, Gathered};

/// The outcome of a gathering.
pub(super) struct Outcome {
    end: GatheringEnd,
    /// An incomplete action that was abandoned for this one.
    left: Option<AbandonedAction>,
    /// The part of the message that was not understood, if the rest was used.
    left_over: Option<String>,
    /// The experiment that the turn was about, if there was exactly one.
    about: Option<ExperimentRef>,
}

enum GatheringEnd {
    /// Facts only.
    Facts,
    Errors(Vec<TurnError>),
    /// Errors that do not concern what was asked before, which stays open.
    Passing(Vec<TurnError>),
    Ask(IncompleteAction),
    /// Values that cannot be taken. They are asked for again, and the others are kept.
    AskAgain(IncompleteAction, Vec<TurnError>),
    /// Part of the message was not understood, and the pending action stays pending.
    LeftOver(String),
    Propose(Box<Proposal>),
    /// A computed balance: there is nothing to execute.
    Balance(Box<LogEntry>, Box<BalanceReport>),
}

impl Outcome {
    fn of_end(end: GatheringEnd, about: Option<ExperimentRef>) -> Self {
        Outcome { end, left: None, left_over: None, about }
    }

    /// The ids of the experiments that the turn is about.
    pub(super) fn experiments(&self, desk: &Desk) -> Vec<String> {
        let notes = desk.notes();
        let listed = notes.experiments.iter().flatten().map(|one| &one.id);
        let seen = notes.seen.iter().chain(&self.about).map(|about| &about.id);
        listed.chain(seen).cloned().collect()
    }

    pub(super) fn write(
        self,
        update: ConversationStateUpdate,
        state: &ConversationState,
    ) -> ConversationStateUpdate {
        let repeats = matches!((&self.end, &state.pending), (GatheringEnd::Ask(now), Pending::Missing(before)) if now == before);
        let mut update = match self.end {
            GatheringEnd::Facts => update,
            GatheringEnd::Errors(errors) => {
                update.preset(Some(failure::preset(&errors))).errors(errors).pending(Pending::Nothing)
            }
            GatheringEnd::Passing(errors) => {
                let mut preset = failure::preset(&errors);
                if let Pending::Missing(missing) = &state.pending {
                    preset.text = format!("{}\n\n{}", preset.text, missing.question);
                }
                update.preset(Some(preset)).errors(errors).suggested(options(&state.pending))
            }
            GatheringEnd::Ask(missing) => update
                .preset(Some(PresetReply::new(ResponseKind::Question, missing.question.clone())))
                .suggested(missing.options.clone())
                .pending(Pending::Missing(missing)),
            GatheringEnd::AskAgain(missing, errors) => {
                let text = format!("{}\n\n{}", failure::preset(&errors).text, missing.question);
                update
                    .preset(Some(PresetReply::new(ResponseKind::Question, text)))
                    .errors(errors)
                    .suggested(missing.options.clone())
                    .pending(Pending::Missing(missing))
            }
            GatheringEnd::LeftOver(words) => match &state.pending {
                Pending::Missing(missing) => update
                    .preset(Some(PresetReply::new(
                        ResponseKind::Question,
                        format!("{words}\n{}", missing.question),
                    )))
                    .suggested(missing.options.clone()),
                _ => update
                    .preset(Some(PresetReply::new(ResponseKind::Clarification, words)))
                    .pending(Pending::Nothing),
            },
            GatheringEnd::Balance(entry, report) => {
                let preset = PresetReply::new(ResponseKind::Answer, entry.summary.clone());
                let update = update.preset(Some(preset)).balance(Some(*report)).execution_log([*entry]);
                // It was computed, so an open confirmation is not affected.
                if matches!(state.pending, Pending::Confirm(_)) {
                    update
                } else {
                    update.pending(Pending::Nothing)
                }
            }
            GatheringEnd::Propose(proposal) => update.proposal(Some(*proposal)).pending(Pending::Nothing),
        };
        if let Some(left) = self.left {
            update = update.notes([format!("I will not {}, then; nothing was changed.", in_words(&left))]);
        }
        update = update.notes(self.left_over);
        if repeats {
            update = update.notes(["I could not take that as an answer.".to_owned()]);
        }
        if self.about.is_some() && self.about != state.last_experiment {
            update = update.last_experiment(self.about);
        }
        update
    }
}

/// The suggested answers to an open question for parameters.
fn options(pending: &Pending) -> Vec<String> {
    match pending {
        Pending::Missing(missing) => missing.options.clone(),
        _ => Vec::new(),
    }
}

/// Several experiments may be created in a row, so "the experiment" would not say which one was abandoned.
fn in_words(left: &AbandonedAction) -> String {
    match &left.name {
        Some(name) if left.action == ActionKind::CreateExperiment => {
            format!("create experiment '{}'", actions::display(name))
        }
        _ => left.action.in_words().to_owned(),
    }
}

/// Judges the notes on the desk, and reads the server's data that the judgement needs.
pub(super) async fn conclude(
    desk: &Desk,
    state: &ConversationState,
    settings: &Settings,
    node: &str,
) -> Outcome {
    let Gathered { draft, errors: noted, failures, misses, seen, .. } = desk.notes().clone();
    let about = single_experiment(seen);
    let error = |(class, message)| TurnError { class, message, node: node.to_owned() };
    if !noted.is_empty() {
        return Outcome::of_end(GatheringEnd::Errors(noted.into_iter().map(error).collect()), about);
    }
    let passing = if failures.is_empty() && found_nothing(desk, &draft) { misses } else { failures };
    if !passing.is_empty() {
        return Outcome::of_end(GatheringEnd::Passing(passing.into_iter().map(error).collect()), about);
    }
    let left_over = draft.left_over().map(str::to_owned);
    if let Some(words) = left_over.clone().filter(|_| draft.missing().is_empty()) {
        return Outcome::of_end(GatheringEnd::LeftOver(words), about);
    }
    if !draft.is_touched() {
        return Outcome::of_end(GatheringEnd::Facts, about);
    }
    let left = draft.left();
    match prepare(desk, state, settings, &draft).await {
        Ok(end) => {
            let about = match &end {
                GatheringEnd::Propose(proposal) => proposal.about.clone().or(about),
                GatheringEnd::Balance(entry, _) => entry.experiment.clone(),
                _ => about,
            };
            Outcome { end, left, left_over, about }
        }
        Err(fault) => {
            let again = ask_again(desk, state, &draft, &fault).await;
            let errors = fault.errors(node);
            let end = match again {
                Some(missing) => GatheringEnd::AskAgain(missing, errors),
                None if left.is_none() && matches!(state.pending, Pending::Missing(_)) => {
                    GatheringEnd::Passing(errors)
                }
                None => GatheringEnd::Errors(errors),
            };
            Outcome { left, ..Outcome::of_end(end, about) }
        }
    }
}

/// Whether the turn consisted of look-ups only, and none found anything.
fn found_nothing(desk: &Desk, draft: &Draft) -> bool {
    !draft.is_touched() && desk.notes().info.is_empty()
}

fn single_experiment(mut seen: Vec<ExperimentRef>) -> Option<ExperimentRef> {
    seen.dedup();
    match seen.as_slice() {
        [one] => Some(one.clone()),
        _ => None,
    }
}

/// The reason for which a draft cannot become a proposal.
enum ProposalFault {
    Server(ClientError),
    NotFound(String),
    Invalid(Vec<Problem>),
}

impl From<ClientError> for ProposalFault {
    fn from(error: ClientError) -> Self {
        ProposalFault::Server(error)
    }
}

impl ProposalFault {
    fn of(parameter: Option<&'static str>, texts: impl IntoIterator<Item = String>) -> Self {
        ProposalFault::Invalid(texts.into_iter().map(|text| Problem { parameter, text }).collect())
    }

    fn errors(self, node: &str) -> Vec<TurnError> {
        let error = |class, message| TurnError { class, message, node: node.to_owned() };
        match self {
            ProposalFault::Server(failed) => vec![failure::of_server(&failed, node)],
            ProposalFault::NotFound(message) => vec![error(ErrorClass::NotFound, message)],
            ProposalFault::Invalid(problems) => {
                problems.into_iter().map(|problem| error(ErrorClass::Validation, problem.text)).collect()
            }
        }
    }
}

async fn prepare(
    desk: &Desk,
    state: &ConversationState,
    settings: &Settings,
    draft: &Draft,
) -> Result<GatheringEnd, ProposalFault> {
    let kind = draft.action();
    let mut params = draft.params();
    let mut missing = draft.missing();
    if missing.iter().any(|name| name == "context")
        && let Ok(contexts) = desk.contexts().await
        && let Some(only) = only_context(&contexts, &params)
    {
        desk.notes().chosen = Some(only.1);
        params.insert("context".to_owned(), json!(only.0));
        missing.retain(|name| name != "context");
    }
    if let Some(kind) = kind {
        match actions::decode(kind, &params) {
            Err(DecodeError::Invalid(problems)) => return Err(ProposalFault::of(None, problems)),
            Ok(action) if missing.is_empty() => {
                return propose(desk, state, action, settings).await;
            }
            _ => {}
        }
    }
    check_context(desk, &params).await?;
    check_any(desk, &missing).await?;
    check_given(desk, kind, &params, &missing).await?;
    let question = Question::about(desk, state, kind, &params, &missing).await;
    let Question { text, options } = question;
    Ok(GatheringEnd::Ask(IncompleteAction { action: kind, params, missing, question: text, options }))
}

/// The context that is meant if only one is possible, and a sentence that says so.
fn only_context(contexts: &ContextMetadata, params: &Params) -> Option<(String, String)> {
    let given = |name: &str| params.get(name).and_then(Value::as_str);
    let place = given("site").zip(given("target"));
    let fits = |name: &&str| match (contexts.get(name), place) {
        (Some(context), Some((site, target))) => {
            context.sites.iter().any(|known| known == site)
                && context.targets.iter().any(|known| known == target)
        }
        _ => true,
    };
    let mut fitting = contexts.names().filter(fits);
    let (Some(only), None) = (fitting.next(), fitting.next()) else { return None };
    let shown = actions::display(only);
    let why = match place {
        Some((site, target)) => {
            format!(
                "I took the context {shown}, the only one with {} / {}.",
                actions::display(site),
                actions::display(target)
            )
        }
        None => format!("I took the context {shown}, the only one of this server."),
    };
    Some((only.to_owned(), why))
}

/// An unknown context is reported before parameters that depend on it.
async fn check_context(desk: &Desk, params: &Params) -> Result<(), ProposalFault> {
    let Some(name) = params.get("context").and_then(Value::as_str).filter(|name| !name.is_empty()) else {
        return Ok(());
    };
    let contexts = desk.contexts().await?;
    match actions::unknown_context(name, &contexts) {
        Some(problem) => Err(ProposalFault::of(Some("context"), [problem])),
        None => Ok(()),
    }
}

/// Without any experiment there is no point in asking which one. If the server does not list them, the error
/// comes with the look-up.
async fn check_any(desk: &Desk, missing: &[String]) -> Result<(), ProposalFault> {
    let asks = missing.iter().any(|name| name == "experiment_id");
    if asks && desk.names().await.is_ok_and(|names| names.is_empty()) {
        Err(ProposalFault::NotFound("there are no experiments yet".to_owned()))
    } else {
        Ok(())
    }
}

/// The given part of a new experiment is checked at once, so that a wrong value is asked for again first.
async fn check_given(
    desk: &Desk,
    kind: Option<ActionKind>,
    params: &Params,
    missing: &[String],
) -> Result<(), ProposalFault> {
    if kind != Some(ActionKind::CreateExperiment) || missing.iter().any(|name| name == "context") {
        return Ok(());
    }
    let mut filled = params.clone();
    for name in actions::required(ActionKind::CreateExperiment) {
        let nothing = if name == "name" { json!("-") } else { json!([]) };
        if missing.contains(&name) {
            filled.insert(name, nothing);
        }
    }
    let Ok(create) = serde_json::from_value(Value::Object(filled)) else { return Ok(()) };
    let contexts = desk.contexts().await?;
    let facts = Facts { contexts: Some(&contexts), ..Facts::default() };
    let mut problems = actions::problems(&Action::CreateExperiment(create), &facts);
    let is_given = |name: &str| params.contains_key(name) && !missing.iter().any(|lacks| lacks == name);
    problems.retain(|problem| problem.parameter.is_some_and(is_given));
    if problems.is_empty() { Ok(()) } else { Err(ProposalFault::Invalid(problems)) }
}

/// The draft of a design without the values that cannot be taken; none if the fault is not in single values.
async fn ask_again(
    desk: &Desk,
    state: &ConversationState,
    draft: &Draft,
    fault: &ProposalFault,
) -> Option<IncompleteAction> {
    use ActionKind::{CreateExperiment, UpdateExperiment};
    let kind = draft.action().filter(|kind| matches!(kind, CreateExperiment | UpdateExperiment));
    let ProposalFault::Invalid(problems) = fault else { return None };
    let mut params = draft.params();
    let wrong: Option<BTreeSet<&str>> =
        problems.iter().map(|problem| problem.parameter.filter(|name| params.contains_key(*name))).collect();
    let (kind, wrong) = kind.zip(wrong)?;
    params.retain(|name, _| !wrong.contains(name.as_str()));
    let mut missing = actions::required(kind);
    missing.retain(|name| !params.contains_key(name));
    if kind == UpdateExperiment {
        missing.extend(wrong.iter().map(|name| (*name).to_owned()));
    }
    let Question { text, options } = Question::about(desk, state, Some(kind), &params, &missing).await;
    Some(IncompleteAction { action: Some(kind), params, missing, question: text, options })
}

async fn propose(
    desk: &Desk,
    state: &ConversationState,
    mut action: Action,
    settings: &Settings,
) -> Result<GatheringEnd, ProposalFault> {
    let experiment = match action.experiment_id().map(str::to_owned) {
        None => None,
        Some(id) => {
            let experiment = find(desk, &id).await?;
            action.name_experiment(&experiment.id);
            Some(experiment)
        }
    };
    let known = ServerFacts::about(desk, &action, experiment).await?;
    let facts = Facts { max_students: Some(settings.max_students), ..known.facts() };
    let problems = actions::problems(&action, &facts);
    if !problems.is_empty() {
        return Err(ProposalFault::Invalid(problems));
    }
    if let (Action::TestConditionBalance(test), Some(experiment)) = (&action, &known.experiment)
        && actions::is_offline(test, &experiment.state)
    {
        return Ok(computed(state, settings, test, experiment));
    }
    let warnings = actions::warnings(&action, &facts);
    let current = known.experiment.as_ref().map(|experiment| experiment.state.clone());
    let about = known.experiment.as_ref().map(ExperimentRef::from);
    let seen = known.experiment.as_ref().and_then(|experiment| DesignSnapshot::by(&action, experiment));
    let plan = Plan::of(&action, known.experiment.as_ref());
    Ok(GatheringEnd::Propose(Box::new(Proposal { action, about, current, seen, warnings, plan })))
}

/// A split that is computed at once and logged like an executed action.
fn computed(
    state: &ConversationState,
    settings: &Settings,
    test: &TestConditionBalance,
    experiment: &Experiment,
) -> GatheringEnd {
    let students = crowd::of_balance(test, experiment, (settings.ids)());
    let report = balance::offline(experiment, &students);
    let action = TestConditionBalance { mode: Some(BalanceMode::Offline), ..test.clone() };
    let entry = LogEntry {
        timestamp: timestamp((settings.clock)()),
        turn: state.turns,
        action: Action::TestConditionBalance(action),
        experiment: Some(experiment.into()),
        status: LogStatus::Success,
        result: json!(report),
        error: None,
        summary: balance_text(test, experiment, &report),
    };
    GatheringEnd::Balance(Box::new(entry), Box::new(report))
}

fn balance_text(test: &TestConditionBalance, experiment: &Experiment, report: &BalanceReport) -> String {
    let why = match test.mode {
        Some(_) => "",
        None => {
            "It is enrolling, and students who are played there are enrolled among the real ones for good: that is why I \
                 compute the split first. "
        }
    };
    format!(
        "The split of experiment '{}', computed from its id and weights; nothing was written on the server:\n{}\n{why}Lists, \
         other experiments at the same places and students who are enrolled already are not counted in. To play students on \
         the server, say that you want a live test.",
        actions::display(&experiment.name),
        report.in_words()
    )
}

/// The experiment with that id or, since people use names, with that name.
async fn find(desk: &Desk, id: &str) -> Result<Experiment, ProposalFault> {
    let id = match uuid::Uuid::try_parse(id) {
        Ok(id) => id.to_string(),
        Err(_) => by_name(&desk.names().await?, id)?.id.clone(),
    };
    match desk.client().experiment(&id).await {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            Err(ProposalFault::NotFound(format!("there is no experiment with the id {id}")))
        }
        found => Ok(found?),
    }
}

fn by_name<'a>(names: &'a [ExperimentName], name: &str) -> Result<&'a ExperimentName, ProposalFault> {
    let exact: Vec<_> = names.iter().filter(|known| known.name == name).collect();
    let alike = || names.iter().filter(|known| known.name.eq_ignore_ascii_case(name)).collect();
    let found: Vec<_> = if exact.is_empty() { alike() } else { exact };
    match found.as_slice() {
        [one] => Ok(one),
        [] => Err(ProposalFault::NotFound(actions::unknown_experiment(name, names))),
        several => {
            let ids: Vec<&str> = several.iter().map(|known| known.id.as_str()).collect();
            let why = format!(
                "there are {} experiments named '{name}': say which id: {}",
                ids.len(),
                ids.join(", ")
            );
            Err(ProposalFault::of(None, [why]))
        }
    }
}

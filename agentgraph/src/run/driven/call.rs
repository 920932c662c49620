//! [`RunCall`]: what a caller asks of a thread, as bytes.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::engine::call::answers::Answers;
use crate::engine::call::edit::Edit;
use crate::engine::stored::{from_bytes, to_bytes};
use crate::error::{Code, Error};
use crate::policy::Siblings;
use crate::record::blob::Blob;
use crate::record::codec::Codec;
use crate::run::begin::CallRequest;
use crate::run::call_plan::CallPlan;
use crate::state::StoredState;
use crate::typed::{AnySchema, AnyUpdate};
use crate::words::{Budget, InterruptId, View, Views};

/// Reads the input of a pass.
pub(super) type ReadPass = fn(&[u8]) -> Result<AnyUpdate, Error>;

/// What a caller asks of a thread: a call with its settings, as a serde value without the types of the state.
/// A compact format such as MessagePack keeps it small.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[must_use = "a call does nothing until a graph drives it"]
pub struct RunCall {
    request: Request,
    #[serde(default)]
    settings: Settings,
}

#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Request {
    Invoke(Blob),
    Pass(Blob),
    Resume(Value),
    ResumeMany(Vec<(InterruptId, Value)>),
    Proceed,
    Edit(SentEdit),
}

/// An edit of a thread's state, with encoded updates.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum SentEdit {
    Here(Blob),
    As(Vec<(String, Blob)>),
    AsStart(Blob),
    AsEnd(Blob),
}

/// Omits inputs and answers, which may be secret.
impl std::fmt::Debug for Request {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(match self {
            Request::Invoke(_) => "Invoke",
            Request::Pass(_) => "Pass",
            Request::Resume(_) => "Resume",
            Request::ResumeMany(_) => "ResumeMany",
            Request::Proceed => "Proceed",
            Request::Edit(_) => "Edit",
        })
    }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Settings {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    max_supersteps: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    max_concurrency: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    deadline: Option<Duration>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    step_timeout: Option<Duration>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    budget: Option<SentBudget>,
    /// Whether siblings of a failed task are cancelled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cancels_siblings: Option<bool>,
    #[serde(default)]
    abandons: bool,
    /// The events that the driver listens to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    views: Vec<View>,
    #[serde(default)]
    subgraphs: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct SentBudget {
    supersteps: Option<u64>,
    time: Option<Duration>,
    units: BTreeMap<String, u64>,
}

impl RunCall {
    fn new(request: Request) -> Self {
        RunCall { request, settings: Settings::default() }
    }

    /// Starts a run with an input.
    ///
    /// # Errors
    /// [`Code::Encode`] if the update cannot be encoded.
    pub fn invoke<S: StoredState>(schema: &S::Schema, update: &S::Update) -> Result<Self, Error> {
        Ok(Self::new(Request::Invoke(Blob::from(S::encode_update(schema, update)?))))
    }

    /// Starts a pass of a dependency graph with an input.
    ///
    /// # Errors
    /// [`Code::Encode`] if the input cannot be encoded.
    pub fn pass<I: Serialize>(input: &I) -> Result<Self, Error> {
        Ok(Self::new(Request::Pass(Blob::from(to_bytes(input)?))))
    }

    /// Continues a run with an answer to the one open interrupt of the thread.
    ///
    /// # Errors
    /// [`Code::Encode`] if the answer cannot be encoded.
    pub fn resume(answer: impl Serialize) -> Result<Self, Error> {
        Ok(Self::new(Request::Resume(answer_value(answer)?)))
    }

    /// Continues a run with answers to interrupts by their ids.
    ///
    /// # Errors
    /// [`Code::Encode`] if an answer cannot be encoded.
    pub fn resume_many<A: Serialize>(
        answers: impl IntoIterator<Item = (InterruptId, A)>,
    ) -> Result<Self, Error> {
        let answers = answers.into_iter().map(|(id, answer)| Ok((id, answer_value(answer)?)));
        Ok(Self::new(Request::ResumeMany(answers.collect::<Result<_, Error>>()?)))
    }

    /// Continues a run that was stopped by anything but an open interrupt.
    pub fn proceed() -> Self {
        Self::new(Request::Proceed)
    }

    /// Changes the state of a thread between two supersteps, as
    /// [`StateEdit::update`](crate::run::StateEdit::update) does.
    ///
    /// # Errors
    /// [`Code::Encode`] if the update cannot be encoded.
    pub fn update_state<S: StoredState>(schema: &S::Schema, update: &S::Update) -> Result<Self, Error> {
        Ok(Self::new(Request::Edit(SentEdit::Here(Blob::from(S::encode_update(schema, update)?)))))
    }

    /// Changes the state of a thread as if these nodes had returned their updates, as
    /// [`StateEdit::as_node`](crate::run::StateEdit::as_node) does.
    ///
    /// # Errors
    /// [`Code::Encode`] if an update cannot be encoded.
    pub fn update_state_as<'a, S: StoredState>(
        schema: &S::Schema,
        updates: impl IntoIterator<Item = (&'a str, &'a S::Update)>,
    ) -> Result<Self, Error> {
        let encoded = |(node, update): (&str, &S::Update)| {
            Ok((node.to_owned(), Blob::from(S::encode_update(schema, update)?)))
        };
        let updates = updates.into_iter().map(encoded).collect::<Result<_, Error>>()?;
        Ok(Self::new(Request::Edit(SentEdit::As(updates))))
    }

    /// Changes the state of a thread as the input of a new run, which [`proceed`](Self::proceed) then runs:
    /// as [`StateEdit::as_start`](crate::run::StateEdit::as_start) does.
    ///
    /// # Errors
    /// [`Code::Encode`] if the input cannot be encoded.
    pub fn update_state_as_start<S: StoredState>(
        schema: &S::Schema,
        input: &S::Update,
    ) -> Result<Self, Error> {
        Ok(Self::new(Request::Edit(SentEdit::AsStart(Blob::from(S::encode_update(schema, input)?)))))
    }

    /// Changes the state of a thread and ends its run, as
    /// [`StateEdit::as_end`](crate::run::StateEdit::as_end) does.
    ///
    /// # Errors
    /// [`Code::Encode`] if the update cannot be encoded.
    pub fn update_state_as_end<S: StoredState>(
        schema: &S::Schema,
        update: &S::Update,
    ) -> Result<Self, Error> {
        Ok(Self::new(Request::Edit(SentEdit::AsEnd(Blob::from(S::encode_update(schema, update)?)))))
    }

    /// As [`RunBuilder::max_supersteps`](crate::RunBuilder::max_supersteps).
    pub fn max_supersteps(mut self, steps: u64) -> Self {
        self.settings.max_supersteps = Some(steps);
        self
    }

    /// As [`RunBuilder::max_concurrency`](crate::RunBuilder::max_concurrency).
    pub fn max_concurrency(mut self, tasks: usize) -> Self {
        self.settings.max_concurrency = Some(tasks as u64);
        self
    }

    /// As [`RunBuilder::deadline`](crate::RunBuilder::deadline).
    pub fn deadline(mut self, limit: Duration) -> Self {
        self.settings.deadline = Some(limit);
        self
    }

    /// As [`RunBuilder::step_timeout`](crate::RunBuilder::step_timeout).
    pub fn step_timeout(mut self, limit: Duration) -> Self {
        self.settings.step_timeout = Some(limit);
        self
    }

    /// As [`RunBuilder::budget`](crate::RunBuilder::budget).
    pub fn budget(mut self, budget: Budget) -> Self {
        let Budget { supersteps, time, units } = budget;
        let units = units.into_iter().map(|(unit, limit)| (unit.into_owned(), limit)).collect();
        self.settings.budget = Some(SentBudget { supersteps, time, units });
        self
    }

    /// As [`RunBuilder::siblings`](crate::RunBuilder::siblings).
    pub fn siblings(mut self, policy: Siblings) -> Self {
        self.settings.cancels_siblings = Some(policy == Siblings::Cancel);
        self
    }

    /// As [`RunBuilder::abandon`](crate::RunBuilder::abandon).
    pub fn abandon(mut self) -> Self {
        self.settings.abandons = true;
        self
    }

    /// Listens to the events of these views, which [`DrivenRun::take_events`](super::DrivenRun::take_events)
    /// gives. What nodes [emit](crate::Ctx::emit), and their [messages](crate::Ctx::message), are not among
    /// them: those reach the listener where the task runs, given by
    /// [`FarSide::events`](super::super::task::TaskRun::events).
    pub fn views(mut self, views: impl IntoIterator<Item = View>) -> Self {
        self.settings.views = views.into_iter().collect();
        self
    }

    /// As [`RunBuilder::subgraphs`](crate::RunBuilder::subgraphs).
    pub fn subgraphs(mut self) -> Self {
        self.settings.subgraphs = true;
        self
    }

    /// The views that are listened to.
    pub fn heard_views(&self) -> &[View] {
        &self.settings.views
    }

    /// The call that continues this one after it was drained: `proceed()` with the same settings, less the
    /// supersteps and the time that it has used. For hosts that divide a long call.
    ///
    /// ```
    /// use agentgraph::host::RunCall;
    /// use std::time::Duration;
    ///
    /// let call = RunCall::resume(true)?.max_supersteps(1_200);
    /// let rest = call.after_drain(500, Duration::from_secs(2));
    /// assert_eq!(rest, RunCall::proceed().max_supersteps(700));
    /// # Ok::<(), agentgraph::Error>(())
    /// ```
    pub fn after_drain(mut self, steps: u64, time: Duration) -> Self {
        self.request = Request::Proceed;
        self.settings.abandons = false;
        let Settings { max_supersteps, deadline, .. } = &mut self.settings;
        *max_supersteps = max_supersteps.map(|limit| limit.saturating_sub(steps));
        *deadline = deadline.map(|limit| limit.saturating_sub(time));
        self
    }

    /// The same call with the settings of another one: an answer that continues that call.
    ///
    /// ```
    /// use agentgraph::host::RunCall;
    ///
    /// let waiting = RunCall::proceed().max_supersteps(10);
    /// assert_eq!(RunCall::resume(true)?.set_as(&waiting), RunCall::resume(true)?.max_supersteps(10));
    /// # Ok::<(), agentgraph::Error>(())
    /// ```
    pub fn set_as(mut self, other: &RunCall) -> Self {
        self.settings = Settings { abandons: false, ..other.settings.clone() };
        self
    }

    /// The method that makes such a call: `invoke`, `pass`, `resume`, `proceed` or `update_state`. For hosts
    /// that must not confuse calls.
    ///
    /// ```
    /// use agentgraph::host::RunCall;
    ///
    /// assert_eq!(RunCall::resume(true)?.kind(), "resume");
    /// assert_eq!(RunCall::proceed().kind(), "proceed");
    /// # Ok::<(), agentgraph::Error>(())
    /// ```
    pub fn kind(&self) -> &'static str {
        match &self.request {
            Request::Invoke(_) => "invoke",
            Request::Pass(_) => "pass",
            Request::Resume(_) | Request::ResumeMany(_) => "resume",
            Request::Proceed => "proceed",
            Request::Edit(_) => "update_state",
        }
    }

    /// Whether the call starts a run, instead of continuing one.
    pub fn begins_a_run(&self) -> bool {
        matches!(self.request, Request::Invoke(_) | Request::Pass(_))
    }

    /// The limit of supersteps, if the caller has set one.
    pub fn supersteps_limit(&self) -> Option<u64> {
        self.settings.max_supersteps
    }

    /// The request for a graph with this schema. `pass` makes the update that starts a pass from its input.
    pub(super) fn request(
        &self,
        codec: &Codec,
        schema: &AnySchema,
        pass: Option<ReadPass>,
    ) -> Result<CallRequest, Error> {
        let decoded = |update: &Blob| (codec.decode_update)(schema, &update.0);
        Ok(match &self.request {
            Request::Invoke(update) => CallRequest::Invoke(decoded(update)?),
            Request::Pass(input) => CallRequest::Invoke(pass.ok_or_else(no_passes)?(&input.0)?),
            Request::Resume(answer) => CallRequest::Resume(Answers::Bare(answer.clone())),
            Request::ResumeMany(answers) => CallRequest::Resume(Answers::ById(answers.clone())),
            Request::Proceed => CallRequest::Proceed,
            Request::Edit(edit) => CallRequest::Edit(match edit {
                SentEdit::Here(update) => Edit::Here(Some(decoded(update)?)),
                SentEdit::As(updates) => {
                    let updates =
                        updates.iter().map(|(node, update)| Ok((node.clone().into(), decoded(update)?)));
                    Edit::As(updates.collect::<Result<_, Error>>()?)
                }
                SentEdit::AsStart(input) => Edit::AsStart(decoded(input)?),
                SentEdit::AsEnd(update) => Edit::AsEnd(decoded(update)?),
            }),
        })
    }

    pub(super) fn set_up(self, plan: &mut CallPlan) {
        let Settings { max_supersteps, max_concurrency, deadline, step_timeout, .. } = self.settings;
        let limits = &mut plan.limits;
        if let Some(steps) = max_supersteps {
            limits.max_supersteps = steps;
        }
        if let Some(tasks) = max_concurrency {
            limits.max_concurrency = usize::try_from(tasks).unwrap_or(usize::MAX).max(1);
        }
        (limits.halt.deadline, limits.halt.step_timeout) = (deadline, step_timeout);
        limits.budget = self.settings.budget.map(|SentBudget { supersteps, time, units }| Budget {
            supersteps,
            time,
            units: units.into_iter().map(|(unit, limit)| (unit.into(), limit)).collect(),
        });
        let siblings = |cancels| if cancels { Siblings::Cancel } else { Siblings::Drain };
        limits.siblings = self.settings.cancels_siblings.map(siblings);
        plan.keeping.abandons = self.settings.abandons;
        plan.stream.views = Views::of(self.settings.views);
        plan.stream.subgraphs = self.settings.subgraphs;
        // The driver takes the events whenever the run rests, so the run never waits for it.
        plan.stream.capacity = usize::MAX;
    }
}

/// The input of a pass from its bytes.
pub(super) fn pass_input<I: serde::de::DeserializeOwned>(bytes: &[u8]) -> Result<I, Error> {
    from_bytes(bytes).map_err(|error| {
        Error::new(Code::BadInput, format!("the input of the pass does not have the graph's type: {error}"))
    })
}

/// The error for a pass that is asked of a graph without passes.
fn no_passes() -> Error {
    let problem =
        "the call starts a pass, and the graph is no dependency graph: start it with `RunCall::invoke`";
    Error::new(Code::BadInput, problem)
}

fn answer_value(answer: impl Serialize) -> Result<Value, Error> {
    serde_json::to_value(answer)
        .map_err(|error| Error::new(Code::Encode, format!("the answer cannot be sent: {error}")))
}

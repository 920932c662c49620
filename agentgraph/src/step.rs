//! The result of a node: nothing, an update, or a [`Command`], which also chooses targets.

use std::any::Any;
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;

use crate::context::edits::Edits;
use crate::error::{BoxError, Code, Error};
use crate::json_state::{JsonState, JsonUpdate};
use crate::record::header::StoredLimits;
use crate::state::{State, StateError};
use crate::typed::{AnyState, AnyUpdate};
use crate::words::{EditError, Timeouts};
use agentgraph_checkpoint::delta;

/// The result of one task for the engine.
///
/// The update travels by value: boxing it would cost more than the whole step of a small node.
#[non_exhaustive]
pub enum Step<S: State> {
    /// Changes nothing and follows the node's edges.
    None,
    /// Changes the state and follows the node's edges.
    Update(S::Update),
    /// Changes the state and chooses targets.
    Command(Box<Command<S>>),
}

/// A possible result of a node: `()`, an update, a [`Command`], or a `Result` of one of these with any
/// error.
#[diagnostic::on_unimplemented(
    message = "a node of this graph cannot return `{Self}`",
    label = "not something a node returns",
    note = "return `()`, an update such as `{S}::update()`, a `Command<{S}>`, or a `Result` of one of these"
)]
pub trait IntoStep<S: State> {
    /// Whether it may be a [`Command`], so that `compile()` knows the nodes that choose their own targets.
    const MAY_COMMAND: bool = false;

    /// Converts it into a step.
    ///
    /// # Errors
    /// The error the node returned.
    fn into_step(self) -> Result<Step<S>, BoxError>;
}

impl<S: State> IntoStep<S> for () {
    fn into_step(self) -> Result<Step<S>, BoxError> {
        Ok(Step::None)
    }
}

impl<S: State> IntoStep<S> for Step<S> {
    const MAY_COMMAND: bool = true;

    fn into_step(self) -> Result<Step<S>, BoxError> {
        Ok(self)
    }
}

impl<S: State> IntoStep<S> for Command<S> {
    const MAY_COMMAND: bool = true;

    fn into_step(self) -> Result<Step<S>, BoxError> {
        let is_plain = self.is_local() && self.targets.is_empty() && !self.replaces_edges;
        match self.update {
            // It is no more than its update, which needs no look at targets.
            Some(update) if is_plain => Ok(Step::Update(update)),
            update => Ok(Step::Command(Box::new(Command { update, ..self }))),
        }
    }
}

impl<S: State, T: IntoStep<S>> IntoStep<S> for Option<T> {
    const MAY_COMMAND: bool = T::MAY_COMMAND;

    fn into_step(self) -> Result<Step<S>, BoxError> {
        match self {
            None => Ok(Step::None),
            Some(step) => step.into_step(),
        }
    }
}

impl<S: State, T: IntoStep<S>, E: Into<BoxError>> IntoStep<S> for Result<T, E> {
    const MAY_COMMAND: bool = T::MAY_COMMAND;

    fn into_step(self) -> Result<Step<S>, BoxError> {
        match self {
            Ok(step) => step.into_step(),
            Err(error) => Err(error.into()),
        }
    }
}

/// An update together with the next targets.
///
/// ```
/// # use agentgraph::prelude::*;
/// # #[derive(State, Clone, Default)]
/// # struct Triage { risk: u8 }
/// async fn check(state: Snapshot<Triage>) -> Command<Triage> {
///     let command = Command::update(Triage::update().risk(3));
///     if state.risk > 2 { command.goto("approve") } else { command.goto(END) }
/// }
/// ```
#[must_use = "a command does nothing until the node returns it"]
pub struct Command<S: State> {
    pub(crate) update: Option<S::Update>,
    pub(crate) targets: Vec<Goto>,
    pub(crate) replaces_edges: bool,
    /// The command leaves the graph: its targets are in the parent graph.
    pub(crate) parent: Option<Box<ToParent>>,
    /// The temporary edits, made once the attempt has returned the command.
    pub(crate) edits: Vec<MakeEdits>,
}

/// Makes the temporary edits of a command.
pub(crate) type MakeEdits = Box<dyn FnOnce(&Edits) -> Result<(), EditError> + Send + Sync>;

/// The part of a command for the parent graph.
#[derive(Default)]
pub(crate) struct ToParent {
    pub(crate) update: Option<Box<dyn Any + Send + Sync>>,
    pub(crate) update_type: Cow<'static, str>,
}

/// Encodes an update for the parent graph, in a process that runs the task for a host. `None` if it is an
/// update of another state.
pub(crate) type EncodeParent =
    Arc<dyn Fn(&(dyn Any + Send + Sync)) -> Option<Result<Vec<u8>, Error>> + Send + Sync>;

impl<S: State> Command<S> {
    /// An empty command: the node's edges are followed.
    pub fn new() -> Self {
        Command { update: None, targets: Vec::new(), replaces_edges: false, parent: None, edits: Vec::new() }
    }

    /// A command with an update.
    pub fn update(update: S::Update) -> Self {
        Command { update: Some(update), ..Command::new() }
    }

    /// A command without an update that goes to these targets instead of along the node's edges.
    ///
    /// ```
    /// # use agentgraph::prelude::*;
    /// # #[derive(State, Clone, Default)]
    /// # struct Triage { risk: u8 }
    /// async fn skip() -> Command<Triage> {
    ///     Command::to(END)
    /// }
    /// ```
    pub fn to(targets: impl IntoGotos) -> Self {
        Command::new().goto(targets)
    }

    /// Goes to these targets *instead of* along the node's edges, routes and joins, for this step. Further
    /// calls add targets.
    pub fn goto(mut self, targets: impl IntoGotos) -> Self {
        self.replaces_edges = true;
        targets.into_gotos(&mut self.targets);
        self
    }

    /// Leaves the [subgraph](crate::Subgraph) of the node, and goes to these targets in the parent graph
    /// instead of along the edges of the subgraph's node. The subgraph's own updates are not merged;
    /// [`parent_update`](Command::parent_update) writes to the parent graph. Other tasks of the superstep
    /// finish first, and their questions are no longer asked.
    ///
    /// ```
    /// # use agentgraph::prelude::*;
    /// # #[derive(State, Clone, Debug, Default)]
    /// # struct Desk { #[reduce(append)] notes: Vec<String> }
    /// # #[derive(State, Clone, Debug, Default)]
    /// # struct Refund { euros: u32 }
    /// async fn check(refund: Snapshot<Refund>) -> Command<Refund> {
    ///     match refund.euros {
    ///         0..100 => Command::new(),
    ///         _ => Command::parent("manager").parent_update(Desk::update().notes(["too much for me"])),
    ///     }
    /// }
    /// async fn manager() -> DeskUpdate {
    ///     Desk::update().notes(["done by the manager"])
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// let refund = StateGraph::new().node("check", check).edge(START, "check").compile()?;
    /// let refund = refund.embed(|| Refund::update().euros(200), |_| Desk::update().notes(["refunded"]));
    /// let desk = StateGraph::new()
    ///     .node("refund", refund.targets(["manager"]))
    ///     .node("manager", manager)
    ///     .edge(START, "refund")
    ///     .compile()?;
    /// let desk = desk.invoke(Desk::update()).finish().await?;
    /// assert_eq!(desk.notes, ["too much for me", "done by the manager"]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn parent(targets: impl IntoGotos) -> Self {
        Command { parent: Some(Box::default()), ..Command::to(targets) }
    }

    /// The update that a command to the [`parent`](Command::parent) writes: one of the parent's state.
    pub fn parent_update<U: Send + Sync + 'static>(mut self, update: U) -> Self {
        self.replaces_edges = true;
        let update_type = std::any::type_name::<U>().into();
        self.parent = Some(Box::new(ToParent { update: Some(Box::new(update)), update_type }));
        self
    }

    /// Changes the graph for this run, like [`Ctx::edits`](crate::Ctx::edits). The function is called when
    /// the node has returned the command; if it returns an error, the node fails with it.
    ///
    /// ```
    /// # use agentgraph::prelude::*;
    /// # #[derive(State, Clone, Debug, Default)]
    /// # struct Words { #[reduce(append)] seen: Vec<String> }
    /// async fn plan() -> Command<Words> {
    ///     Command::new().for_this_run(|edits| edits.remove_edge("plan", "check"))
    /// }
    /// async fn note(ctx: Ctx) -> WordsUpdate {
    ///     Words::update().seen([ctx.node()])
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// let graph = StateGraph::new()
    ///     .node("plan", plan)
    ///     .node("check", note)
    ///     .node("write", note)
    ///     .edge(START, "plan")
    ///     .edge("plan", "check")
    ///     .edge("plan", "write")
    ///     .compile()?;
    /// let words = graph.invoke(Words::update()).finish().await?;
    /// assert_eq!(words.seen, ["write"]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn for_this_run(
        mut self,
        edit: impl FnOnce(&Edits) -> Result<(), EditError> + Send + Sync + 'static,
    ) -> Self {
        self.edits.push(Box::new(edit));
        self
    }

    /// Adds another command: its update is applied after this one's, its targets are added, and its edits are
    /// made last. If one of them [replaces the edges](Command::goto) or leaves for the
    /// [parent](Command::parent), the result does. Of two updates of the parent the later one counts.
    ///
    /// ```
    /// # use agentgraph::prelude::*;
    /// # #[derive(State, Clone, Debug, Default)]
    /// # struct Words { #[reduce(append)] seen: Vec<String> }
    /// async fn both() -> Result<Command<Words>> {
    ///     let tea = Command::update(Words::update().seen(["tea"]));
    ///     let milk = Command::update(Words::update().seen(["milk"])).goto(END);
    ///     Ok(tea.and(milk)?)
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// let graph = StateGraph::new().node("both", both.targets([END])).edge(START, "both").compile()?;
    /// let words = graph.invoke(Words::update()).finish().await?;
    /// assert_eq!(words.seen, ["tea", "milk"]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// If the updates cannot be combined, which cannot happen to a derived state.
    pub fn and(mut self, later: Command<S>) -> Result<Self, StateError>
    where
        S: State<Schema: Default>,
    {
        match (&mut self.update, later.update) {
            (Some(update), Some(later)) => S::compose(&S::Schema::default(), update, later)?,
            (None, later) => self.update = later,
            (Some(_), None) => {}
        }
        self.targets.extend(later.targets);
        self.replaces_edges |= later.replaces_edges;
        self.edits.extend(later.edits);
        self.parent = match (self.parent, later.parent) {
            (Some(parent), Some(later)) if later.update.is_none() => Some(parent),
            (parent, later) => later.or(parent),
        };
        Ok(self)
    }

    /// Whether it only goes to nodes of its own graph as it is.
    pub(crate) fn is_local(&self) -> bool {
        self.parent.is_none() && self.edits.is_empty()
    }

    /// Whether the command chooses where to go: [`goto`](Command::goto) or [`parent`](Command::parent).
    pub fn replaces_edges(&self) -> bool {
        self.replaces_edges
    }

    /// Goes to these targets *beside* the node's edges. Its dispatches come before those of the node's
    /// routes.
    pub fn also_goto(mut self, targets: impl IntoGotos) -> Self {
        targets.into_gotos(&mut self.targets);
        self
    }
}

impl<S: State> Default for Command<S> {
    fn default() -> Self {
        Command::new()
    }
}

impl<S: State<Update: fmt::Debug>> fmt::Debug for Command<S> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Command")
            .field("update", &self.update)
            .field("targets", &self.targets)
            .field("replaces_edges", &self.replaces_edges)
            .finish()
    }
}

/// One target: a node by name, the end, or a [`Dispatch`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Goto {
    /// A node, or [`END`](crate::END).
    Node(Cow<'static, str>),
    /// A node with an input of its own.
    Dispatch(Dispatch),
}

/// The name of a target. Steps go to names all the time, so a literal is not copied. A `&str` borrowed from a
/// value is not a literal: pass a `String` or a `&String`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a node's name",
    label = "not a name",
    note = "use a literal, `END`, a `String` or a `&String`"
)]
pub trait TargetName {
    /// Returns the name.
    fn into_name(self) -> Cow<'static, str>;
}

impl TargetName for &'static str {
    fn into_name(self) -> Cow<'static, str> {
        Cow::Borrowed(self)
    }
}

impl TargetName for String {
    fn into_name(self) -> Cow<'static, str> {
        Cow::Owned(self)
    }
}

impl TargetName for &String {
    fn into_name(self) -> Cow<'static, str> {
        Cow::Owned(self.clone())
    }
}

impl TargetName for Cow<'static, str> {
    fn into_name(self) -> Cow<'static, str> {
        self
    }
}

/// A value that names one target.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not name a node",
    label = "not a target",
    note = "use a node's name, `END`, a `Dispatch`, or an enum with `#[derive(Route)]`"
)]
pub trait IntoGoto {
    /// Returns the target.
    fn into_goto(self) -> Goto;
}

impl IntoGoto for Goto {
    fn into_goto(self) -> Goto {
        self
    }
}

#[diagnostic::do_not_recommend]
impl<T: TargetName> IntoGoto for T {
    fn into_goto(self) -> Goto {
        Goto::Node(self.into_name())
    }
}

impl IntoGoto for Dispatch {
    fn into_goto(self) -> Goto {
        Goto::Dispatch(self)
    }
}

/// A value that names any number of targets: one target, or a list of them.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not name nodes",
    label = "not a target or a list of targets",
    note = "use a node's name, `END`, a `Dispatch`, an enum with `#[derive(Route)]`, or a `Vec` or array of these"
)]
pub trait IntoGotos {
    /// Whether there may be more than one.
    const MAY_BE_SEVERAL: bool = true;

    /// Adds the targets to `targets`.
    fn into_gotos(self, targets: &mut Vec<Goto>);
}

impl<T: IntoGoto> IntoGotos for T {
    const MAY_BE_SEVERAL: bool = false;

    fn into_gotos(self, targets: &mut Vec<Goto>) {
        targets.push(self.into_goto());
    }
}

impl<T: IntoGoto> IntoGotos for Vec<T> {
    fn into_gotos(self, targets: &mut Vec<Goto>) {
        let added = self.into_iter().map(IntoGoto::into_goto);
        if targets.is_empty() {
            // In the place of the list, which has the right size.
            *targets = added.collect();
        } else {
            targets.extend(added);
        }
    }
}

impl<T: IntoGoto, const N: usize> IntoGotos for [T; N] {
    fn into_gotos(self, targets: &mut Vec<Goto>) {
        targets.extend(self.into_iter().map(IntoGoto::into_goto));
    }
}

/// Runs one node with an input of its own, in parallel with the other tasks of the superstep. For
/// map-reduce, make one dispatch for each item.
///
/// The node reads the input with the [`Input`](crate::Input) extractor. Results merge in the order of the
/// dispatches.
#[derive(Clone, Debug)]
pub struct Dispatch {
    pub(crate) node: Cow<'static, str>,
    pub(crate) input: InputValue,
}

impl Dispatch {
    /// A task for `node` with `input`.
    ///
    /// ```
    /// use agentgraph::Dispatch;
    /// let jobs: Vec<Dispatch> = (1..=3).map(|page: u32| Dispatch::new("read_page", page)).collect();
    /// assert_eq!(jobs.len(), 3);
    /// ```
    pub fn new<I: Serialize + Send + Sync + 'static>(node: impl TargetName, input: I) -> Self {
        Dispatch { node: node.into_name(), input: InputValue::new(input) }
    }

    /// Fails an attempt of this task that takes longer than `limit`, whatever the node's own
    /// [`timeout`](crate::IntoNode::timeout). A page that is known to be large may take longer than others,
    /// and a speculative one may be abandoned sooner. The limit is stored with the dispatch. The node's
    /// retry policy and idle timeout apply as for its other tasks, and so does a layer with a limit. With a
    /// limit of zero, only work without waiting is in time.
    ///
    /// ```
    /// # use agentgraph::prelude::*;
    /// # use agentgraph::Code;
    /// use std::time::Duration;
    ///
    /// # #[derive(State, Clone, Debug, Default)]
    /// # struct Pages { #[reduce(append)] read: Vec<u32> }
    /// async fn split() -> Command<Pages> {
    ///     Command::to(Dispatch::new("read_page", 7_u32).timeout(Duration::from_millis(20)))
    /// }
    /// async fn read_page(Input(page): Input<u32>) -> PagesUpdate {
    ///     tokio::time::sleep(Duration::from_secs(1)).await;
    ///     Pages::update().read([page])
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<()> {
    /// let graph = StateGraph::new()
    ///     .node("split", split)
    ///     .node("read_page", read_page.timeout(Duration::from_secs(60)))
    ///     .edge(START, "split")
    ///     .compile()?;
    /// let error = graph.invoke(Pages::update()).await.unwrap_err();
    /// assert_eq!((error.code(), error.node()), (Code::NodeTimeout, Some("read_page")));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.input.limits_mut().run = Some(limit);
        self
    }

    /// Fails an attempt of this task without a sign of life for `limit`, whatever the node's own
    /// [`idle_timeout`](crate::IntoNode::idle_timeout).
    #[must_use]
    pub fn idle_timeout(mut self, limit: Duration) -> Self {
        self.input.limits_mut().idle = Some(limit);
        self
    }
}

/// The input of a dispatch, and the time limits of its task.
#[derive(Clone)]
#[doc(hidden)]
pub struct InputValue {
    pub(crate) value: Payload,
    /// Boxed, since few dispatches have limits.
    pub(crate) limits: Option<Box<Timeouts>>,
}

/// The value itself, or its bytes once it has been in a checkpoint or another process.
#[derive(Clone)]
pub(crate) enum Payload {
    Live { value: Arc<dyn Any + Send + Sync>, encode: fn(&(dyn Any + Send + Sync)) -> Result<Vec<u8>, Error> },
    Stored(Arc<[u8]>),
}

impl InputValue {
    pub fn new<I: Serialize + Send + Sync + 'static>(input: I) -> Self {
        InputValue { value: Payload::Live { value: Arc::new(input), encode: encode_as::<I> }, limits: None }
    }

    /// An input read from a store.
    pub(crate) fn stored(bytes: impl Into<Arc<[u8]>>, limits: Option<StoredLimits>) -> Self {
        InputValue {
            value: Payload::Stored(bytes.into()),
            limits: limits.map(|limits| Box::new(limits.into())),
        }
    }

    fn limits_mut(&mut self) -> &mut Timeouts {
        self.limits.get_or_insert_default()
    }

    pub(crate) fn stored_limits(&self) -> Option<StoredLimits> {
        self.limits.as_deref().map(|limits| StoredLimits::from(*limits))
    }

    pub(crate) fn encode(&self) -> Result<Vec<u8>, Error> {
        match &self.value {
            Payload::Live { value, encode } => encode(&**value),
            Payload::Stored(bytes) => Ok(bytes.to_vec()),
        }
    }

    /// For a dispatch to this node; the caller adds the dispatching node.
    pub(crate) fn encode_for(&self, node: &str) -> Result<Vec<u8>, Error> {
        self.encode().map_err(|error| {
            let problem =
                format!("the input of its dispatch to `{node}` cannot be stored: {}", error.message());
            Error::new(error.code(), problem)
        })
    }
}

impl InputValue {
    /// For display; null if it cannot be converted.
    pub(crate) fn to_json(&self) -> serde_json::Value {
        let json = self.encode().ok().and_then(|bytes| delta::decode(&bytes).ok());
        json.unwrap_or(serde_json::Value::Null)
    }
}

fn encode_as<I: Serialize + 'static>(value: &(dyn Any + Send + Sync)) -> Result<Vec<u8>, Error> {
    let Some(value) = value.downcast_ref::<I>() else {
        return Err(Error::new(Code::Encode, "it changed its type"));
    };
    let mut bytes = Vec::new();
    match delta::encode(&mut bytes, value) {
        Ok(()) => Ok(bytes),
        Err(error) => Err(Error::new(Code::Encode, error.to_string())),
    }
}

impl fmt::Debug for InputValue {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.value {
            Payload::Live { .. } => out.write_str("InputValue::Live")?,
            Payload::Stored(bytes) => write!(out, "InputValue::Stored({} bytes)", bytes.len())?,
        }
        match &self.limits {
            None => Ok(()),
            Some(limits) => write!(out, " within {limits:?}"),
        }
    }
}

impl IntoStep<JsonState> for JsonUpdate {
    fn into_step(self) -> Result<Step<JsonState>, BoxError> {
        Ok(Step::Update(self))
    }
}

/// A step without its state type.
pub(crate) fn any_step<S: State>(step: Step<S>) -> Step<AnyState> {
    match step {
        Step::None => Step::None,
        Step::Update(update) => Step::Update(AnyUpdate::new::<S>(update)),
        Step::Command(command) => {
            let Command { update, targets, replaces_edges, parent, edits } = *command;
            let update = update.map(AnyUpdate::new::<S>);
            Step::Command(Box::new(Command { update, targets, replaces_edges, parent, edits }))
        }
    }
}

//! [`StateEdit`]: changing the state of a thread without running anything.

use std::marker::PhantomData;
use std::sync::Arc;

use crate::engine::call::edit::Edit;
use crate::error::{Code, Error};
use crate::run::attached::Attached;
use crate::run::begin::CallRequest;
use crate::run::call_plan::CallPlan;
use crate::run::view;
use crate::state::State;
use crate::step::IntoGotos;
use crate::typed::AnyUpdate;
use agentgraph_checkpoint::{CheckpointId, awaited};

/// A builder of a change to a thread's state: `graph.update_state("t-1").update(..).await?`. Awaiting it
/// returns the checkpoint that it made.
///
/// Without [`at`](StateEdit::at) the edit applies to the newest checkpoint. On an older one it starts a new
/// branch, which is then the newest: stored checkpoints never change. Updates go through the reducers. After
/// any edit, the thread continues under a new run id.
///
/// ```
/// # use agentgraph::prelude::*;
/// # #[derive(State, Clone, Debug, Default)]
/// # struct Letter { #[reduce(append)] text: Vec<String>, sent: bool }
/// async fn write() -> LetterUpdate {
///     Letter::update().text(["Dear all,"])
/// }
/// async fn send(ctx: Ctx) -> Result<LetterUpdate> {
///     let sent = ctx.interrupt("send it?")?;
///     Ok(Letter::update().sent(sent))
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<()> {
/// let graph = StateGraph::new()
///     .node("write", write)
///     .node("send", send)
///     .edge(START, "write")
///     .edge("write", "send")
///     .compile()?
///     .checkpointer(MemorySaver::new());
/// graph.invoke(Letter::update()).thread("t-1").await?;
///
/// // While the run waits for the answer, a line is added from outside.
/// graph.update_state("t-1").update(Letter::update().text(["and yours,"])).await?;
/// let letter = graph.resume(true).thread("t-1").finish().await?;
/// assert_eq!((letter.text, letter.sent), (vec!["Dear all,".to_owned(), "and yours,".to_owned()], true));
/// # Ok(())
/// # }
/// ```
#[must_use = "an edit does nothing until it is awaited"]
pub struct StateEdit<S: State> {
    graph: Arc<Attached>,
    thread: String,
    at: Option<CheckpointId>,
    /// The edits of earlier supersteps.
    before: Vec<Edit>,
    edit: Edit,
    state: PhantomData<fn(S)>,
}

/// Moves the remains of an open superstep's tasks to the ids that they have in the copy of their thread;
/// `false` if no superstep is open.
pub(super) async fn adopt_copy(graph: &Arc<Attached>, from: &str, to: &str) -> Result<bool, Error> {
    match view::state(graph, to).await? {
        Some(copy) if !copy.next.is_empty() => {
            let request = Ok(CallRequest::Edit(Edit::Here(None)));
            let mut plan = Box::new(CallPlan::new(graph.clone(), request));
            (plan.thread, plan.copied_from) = (Some(Arc::from(to)), Some(Arc::from(from)));
            plan.run(None).await.map(|_| true)
        }
        _ => Ok(false),
    }
}

impl<S: State> StateEdit<S> {
    pub(super) fn new(graph: Arc<Attached>, thread: String) -> Self {
        StateEdit { graph, thread, at: None, before: Vec::new(), edit: Edit::Here(None), state: PhantomData }
    }

    /// Sets the checkpoint to edit.
    pub fn at(mut self, checkpoint: CheckpointId) -> Self {
        self.at = Some(checkpoint);
        self
    }

    /// Changes only the state. On the newest checkpoint the next tasks, the open interrupts and the results
    /// of siblings stay; answers and results of siblings belong to that checkpoint. Open interrupts have new
    /// ids afterwards. They show the questions asked before the edit: if the node asks something else on the
    /// edited state, the answer is voided and the new question is open.
    ///
    /// Without this method and the others, the edit is a copy: a fork of the checkpoint.
    pub fn update(mut self, update: impl Into<S::Update>) -> Self {
        let update = Some(AnyUpdate::new::<S>(update.into()));
        self.edit = match self.edit {
            Edit::Goto(_, nodes) => Edit::Goto(update, nodes),
            _ => Edit::Here(update),
        };
        self
    }

    /// Changes the state as if that node had returned the update: its edges, routes and joins decide which
    /// nodes run next. Call it again for several nodes of one superstep. On the newest checkpoint, results of
    /// the node's finished siblings are merged too, and unfinished siblings are given up.
    pub fn as_node(mut self, node: impl AsRef<str>, update: impl Into<S::Update>) -> Self {
        let one = (node.as_ref().to_owned().into(), AnyUpdate::new::<S>(update.into()));
        match &mut self.edit {
            Edit::As(several) => several.push(one),
            _ => self.edit = Edit::As(vec![one]),
        }
        self
    }

    /// Changes the state as the input of a new run, which `proceed()` then runs.
    pub fn as_start(mut self, input: impl Into<S::Update>) -> Self {
        self.edit = Edit::AsStart(AnyUpdate::new::<S>(input.into()));
        self
    }

    /// Changes the state and ends the run: no node runs next. On the newest checkpoint, updates of finished
    /// siblings are kept.
    pub fn as_end(mut self, update: impl Into<S::Update>) -> Self {
        self.edit = Edit::AsEnd(AnyUpdate::new::<S>(update.into()));
        self
    }

    /// Makes the thread continue at these nodes and [dispatches](crate::Dispatch), as if a node had returned
    /// a [`Command`](crate::Command) that goes to them. Nodes that were to run next are given up with their
    /// open interrupts. On the newest checkpoint, updates of finished siblings are kept. An
    /// [`update`](Self::update) of the same edit is made first.
    ///
    /// Awaiting the edit is [`Code::UnknownTarget`] for a name that the graph does not have, and
    /// [`Code::EditRejected`] for an eager graph.
    ///
    /// ```
    /// # use agentgraph::prelude::*;
    /// # #[derive(State, Clone, Debug, Default)]
    /// # struct Letter { #[reduce(append)] text: Vec<String>, sent: bool }
    /// # async fn write() -> LetterUpdate { Letter::update().text(["Dear all,"]) }
    /// # async fn send() -> LetterUpdate { Letter::update().sent(true) }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// let graph = StateGraph::new().node("write", write).node("send", send);
    /// let graph = graph.edge(START, "write").edge("write", "send").compile()?.checkpointer(MemorySaver::new());
    /// graph.invoke(Letter::update()).thread("t-1").await?;
    ///
    /// // The letter is sent again, and not written again.
    /// graph.update_state("t-1").update(Letter::update().sent(false)).goto(["send"]).await?;
    /// let letter = graph.proceed().thread("t-1").finish().await?;
    /// assert_eq!((letter.text.len(), letter.sent), (1, true));
    /// # Ok(())
    /// # }
    /// ```
    pub fn goto(mut self, targets: impl IntoGotos) -> Self {
        let update = match std::mem::replace(&mut self.edit, Edit::Here(None)) {
            Edit::Here(update) | Edit::Goto(update, _) => update,
            // Its edges have decided where the thread goes: this is another superstep.
            other => {
                self.before.push(other);
                None
            }
        };
        let mut gotos = Vec::new();
        targets.into_gotos(&mut gotos);
        self.edit = Edit::Goto(update, gotos);
        self
    }

    /// Begins another superstep: later updates are made on the result of the earlier ones, as if the graph
    /// had run in between. All of it is one commit, so a reader, or a program that was killed, finds all
    /// edits or none.
    ///
    /// Only the first edit may be [`as_start`](Self::as_start).
    ///
    /// ```
    /// # use agentgraph::prelude::*;
    /// # #[derive(State, Clone, Debug, Default)]
    /// # struct Chat { #[reduce(append)] lines: Vec<String> }
    /// # async fn user(ctx: Ctx) -> Result<ChatUpdate> { Ok(Chat::update().lines([ctx.interrupt::<String>("?")?])) }
    /// # async fn model() {}
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// let graph = StateGraph::new().node("user", user).node("model", model);
    /// let graph = graph.edge(START, "user").edge("user", "model").edge("model", "user").compile()?;
    /// let graph = graph.checkpointer(MemorySaver::new());
    ///
    /// // A conversation from another program becomes a thread.
    /// let mut thread = graph.update_state("t-1").as_start(Chat::update());
    /// for (by, line) in [("user", "hi"), ("model", "hello"), ("user", "bye"), ("model", "bye!")] {
    ///     thread = thread.then().as_node(by, Chat::update().lines([line]));
    /// }
    /// thread.await?;
    ///
    /// let imported = graph.state("t-1").await?.expect("it is kept");
    /// assert_eq!(imported.values.lines, ["hi", "hello", "bye", "bye!"]);
    /// assert_eq!(imported.next, ["user"]);
    /// assert_eq!(graph.history("t-1").await?.len(), 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn then(mut self) -> Self {
        let edit = std::mem::replace(&mut self.edit, Edit::Here(None));
        self.before.extend(Some(edit).filter(|edit| !edit.is_copy()));
        self
    }
}

/// Makes the edits in their order, as one commit.
async fn make(
    graph: Arc<Attached>,
    thread: String,
    at: Option<CheckpointId>,
    mut edits: Vec<Edit>,
) -> Result<CheckpointId, Error> {
    // An edit that changes nothing counts only if it is the only one: it copies the checkpoint.
    if edits.len() > 1 && edits.last().is_some_and(Edit::is_copy) {
        edits.pop();
    }
    let mut edits = edits.into_iter();
    let first = edits.next().unwrap_or(Edit::Here(None));
    let mut plan = Box::new(CallPlan::new(graph, Ok(CallRequest::Edit(first))));
    (plan.thread, plan.from) = (Some(Arc::from(thread)), at);
    plan.further_edits = edits.collect();
    let made = plan.run(None).await?.checkpoint();
    made.ok_or_else(|| {
        Error::new(Code::NoCheckpointer, "the graph keeps no threads: add `.checkpointer(..)`")
    })
}

awaited!([S: State] StateEdit<S>: 'static Result<CheckpointId, Error> = |whole| {
    let StateEdit { graph, thread, at, before: mut edits, edit, .. } = whole;
    edits.push(edit);
    make(graph, thread, at, edits)
});

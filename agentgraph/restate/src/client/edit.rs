//! [`RemoteEdit`]: a change of a thread's state from outside.

use std::future::IntoFuture;

use agentgraph::host::RunCall;
use agentgraph::state::StoredState;
use agentgraph::{CheckpointId, Code, Error};
use futures_util::future::BoxFuture;

use super::{RemoteCall, RemoteGraph};

/// A change of a thread's state, made by [`RemoteGraph::update_state`]. It waits for its turn like a call.
#[must_use = "an edit does nothing until it is awaited"]
pub struct RemoteEdit<S: StoredState> {
    graph: RemoteGraph<S>,
    thread: String,
    edit: Edit<S>,
}

enum Edit<S: StoredState> {
    Nothing,
    Here(S::Update),
    As(Vec<(String, S::Update)>),
    AsStart(S::Update),
    AsEnd(S::Update),
}

// The names are those of the local edit, which a builder takes by value.
#[allow(clippy::wrong_self_convention)]
impl<S: StoredState> RemoteEdit<S> {
    pub(super) fn new(graph: &RemoteGraph<S>, thread: String) -> Self {
        RemoteEdit { graph: graph.clone(), thread, edit: Edit::Nothing }
    }

    /// As [`StateEdit::update`](agentgraph::run::StateEdit::update).
    pub fn update(mut self, update: impl Into<S::Update>) -> Self {
        self.edit = Edit::Here(update.into());
        self
    }

    /// As [`StateEdit::as_node`](agentgraph::run::StateEdit::as_node).
    pub fn as_node(mut self, node: impl AsRef<str>, update: impl Into<S::Update>) -> Self {
        let one = (node.as_ref().to_owned(), update.into());
        match &mut self.edit {
            Edit::As(several) => several.push(one),
            _ => self.edit = Edit::As(vec![one]),
        }
        self
    }

    /// As [`StateEdit::as_start`](agentgraph::run::StateEdit::as_start).
    pub fn as_start(mut self, input: impl Into<S::Update>) -> Self {
        self.edit = Edit::AsStart(input.into());
        self
    }

    /// As [`StateEdit::as_end`](agentgraph::run::StateEdit::as_end).
    pub fn as_end(mut self, update: impl Into<S::Update>) -> Self {
        self.edit = Edit::AsEnd(update.into());
        self
    }

    async fn run(self) -> Result<CheckpointId, Error> {
        let RemoteEdit { graph, thread, edit } = self;
        let schema = &graph.schema;
        let call = match &edit {
            Edit::Nothing => Err(nothing_to_change()),
            Edit::Here(update) => RunCall::update_state::<S>(schema, update),
            Edit::As(updates) => {
                let updates = updates.iter().map(|(node, update)| (&**node, update));
                RunCall::update_state_as::<S>(schema, updates)
            }
            Edit::AsStart(input) => RunCall::update_state_as_start::<S>(schema, input),
            Edit::AsEnd(update) => RunCall::update_state_as_end::<S>(schema, update),
        };
        let outcome = RemoteCall::new(&graph, call).thread(thread).await?;
        outcome.checkpoint().ok_or_else(|| Error::new(Code::Host, "the edit was not stored: make it again"))
    }
}

fn nothing_to_change() -> Error {
    let problem =
        "the edit changes nothing: call `.update(..)`, `.as_node(..)`, `.as_start(..)` or `.as_end(..)`";
    Error::new(Code::EditRejected, problem)
}

impl<S: StoredState> IntoFuture for RemoteEdit<S> {
    type Output = Result<CheckpointId, Error>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.run())
    }
}

//! [`ParentUpdate`]: the update of a task on a host that leaves its subgraph, on its way to the parent graph.
//!
//! The process of the task knows the parent's state and encodes the update. The run of the subgraph does not
//! know it, and hands the bytes to the runner of the parent, which does.

use std::any::{Any, type_name};
use std::sync::Arc;

use crate::engine::stored::StoredStep;
use crate::erased::NodeResult;
use crate::error::{Code, Error, OwnError};
use crate::node::{Command, Step};
use crate::record::codec::Codec;
use crate::state::State;
use crate::step::{EncodeParent, ToParent};
use crate::typed::{AnySchema, AnyState};

/// An encoded update of the parent's state, in the place of the update itself.
pub(crate) struct ParentUpdate(Vec<u8>);

/// The encoder for commands that go to a graph with this state.
pub(crate) fn parent_encoder(codec: Codec, schema: &AnySchema) -> EncodeParent {
    let schema = schema.clone();
    Arc::new(move |update| {
        let update = schema.update_of(update)?;
        Some((codec.encode_update)(&schema, &update).map_err(Into::into))
    })
}

/// The error for an update of another state than the parent's.
pub(crate) fn foreign_update<S: State>(to: &ToParent) -> Error {
    let problem = format!(
        "a command for the parent graph has an update of type `{}`, and the parent's state takes a `{}`",
        to.update_type,
        type_name::<S::Update>()
    );
    Error::new(Code::ParentCommand, problem)
}

/// An update of another state than the parent's, which stays where it is.
struct ForeignUpdate;

/// The step of a task on a host that leaves its subgraph. `foreign` is the type of an update of another state
/// than the parent's.
pub(super) fn leaving(step: StoredStep, foreign: Option<String>) -> Step<AnyState> {
    let (update, targets) = step.into_parent_command();
    let encoded = update.map(|bytes| Box::new(ParentUpdate(bytes)) as Box<dyn Any + Send + Sync>);
    let to = match foreign {
        None => ToParent { update: encoded, ..ToParent::default() },
        Some(kind) => ToParent { update: Some(Box::new(ForeignUpdate)), update_type: kind.into() },
    };
    let parent = Some(Box::new(to));
    Step::Command(Box::new(Command { targets, replaces_edges: true, parent, ..Command::new() }))
}

/// The step of a subgraph's node after a task on a host has left the subgraph: still with the encoded update.
pub(crate) fn passed_on<S: State>(step: Command<S>, update: Box<ParentUpdate>) -> Step<S> {
    let parent = Some(Box::new(ToParent { update: Some(update), ..ToParent::default() }));
    Step::Command(Box::new(Command { parent, ..step }))
}

/// The result of a subgraph's node, with the decoded update of a task that has left the subgraph.
pub(super) fn arrived(
    result: NodeResult<AnyState>,
    codec: &Codec,
    schema: &AnySchema,
) -> NodeResult<AnyState> {
    let mut command = match result {
        Ok(Step::Command(command)) => command,
        result => return result,
    };
    let encoded =
        |to: &mut Box<ToParent>| to.update.as_ref().is_some_and(|update| update.is::<ParentUpdate>());
    if let Some(ToParent { update: Some(update), .. }) = command.parent.take_if(encoded).map(|to| *to)
        && let Ok(update) = update.downcast::<ParentUpdate>()
    {
        command.update =
            Some((codec.decode_update)(schema, &update.0).map_err(|error| damaged(error.into()))?);
    }
    Ok(Step::Command(command))
}

fn damaged(error: Error) -> OwnError {
    let problem =
        format!("the update for the parent graph in a host's reply is damaged: {}", error.message());
    OwnError(Error::new(Code::Host, problem).with_source(error))
}

//! The code of the error that a node returned.

use crate::context::{MissingContext, MissingStore, OnceError};
use crate::error::{BoxError, Code, Error, OwnError, caused_by};
use crate::extract::{InputError, MissingDep};
use crate::panic::NodePanic;
use crate::policy::{BreakerOpen, Timeout};
use crate::session::MissingSession;
use crate::words::EditError;

/// The code of the error that a node returned.
pub(crate) fn code_of(error: &BoxError) -> Code {
    if let Some(own) = error.downcast_ref::<OwnError>() {
        return own.0.code();
    }
    let error = &**error;
    if let Some(refused) = caused_by::<EditError>(error) {
        refused.code()
    } else if error.is::<Error>() {
        // The error comes from another graph's run, called inside the node: its node and state are not those
        // of this run.
        Code::NodeFailed
    } else if caused_by::<NodePanic>(error).is_some() {
        Code::NodePanicked
    } else if caused_by::<Timeout>(error).is_some() {
        Code::NodeTimeout
    } else if caused_by::<BreakerOpen>(error).is_some() {
        Code::BreakerOpen
    } else if caused_by::<MissingDep>(error).is_some() || caused_by::<MissingSession>(error).is_some() {
        Code::MissingDependency
    } else if caused_by::<MissingContext>(error).is_some() {
        Code::MissingContext
    } else if caused_by::<OnceError>(error).is_some() {
        Code::Once
    } else if caused_by::<MissingStore>(error).is_some() {
        Code::NoStore
    } else if caused_by::<InputError>(error).is_some() {
        Code::BadInput
    } else {
        Code::NodeFailed
    }
}

/// The message of the error that a node returned.
pub(crate) fn message_of(error: &BoxError) -> String {
    match error.downcast_ref::<OwnError>() {
        Some(own) => own.0.message().to_owned(),
        None => error.to_string(),
    }
}

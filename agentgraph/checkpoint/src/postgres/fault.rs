//! Explains a failure of the server or of the connection to the user.

use std::time::Duration;

use deadpool_postgres::{PoolError, TimeoutType};
use tokio_postgres::error::SqlState;

use crate::error::{StoreCode, StoreError};

/// The failure of a call.
#[derive(Debug)]
#[doc(hidden)]
pub enum Fault {
    /// The server or the connection.
    Server(tokio_postgres::Error),
    /// The pool of connections.
    Pool(PoolError),
    /// No answer arrived within this time.
    Silent(Duration),
    /// A row was changed between two statements of a call.
    Changed,
    /// One that is explained already.
    Known(StoreError),
}

impl From<tokio_postgres::Error> for Fault {
    fn from(error: tokio_postgres::Error) -> Self {
        Fault::Server(error)
    }
}

impl From<PoolError> for Fault {
    fn from(error: PoolError) -> Self {
        Fault::Pool(error)
    }
}

impl From<StoreError> for Fault {
    fn from(error: StoreError) -> Self {
        Fault::Known(error)
    }
}

impl Fault {
    /// Whether the server rolled a transaction back because of a concurrent one: both waited for each
    /// other, a row it refers to was removed, or a row it creates was created.
    pub(crate) fn is_clash(&self) -> bool {
        let clashes = [
            &SqlState::T_R_DEADLOCK_DETECTED,
            &SqlState::T_R_SERIALIZATION_FAILURE,
            &SqlState::FOREIGN_KEY_VIOLATION,
            &SqlState::UNIQUE_VIOLATION,
        ];
        match self {
            Fault::Server(error) => error.code().is_some_and(|code| clashes.contains(&code)),
            Fault::Changed => true,
            _ => false,
        }
    }
}

/// The error for the user of a store of items.
pub(crate) fn explain_for_items(fault: Fault) -> StoreError {
    let error = explain(fault, "");
    if error.code() != StoreCode::Store {
        return error;
    }
    let message = error
        .message()
        .replace("checkpoint database", "item database")
        .replace("PostgresSaver", "PostgresStore")
        .replace("the thread again", "the items again")
        .replace("continue with `proceed()`", "try again");
    let renamed = StoreError::new(error.code(), message);
    match error.into_source() {
        Some(source) => renamed.with_source(source),
        None => renamed,
    }
}

/// The error for the user.
pub(crate) fn explain(fault: Fault, thread: &str) -> StoreError {
    let error = match fault {
        Fault::Known(error) => error,
        Fault::Server(error) => server(error),
        Fault::Pool(PoolError::Backend(error)) => server(error),
        Fault::Pool(PoolError::Timeout(TimeoutType::Create | TimeoutType::Recycle)) => {
            let problem = "the checkpoint database accepted no connection within \
                           `PostgresSaverBuilder::connect_timeout`: check that it is up and can be reached";
            StoreError::new(StoreCode::Store, problem)
        }
        Fault::Silent(time) => {
            let problem = format!(
                "the checkpoint database did not answer within {time:?}: check that it is up and what it is busy with, or raise \
                 `PostgresSaverBuilder::answer_timeout`; the data of this call may or may not be stored, so read the \
                 thread again before you continue"
            );
            StoreError::new(StoreCode::Store, problem)
        }
        Fault::Changed => {
            let problem =
                "the checkpoint database was changed by other calls again and again: try again later";
            StoreError::new(StoreCode::Store, problem)
        }
        Fault::Pool(error) => {
            let problem = "no connection to the checkpoint database is free: raise \
                           `PostgresSaverBuilder::connections` or `wait_timeout`, or find the calls that use them all";
            StoreError::new(StoreCode::Store, problem).with_source(error)
        }
    };
    match thread {
        "" => error,
        thread => error.on_thread(thread),
    }
}

fn server(error: tokio_postgres::Error) -> StoreError {
    let state = error.code().cloned();
    let said = error.as_db_error().map_or_else(|| error.to_string(), |said| said.message().to_owned());
    let remedy = match state {
        Some(SqlState::DISK_FULL) => "it has no room left: free some, then continue with `proceed()`",
        Some(SqlState::READ_ONLY_SQL_TRANSACTION) => {
            "it is read-only: connect to the primary server, not to a copy of it"
        }
        Some(SqlState::INSUFFICIENT_PRIVILEGE) => {
            "this user lacks a right: grant it the right to create the tables, or create them as another user and grant \
             this one the rights listed in the docs of `PostgresSaver`"
        }
        Some(SqlState::TOO_MANY_CONNECTIONS) => {
            "it takes no more connections: lower `PostgresSaverBuilder::connections`"
        }
        Some(SqlState::INVALID_PASSWORD | SqlState::INVALID_AUTHORIZATION_SPECIFICATION) => {
            "it rejects this user: check user and password"
        }
        Some(SqlState::INVALID_CATALOG_NAME) => "there is no such database: create it first",
        Some(SqlState::UNDEFINED_TABLE | SqlState::UNDEFINED_COLUMN) => {
            "its tables are not those of agentgraph: choose a schema of its own"
        }
        Some(_) => "look at the server's log",
        None => "check that it is up and can be reached",
    };
    StoreError::new(StoreCode::Store, format!("the checkpoint database failed: {said}; {remedy}"))
        .with_source(error)
}

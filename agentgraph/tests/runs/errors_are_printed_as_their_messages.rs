//! `fn main() -> Result<()>` prints an error by `{:?}`: that is its message, and then its causes.

use agentgraph::checkpoint::{StoreCode, StoreError};
use agentgraph::prelude::*;
use agentgraph::{Code, Error};
use serde::{Deserialize, Serialize};

#[derive(State, Serialize, Deserialize, Clone, Debug, Default)]
struct Trip {
    city: String,
}

async fn ask(ctx: Ctx) -> Result<TripUpdate> {
    Ok(Trip::update().city(ctx.interrupt::<String>("where?")?))
}

/// Fails as a node does whose library wraps the error of another one.
async fn book() -> Result<TripUpdate> {
    let disk = std::io::Error::other("the disk is full");
    Err(StoreError::new(StoreCode::Store, "the ticket is not stored").with_source(disk).into())
}

/// What `main` prints after `Error: `.
fn printed(error: impl Into<agentgraph::BoxError>) -> String {
    format!("{:?}", error.into())
}

#[test]
fn a_graph_with_problems_prints_them() {
    let compiled = || {
        let graph =
            StateGraph::<Trip>::new().node("ask", ask).edge(START, "ask").edge("ask", "aks").compile();
        graph.map(drop).unwrap_err()
    };
    let error = compiled();
    let problem = error.problems()[0].to_string();
    assert!(problem.starts_with("an `edge` names `aks`"), "{problem}");
    assert!(problem.contains("did you mean `ask`? (agentgraph/tests/runs/errors_are_printed"), "{problem}");
    let expected = format!("E_COMPILE: the graph has 1 problem\n  {problem}");
    assert!(format!("{error:#?}").starts_with("CompileError {"), "{error:#?}");
    let as_error = Error::from(error);
    assert_eq!((as_error.code(), format!("{as_error:?}")), (Code::Compile, expected.clone()));
    assert_eq!(printed(compiled()), expected);
}

#[tokio::test]
async fn a_failed_run_prints_its_message_and_the_causes_that_it_does_not_quote() -> Result<()> {
    let graph = StateGraph::<Trip>::new().node("book", book).edge(START, "book").compile()?;
    let error = graph.invoke(Trip::update()).await.unwrap_err();
    assert!(format!("{error:#?}").starts_with("Error {"), "{error:#?}");
    assert_eq!(
        printed(error),
        "E_NODE_FAILED: node `book`: E_STORE: the ticket is not stored\n\nCaused by:\n    the disk is full"
    );
    Ok(())
}

#[tokio::test]
async fn a_run_that_is_not_finished_prints_what_to_do() -> Result<()> {
    let graph = StateGraph::<Trip>::new().node("ask", ask).edge(START, "ask").compile()?;
    let graph = graph.checkpointer(MemorySaver::new());
    let asked = graph.invoke(Trip::update()).thread("t").await?;
    let message = "E_NOT_FINISHED: the run is interrupted at `ask`: match on `Outcome::Interrupted`, and continue with \
                   `resume(..)` or `proceed()`";
    assert_eq!(printed(asked.into_finished().unwrap_err()), message);
    assert_eq!(printed(graph.invoke(Trip::update()).thread("u").finish().await.unwrap_err()), message);
    Ok(())
}

#[test]
fn a_store_prints_its_cause() {
    let error = StoreError::new(StoreCode::Store, "cannot open `a.db`").on_thread("t");
    assert!(format!("{error:#?}").starts_with("StoreError {"), "{error:#?}");
    let error = error.with_source(StoreError::new(StoreCode::Store, "locked").with_source("by process 7"));
    assert_eq!(
        printed(error),
        "E_STORE: cannot open `a.db` (thread `t`)\n\nCaused by:\n    E_STORE: locked\n    by process 7"
    );
}

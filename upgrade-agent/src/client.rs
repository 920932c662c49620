//! A typed client of the UpGrade HTTP API.
//!
//! UpGrade has two wire dialects: one up to version 6.2, another from 6.3 on. Callers see one vocabulary
//! ([`Experiment`], [`ExperimentState`], [`Assignment`], ...). The client chooses the dialect on first use,
//! from the version in the server's health response.
//!
//! The client checks some things that the server does not: it refuses to create an experiment with an
//! existing id (the server would merge the two), reads before it writes so that an unknown id is a plain
//! [`ErrorKind::NotFound`], keeps the ids of conditions through an update, and sets the rule `assign` with
//! the second request that the server needs for it. It does not judge whether an experiment makes sense
//! (weights, names, transitions).
//!
//! # Authorization
//!
//! Admin calls carry a bearer token ([`UpgradeClientBuilder::token`]) or the access token of a Google service
//! account ([`UpgradeClientBuilder::service_account_file`]); calls of a student's application carry the
//! signed client key ([`UpgradeClientBuilder::client_key`]); the health call carries nothing. No error, log
//! or `Debug` text contains a secret, even if a server repeats it. Redirects are not followed.
//!
//! # Retries
//!
//! Reads and idempotent calls are retried after a broken connection, a timeout and the statuses 429, 502, 503
//! and 504. Any other call is retried only if the server certainly did not process it (no connection, or
//! 429). After a failure, [`ClientError::may_have_acted`] says whether the call may have had an effect. A
//! change of several calls may stop in between: [`ClientError::unfinished`] then has the missing part, ready
//! for [`UpgradeClient::update`].
//!
//! # Old servers
//!
//! Up to 6.2, states, segments and errors differ ([`Dialect`]). Before 6.0, the routes of students are those
//! of version 5, which name the student in the body. If a route does not exist, the client tries the other
//! version once. A student's id that does not fit into a header (beyond Latin-1, or with space around it) is
//! sent by the routes of version 5 on any server that has them.
//!
//! ```
//! # tokio::runtime::Runtime::new().unwrap().block_on(async {
//! use upgrade_agent::client::{
//!     ExperimentPatch, ExperimentState, Members, NewExperiment, NewUser, UpgradeClient,
//! };
//! use upgrade_agent::server::EmbeddedServer;
//!
//! let server = EmbeddedServer::builder().in_memory().start().await?;
//! let client = UpgradeClient::builder(server.url()).build()?;
//!
//! let hints = NewExperiment::new("Math hints", "assign-prog")
//!     .point("SelectSection", "absolute_value_plot_equality")
//!     .condition("control", 50.0)
//!     .condition("variant", 50.0)
//!     .include_all();
//! let hints = client.create(&hints).await?;
//! client.set_state(&hints.id, &ExperimentState::Enrolling).await?;
//!
//! client.init_user(&NewUser::new("ada")).await?;
//! let points = client.assign("ada", "assign-prog").await?;
//! assert_eq!(points[0].site, "SelectSection");
//!
//! let lists = ExperimentPatch {
//!     exclusion: Some(Members { users: vec!["eve".into()], groups: vec![] }),
//!     ..ExperimentPatch::default()
//! };
//! assert_eq!(client.update(&hints.id, &lists).await?.exclusion.users, ["eve"]);
//! # server.shutdown().await;
//! # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
//! ```

mod auth;
mod authors;
mod builder;
mod call;
mod create;
mod dialect;
mod draft;
mod error;
mod experiments;
mod lists;
mod model;
mod pages;
mod reply;
mod retry;
mod session;
mod student_routes;
mod students;
mod transport;
mod update;
mod visit;
mod wire;
mod words;

pub use builder::UpgradeClientBuilder;
pub use dialect::Dialect;
pub use draft::{ExperimentPatch, NewCondition, NewDecisionPoint, NewExperiment};
pub use error::{ClientError, ErrorKind, Unfinished};
pub use model::{
    Condition, ConditionEnrollment, ConditionPayload, Context, ContextMetadata, DecisionPoint,
    DeletedExperiment, EnrollmentDetail, Experiment, ExperimentName, GlobalExclusion, GroupMember, Health,
    Members, Payload, PointEnrollment, PostRule, Revision, SegmentRef, StateChange,
};
pub use pages::{Page, PageQuery};
pub use session::UpgradeClient;
pub use visit::{AssignedCondition, AssignedFactor, Assignment, Mark, MarkedPoint, NewUser, User};
pub use words::{
    AssignmentAlgorithm, AssignmentUnit, ConsistencyRule, ExperimentState, ExperimentType, FilterMode,
    MarkStatus, PostExperimentRule, SearchKey, SortDirection, SortKey,
};

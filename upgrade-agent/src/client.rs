//! A typed client of the UpGrade HTTP API.
//!
//! UpGrade speaks two dialects on the wire: one up to version 6.2, another from 6.3 on. Callers
//! see one vocabulary ([`Experiment`], [`ExperimentState`], [`Assignment`], ...); the dialect is
//! chosen from the version in the server's health answer, on first use.
//!
//! The client checks what the server does not: it refuses to create over an existing id (the
//! server would merge the two), reads before it writes so that an unknown id is a plain
//! [`ErrorKind::NotFound`], keeps the ids of conditions through an update, and sets the rule
//! `assign` with the second request which the server needs for it. It does not judge whether an
//! experiment makes sense (weights, names, transitions): that is the caller's business.
//!
//! ```
//! # tokio::runtime::Runtime::new().unwrap().block_on(async {
//! use upgrade_agent::client::{ExperimentState, NewExperiment, NewUser, UpgradeClient};
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
//! # server.shutdown().await;
//! # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
//! ```

mod auth;
mod builder;
mod call;
mod create;
mod dialect;
mod draft;
mod error;
mod experiments;
mod lists;
mod metrics;
mod model;
mod pages;
mod preview;
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
pub use metrics::{GroupedMetric, MetricLog, MetricValue, StoredLog};
pub use model::{
    Condition, ConditionEnrollment, ConditionPayload, Context, ContextMetadata, DecisionPoint,
    DeletedExperiment, EnrollmentDetail, Experiment, ExperimentName, GlobalExclusion, GroupMember, Health,
    Members, Payload, PointEnrollment, PostRule, Revision, SegmentRef, StateChange,
};
pub use pages::{Page, PageQuery};
pub use preview::{PreviewAssignment, PreviewUser};
pub use session::UpgradeClient;
pub use visit::{AssignedCondition, AssignedFactor, Assignment, Mark, MarkedPoint, NewUser, User};
pub use words::{
    AssignmentAlgorithm, AssignmentUnit, ConsistencyRule, ExperimentState, ExperimentType, FilterMode,
    MarkStatus, PostExperimentRule, SearchKey, SortDirection, SortKey,
};

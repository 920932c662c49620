//! Driven runs: the loop of a run, without anything that it waits for.
//!
//! A [`DrivenRun`] is the usual run of a graph, with a host, a store and services that only note what is
//! asked of them. Who drives it reads the [`Need`]s, meets them by its own means (a durable engine, a test),
//! and gives the replies back. The run itself awaits no node, no store, no timer and no other task, so it can
//! be built again from its start and the replies: the same replies in the same order lead to the same needs,
//! byte by byte.

mod call;
mod commit;
mod desk;
mod end;
mod ground;
mod hosted;
mod image;
mod need;
mod run;
mod seams;
mod shown;
mod thread_state;
mod values;

pub use call::RunCall;
pub use commit::Commit;
pub use end::RunEnd;
pub use ground::Ground;
pub use hosted::HostedGraph;
pub use image::ThreadRows;
pub use need::{Need, NeedId, NeedKind, Reply, StoreChange};
pub use run::DrivenRun;
pub use thread_state::ThreadState;

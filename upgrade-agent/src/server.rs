//! An UpGrade server inside the process: routes, bodies, errors and quirks of UpGrade 6.5.0, or of
//! 6.2.0 in the old dialect, with the same draws for the same ids.
//!
//! It listens on loopback only, and asks nobody for a token unless it is told which. Experiments and
//! students live in memory; with a data file every change is written there before it is answered, so that a server
//! which is killed and started again knows everything it has answered for.
//!
//! Inside, each file has one noun: `world` holds what there is, `journal` keeps it on disk,
//! `assign`, `mark`, `lists`, `pools`, `draw` and `random` are the rules, `create`, `update`,
//! `experiments` and `students` answer calls, `segments`, `experiment_lists`, `exchange`, `preview`,
//! `settings`, `accounts` and `audit` those that only administrators make, `gate` says who may call
//! what, `validate` judges bodies, `view` and `answer` write them, and `routes`, with `connection`
//! below it, is the only place that knows HTTP. `factorial` and
//! `queue` know the designs of those names, `strata` who counts as alike. `v5` answers older
//! applications, `logs` takes in what applications tell of students, `metrics`, `queries` and `analysis`
//! say what of it is asked for and what it comes to, in the numbers of `decimal`. `flags` and
//! `flag_lists` are features that some students are shown. Adaptive experiments need a service that is
//! not there, and are refused as by an UpGrade server without it; so are rewards, and data sent by mail.
//! Not simulated, and refused with 501: flags taken in from files. The log of deeds does not say how a
//! changed experiment or flag differed.
//!
//! ```
//! # tokio::runtime::Runtime::new().unwrap().block_on(async {
//! use upgrade_agent::client::UpgradeClient;
//! use upgrade_agent::server::EmbeddedServer;
//!
//! let server = EmbeddedServer::builder().in_memory().start().await?;
//! let client = UpgradeClient::builder(server.url()).build()?;
//! assert_eq!(client.health().await?.version, "6.5.0");
//! server.shutdown().await;
//! # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
//! ```

mod accounts;
mod aliases;
mod analysis;
mod answer;
mod assign;
mod audit;
mod body;
mod builder;
mod by_date;
mod calendar;
mod connection;
mod contexts;
mod core;
mod create;
mod decimal;
mod draw;
mod error;
mod exchange;
mod experiment_lists;
mod experiments;
mod factorial;
mod fault;
mod flag_files;
mod flag_lists;
mod flags;
mod gate;
mod groups;
mod handle;
mod jobs;
mod journal;
mod json_text;
mod lists;
mod logs;
mod mark;
mod metrics;
mod migrate;
mod model;
mod page;
mod paging;
mod pools;
mod preview;
mod queries;
mod queue;
mod random;
mod revision;
mod routes;
mod segment;
mod segment_files;
mod segment_usage;
mod segment_view;
mod segments;
mod settings;
mod shape;
mod side;
mod sources;
mod state;
mod statistics;
mod strata;
mod students;
mod table;
mod token;
mod update;
mod v5;
mod validate;
mod view;
mod world;

pub use builder::{EmbeddedServer, EmbeddedServerBuilder};
pub(crate) use draw::condition_at;
pub use error::ServerError;
pub use handle::ServerHandle;
pub(crate) use random::first as first_draw;
pub(crate) use sources::timestamp;

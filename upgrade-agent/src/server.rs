//! An UpGrade server inside the process: routes, bodies, errors and quirks of UpGrade 6.5, with
//! the same draws for the same ids.
//!
//! It listens on loopback only and asks nobody for a token. Experiments and students live in
//! memory; with a data file every change is written there before it is answered, so that a server
//! which is killed and started again knows everything it has answered for.
//!
//! Inside, each file has one noun: `world` holds what there is, `journal` keeps it on disk,
//! `assign`, `mark`, `lists`, `pools`, `draw` and `random` are pure rules, `experiments` and
//! `students` change the world, `validate` judges bodies, `view` writes them, `routes` is the only
//! file that knows HTTP. Within-subjects designs, factors, stratification, segments of their own,
//! feature flags and metrics are not served yet; their routes answer as unknown ones do.
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

mod builder;
mod error;
mod handle;
mod sources;

pub use builder::{EmbeddedServer, EmbeddedServerBuilder};
pub use error::ServerError;
pub use handle::ServerHandle;

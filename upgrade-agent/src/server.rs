//! The embedded UpGrade server: [`upgrade_simulator`], with the client's types for its settings.
//!
//! The server shares no type with the [`client`], so a mistake in one of them shows in tests. Settings with a
//! type of the client are converted here.
//!
//! ```
//! # tokio::runtime::Runtime::new().unwrap().block_on(async {
//! use upgrade_agent::client::{Dialect, UpgradeClient};
//! use upgrade_agent::server::EmbeddedServer;
//!
//! let server = EmbeddedServer::builder().in_memory().dialect(Dialect::V62).start().await?;
//! let client = UpgradeClient::builder(server.url()).build()?;
//! assert_eq!(client.health().await?.version, "6.2.0");
//! server.shutdown().await;
//! # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
//! ```

#[doc(inline)]
pub use upgrade_simulator::{
    Context, Contexts, Dialect, EmbeddedServer, EmbeddedServerBuilder, ServerError, ServerHandle,
    draw_condition, timestamp,
};

use crate::client;

impl From<client::Dialect> for Dialect {
    fn from(dialect: client::Dialect) -> Self {
        match dialect {
            client::Dialect::V62 => Self::V62,
            client::Dialect::V65 => Self::V65,
        }
    }
}

impl From<client::ContextMetadata> for Contexts {
    fn from(known: client::ContextMetadata) -> Self {
        known.contexts.into_iter().map(|(name, context)| (name, context.into())).collect()
    }
}

impl From<client::Context> for Context {
    fn from(context: client::Context) -> Self {
        let client::Context { conditions, group_types, sites, targets } = context;
        Self { conditions, group_types, sites, targets }
    }
}

//! Items without their feature: the message names the feature, whatever the path.

use agentgraph::PostgresSaver as _;
use agentgraph::SqliteSaver as _;
use agentgraph::checkpoint::conformance as _;
use agentgraph::checkpoint::{EncryptedSaver, EncryptionKey, KeyRing};
use agentgraph::checkpoint::{EncryptedStore as _, PostgresStore as _, SqliteStore as _};
use agentgraph::checkpoint::{PostgresSaver as _, SqliteSaver as _, SqliteSaverBuilder, Synchronous};
use agentgraph::store::conformance as _;
use agentgraph::store::{EncryptedStore, PostgresStore, SqliteStore};
use agentgraph::testing::TestGraph;
use agentgraph::testing::store_clauses;

fn main() {}

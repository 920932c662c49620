//! The values that prompts refer to and that nodes change.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

/// One JSON value that nodes share. Prompts read it with a [`Template`](crate::Template), and nodes change it
/// when an answer is accepted. Clones share the value.
///
/// A handle that a program keeps lives on from pass to pass and is not stored. As a session of the graph
/// (`.session::<Database>("db")`, [`LlmNode::session_db`](crate::LlmNode::session_db)) it belongs to the run
/// and is stored with it.
///
/// ```
/// use agentgraph_llm::Database;
/// use serde_json::json;
///
/// let db = Database::new(json!({"goal": "sail"}));
/// db.clone().change(|db| db["goal"] = "row".into());
/// assert_eq!(db.read(|db| db["goal"].clone()), "row");
/// ```
#[derive(Clone, Default)]
pub struct Database(Arc<Mutex<Value>>);

impl Database {
    /// A database with this value.
    pub fn new(value: Value) -> Self {
        Database(Arc::new(Mutex::new(value)))
    }

    /// Reads the value. The database is locked meanwhile, so `read` must not use it.
    pub fn read<T>(&self, read: impl FnOnce(&Value) -> T) -> T {
        read(&self.lock())
    }

    /// Changes the value. The database is locked meanwhile, so `change` must not use it.
    pub fn change<T>(&self, change: impl FnOnce(&mut Value) -> T) -> T {
        change(&mut self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, Value> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl From<Value> for Database {
    fn from(value: Value) -> Self {
        Database::new(value)
    }
}

impl Serialize for Database {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.lock().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Database {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Value::deserialize(deserializer).map(Database::new)
    }
}

impl fmt::Debug for Database {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Database")
    }
}

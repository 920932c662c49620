//! The values that prompts ask for and that nodes' own code changes.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

/// One JSON value that nodes share: prompts read it by [`Template`](crate::Template), nodes change it when an
/// answer is accepted. Clones share the value.
///
/// A handle that a program keeps lives on from pass to pass and is not stored. As a session of the graph
/// (`.session::<Database>("db")`, [`LlmNode::session_db`](crate::LlmNode::session_db)) it is the run's own,
/// and stored with it.
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
    /// A database of this value.
    pub fn new(value: Value) -> Self {
        Database(Arc::new(Mutex::new(value)))
    }

    /// Reads the value. Do not use the database within `read`: it is locked meanwhile.
    pub fn read<T>(&self, read: impl FnOnce(&Value) -> T) -> T {
        read(&self.lock())
    }

    /// Changes the value. Do not use the database within `change`: it is locked meanwhile.
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

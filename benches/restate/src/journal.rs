//! [`Journal`]: what a call leaves in the server.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::Problem;
use crate::server::Servers;

/// The entries of the journals of a call: of its thread and its steps, and of the tasks that they called.
#[derive(Default)]
pub(crate) struct Journal {
    pub(crate) entries: u64,
    pub(crate) bytes: u64,
    /// The entries of each kind.
    pub(crate) kinds: BTreeMap<String, (u64, u64)>,
}

impl Journal {
    /// The entries of the calls of a thread, which no other thread's name begins with.
    pub(crate) async fn of(servers: &Servers, thread: &str) -> Result<Self, Problem> {
        let mut found = Journal::default();
        let mut ids: Vec<String> = Vec::new();
        let roots = format!("SELECT id FROM sys_invocation WHERE target_service_key = '{thread}'");
        ids.extend(servers.query(&roots).await?.iter().filter_map(|row| text(&row["id"])));
        let mut looked = 0;
        while looked < ids.len() {
            let list = ids[looked..].iter().map(|id| format!("'{id}'")).collect::<Vec<_>>().join(", ");
            looked = ids.len();
            let called = format!("SELECT id FROM sys_invocation WHERE invoked_by_id IN ({list})");
            let called = servers.query(&called).await?;
            for id in called.iter().filter_map(|row| text(&row["id"])) {
                if !ids.contains(&id) {
                    ids.push(id);
                }
            }
        }
        for ids in ids.chunks(100) {
            let list = ids.iter().map(|id| format!("'{id}'")).collect::<Vec<_>>().join(", ");
            let sql =
                format!("SELECT id, entry_type, name, raw_length FROM sys_journal WHERE id IN ({list})");
            for row in servers.query(&sql).await? {
                let bytes = row["raw_length"].as_u64().ok_or("an entry has no length")?;
                let kind = found.kinds.entry(text(&row["entry_type"]).unwrap_or_default()).or_default();
                *kind = (kind.0 + 1, kind.1 + bytes);
                found.entries += 1;
                found.bytes += bytes;
            }
        }
        Ok(found)
    }
}

fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

//! Migrations of data files of earlier versions, each in one transaction.

use std::error::Error;

use rusqlite::{Connection, params};
use serde_json::{Map, Value, json};

use super::table::key;

/// The columns of a list that became a segment's.
const OF_SEGMENT: [&str; 7] = ["name", "description", "listType", "context", "type", "users", "groups"];

/// Migrates a file from one format to the next.
pub(super) fn migrate(file: &Connection, from: i32, to: i32) -> Result<(), Box<dyn Error>> {
    let writing = file.unchecked_transaction()?;
    if from < 2 {
        lists_become_segments(&writing)?;
    }
    writing.pragma_update(None, "user_version", to)?;
    Ok(writing.commit()?)
}

/// Up to format 1 an experiment contained its lists; since then they are segments.
fn lists_become_segments(file: &Connection) -> Result<(), Box<dyn Error>> {
    let mut rows = file.prepare("SELECT key, row FROM record WHERE kind = 'experiment' ORDER BY key")?;
    let rows = rows.query_map([], |row| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?)))?;
    let rows: Vec<(String, String)> = rows.collect::<Result<_, _>>()?;
    let mut write = file.prepare("INSERT OR REPLACE INTO record (kind, key, row) VALUES (?, ?, ?)")?;
    let mut sequence = 0;
    for (at, row) in rows {
        let mut experiment: Value = serde_json::from_str(&row)?;
        for side in ["inclusion", "exclusion"] {
            for list in experiment[side].as_array_mut().into_iter().flatten() {
                let Some(list) = list.as_object_mut() else { continue };
                let segment = segment(list, sequence);
                sequence += 1;
                let id = segment["id"].as_str().unwrap_or_default();
                write.execute(params!["segment", key(&[id]), segment.to_string()])?;
            }
        }
        write.execute(params!["experiment", at, experiment.to_string()])?;
    }
    Ok(())
}

/// Moves a segment out of a list and leaves the tie.
fn segment(list: &mut Map<String, Value>, sequence: u64) -> Value {
    let mut segment = Map::new();
    for column in OF_SEGMENT {
        segment.insert(column.to_owned(), list.remove(column).unwrap_or_default());
    }
    for column in ["createdAt", "updatedAt", "versionNumber"] {
        segment.insert(column.to_owned(), list.get(column).cloned().unwrap_or_default());
    }
    segment.insert("id".to_owned(), list.get("segmentId").cloned().unwrap_or_default());
    segment.insert("enlistedAt".to_owned(), list.get("createdAt").cloned().unwrap_or_default());
    segment.insert("sequence".to_owned(), json!(sequence));
    segment.insert("tags".to_owned(), Value::Null);
    segment.insert("subSegments".to_owned(), json!([]));
    Value::Object(segment)
}

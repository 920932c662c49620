//! A table in memory that tracks its unsaved changes and the values before them.

use std::collections::BTreeMap;

use serde::Serialize;
use serde::de::DeserializeOwned;

/// A key made of parts. Different lists of parts give different keys, and keys with common first parts are
/// adjacent.
pub(crate) fn key(parts: &[&str]) -> String {
    prefix(parts) + "]"
}

/// The prefix of all keys that start with these parts.
pub(super) fn prefix(parts: &[&str]) -> String {
    let mut text = String::from("[");
    for part in parts {
        push_quoted(&mut text, part);
        text.push(',');
    }
    text
}

/// The parts of a key.
pub(crate) fn parts(key: &str) -> Vec<String> {
    let text = key.strip_suffix(",]").map_or_else(|| key.to_owned(), |open| format!("{open}]"));
    serde_json::from_str(&text).unwrap_or_default()
}

/// Written as in JSON. Most parts are ids without characters to escape.
fn push_quoted(text: &mut String, part: &str) {
    let is_plain = |byte: u8| byte >= b' ' && byte != b'"' && byte != b'\\';
    if part.bytes().all(is_plain) {
        text.push('"');
        text.push_str(part);
        text.push('"');
    } else {
        text.push_str(&serde_json::Value::from(part).to_string());
    }
}

/// A row to write (with its text) or to delete (with none).
pub(crate) struct Change {
    pub(super) table: &'static str,
    pub(super) key: String,
    pub(super) row: Option<String>,
}

/// Rows by key.
#[derive(Debug)]
pub(crate) struct Table<T> {
    name: &'static str,
    rows: BTreeMap<String, T>,
    /// The value before the first change, if any.
    changed: BTreeMap<String, Option<T>>,
}

impl<T: Clone + Serialize + DeserializeOwned> Table<T> {
    pub(super) fn new(name: &'static str) -> Self {
        Self { name, rows: BTreeMap::new(), changed: BTreeMap::new() }
    }

    pub(super) fn name(&self) -> &'static str {
        self.name
    }

    pub(crate) fn get(&self, key: &str) -> Option<&T> {
        self.rows.get(key)
    }

    pub(crate) fn contains(&self, key: &str) -> bool {
        self.rows.contains_key(key)
    }

    pub(crate) fn get_mut(&mut self, key: &str) -> Option<&mut T> {
        let row = self.rows.get_mut(key)?;
        if !self.changed.contains_key(key) {
            self.changed.insert(key.to_owned(), Some(row.clone()));
        }
        Some(row)
    }

    pub(crate) fn insert(&mut self, key: String, row: T) {
        let before = self.rows.insert(key.clone(), row);
        self.changed.entry(key).or_insert(before);
    }

    /// Inserts a row unless the key exists.
    pub(crate) fn insert_first(&mut self, key: String, row: T) {
        if !self.rows.contains_key(&key) {
            self.insert(key, row);
        }
    }

    pub(crate) fn remove(&mut self, key: &str) -> Option<T> {
        let row = self.rows.remove(key)?;
        self.changed.entry(key.to_owned()).or_insert_with(|| Some(row.clone()));
        Some(row)
    }

    pub(crate) fn last_key(&self) -> Option<&str> {
        self.rows.last_key_value().map(|(key, _)| key.as_str())
    }

    pub(crate) fn values(&self) -> impl Iterator<Item = &T> {
        self.rows.values()
    }

    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    pub(crate) fn entries(&self) -> impl Iterator<Item = (&str, &T)> {
        self.rows.iter().map(|(key, row)| (key.as_str(), row))
    }

    /// The rows whose keys start with these parts.
    pub(crate) fn under<'t>(&'t self, parts: &[&str]) -> impl Iterator<Item = (&'t str, &'t T)> + use<'t, T> {
        let prefix = prefix(parts);
        let from = self.rows.range(prefix.clone()..);
        from.take_while(move |(key, _)| key.starts_with(&prefix)).map(|(key, row)| (key.as_str(), row))
    }

    /// Deletes the rows under these parts that satisfy the predicate.
    pub(crate) fn remove_under(&mut self, parts: &[&str], rule: impl Fn(&T) -> bool) {
        let doomed = self.under(parts).filter(|(_, row)| rule(row));
        let doomed: Vec<String> = doomed.map(|(key, _)| key.to_owned()).collect();
        doomed.iter().for_each(|key| drop(self.remove(key)));
    }

    /// Restores a row from disk.
    pub(super) fn restore(&mut self, key: String, text: &str) -> Result<(), serde_json::Error> {
        self.rows.insert(key, serde_json::from_str(text)?);
        Ok(())
    }

    /// The changes.
    pub(super) fn changes(&self) -> impl Iterator<Item = Result<Change, serde_json::Error>> {
        self.changed.keys().map(|key| {
            let row = self.rows.get(key).map(serde_json::to_string).transpose()?;
            Ok(Change { table: self.name, key: key.clone(), row })
        })
    }

    /// Keeps the changes.
    pub(super) fn keep_changes(&mut self) {
        self.changed.clear();
    }

    /// Reverts the changes.
    pub(super) fn undo_changes(&mut self) {
        for (key, before) in std::mem::take(&mut self.changed) {
            match before {
                Some(row) => drop(self.rows.insert(key, row)),
                None => drop(self.rows.remove(&key)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn different_parts_give_different_keys_even_if_they_contain_quotes() {
        assert_ne!(key(&["a\",\"b"]), key(&["a", "b"]));
        assert!(!key(&["ab", "c"]).starts_with(&prefix(&["a"])));
        assert!(key(&["a", "b"]).starts_with(&prefix(&["a"])));
    }

    #[test]
    fn parts_can_be_read_back_from_a_key() {
        assert_eq!(parts(&key(&["a\",\"b", "", "ü]"])), ["a\",\"b", "", "ü]"]);
    }

    #[test]
    fn parts_are_escaped_in_keys_as_in_json() {
        for part in ["plain", "", "quo\"te", "back\\slash", "line\nbreak", "\u{7f}", "é"] {
            assert_eq!(key(&[part]), format!("[{},]", serde_json::json!(part)));
        }
    }

    #[test]
    fn only_rows_with_the_prefix_are_found_and_removed() {
        let mut table = Table::new("numbers");
        for parts in [["a", "1"], ["a", "2"], ["ab", "1"], ["b", "1"]] {
            table.insert(key(&parts), 7);
        }
        assert_eq!(table.under(&["a"]).count(), 2);
        table.remove_under(&["a"], |_| true);
        assert_eq!(table.under(&["a"]).count(), 0);
        assert_eq!(table.values().count(), 2);
    }

    fn numbers() -> Table<i32> {
        let mut table = Table::new("numbers");
        table.insert("kept".into(), 1);
        table.insert("gone".into(), 2);
        table.keep_changes();
        table
    }

    fn change(table: &mut Table<i32>) {
        table.insert("new".into(), 3);
        table.insert("never".into(), 4);
        table.remove("never");
        *table.get_mut("kept").unwrap() += 10;
        *table.get_mut("kept").unwrap() += 10;
        table.remove("gone");
        table.insert("gone".into(), 5);
        table.remove("gone");
    }

    #[test]
    fn changes_are_listed_until_they_are_kept() {
        let mut table = numbers();
        change(&mut table);
        let changes: Vec<Change> = table.changes().collect::<Result<_, _>>().unwrap();
        let shown: Vec<_> = changes.iter().map(|c| (c.key.as_str(), c.row.as_deref())).collect();
        assert_eq!(shown, [("gone", None), ("kept", Some("21")), ("never", None), ("new", Some("3"))]);
        table.keep_changes();
        assert_eq!(table.changes().count(), 0);
    }

    #[test]
    fn undo_restores_the_rows_before_the_changes() {
        let mut table = numbers();
        change(&mut table);
        table.undo_changes();
        assert_eq!(table.changes().count(), 0);
        assert_eq!(table.entries().collect::<Vec<_>>(), [("gone", &2), ("kept", &1)]);
    }
}

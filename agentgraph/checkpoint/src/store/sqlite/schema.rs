//! The tables of a store in a file.
//!
//! The version of an item is its rowid: SQLite never grants one twice, and the newest items are found
//! without an index of their own. Namespaces and keys are bytes, whose order is that of the namespaces.

use crate::sqlite::schema::{ITEMS, Tables};

use super::statements;

pub(super) const TABLES: Tables =
    Tables { application: ITEMS, migrations: &[CREATE], prepare: statements::prepare };

/// Times are microseconds since 1970. A vector is a list of floats of 4 bytes, the least significant first.
const CREATE: &str = "
CREATE TABLE item (
    version INTEGER PRIMARY KEY AUTOINCREMENT,
    namespace BLOB NOT NULL,
    key BLOB NOT NULL,
    created INTEGER NOT NULL,
    updated INTEGER NOT NULL,
    ttl INTEGER,
    expires INTEGER,
    vectors INTEGER NOT NULL,
    value BLOB NOT NULL,
    UNIQUE (namespace, key)
);
CREATE INDEX ends ON item (expires) WHERE expires IS NOT NULL;
CREATE TABLE vector (
    version INTEGER NOT NULL,
    at INTEGER NOT NULL,
    numbers BLOB NOT NULL,
    PRIMARY KEY (version, at)
);
";

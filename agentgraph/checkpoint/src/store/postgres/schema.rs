//! The tables of a store in a database.
//!
//! Namespaces and keys are bytes: text in Postgres cannot contain NUL, and is sorted by the rules of a
//! language. Vectors are arrays of numbers, which `pgvector` casts to its own type, so the tables are the
//! same with and without it.

/// The changes from each version to the next. They are only ever added to.
pub(super) const MIGRATIONS: &[&str] = &[CREATE];

/// Times are microseconds since 1970.
const CREATE: &str = "
CREATE SEQUENCE @versions;
CREATE TABLE @item (
    namespace BYTEA NOT NULL,
    key BYTEA NOT NULL,
    version BIGINT NOT NULL,
    created BIGINT NOT NULL,
    updated BIGINT NOT NULL,
    ttl BIGINT,
    expires BIGINT,
    value BYTEA NOT NULL,
    PRIMARY KEY (namespace, key)
);
CREATE INDEX newest ON @item (version);
CREATE INDEX ends ON @item (expires) WHERE expires IS NOT NULL;
CREATE TABLE @vector (
    namespace BYTEA NOT NULL,
    key BYTEA NOT NULL,
    at INT NOT NULL,
    numbers REAL[] NOT NULL,
    PRIMARY KEY (namespace, key, at),
    FOREIGN KEY (namespace, key) REFERENCES @item ON DELETE CASCADE
);
";

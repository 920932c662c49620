//! The tables, and whether a database has them.
//!
//! Names are bytes: text in Postgres cannot contain NUL, and is sorted by the rules of a language.

use super::fault::Fault;
use super::statements::{Connection, Link, Parts, Transaction};
use crate::error::{StoreCode, StoreError};

/// The changes of the checkpointer's tables from each version to the next. They are only ever added to.
pub(super) const MIGRATIONS: &[&str] = &[CREATE, ADD_REQUESTS, ADD_BLOBS, ADD_ENDS, ADD_STOPS];

/// `part` is 0 for a full or a delta and 1 for the segment beside it. The partial index contains fulls and
/// segments only.
const CREATE: &str = "
CREATE TABLE @place (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    thread BYTEA NOT NULL,
    namespace BYTEA NOT NULL,
    UNIQUE (thread, namespace)
);
CREATE TABLE @checkpoint (
    place BIGINT NOT NULL REFERENCES @place ON DELETE CASCADE,
    branch BIGINT NOT NULL,
    step BIGINT NOT NULL,
    part SMALLINT NOT NULL,
    kind SMALLINT NOT NULL,
    record BYTEA NOT NULL,
    PRIMARY KEY (place, branch, step, part)
);
CREATE INDEX base ON @checkpoint (place, branch, step) WHERE kind <> 1;
CREATE TABLE @pending (
    place BIGINT NOT NULL REFERENCES @place ON DELETE CASCADE,
    branch BIGINT NOT NULL,
    step BIGINT NOT NULL,
    task BYTEA NOT NULL,
    slot BIGINT NOT NULL,
    bytes BYTEA NOT NULL,
    PRIMARY KEY (place, branch, step, task, slot)
);
CREATE SEQUENCE @fences;
CREATE TABLE @lease (
    thread BYTEA PRIMARY KEY,
    fence BIGINT NOT NULL,
    owner BIGINT NOT NULL,
    until BIGINT NOT NULL
);
";

/// Finds open requests without scanning the results and answers beside them.
const ADD_REQUESTS: &str = "CREATE INDEX asked ON @pending (place) WHERE slot % 2 = 1";

/// Large values, each once, and the rows and writes they were cut out of. `owner` is one byte for a row,
/// its `part`; for a pending write it is the byte 2, the task and the slot. A value is found by its hash
/// and has no number, so concurrent writers of it agree.
const ADD_BLOBS: &str = "
CREATE TABLE @blob (
    hash BYTEA PRIMARY KEY,
    bytes BYTEA NOT NULL
);
CREATE TABLE @piece (
    place BIGINT NOT NULL REFERENCES @place ON DELETE CASCADE,
    branch BIGINT NOT NULL,
    step BIGINT NOT NULL,
    owner BYTEA NOT NULL,
    at BIGINT NOT NULL,
    blob BYTEA NOT NULL REFERENCES @blob,
    PRIMARY KEY (place, branch, step, owner, at)
);
CREATE INDEX used ON @piece (blob);
ALTER TABLE @checkpoint ADD COLUMN pieces BIGINT NOT NULL DEFAULT 0;
ALTER TABLE @pending ADD COLUMN pieces BIGINT NOT NULL DEFAULT 0;
CREATE INDEX large ON @pending (place, branch, step) WHERE pieces > 0;
";

/// The end of a lease by the server's clock, in microseconds since 1970; 0 for a lease of a release without
/// this column. `length` is the time that a renewal adds.
const ADD_ENDS: &str = "
ALTER TABLE @lease ADD COLUMN length BIGINT NOT NULL DEFAULT 0, ADD COLUMN ends BIGINT NOT NULL DEFAULT 0";

/// Whether the writer was asked to stop. The index covers only the writers that were asked, which are almost
/// always none, so that looking for them is cheap.
const ADD_STOPS: &str = "
ALTER TABLE @lease ADD COLUMN stops BOOLEAN NOT NULL DEFAULT false;
CREATE INDEX stopping ON @lease (thread) WHERE stops";

/// Changes nothing, and needs no rights, if the tables are up to date.
pub(crate) async fn migrate(client: &mut Connection, schema: &str, migrations: &[&str]) -> Result<(), Fault> {
    if version(client, schema, migrations).await? == Some(migrations.len()) {
        return Ok(());
    }
    let transaction = client.begin().await?;
    // One saver at a time, across processes: the lock is held until the transaction ends.
    transaction
        .execute("SELECT pg_advisory_xact_lock(hashtext($1))", &[&format!("agentgraph {schema}")])
        .await?;
    let done = match version(&transaction, schema, migrations).await? {
        Some(version) => version,
        None => {
            create(&transaction, schema).await?;
            0
        }
    };
    for (number, step) in migrations.iter().enumerate().skip(done) {
        transaction.batch(step).await?;
        let number = i32::try_from(number + 1).unwrap_or(i32::MAX);
        transaction.execute("INSERT INTO @migration (version) VALUES ($1)", &[&number]).await?;
    }
    transaction.commit().await?;
    Ok(())
}

/// Reads the catalog itself: `to_regclass` and `to_regnamespace` use a cache, so a connection that did not
/// find a name may not find it for the rest of its transaction.
const HAS_TABLES: &str = "
SELECT EXISTS (
    SELECT FROM pg_catalog.pg_class AS class JOIN pg_catalog.pg_namespace AS schema ON schema.oid = class.relnamespace
    WHERE class.relname = 'migration' AND schema.nspname = $1::text
)";
const HAS_SCHEMA: &str = "SELECT EXISTS (SELECT FROM pg_catalog.pg_namespace WHERE nspname = $1::text)";

/// The version of the tables; `None` if there are none.
async fn version(
    client: &Link<impl Parts>,
    schema: &str,
    migrations: &[&str],
) -> Result<Option<usize>, Fault> {
    let found = client.query_one(HAS_TABLES, &[&schema]).await?;
    if !found.try_get::<_, bool>(0)? {
        return Ok(None);
    }
    let version = client.query_one("SELECT coalesce(max(version), 0) FROM @migration", &[]).await?;
    let version = usize::try_from(version.try_get::<_, i32>(0)?).unwrap_or(0);
    if version > migrations.len() {
        let problem = format!(
            "the tables in the schema `{schema}` are of a newer release of agentgraph (version {version}, this one reads \
             {}): update agentgraph, or choose another schema",
            migrations.len()
        );
        return Err(StoreError::new(StoreCode::UnknownFormat, problem).into());
    }
    Ok(Some(version))
}

/// A user who may not create schemas may be given an existing one.
async fn create(transaction: &Transaction<'_>, schema: &str) -> Result<(), Fault> {
    let found = transaction.query_one(HAS_SCHEMA, &[&schema]).await?;
    if !found.try_get::<_, bool>(0)? {
        // It may be created by hand meanwhile.
        transaction.batch(&format!("CREATE SCHEMA IF NOT EXISTS \"{schema}\"")).await?;
    }
    transaction.batch("CREATE TABLE @migration (version INT PRIMARY KEY)").await?;
    Ok(())
}

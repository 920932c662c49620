//! The tables, and whether a database has them.
//!
//! Names are bytes: text of Postgres cannot hold NUL, and would be sorted by the rules of a language.

use deadpool_postgres::{GenericClient, Object, Transaction};

use super::fault::Fault;
use super::rows;
use crate::error::{StoreCode, StoreError};

/// What brings a schema from each version to the next. Steps are added and never changed.
const MIGRATIONS: &[&str] = &[CREATE, ADD_REQUESTS, ADD_BLOBS, ADD_ENDS];

/// `part` is 0 for a full or a delta and 1 for the segment beside it. The partial index holds fulls and
/// segments only.
const CREATE: &str = "
CREATE TABLE place (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    thread BYTEA NOT NULL,
    namespace BYTEA NOT NULL,
    UNIQUE (thread, namespace)
);
CREATE TABLE checkpoint (
    place BIGINT NOT NULL REFERENCES place ON DELETE CASCADE,
    branch BIGINT NOT NULL,
    step BIGINT NOT NULL,
    part SMALLINT NOT NULL,
    kind SMALLINT NOT NULL,
    record BYTEA NOT NULL,
    PRIMARY KEY (place, branch, step, part)
);
CREATE INDEX base ON checkpoint (place, branch, step) WHERE kind <> 1;
CREATE TABLE pending (
    place BIGINT NOT NULL REFERENCES place ON DELETE CASCADE,
    branch BIGINT NOT NULL,
    step BIGINT NOT NULL,
    task BYTEA NOT NULL,
    slot BIGINT NOT NULL,
    bytes BYTEA NOT NULL,
    PRIMARY KEY (place, branch, step, task, slot)
);
CREATE SEQUENCE fences;
CREATE TABLE lease (
    thread BYTEA PRIMARY KEY,
    fence BIGINT NOT NULL,
    owner BIGINT NOT NULL,
    until BIGINT NOT NULL
);
";

/// Finds the requests that wait without a look at the results and answers beside them.
const ADD_REQUESTS: &str = "CREATE INDEX asked ON pending (place) WHERE slot % 2 = 1";

/// Large values, each once, and the rows and writes they were cut out of. `owner` is one byte for a row, its
/// `part`, and for a pending write the byte 2, the task and the slot. They are found by their hash and never
/// by their number, so that a value is the same for all who store it at once.
const ADD_BLOBS: &str = "
CREATE TABLE blob (
    hash BYTEA PRIMARY KEY,
    bytes BYTEA NOT NULL
);
CREATE TABLE piece (
    place BIGINT NOT NULL REFERENCES place ON DELETE CASCADE,
    branch BIGINT NOT NULL,
    step BIGINT NOT NULL,
    owner BYTEA NOT NULL,
    at BIGINT NOT NULL,
    blob BYTEA NOT NULL REFERENCES blob,
    PRIMARY KEY (place, branch, step, owner, at)
);
CREATE INDEX used ON piece (blob);
ALTER TABLE checkpoint ADD COLUMN pieces BIGINT NOT NULL DEFAULT 0;
ALTER TABLE pending ADD COLUMN pieces BIGINT NOT NULL DEFAULT 0;
CREATE INDEX large ON pending (place, branch, step) WHERE pieces > 0;
";

/// When a lease ends by the server's clock, in microseconds since 1970; 0 for one of a release that did not
/// say. `length` is how much a renewal gives.
const ADD_ENDS: &str = "
ALTER TABLE lease ADD COLUMN length BIGINT NOT NULL DEFAULT 0, ADD COLUMN ends BIGINT NOT NULL DEFAULT 0";

/// Changes nothing, and needs no right to, where the tables are up to date.
pub(super) async fn bring_up_to_date(client: &mut Object, schema: &str) -> Result<(), Fault> {
    if version(client, schema).await? == Some(MIGRATIONS.len()) {
        return Ok(());
    }
    let transaction = rows::begin(client).await?;
    // One saver at a time, also of several processes: the lock is held until the transaction ends.
    transaction
        .execute("SELECT pg_advisory_xact_lock(hashtext($1))", &[&format!("agentgraph {schema}")])
        .await?;
    let done = match version(&transaction, schema).await? {
        Some(version) => version,
        None => {
            create(&transaction, schema).await?;
            0
        }
    };
    for (number, step) in MIGRATIONS.iter().enumerate().skip(done) {
        transaction.batch_execute(step).await?;
        let number = i32::try_from(number + 1).unwrap_or(i32::MAX);
        transaction.execute("INSERT INTO migration (version) VALUES ($1)", &[&number]).await?;
    }
    transaction.commit().await?;
    Ok(())
}

/// Reads the catalogue itself. A connection that did not find a name may go on without it for the rest of its
/// transaction: `to_regclass` and `to_regnamespace` look into a cache.
const HAS_TABLES: &str = "
SELECT EXISTS (
    SELECT FROM pg_catalog.pg_class AS class JOIN pg_catalog.pg_namespace AS schema ON schema.oid = class.relnamespace
    WHERE class.relname = 'migration' AND schema.nspname = $1::text
)";
const HAS_SCHEMA: &str = "SELECT EXISTS (SELECT FROM pg_catalog.pg_namespace WHERE nspname = $1::text)";

/// How far the tables have come; none if there are none.
async fn version(client: &impl GenericClient, schema: &str) -> Result<Option<usize>, Fault> {
    let found = client.query_one(HAS_TABLES, &[&schema]).await?;
    if !found.try_get::<_, bool>(0)? {
        return Ok(None);
    }
    // By its full name: one who may not use the schema is told so.
    let newest = format!("SELECT coalesce(max(version), 0) FROM \"{schema}\".migration");
    let version = client.query_one(&newest, &[]).await?;
    let version = usize::try_from(version.try_get::<_, i32>(0)?).unwrap_or(0);
    if version > MIGRATIONS.len() {
        let problem = format!(
            "the tables in the schema `{schema}` are of a newer release of agentgraph (version {version}, this one reads \
             {}): update agentgraph, or choose another schema",
            MIGRATIONS.len()
        );
        return Err(StoreError::new(StoreCode::UnknownFormat, problem).into());
    }
    Ok(Some(version))
}

/// Who may not make schemas may be given one.
async fn create(transaction: &Transaction<'_>, schema: &str) -> Result<(), Fault> {
    let found = transaction.query_one(HAS_SCHEMA, &[&schema]).await?;
    if !found.try_get::<_, bool>(0)? {
        // Someone may make it by hand meanwhile.
        transaction.batch_execute(&format!("CREATE SCHEMA IF NOT EXISTS \"{schema}\"")).await?;
    }
    transaction.batch_execute("CREATE TABLE migration (version INT PRIMARY KEY)").await?;
    Ok(())
}

//! [`Vectors`]: whether the server compares vectors, by the extension `pgvector`.

use tokio_postgres::error::SqlState;

use crate::error::{StoreCode, StoreError};
use crate::postgres::fault::Fault;
use crate::postgres::statements::{Link, Parts};

/// Who compares vectors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Vectors {
    /// This process.
    InProcess,
    /// The server. The extension may be in any schema, and the connections use another one.
    OnServer { schema: String },
}

const INSTALLED: &str = "
SELECT schema.nspname FROM pg_catalog.pg_extension AS extension
JOIN pg_catalog.pg_namespace AS schema ON schema.oid = extension.extnamespace
WHERE extension.extname = 'vector'";

const AVAILABLE: &str =
    "SELECT EXISTS (SELECT FROM pg_catalog.pg_available_extensions WHERE name = 'vector')";

/// In the schema that every database has, since other programs may use it too.
const CREATE: &str = "CREATE EXTENSION IF NOT EXISTS vector SCHEMA public";

impl Vectors {
    /// Finds the extension, or creates it if this user may.
    pub(super) async fn find(client: &Link<impl Parts>, required: bool) -> Result<Self, Fault> {
        if let Some(found) = Self::installed(client).await? {
            return Ok(found);
        }
        let is_available: bool = client.query_one(AVAILABLE, &[]).await?.try_get(0)?;
        if !is_available {
            let remedy = "install the package of `pgvector` for its version on the server";
            return Self::missing(
                required,
                format!("the server does not have the extension `pgvector`: {remedy}"),
            );
        }
        match client.batch(CREATE).await {
            Ok(()) => {}
            // Another process may be creating it.
            Err(error) if is_refused(&error) => {
                if Self::installed(client).await?.is_none() {
                    let remedy = "let a user with the right run `CREATE EXTENSION vector` in this database";
                    let problem = format!("the database does not have the extension `pgvector`: {remedy}");
                    return Self::missing(required, problem);
                }
            }
            Err(error) => return Err(error.into()),
        }
        Ok(Self::installed(client).await?.unwrap_or(Vectors::InProcess))
    }

    async fn installed(client: &Link<impl Parts>) -> Result<Option<Self>, Fault> {
        let Some(row) = client.query_opt(INSTALLED, &[]).await? else { return Ok(None) };
        Ok(Some(Vectors::OnServer { schema: row.try_get(0)? }))
    }

    fn missing(required: bool, problem: String) -> Result<Self, Fault> {
        match required {
            true => Err(StoreError::new(StoreCode::Store, problem).into()),
            false => Ok(Vectors::InProcess),
        }
    }

    /// The name of the extension's schema as SQL.
    pub(super) fn quoted(schema: &str) -> String {
        format!("\"{}\"", schema.replace('"', "\"\""))
    }
}

fn is_refused(error: &tokio_postgres::Error) -> bool {
    let refusals = [
        &SqlState::INSUFFICIENT_PRIVILEGE,
        &SqlState::UNIQUE_VIOLATION,
        &SqlState::DUPLICATE_OBJECT,
        &SqlState::INVALID_SCHEMA_NAME,
        // The server has the extension's description, and not its library.
        &SqlState::UNDEFINED_FILE,
    ];
    error.code().is_some_and(|code| refusals.contains(&code))
}

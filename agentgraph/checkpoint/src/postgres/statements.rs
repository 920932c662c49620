//! Running statements: on the tables of one schema, and with or without names.
//!
//! Behind a pooler each transaction may get another connection of the server. So nothing depends on the
//! session: tables are named with their schema, and statements that are prepared for a session are for
//! direct connections only.

use std::sync::Arc;

use deadpool_postgres::{ClientWrapper, Object, StatementCache};
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, IsolationLevel, Row};

use super::fault::Fault;
use crate::error::{StoreCode, StoreError};

/// How statements are run.
#[derive(Clone)]
pub(crate) struct Style {
    /// What comes before the name of a table.
    schema: Arc<str>,
    is_pooled: bool,
}

impl Style {
    /// The name of the schema was checked: letters, digits and `_`.
    pub(crate) fn new(schema: &str, is_pooled: bool) -> Self {
        Style { schema: format!("\"{schema}\".").into(), is_pooled }
    }

    pub(crate) fn schema(&self) -> &str {
        self.schema.trim_end_matches('.').trim_matches('"')
    }

    pub(crate) fn is_pooled(&self) -> bool {
        self.is_pooled
    }

    /// A statement with the names of its tables, which are marked by `@`; `@>` is an operator.
    fn complete(&self, sql: &str) -> String {
        let named = sql.replace('@', &self.schema);
        if sql.contains("@>") { named.replace(&format!("{}>", self.schema), "@>") } else { named }
    }
}

/// A connection of the pool or a transaction on one.
#[doc(hidden)]
pub struct Link<C> {
    on: C,
    style: Style,
}

/// A connection of the pool.
#[doc(hidden)]
pub type Connection = Link<Object>;
/// A transaction on a connection.
#[doc(hidden)]
pub type Transaction<'a> = Link<deadpool_postgres::Transaction<'a>>;

/// What statements are run on.
#[doc(hidden)]
pub trait Parts {
    /// The client, and its statements.
    fn parts(&self) -> (&Client, &StatementCache);
}

impl Parts for Object {
    fn parts(&self) -> (&Client, &StatementCache) {
        (self, &self.statement_cache)
    }
}

impl Parts for deadpool_postgres::Transaction<'_> {
    fn parts(&self) -> (&Client, &StatementCache) {
        (self.client(), &self.statement_cache)
    }
}

impl<C: Parts> Link<C> {
    /// All rows.
    pub async fn query(&self, sql: &str, values: &[&dyn Value]) -> Result<Vec<Row>, Fault> {
        let sql = self.style.complete(sql);
        let (client, cache) = self.on.parts();
        if self.style.is_pooled {
            return Ok(client.query_typed(&sql, &typed(values)).await?);
        }
        let statement = cache.prepare(client, &sql).await?;
        Ok(client.query(&statement, &untyped(values)).await?)
    }

    /// The first row.
    pub async fn query_opt(&self, sql: &str, values: &[&dyn Value]) -> Result<Option<Row>, Fault> {
        Ok(self.query(sql, values).await?.into_iter().next())
    }

    /// The row of a statement that always has one.
    pub async fn query_one(&self, sql: &str, values: &[&dyn Value]) -> Result<Row, Fault> {
        let missing =
            || StoreError::new(StoreCode::Store, "the server did not answer a question about itself");
        Ok(self.query_opt(sql, values).await?.ok_or_else(missing)?)
    }

    /// Returns the number of rows that were changed.
    pub async fn execute(&self, sql: &str, values: &[&dyn Value]) -> Result<u64, Fault> {
        let sql = self.style.complete(sql);
        let (client, cache) = self.on.parts();
        if self.style.is_pooled {
            return Ok(client.execute_typed(&sql, &typed(values)).await?);
        }
        let statement = cache.prepare(client, &sql).await?;
        Ok(client.execute(&statement, &untyped(values)).await?)
    }

    /// Several statements without values.
    pub(crate) async fn batch(&self, sql: &str) -> Result<(), tokio_postgres::Error> {
        self.on.parts().0.batch_execute(&self.style.complete(sql)).await
    }
}

impl Connection {
    pub(crate) fn new(on: Object, style: Style) -> Self {
        Link { on, style }
    }

    /// Removes the connection from the pool.
    pub(crate) fn close(self) {
        drop(Object::take(self.on));
    }

    /// A statement sees everything committed before it, whatever the server's default isolation level.
    pub async fn begin(&mut self) -> Result<Transaction<'_>, Fault> {
        let client: &mut ClientWrapper = &mut self.on;
        let begun = client.build_transaction().isolation_level(IsolationLevel::ReadCommitted).start();
        Ok(Link { on: begun.await?, style: self.style.clone() })
    }

    /// All statements see the same moment.
    pub(crate) async fn snapshot(&mut self) -> Result<Transaction<'_>, Fault> {
        let client: &mut ClientWrapper = &mut self.on;
        let begun = client.build_transaction().isolation_level(IsolationLevel::RepeatableRead);
        Ok(Link { on: begun.read_only(true).start().await?, style: self.style.clone() })
    }
}

impl Transaction<'_> {
    /// Ends the transaction.
    pub async fn commit(self) -> Result<(), Fault> {
        Ok(self.on.commit().await?)
    }

    /// Opens the only cursor of the transaction. Portals would need a named statement.
    pub(crate) async fn open_cursor(&self, sql: &str, values: &[&dyn Value]) -> Result<(), Fault> {
        self.execute(&format!("DECLARE found NO SCROLL CURSOR FOR {sql}"), values).await?;
        Ok(())
    }

    /// The next rows of the cursor; none at its end.
    pub(crate) async fn fetch(&self) -> Result<Vec<Row>, Fault> {
        // Its columns are those of the cursor, so it is not prepared.
        Ok(self.on.client().query_typed("FETCH 256 FROM found", &[]).await?)
    }
}

/// A parameter. Its type is that of the column, so that the server need not be asked for it.
#[doc(hidden)]
pub trait Value: ToSql + Sync {
    /// The type of the column.
    fn sql_type(&self) -> Type;
}

impl<T: Typed + ToSql + Sync> Value for T {
    fn sql_type(&self) -> Type {
        T::TYPE
    }
}

#[doc(hidden)]
pub trait Typed {
    /// The type of the column.
    const TYPE: Type;
}

macro_rules! typed {
    ($($rust:ty => $sql:ident),*) => { $(impl Typed for $rust { const TYPE: Type = Type::$sql; })* };
}

typed! {
    bool => BOOL, i16 => INT2, i32 => INT4, i64 => INT8, str => TEXT, String => TEXT, [u8] => BYTEA, [i64] => INT8_ARRAY,
    [f32] => FLOAT4_ARRAY, [&[u8]] => BYTEA_ARRAY, [String] => TEXT_ARRAY
}

impl<T: Typed + ?Sized> Typed for &T {
    const TYPE: Type = T::TYPE;
}

impl<T: Typed> Typed for Option<T> {
    const TYPE: Type = T::TYPE;
}

impl<T> Typed for Vec<T>
where
    [T]: Typed,
{
    const TYPE: Type = <[T]>::TYPE;
}

fn untyped<'a>(values: &[&'a dyn Value]) -> Vec<&'a (dyn ToSql + Sync)> {
    values.iter().map(|value| *value as &(dyn ToSql + Sync)).collect()
}

fn typed<'a>(values: &[&'a dyn Value]) -> Vec<(&'a (dyn ToSql + Sync), Type)> {
    values.iter().map(|value| (*value as &(dyn ToSql + Sync), value.sql_type())).collect()
}

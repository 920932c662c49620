//! [`Tables`]: the tables of another crate of this workspace, on the connections of a [`PostgresSaver`]: one
//! pool, one way through a pooler, one deadline for each call. It knows no table.

use std::pin::pin;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::{BoxFuture, select};
use tokio::sync::mpsc::UnboundedSender;
use tokio_postgres::AsyncMessage;

use crate::error::StoreError;
use crate::postgres::dial::{Dial, Messages};
use crate::postgres::schema::migrate;
use crate::postgres::statements::Style;
use crate::postgres::{Calls, PostgresSaver, explained};
use crate::store::PostgresStore;

pub use crate::postgres::fault::Fault;
pub use crate::postgres::statements::{Connection, Transaction, Value};
pub use tokio_postgres::Row;
pub use tokio_postgres::types::FromSql;

/// The pause before the listening connection is opened again.
const AGAIN: Duration = Duration::from_millis(100);

/// Tables in a schema of their own. A clone is another handle.
#[derive(Clone)]
pub struct Tables {
    calls: Calls,
    /// `None` behind a pooler that may not keep sessions: then nothing can be heard.
    session: Option<Dial>,
    schema: String,
}

impl Tables {
    /// Creates the tables or updates them, in the schema of the saver with this ending. In statements `@`
    /// stands before the name of a table. Migrations are only ever added to; several processes may start at
    /// once.
    pub async fn beside(
        saver: &PostgresSaver,
        ending: &str,
        migrations: &'static [&'static str],
    ) -> Result<Self, StoreError> {
        let schema = format!("{}_{ending}", saver.schema());
        let style = Style::new(&schema, saver.calls().style.is_pooled());
        let calls = Calls { style, ..saver.calls().clone() };
        let name = schema.clone();
        explained!(calls, "", connection => migrate(connection, &name, migrations).await)?;
        Ok(Tables { calls, session: saver.session().cloned(), schema })
    }

    /// Runs `work` on a connection, in a task of its own, again if it clashes with another transaction.
    pub async fn call<T, W>(&self, mut work: W) -> Result<T, StoreError>
    where
        T: Send + 'static,
        W: for<'c> FnMut(&'c mut Connection) -> BoxFuture<'c, Result<T, Fault>> + Send + 'static,
    {
        explained!(self.calls, "", connection => work(connection).await)
    }

    /// The schema, which is also the channel of notifications.
    pub fn schema(&self) -> &str {
        &self.schema
    }

    /// Whether notifications can be heard.
    pub fn hears(&self) -> bool {
        self.session.is_some()
    }

    /// Passes on the payloads of notifications until the receiver is gone. `None` stands for a connection
    /// that was opened, again or for the first time: what was sent before it is lost.
    pub fn listen(&self, hear: UnboundedSender<Option<String>>) {
        let Some(dial) = self.session.clone() else { return };
        let listen = format!("LISTEN \"{}\"", self.schema);
        tokio::spawn(async move {
            while !hear.is_closed() {
                let passed_on = hear.clone();
                let connected = dial.connect(|messages| pass_on(messages, passed_on), &listen);
                if let Ok(Ok((_client, mut hears))) = tokio::time::timeout(dial.timeout(), connected).await {
                    let _ = hear.send(None);
                    select(&mut hears, pin!(hear.closed())).await;
                    hears.abort();
                }
                tokio::time::sleep(AGAIN).await;
            }
        });
    }
}

async fn pass_on(mut messages: Messages, hear: UnboundedSender<Option<String>>) {
    while let Some(Ok(message)) = messages.next().await {
        if let AsyncMessage::Notification(told) = message {
            let _ = hear.send(Some(told.payload().to_owned()));
        }
    }
}

/// The store of items on the connections of a saver, in a schema beside its own.
pub async fn store_beside(saver: &PostgresSaver) -> Result<PostgresStore, StoreError> {
    PostgresStore::on(saver.calls().clone(), &format!("{}_store", saver.schema())).await
}

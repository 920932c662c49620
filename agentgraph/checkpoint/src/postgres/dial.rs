//! Opens the connections of a saver, those to the server itself with a sign of life.
//!
//! Each of them holds an advisory lock under the saver's number, shared with the saver's other connections,
//! while it is open. The server closes them all when the process dies for any reason. So an owner of a lease
//! without any lock has most likely died, while one that lost a connection or two still counts as alive.
//!
//! Behind a pooler a lock would stay on a connection of the server that other programs use next, so a dead
//! owner would look alive. Connections to a pooler give no sign.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use deadpool_postgres::Connect;
use futures_util::stream::{Stream, StreamExt, poll_fn};
use tokio::task::{AbortHandle, JoinHandle};
use tokio_postgres::tls::{MakeTlsConnect, TlsConnect};
use tokio_postgres::{AsyncMessage, Client, Config, Error, Socket};

use super::pooler;

type Sent<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Connects to an address with TLS or without. The type of the TLS connector is known here only.
pub(crate) type Connector = Arc<dyn Fn(Config) -> Sent<Result<(Client, Messages), Error>> + Send + Sync>;

pub(crate) fn connector<T>(tls: T) -> Connector
where
    T: MakeTlsConnect<Socket> + Clone + Send + Sync + 'static,
    T::TlsConnect: Send,
    T::Stream: Send,
    <T::TlsConnect as TlsConnect<Socket>>::Future: Send,
{
    Arc::new(move |config| {
        let tls = tls.clone();
        Box::pin(async move {
            let (client, mut connection) = config.connect(tls).await?;
            let messages: Messages = Box::pin(poll_fn(move |context| connection.poll_message(context)));
            Ok((client, messages))
        })
    })
}

/// The messages that the server sends unasked. The connection stays open while the stream is polled.
pub(crate) type Messages = Pin<Box<dyn Stream<Item = Result<AsyncMessage, Error>> + Send>>;

/// An address, and the sign of life that connections to it give.
#[derive(Clone)]
pub(crate) struct Dial {
    config: Config,
    connector: Connector,
    timeout: Duration,
    /// The number of the saver; `None` for a store of items, which has no leases.
    owner: Option<i64>,
    /// Whether the address is that of a pooler: set by the caller, or by the first connection.
    is_pooled: Arc<OnceLock<bool>>,
}

impl Dial {
    pub(super) fn new(config: Config, connector: &Connector, timeout: Duration, owner: Option<i64>) -> Self {
        let is_pooled = Arc::default();
        Dial { config, connector: Arc::clone(connector), timeout, owner, is_pooled }
    }

    async fn open(&self) -> Result<(Client, Messages), Error> {
        (self.connector)(self.config.clone()).await
    }

    /// A dial that does not find out whether its address is that of a pooler.
    pub(super) fn assume(self, is_pooled: bool) -> Self {
        Dial { is_pooled: Arc::new(is_pooled.into()), ..self }
    }

    /// Not known before the first connection.
    pub(crate) fn is_pooled(&self) -> bool {
        self.is_pooled.get().is_none_or(|is_pooled| *is_pooled)
    }

    /// The longest time that connecting may take.
    pub(crate) fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Whether the address keeps sessions: the server itself does, and a pooler may.
    pub(super) async fn keeps_sessions(&self) -> Result<bool, Error> {
        let open = async || {
            let (client, mut messages) = self.open().await?;
            let hears = tokio::spawn(async move { while let Some(Ok(_)) = messages.next().await {} });
            Ok::<_, Error>((client, Closes(Some(hears.abort_handle()))))
        };
        let (one, two) = (open().await?, open().await?);
        pooler::keeps_sessions(&one.0, &two.0).await
    }

    /// Opens a connection, with the sign of life if it is to the server; `hear` drives it. `then` runs on it
    /// first.
    pub(crate) async fn connect<H>(
        &self,
        hear: impl FnOnce(Messages) -> H,
        then: &str,
    ) -> Result<(Client, JoinHandle<()>), Error>
    where
        H: Future<Output = ()> + Send + 'static,
    {
        let (client, messages) = self.open().await?;
        let hears = tokio::spawn(hear(messages));
        let mut closes = Closes(Some(hears.abort_handle()));
        let is_pooled = match self.is_pooled.get() {
            Some(is_pooled) => *is_pooled,
            None => {
                let found = pooler::is_between(&client).await?;
                *self.is_pooled.get_or_init(|| found)
            }
        };
        match self.owner {
            Some(owner) if !is_pooled => {
                client.batch_execute(&format!("SELECT pg_advisory_lock_shared({owner}); {then}")).await?
            }
            _ if then.is_empty() => {}
            _ => client.batch_execute(then).await?,
        }
        closes.0 = None;
        Ok((client, hears))
    }
}

/// Closes a connection whose caller is dropped before it is ready.
struct Closes(Option<AbortHandle>);

impl Drop for Closes {
    fn drop(&mut self) {
        if let Some(hears) = &self.0 {
            hears.abort();
        }
    }
}

/// The connections of the pool. Their settings are in the dial.
impl Connect for Dial {
    fn connect(
        &self,
        _: &Config,
    ) -> Pin<Box<dyn Future<Output = Result<(Client, JoinHandle<()>), Error>> + Send + '_>> {
        let hear = |mut messages: Messages| async move { while let Some(Ok(_)) = messages.next().await {} };
        Box::pin(self.connect(hear, ""))
    }
}

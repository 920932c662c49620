//! Opens the connections of a saver, each with a sign of life.
//!
//! Each connection holds an advisory lock under the saver's number, shared with the saver's other
//! connections, while it is open. The server closes them all when the process dies for any reason. So an
//! owner of a lease without any lock has most likely died, while one that lost a connection or two still
//! counts as alive.

use std::collections::hash_map::RandomState;
use std::future::Future;
use std::hash::BuildHasher;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use deadpool_postgres::Connect;
use futures_util::stream::{Stream, StreamExt, poll_fn};
use tokio::task::{AbortHandle, JoinHandle};
use tokio_postgres::tls::{MakeTlsConnect, TlsConnect};
use tokio_postgres::{AsyncMessage, Client, Config, Error, Socket};

type Sent<T> = Pin<Box<dyn Future<Output = T> + Send>>;
type Connecting = Sent<Result<(Client, Messages), Error>>;

/// The messages that the server sends unasked. The connection stays open while the stream is polled.
pub(super) type Messages = Pin<Box<dyn Stream<Item = Result<AsyncMessage, Error>> + Send>>;

/// The server, and the number of the saver that connects.
#[derive(Clone)]
pub(crate) struct Dial {
    connect: Arc<dyn Fn() -> Connecting + Send + Sync>,
    owner: i64,
    timeout: Duration,
}

impl Dial {
    pub(super) fn new<T>(config: Config, tls: T, timeout: Duration) -> Self
    where
        T: MakeTlsConnect<Socket> + Clone + Send + Sync + 'static,
        T::TlsConnect: Send,
        T::Stream: Send,
        <T::TlsConnect as TlsConnect<Socket>>::Future: Send,
    {
        let connect = move || {
            let config = config.clone();
            let tls = tls.clone();
            let connected = async move {
                let (client, mut connection) = config.connect(tls).await?;
                let messages: Messages = Box::pin(poll_fn(move |context| connection.poll_message(context)));
                Ok((client, messages))
            };
            Box::pin(connected) as Connecting
        };
        // A number below 2^63, which is written the same way signed and unsigned.
        let owner = (RandomState::new().hash_one(std::process::id()) >> 1) as i64;
        Dial { connect: Arc::new(connect), owner, timeout }
    }

    /// The number of the saver in leases.
    pub(super) fn owner(&self) -> i64 {
        self.owner
    }

    /// The longest time that connecting may take.
    pub(super) fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Opens a connection with the sign of life; `hear` drives it. `then` runs on it first.
    pub(super) async fn connect<H>(
        &self,
        hear: impl FnOnce(Messages) -> H,
        then: &str,
    ) -> Result<(Client, JoinHandle<()>), Error>
    where
        H: Future<Output = ()> + Send + 'static,
    {
        let (client, messages) = (self.connect)().await?;
        let hears = tokio::spawn(hear(messages));
        let mut closes = Closes(Some(hears.abort_handle()));
        let sign = format!("SELECT pg_advisory_lock_shared({}); {then}", self.owner);
        client.batch_execute(&sign).await?;
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

//! How every connection of a saver is made, and the sign of life that each of them carries.
//!
//! Each holds an advisory lock under the saver's own number, shared with its sisters, for as long as it
//! stands. The server ends them all with the process, however that dies; so an owner of a lease who holds no
//! lock has most likely died, while one who lost a connection or two still shows that he lives.

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

/// What the server sends unasked. The connection stands for as long as somebody asks for the next.
pub(super) type Messages = Pin<Box<dyn Stream<Item = Result<AsyncMessage, Error>> + Send>>;

/// The server, and the number of the saver that calls it.
#[derive(Clone)]
pub(super) struct Dial {
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
            let (config, tls) = (config.clone(), tls.clone());
            let connected = async move {
                let (client, mut connection) = config.connect(tls).await?;
                let messages: Messages = Box::pin(poll_fn(move |context| connection.poll_message(context)));
                Ok((client, messages))
            };
            Box::pin(connected) as Connecting
        };
        // Of the half of the numbers that are written the same way with and without a sign.
        let owner = (RandomState::new().hash_one(std::process::id()) >> 1) as i64;
        Dial { connect: Arc::new(connect), owner, timeout }
    }

    /// The number that leases carry.
    pub(super) fn owner(&self) -> i64 {
        self.owner
    }

    /// How long it may take.
    pub(super) fn timeout(&self) -> Duration {
        self.timeout
    }

    /// A connection that shows that its saver lives; `hear` drives it. `then` is carried out on it first.
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

/// Closes a connection that nobody waits for any more before it shows anything.
struct Closes(Option<AbortHandle>);

impl Drop for Closes {
    fn drop(&mut self) {
        if let Some(hears) = &self.0 {
            hears.abort();
        }
    }
}

/// The connections of the pool. Their settings are the dial's own.
impl Connect for Dial {
    fn connect(
        &self,
        _: &Config,
    ) -> Pin<Box<dyn Future<Output = Result<(Client, JoinHandle<()>), Error>> + Send + '_>> {
        let hear = |mut messages: Messages| async move { while let Some(Ok(_)) = messages.next().await {} };
        Box::pin(self.connect(hear, ""))
    }
}

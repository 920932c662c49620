//! The one connection that waits: it hears that threads were given back, and shows that its saver lives.
//!
//! It holds an advisory lock under the saver's own number for as long as it stands. The server ends it with the process,
//! however that dies, so whoever finds a lease whose owner holds no lock knows that nobody will give it back.

use std::collections::hash_map::RandomState;
use std::future::poll_fn;
use std::hash::BuildHasher;
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::sync::futures::Notified;
use tokio::task::JoinHandle;
use tokio_postgres::tls::{MakeTlsConnect, TlsConnect};
use tokio_postgres::{AsyncMessage, Client, Config, Connection, Socket};

use super::fault::Fault;

/// How long to wait before the next attempt to connect again.
const AGAIN: Duration = Duration::from_secs(1);

pub(super) struct Listener {
    owner: i64,
    channel: String,
    rings: Notify,
    task: std::sync::OnceLock<JoinHandle<()>>,
}

impl Listener {
    /// Connects once, so that a saver that is made has a sign of life.
    pub(super) async fn start<T>(config: Config, tls: T, schema: &str) -> Result<Arc<Self>, Fault>
    where
        T: MakeTlsConnect<Socket> + Clone + Send + Sync + 'static,
        T::TlsConnect: Send,
        T::Stream: Send,
        <T::TlsConnect as TlsConnect<Socket>>::Future: Send,
    {
        // Of the half of the numbers that are written the same way with and without a sign.
        let owner = (RandomState::new().hash_one(std::process::id()) >> 1) as i64;
        let channel = format!("agentgraph_{schema}");
        let listener =
            Arc::new(Listener { owner, channel, rings: Notify::new(), task: std::sync::OnceLock::new() });
        let first = listener.connect(&config, tls.clone()).await?;
        let task = tokio::spawn(keep_listening(Arc::downgrade(&listener), first, config, tls));
        let _ = listener.task.set(task);
        Ok(listener)
    }

    /// The number that leases carry.
    pub(super) fn owner(&self) -> i64 {
        self.owner
    }

    pub(super) fn channel(&self) -> &str {
        &self.channel
    }

    /// Whether a thread was given back somewhere, from now on.
    pub(super) fn rings(&self) -> Notified<'_> {
        self.rings.notified()
    }

    async fn connect<T>(self: &Arc<Self>, config: &Config, tls: T) -> Result<Heard, Fault>
    where
        T: MakeTlsConnect<Socket>,
        T::TlsConnect: Send,
        T::Stream: Send + 'static,
        <T::TlsConnect as TlsConnect<Socket>>::Future: Send,
    {
        let (client, connection) = config.connect(tls).await?;
        let hears = tokio::spawn(hear(Arc::downgrade(self), connection));
        let heard = Heard { client, hears };
        let channel = self.channel.replace('"', "\"\"");
        heard.client.execute("SELECT pg_advisory_lock($1)", &[&self.owner]).await?;
        heard.client.batch_execute(&format!("LISTEN \"{channel}\"")).await?;
        Ok(heard)
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Some(task) = self.task.get() {
            task.abort();
        }
    }
}

/// A connection that stands. Dropped, it is closed.
struct Heard {
    client: Client,
    hears: JoinHandle<()>,
}

impl Drop for Heard {
    fn drop(&mut self) {
        self.hears.abort();
    }
}

async fn keep_listening<T>(listener: Weak<Listener>, first: Heard, config: Config, tls: T)
where
    T: MakeTlsConnect<Socket> + Clone + Send + Sync + 'static,
    T::TlsConnect: Send,
    T::Stream: Send,
    <T::TlsConnect as TlsConnect<Socket>>::Future: Send,
{
    let mut heard = Some(first);
    loop {
        if let Some(mut standing) = heard.take() {
            // Ends when the connection does.
            let _ = (&mut standing.hears).await;
        }
        let Some(listener) = listener.upgrade() else { return };
        // Who waits looks for himself meanwhile.
        listener.rings.notify_waiters();
        match listener.connect(&config, tls.clone()).await {
            Ok(standing) => heard = Some(standing),
            Err(_) => tokio::time::sleep(AGAIN).await,
        }
    }
}

/// Drives a connection to its end.
async fn hear<S, T>(listener: Weak<Listener>, mut connection: Connection<S, T>)
where
    Connection<S, T>: Unpin,
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
    T: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
{
    while let Some(Ok(message)) = poll_fn(|context| connection.poll_message(context)).await {
        let Some(listener) = listener.upgrade() else { return };
        if let AsyncMessage::Notification(_) = message {
            listener.rings.notify_waiters();
        }
    }
}

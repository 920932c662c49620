//! The one connection that waits for notifications of released threads.

use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use futures_util::StreamExt;
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::sync::futures::Notified;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_postgres::{AsyncMessage, Client};

use super::dial::{Dial, Messages};
use super::fault::Fault;

/// The pause before the next attempt to reconnect, at first and at most.
const AGAIN: [Duration; 2] = [Duration::from_millis(25), Duration::from_millis(300)];

pub(super) struct Listener {
    dial: Dial,
    channel: String,
    rings: Notify,
    task: Mutex<Option<JoinHandle<()>>>,
}

impl Listener {
    /// Connects once, so that building a saver reports a server that cannot be reached.
    pub(super) async fn start(dial: Dial, schema: &str) -> Result<Arc<Self>, Fault> {
        let channel = format!("agentgraph_{schema}");
        let listener = Arc::new(Listener { dial, channel, rings: Notify::new(), task: Mutex::default() });
        let first = listener.connect().await?;
        listener.ensure_task(Some(first));
        Ok(listener)
    }

    /// Starts the task again if it ended because its runtime was shut down.
    pub(super) fn restart(self: &Arc<Self>) {
        self.ensure_task(None);
    }

    fn ensure_task(self: &Arc<Self>, first: Option<Heard>) {
        let Ok(runtime) = Handle::try_current() else { return };
        let mut task = self.task.lock().unwrap_or_else(PoisonError::into_inner);
        if task.as_ref().is_none_or(JoinHandle::is_finished) {
            *task = Some(runtime.spawn(keep_listening(Arc::downgrade(self), first)));
        }
    }

    /// The number of the saver in leases.
    pub(super) fn owner(&self) -> i64 {
        self.dial.owner()
    }

    pub(super) fn channel(&self) -> &str {
        &self.channel
    }

    /// Resolves when a thread is released anywhere from now on.
    pub(super) fn next_release(&self) -> Notified<'_> {
        self.rings.notified()
    }

    async fn connect(self: &Arc<Self>) -> Result<Heard, Fault> {
        let listener = Arc::downgrade(self);
        let listen = format!("LISTEN \"{}\"", self.channel.replace('"', "\"\""));
        let connected = self.dial.connect(|messages| drive_connection(listener, messages), &listen);
        let connected = tokio::time::timeout(self.dial.timeout(), connected).await;
        let (client, hears) = connected.map_err(|_| Fault::Silent(self.dial.timeout()))??;
        Ok(Heard { _client: client, hears })
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let task = self.task.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(task) = task {
            task.abort();
        }
    }
}

/// An open connection. Dropping it closes it.
struct Heard {
    _client: Client,
    hears: JoinHandle<()>,
}

impl Drop for Heard {
    fn drop(&mut self) {
        self.hears.abort();
    }
}

async fn keep_listening(listener: Weak<Listener>, first: Option<Heard>) {
    let [shortest, longest] = AGAIN;
    let mut heard = first;
    let mut pause = Duration::ZERO;
    loop {
        if let Some(mut standing) = heard.take() {
            let since = Instant::now();
            // Ends when the connection does.
            let _ = (&mut standing.hears).await;
            if since.elapsed() > longest {
                pause = Duration::ZERO;
            }
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).clamp(shortest, longest);
        let Some(listener) = listener.upgrade() else { return };
        // Meanwhile waiting callers check for themselves.
        listener.rings.notify_waiters();
        if let Ok(standing) = listener.connect().await {
            heard = Some(standing);
            // Releases before this point were notified to no connection.
            listener.rings.notify_waiters();
        }
    }
}

/// Drives a connection until it ends.
async fn drive_connection(listener: Weak<Listener>, mut messages: Messages) {
    while let Some(Ok(message)) = messages.next().await {
        let Some(listener) = listener.upgrade() else { return };
        if let AsyncMessage::Notification(_) = message {
            listener.rings.notify_waiters();
        }
    }
}

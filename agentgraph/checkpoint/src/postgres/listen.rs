//! The one connection that waits for notifications of released threads, if there is an address that keeps
//! sessions.

use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::StreamExt;
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::sync::futures::Notified;
use tokio::task::JoinHandle;
use tokio::time::{Instant, Timeout, timeout};
use tokio_postgres::{AsyncMessage, Client};

use super::dial::{Dial, Messages};
use super::fault::Fault;
use crate::lock::Lock;

/// The pause before the next attempt to reconnect, at first and at most.
const AGAIN: [Duration; 2] = [Duration::from_millis(25), Duration::from_millis(300)];

/// The longest time without a look at an awaited thread, with notifications and without.
const LOOK_AGAIN: [Duration; 2] = [Duration::from_secs(5), Duration::from_millis(250)];

pub(super) struct Listener {
    /// `None` behind a pooler that may not keep sessions.
    dial: Option<Dial>,
    owner: i64,
    channel: String,
    rings: Notify,
    task: Lock<Option<JoinHandle<()>>>,
}

impl Listener {
    /// Connects once, so that building a saver reports a server that cannot be reached.
    pub(super) async fn start(dial: Option<Dial>, owner: i64, schema: &str) -> Result<Arc<Self>, Fault> {
        let channel = format!("agentgraph_{schema}");
        let (rings, task) = (Notify::new(), Lock::default());
        let listener = Arc::new(Listener { dial, owner, channel, rings, task });
        if let Some(dial) = &listener.dial {
            let first = listener.connect(dial).await?;
            listener.ensure_task(Some(first));
        }
        Ok(listener)
    }

    /// Starts the task again if it ended because its runtime was shut down.
    pub(super) fn restart(self: &Arc<Self>) {
        self.ensure_task(None);
    }

    fn ensure_task(self: &Arc<Self>, first: Option<Heard>) {
        let (Some(_), Ok(runtime)) = (&self.dial, Handle::try_current()) else { return };
        let mut task = self.task.lock();
        if task.as_ref().is_none_or(JoinHandle::is_finished) {
            *task = Some(runtime.spawn(keep_listening(Arc::downgrade(self), first)));
        }
    }

    /// The number of the saver in leases; negative if it gives no sign of life.
    pub(super) fn owner(&self) -> i64 {
        self.owner
    }

    pub(super) fn dial(&self) -> Option<&Dial> {
        self.dial.as_ref()
    }

    pub(super) fn channel(&self) -> &str {
        &self.channel
    }

    /// Resolves when a thread is released anywhere from now on, or when it is time to look for oneself.
    pub(super) fn next_release(&self) -> Timeout<Notified<'_>> {
        let [listening, polling] = LOOK_AGAIN;
        timeout(if self.dial.is_some() { listening } else { polling }, self.rings.notified())
    }

    async fn connect(self: &Arc<Self>, dial: &Dial) -> Result<Heard, Fault> {
        let listener = Arc::downgrade(self);
        let listen = format!("LISTEN \"{}\"", self.channel.replace('"', "\"\""));
        let connected = dial.connect(|messages| drive_connection(listener, messages), &listen);
        let connected = timeout(dial.timeout(), connected).await;
        let (client, hears) = connected.map_err(|_| Fault::Silent(dial.timeout()))??;
        Ok(Heard { _client: client, hears })
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let task = self.task.get_mut();
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
        let Some(dial) = &listener.dial else { return };
        if let Ok(standing) = listener.connect(dial).await {
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

//! A running server and its shutdown.

use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::routes::connection::{BreakableListener, Breaker};
use crate::routes::{RouteContext, routes};
use crate::shared_core::SharedCore;

/// The time for which the shutdown waits for a client with an unfinished request.
const GRACE: Duration = Duration::from_secs(5);

/// A running embedded server. Dropping it stops the server at once; [`Self::shutdown`] completes pending
/// requests first.
pub struct ServerHandle {
    url: String,
    addr: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
    core: SharedCore,
}

impl ServerHandle {
    pub(crate) fn serve(listener: TcpListener, addr: SocketAddr, face: &RouteContext) -> Self {
        let (stop, stopped) = oneshot::channel::<()>();
        let routes = routes(face).into_make_service_with_connect_info::<Breaker>();
        let core = face.core.clone();
        let task = tokio::spawn(async move {
            let stopped = async move {
                // A dropped sender is a stop as well.
                let _ = stopped.await;
            };
            let served =
                axum::serve(BreakableListener(listener), routes).with_graceful_shutdown(stopped).await;
            if let Err(why) = served {
                tracing::error!(%why, "the embedded UpGrade server stopped");
            }
        });
        Self { url: format!("http://{addr}/api"), addr, stop: Some(stop), task, core }
    }

    /// The URL of the API, which ends in `/api`.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The URL of the host for UpGrade's own client libraries: the API's URL without `/api`, which they add.
    pub fn host_url(&self) -> &str {
        self.url.trim_end_matches("/api")
    }

    /// The address of the listener.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Accepts no more requests, waits for pending ones (five seconds at most) and closes the data file.
    pub async fn shutdown(mut self) {
        self.stop.take();
        // Dropping the handle ends the rest. The task fails only by a panic, which the runtime has reported.
        let _ = tokio::time::timeout(GRACE, &mut self.task).await;
    }
}

impl Drop for ServerHandle {
    fn drop(&mut self) {
        self.task.abort();
        // Connections have tasks of their own, which outlive the listener's.
        self.core.close();
    }
}

impl fmt::Debug for ServerHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerHandle").field("url", &self.url).finish_non_exhaustive()
    }
}

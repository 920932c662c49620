//! [`Serving`]: the worker's own listener. It outlives failing connections, as the SDK's does not.

use std::convert::Infallible;
use std::future::ready;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use restate_sdk::endpoint::Endpoint;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::attempt::{self, Answer, Attempt};
use crate::trace;

/// How long requests under way may take to come to a point where another worker can continue them.
const PARTING: Duration = Duration::from_secs(10);

/// A worker that serves. It stops with its value, as a kill would.
#[derive(Debug)]
pub struct Serving {
    addr: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    parts: CancellationToken,
    task: JoinHandle<()>,
}

impl Serving {
    pub(super) fn begin(
        addr: SocketAddr,
        listener: TcpListener,
        endpoint: Endpoint,
        parts: CancellationToken,
    ) -> Self {
        let (stop, stopped) = oneshot::channel();
        Serving { addr, stop: Some(stop), parts, task: tokio::spawn(serve(listener, endpoint, stopped)) }
    }

    /// The address it serves on.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Takes no new requests, starts no tasks, and waits for those under way, ten seconds at most. The
    /// server continues their threads on another worker.
    pub async fn stop(mut self) {
        self.parts.cancel();
        drop(self.stop.take());
        let _ = (&mut self.task).await;
    }

    /// Waits until it has ended, which it does not by itself.
    pub(super) async fn ended(mut self) {
        let _ = (&mut self.task).await;
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(listener: TcpListener, endpoint: Endpoint, mut stopped: oneshot::Receiver<()>) {
    let graceful = GracefulShutdown::new();
    let mut connections = tokio::task::JoinSet::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = &mut stopped => break,
            Some(_) = connections.join_next() => continue,
        };
        match accepted {
            Ok((stream, _)) => {
                let connection = connection(stream, endpoint.clone(), &graceful);
                connections.spawn(connection);
            }
            // Too many open files, or a connection that was gone before it was taken.
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }
    drop(listener);
    let _ = tokio::time::timeout(PARTING, graceful.shutdown()).await;
}

fn connection(
    stream: TcpStream,
    endpoint: Endpoint,
    graceful: &GracefulShutdown,
) -> impl Future<Output = ()> + Send + use<> {
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |request: hyper::Request<Incoming>| {
        let attempt = Arc::new(Attempt::default());
        let span = trace::of_attempt(&request);
        let request = request.map(|body| attempt::Request::new(body, &attempt));
        let answer = span.in_scope(|| endpoint.handle(request));
        ready(Ok::<_, Infallible>(answer.map(|body| Answer::new(body, attempt, span))))
    });
    let connection = http2::Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .keep_alive_interval(Duration::from_secs(20))
        .serve_connection(TokioIo::new(stream), service);
    let connection = graceful.watch(connection);
    async move {
        if let Err(error) = connection.await {
            tracing::debug!(%error, "a connection ended");
        }
    }
}

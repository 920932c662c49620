//! Spreads requests over several workers, for a trial on one machine. Elsewhere this is the job of a proxy
//! that balances the requests of HTTP/2, and not its connections: Restate keeps one connection for many
//! requests.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use agentgraph::prelude::Result;
use hyper::body::Incoming;
use hyper::client::conn::http2::SendRequest;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Mutex;

struct Balancer {
    workers: Vec<SocketAddr>,
    next: AtomicUsize,
    connections: Mutex<HashMap<SocketAddr, SendRequest<Incoming>>>,
}

/// Serves until the process ends.
pub(crate) async fn balance(listen: SocketAddr, workers: Vec<SocketAddr>) -> Result<()> {
    let listener = TcpListener::bind(listen).await?;
    println!("balances {} workers on {listen}", workers.len());
    let balancer = Arc::new(Balancer { workers, next: AtomicUsize::new(0), connections: Mutex::default() });
    loop {
        let (stream, _) = listener.accept().await?;
        let balancer = Arc::clone(&balancer);
        tokio::spawn(async move {
            let service = service_fn(move |request| {
                let balancer = Arc::clone(&balancer);
                async move { balancer.pass_on(request).await }
            });
            let connection = hyper::server::conn::http2::Builder::new(TokioExecutor::new())
                .serve_connection(TokioIo::new(stream), service);
            // The server makes a new connection when this one is lost.
            let _ = connection.await;
        });
    }
}

impl Balancer {
    /// Passes a request on to the next worker that can be reached.
    async fn pass_on(&self, request: Request<Incoming>) -> io::Result<Response<Incoming>> {
        for _ in &self.workers {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            let worker = self.workers[number % self.workers.len()];
            if let Ok(mut connection) = self.connection(worker).await {
                return connection.send_request(request).await.map_err(io::Error::other);
            }
        }
        Err(io::Error::other("no worker can be reached"))
    }

    async fn connection(&self, worker: SocketAddr) -> Result<SendRequest<Incoming>> {
        let mut connections = self.connections.lock().await;
        if let Some(open) = connections.get(&worker).filter(|open| !open.is_closed()) {
            return Ok(open.clone());
        }
        let stream = TokioIo::new(TcpStream::connect(worker).await?);
        let (sender, connection) =
            hyper::client::conn::http2::handshake(TokioExecutor::new(), stream).await?;
        tokio::spawn(connection);
        connections.insert(worker, sender.clone());
        Ok(sender)
    }
}

//! Connections that the server can close without notice: UpGrade up to 6.2 does so after an error response.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll, ready};

use axum::extract::connect_info::Connected;
use axum::serve::{IncomingStream, Listener};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};

/// A listener of connections that can be closed.
pub(crate) struct BreakableListener(pub(crate) TcpListener);

impl Listener for BreakableListener {
    type Io = Connection;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Connection, SocketAddr) {
        let (stream, addr) = Listener::accept(&mut self.0).await;
        // Responses are small and awaited, so a delayed one would slow the caller down. Without the option,
        // calls are slower and still correct.
        let _ = stream.set_nodelay(true);
        (Connection { stream, breaker: Breaker::default() }, addr)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }
}

/// The next response is the last; 0 before that.
const LAST: u8 = 1;
/// The last response is written.
const BROKEN: u8 = 2;

/// The handle with which a route closes its connection.
#[derive(Clone, Default)]
pub(crate) struct Breaker(Arc<AtomicU8>);

impl Breaker {
    /// Closes the connection after the next response. Nothing is read from the connection between this call
    /// and the response, if nothing is awaited.
    pub(super) fn break_after_answer(&self) {
        self.0.store(LAST, Ordering::Relaxed);
    }

    fn note_writing(&self) {
        // Only the connection's own task calls this function and the one above.
        if self.0.load(Ordering::Relaxed) == LAST {
            self.0.store(BROKEN, Ordering::Relaxed);
        }
    }

    fn is_broken(&self) -> bool {
        self.0.load(Ordering::Relaxed) == BROKEN
    }
}

impl Connected<IncomingStream<'_, BreakableListener>> for Breaker {
    fn connect_info(incoming: IncomingStream<'_, BreakableListener>) -> Self {
        incoming.io().breaker.clone()
    }
}

/// A connection. Once it is marked, the server reads an end of input, so it closes the connection.
pub(crate) struct Connection {
    stream: TcpStream,
    breaker: Breaker,
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.breaker.is_broken() {
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut self.stream).poll_read(context, into)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.stream).poll_write(context, bytes));
        self.breaker.note_writing();
        Poll::Ready(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.stream).poll_write_vectored(context, slices));
        self.breaker.note_writing();
        Poll::Ready(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

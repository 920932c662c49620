//! Connections that the server can break: after a bad answer UpGrade up to 6.2 ends the connection
//! without having said so in the answer.

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

/// Listens, and hands out connections that can be broken.
pub(crate) struct BreakableListener(pub(crate) TcpListener);

impl Listener for BreakableListener {
    type Io = Connection;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Connection, SocketAddr) {
        let (stream, addr) = Listener::accept(&mut self.0).await;
        // Answers are small and awaited; one that is held back for more to come costs the caller
        // dearly. Where it cannot be set, calls are slow and right.
        let _ = stream.set_nodelay(true);
        (Connection { stream, breaker: Breaker::default() }, addr)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }
}

/// The next answer is the last; before that it is 0.
const LAST: u8 = 1;
/// The last answer is written.
const BROKEN: u8 = 2;

/// What a route breaks its connection with.
#[derive(Clone, Default)]
pub(crate) struct Breaker(Arc<AtomicU8>);

impl Breaker {
    /// Ends the connection after the answer that is about to be written. Nothing is read from the
    /// connection between this call and the writing of the answer, if nothing is awaited.
    pub(super) fn break_after_answer(&self) {
        self.0.store(LAST, Ordering::Relaxed);
    }

    fn note_writing(&self) {
        // The connection's own task is the only one that comes here or above.
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

/// A connection. Once broken it looks to the server as if the caller had hung up, which makes the
/// server end it.
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

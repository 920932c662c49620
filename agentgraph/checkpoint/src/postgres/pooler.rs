//! Finds out whether a pooler is between this process and the server, and whether it keeps sessions.
//!
//! A server announces the number of its process at the start of a connection, for requests to cancel a
//! statement. A pooler announces another number, since the connection has no process of its own. The client
//! shows the number only in such a request, which is written to memory here.

use std::future::{Ready, ready};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::tls::{ChannelBinding, TlsConnect, TlsStream};
use tokio_postgres::{Client, Error, SimpleQueryMessage};

/// Whether the other end of the connection is not the server's process.
pub(super) async fn is_between(client: &Client) -> Result<bool, Error> {
    let mut request = Written::default();
    client.cancel_token().cancel_query_raw(&mut request, InClear).await?;
    // The request ends with the number of the process and a secret, of four bytes each.
    let announced = request.0.last_chunk::<8>().map(|[a, b, c, d, ..]| i32::from_be_bytes([*a, *b, *c, *d]));
    Ok(announced != Some(process(client).await?))
}

/// The number of the process that runs the statements of the connection at this moment.
pub(super) async fn process(client: &Client) -> Result<i32, Error> {
    let answers = client.simple_query("SELECT pg_backend_pid()").await?;
    let process = answers.iter().find_map(|answer| match answer {
        SimpleQueryMessage::Row(row) => row.get(0)?.parse().ok(),
        _ => None,
    });
    Ok(process.unwrap_or(0))
}

/// Whether two connections have processes of their own. In transaction mode a pooler lends one process to
/// both, one after the other.
pub(super) async fn keeps_sessions(one: &Client, two: &Client) -> Result<bool, Error> {
    let first = process(one).await?;
    for _ in 0..4 {
        if process(two).await? == first || process(one).await? != first {
            return Ok(false);
        }
    }
    Ok(true)
}

/// A stream that keeps what is written to it, in clear.
#[derive(Default)]
struct Written(Vec<u8>);

impl AsyncWrite for Written {
    fn poll_write(mut self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.0.extend_from_slice(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

impl AsyncRead for Written {
    /// The consent to TLS, which a client asks for if its settings require it.
    fn poll_read(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        buffer.put_slice(b"S");
        Poll::Ready(Ok(()))
    }
}

impl TlsStream for &mut Written {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

struct InClear;

impl<'a> TlsConnect<&'a mut Written> for InClear {
    type Stream = &'a mut Written;
    type Error = io::Error;
    type Future = Ready<Result<&'a mut Written, io::Error>>;

    fn connect(self, stream: &'a mut Written) -> Self::Future {
        ready(Ok(stream))
    }
}

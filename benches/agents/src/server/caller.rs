//! One kept connection with a minimum of HTTP, so that the server is measured and not the client.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use agentgraph_benches::Problem;

pub(crate) struct Caller {
    stream: TcpStream,
    read: Vec<u8>,
}

impl Caller {
    pub(crate) async fn new(addr: SocketAddr) -> Result<Self, Problem> {
        let stream = TcpStream::connect(addr).await?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, read: Vec::with_capacity(16 * 1024) })
    }

    /// Sends a request and reads the response; fails if its status is not 200.
    pub(crate) async fn call(&mut self, request: &str) -> Result<(), Problem> {
        self.stream.write_all(request.as_bytes()).await?;
        self.read.clear();
        loop {
            if let Some(length) = whole(&self.read) {
                if self.read.len() < length {
                    self.read.reserve(length - self.read.len());
                } else if self.read.starts_with(b"HTTP/1.1 200 ") {
                    return Ok(());
                } else {
                    return Err(String::from_utf8_lossy(&self.read).into_owned().into());
                }
            }
            if self.stream.read_buf(&mut self.read).await? == 0 {
                return Err("the server hung up".into());
            }
        }
    }
}

/// Returns the length of a response, head and body, or `None` while its head is incomplete.
fn whole(read: &[u8]) -> Option<usize> {
    let end = read.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
    let head = std::str::from_utf8(&read[..end]).ok()?;
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
    });
    Some(end + length?)
}

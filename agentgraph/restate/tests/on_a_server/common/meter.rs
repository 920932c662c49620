//! [`Meter`]: a way between a server and a worker that counts what the worker says, and can be cut.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;

/// Passes connections on to a worker. It counts the HTTP/2 frames with data that the worker sends: each is a
/// piece of a journal, or an answer.
pub struct Meter {
    pub address: String,
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

struct Shared {
    to: u16,
    frames: AtomicU64,
    /// At which frame the connection is cut, and whether that frame still passes.
    cut_at: AtomicU64,
    passes: AtomicBool,
    is_cut: AtomicBool,
    cut: Notify,
    /// Whether everything is held back.
    holds: watch::Sender<bool>,
}

impl Shared {
    async fn may_pass(&self) {
        let _ = self.holds.subscribe().wait_for(|holds| !holds).await;
    }
}

impl Meter {
    pub async fn start(to: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let shared = Arc::new(Shared {
            to,
            frames: AtomicU64::new(0),
            cut_at: AtomicU64::new(u64::MAX),
            passes: AtomicBool::new(false),
            is_cut: AtomicBool::new(false),
            cut: Notify::new(),
            holds: watch::Sender::new(false),
        });
        let task = tokio::spawn(accept(listener, Arc::clone(&shared)));
        Meter { address, shared, task }
    }

    /// Cuts the way at the n-th frame from now on, counted from 1: before or after that frame.
    pub fn cut_at(&self, frame: u64, passes: bool) {
        self.shared.frames.store(0, Ordering::SeqCst);
        self.shared.passes.store(passes, Ordering::SeqCst);
        self.shared.cut_at.store(frame, Ordering::SeqCst);
    }

    /// Waits for the cut.
    pub async fn is_cut(&self) {
        while !self.shared.is_cut.load(Ordering::SeqCst) {
            self.shared.cut.notified().await;
        }
    }

    /// Breaks the connections, and lets no new one pass.
    pub fn cut(&self) {
        self.shared.is_cut.store(true, Ordering::SeqCst);
        self.shared.holds.send_replace(true);
        self.shared.cut.notify_one();
    }

    /// Holds back everything that is sent from now on.
    pub fn hold(&self) {
        self.shared.holds.send_replace(true);
    }

    /// Lets everything that was held back and new connections pass.
    pub fn mend(&self) {
        self.shared.holds.send_replace(false);
        self.shared.cut_at.store(u64::MAX, Ordering::SeqCst);
        self.shared.is_cut.store(false, Ordering::SeqCst);
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    loop {
        let Ok((from, _)) = listener.accept().await else { continue };
        if shared.is_cut.load(Ordering::SeqCst) {
            // There is no answer: the connection stays as it is until the way is mended.
            let shared = Arc::clone(&shared);
            tokio::spawn(async move {
                shared.may_pass().await;
                drop(from);
            });
            continue;
        }
        let Ok(to) = TcpStream::connect(("127.0.0.1", shared.to)).await else { continue };
        from.set_nodelay(true).ok();
        to.set_nodelay(true).ok();
        let ((from_server, to_server), (from_worker, to_worker)) = (from.into_split(), to.into_split());
        tokio::spawn(pass(from_server, to_worker, Arc::clone(&shared)));
        tokio::spawn(count(from_worker, to_server, Arc::clone(&shared)));
    }
}

async fn pass(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, shared: Arc<Shared>) {
    let mut bytes = vec![0; 64 * 1024];
    while let Ok(read @ 1..) = from.read(&mut bytes).await {
        if shared.is_cut.load(Ordering::SeqCst) {
            return;
        }
        shared.may_pass().await;
        if to.write_all(&bytes[..read]).await.is_err() {
            return;
        }
    }
}

async fn count(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, shared: Arc<Shared>) {
    loop {
        let mut frame = vec![0; 9];
        if from.read_exact(&mut frame).await.is_err() {
            return;
        }
        let length = usize::from(frame[0]) << 16 | usize::from(frame[1]) << 8 | usize::from(frame[2]);
        let is_data = frame[3] == 0 && length > 0;
        frame.resize(9 + length, 0);
        if from.read_exact(&mut frame[9..]).await.is_err() || shared.is_cut.load(Ordering::SeqCst) {
            return;
        }
        shared.may_pass().await;
        let mut cuts = false;
        if is_data {
            let number = shared.frames.fetch_add(1, Ordering::SeqCst) + 1;
            cuts = number >= shared.cut_at.load(Ordering::SeqCst);
        }
        if (!cuts || shared.passes.load(Ordering::SeqCst)) && to.write_all(&frame).await.is_err() {
            return;
        }
        if cuts {
            shared.is_cut.store(true, Ordering::SeqCst);
            shared.cut.notify_one();
            return;
        }
    }
}

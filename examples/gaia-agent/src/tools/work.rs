//! [`Work`]: work on a blocking thread. It ends soon after its caller was dropped, such as by a timeout, and
//! unpacks a bounded number of bytes.
//!
//! A thread cannot be stopped from outside. So every loop of a reader calls [`check`](Work::check), and
//! libraries read through [`reader`](Work::reader): both fail once the caller is gone.

use std::io::{self, Cursor, Read, Seek, SeekFrom};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The most bytes that the archives of one call unpack to.
pub(super) const UNPACKED: u64 = 128 << 20;

/// The work of one call. Clones are the same work.
#[derive(Clone, Debug)]
pub(super) struct Work {
    is_over: Arc<AtomicBool>,
    left: Arc<AtomicU64>,
}

/// Ends its work when it is dropped, with the future that waits for it.
pub(super) struct Waiting(Arc<AtomicBool>);

/// Bytes that can be read until the work is over.
#[derive(Clone, Debug)]
pub(super) struct Bytes<'b> {
    bytes: Cursor<&'b [u8]>,
    is_over: Arc<AtomicBool>,
}

impl Work {
    pub(super) fn new() -> Self {
        Work { is_over: Arc::default(), left: Arc::new(AtomicU64::new(UNPACKED)) }
    }

    /// The same work with all bytes left, for a file that was counted once.
    pub(super) fn anew(&self) -> Self {
        Work { left: Work::new().left, ..self.clone() }
    }

    pub(super) fn waiting(&self) -> Waiting {
        Waiting(Arc::clone(&self.is_over))
    }

    /// # Errors
    /// If the caller was dropped.
    pub(super) fn check(&self) -> Result<(), String> {
        if self.is_over.load(Ordering::Relaxed) { Err("it took too long".to_owned()) } else { Ok(()) }
    }

    /// Takes from the bytes that may be unpacked.
    pub(super) fn unpack(&self, bytes: u64) -> Result<(), String> {
        let taken = self
            .left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(bytes))
            .map(|_| ());
        taken.map_err(|_| format!("it unpacks to more than {} MiB", UNPACKED >> 20))
    }

    pub(super) fn reader<'b>(&self, bytes: &'b [u8]) -> Bytes<'b> {
        Bytes { bytes: Cursor::new(bytes), is_over: Arc::clone(&self.is_over) }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Read for Bytes<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.is_over.load(Ordering::Relaxed) {
            return Err(io::Error::new(io::ErrorKind::TimedOut, "it took too long"));
        }
        self.bytes.read(into)
    }
}

impl Seek for Bytes<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.bytes.seek(to)
    }
}

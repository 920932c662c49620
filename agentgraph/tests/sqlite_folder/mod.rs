//! A temporary folder for a test, deleted on drop.
#![allow(clippy::expect_used)]

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("agentgraph-sqlite-{}-{count}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).expect("a folder for the test");
        Folder(path)
    }

    /// Returns the path of a file with an unused name.
    #[allow(dead_code)]
    pub(crate) fn fresh(&self) -> PathBuf {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        self.file(&format!("{}.db", COUNT.fetch_add(1, Ordering::Relaxed)))
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

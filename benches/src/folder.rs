//! A temporary folder for the databases of one entrant.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

/// A folder of its own below the one for temporary files, removed with this value.
pub struct Folder(PathBuf);

impl Folder {
    /// Creates the folder.
    pub fn create() -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let name =
            format!("agentgraph-benches-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).expect("a folder");
        Folder(path)
    }

    /// Returns the path of a file in it.
    pub fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Returns the size of all files in the folder.
    #[cfg(feature = "all")]
    pub(crate) fn bytes(&self) -> u64 {
        let files = std::fs::read_dir(&self.0).expect("the folder").flatten();
        files.filter_map(|file| file.metadata().ok()).map(|file| file.len()).sum()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // A leftover folder does not affect a measurement.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

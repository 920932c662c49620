//! A run in one process is cancelled by another one that has the same file.

use agentgraph::checkpoint::SqliteSaver;

use super::sqlite_folder::Folder;
use super::{cancelling, two_processes};

#[test]
fn one_process_cancels_the_run_of_another() {
    let folder = Folder::new();
    let path = folder.file("threads.db");
    two_processes::run("cancelled::a_process_that_cancels_or_is_cancelled", path);
}

/// Does nothing unless the test above starts it.
#[tokio::test]
async fn a_process_that_cancels_or_is_cancelled() {
    let Some(path) = two_processes::orders() else { return };
    cancelling::cancel_or_be_cancelled(SqliteSaver::open(&path).await.unwrap()).await;
}

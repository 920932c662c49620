//! Calls of the server, each in its own task.
//!
//! A caller may not be polled for long: a run pauses while its stream is not read. The resources of its
//! call (a connection, a place in the pool's queue, locked rows) must not be held up meanwhile.

use std::panic::resume_unwind;

use tokio::task::JoinHandle;

use super::fault::Fault;
use crate::error::{StoreCode, StoreError};

/// Runs `work`. If this is dropped, the work is aborted and a transaction is rolled back.
pub(crate) async fn run_in_task<T: Send + 'static>(
    work: impl Future<Output = Result<T, Fault>> + Send + 'static,
) -> Result<T, Fault> {
    let mut call = Call(tokio::spawn(work));
    match (&mut call.0).await {
        Ok(done) => done,
        Err(ended) => match ended.try_into_panic() {
            Ok(panic) => resume_unwind(panic),
            Err(_) => {
                let problem = "a call of the checkpoint database was cut off, since its runtime is shutting down: \
                               read the thread again before you continue";
                Err(StoreError::new(StoreCode::Store, problem).into())
            }
        },
    }
}

struct Call<T>(JoinHandle<T>);

impl<T> Drop for Call<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

//! A hint while an answer takes long.

use std::time::Duration;

use super::screen::Screen;

/// The time before the hint.
const SOON: Duration = Duration::from_secs(3);

/// Waits for an answer, and prints the hint to standard error if it takes long.
pub(super) async fn hinted<T>(screen: Screen, hint: &str, answer: impl Future<Output = T>) -> T {
    let mut answer = std::pin::pin!(answer);
    tokio::select! {
        biased;
        answer = &mut answer => answer,
        () = tokio::time::sleep(SOON) => {
            screen.warn(hint);
            answer.await
        }
    }
}

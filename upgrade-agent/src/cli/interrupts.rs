//! Ctrl-C as a signal. An interrupt that arrives while no one waits is kept for the next waiter, so none is
//! lost between a turn and the prompt, and none ends the program by itself.

use std::io;

/// The interrupts of this process. An interrupt that arrives while no one waits is kept; several count as
/// one.
pub(super) struct Interrupts(Signals);

#[cfg(unix)]
type Signals = tokio::signal::unix::Signal;
#[cfg(windows)]
type Signals = tokio::signal::windows::CtrlC;

impl Interrupts {
    /// Starts to listen.
    pub(super) fn listen() -> io::Result<Self> {
        #[cfg(unix)]
        let signals = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::interrupt())?;
        #[cfg(windows)]
        let signals = tokio::signal::windows::ctrl_c()?;
        Ok(Interrupts(signals))
    }

    /// Resolves on the next interrupt. Cancel-safe.
    pub(super) async fn next(&mut self) {
        if self.0.recv().await.is_none() {
            // On a platform without signals there are no interrupts.
            std::future::pending::<()>().await;
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::process::{Command, id};
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn an_interrupt_before_the_first_wait_is_reported_once() {
        let mut interrupts = Interrupts::listen().unwrap();
        let mut witness = Interrupts::listen().unwrap();
        assert!(Command::new("kill").args(["-INT", &id().to_string()]).status().unwrap().success());
        witness.next().await;
        // The interrupt arrived before this wait.
        interrupts.next().await;
        let again = tokio::time::timeout(Duration::ZERO, interrupts.next()).await;
        assert!(again.is_err(), "the interrupt was reported twice");
    }
}

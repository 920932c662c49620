//! Two processes that do the same at the same moment: both run one test of this program, which does nothing
//! without its orders.
#![allow(clippy::unwrap_used)]

use std::ffi::{OsStr, OsString};
use std::process::{Command, Stdio};

/// What the test that both run has to do.
const ORDERS: &str = "AGENTGRAPH_TEST_BESIDE_ANOTHER_PROCESS";

/// Runs a test in two processes, which begin when both are there.
pub(crate) fn run(test: &str, orders: impl AsRef<OsStr>) {
    let start = || {
        Command::new(std::env::current_exe().unwrap())
            .args(["--exact", test])
            .env(ORDERS, &orders)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap()
    };
    let mut processes = [start(), start()];
    // Each waits for the end of its input.
    for process in &mut processes {
        drop(process.stdin.take());
    }
    for process in processes {
        let output = process.wait_with_output().unwrap();
        let shown = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && shown.contains("1 passed"), "{shown}");
    }
}

/// The orders of one of the two, once it may begin; none where the test is run like any other.
pub(crate) fn orders() -> Option<OsString> {
    let orders = std::env::var_os(ORDERS)?;
    std::io::copy(&mut std::io::stdin(), &mut std::io::sink()).unwrap();
    Some(orders)
}

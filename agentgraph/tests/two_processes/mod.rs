//! Runs one test of this program in two processes at the same moment. The test does nothing without orders.
#![allow(clippy::unwrap_used)]

use std::ffi::{OsStr, OsString};
use std::process::{Command, Stdio};

/// The environment variable with the orders of the test.
const ORDERS: &str = "AGENTGRAPH_TEST_BESIDE_ANOTHER_PROCESS";

/// Runs a test in two processes, which begin once both have started.
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
    // Each process waits for the end of its input.
    for process in &mut processes {
        drop(process.stdin.take());
    }
    for process in processes {
        let output = process.wait_with_output().unwrap();
        let shown = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && shown.contains("1 passed"), "{shown}");
    }
}

/// Waits until the test may begin and returns its orders. Returns `None` in a normal run of the tests.
pub(crate) fn orders() -> Option<OsString> {
    let orders = std::env::var_os(ORDERS)?;
    std::io::copy(&mut std::io::stdin(), &mut std::io::sink()).unwrap();
    Some(orders)
}

//! The conformance kit of hosts: the hosts of the tests hold every clause, and every clause finds a host that
//! breaks it.
#![cfg(feature = "conformance")]
#![allow(missing_docs, unreachable_pub, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use agentgraph::host::conformance::{self, Ability, LocalRuns, Notes, Report};

/// Asserts that every clause holds but those for these abilities.
fn assert_holds(report: &Report, lacking: &[Ability]) {
    assert!(report.holds(), "{report}");
    assert!(report.findings.len() > 40, "{report}");
    for finding in report.lacking() {
        assert!(finding.lacks.iter().all(|lack| lacking.contains(lack)), "{report}");
    }
}

#[tokio::test]
async fn graphs_without_a_host_hold_the_contract() {
    let notes = Notes::temporary().unwrap();
    let report = conformance::run(&LocalRuns::new(&notes), &notes).await;
    assert_holds(&report, &[Ability::Elsewhere, Ability::Contexts, Ability::Kill]);
}

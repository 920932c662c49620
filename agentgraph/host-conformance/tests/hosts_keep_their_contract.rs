//! The conformance kit of hosts: the hosts of the tests hold every clause, and every clause finds a host that
//! breaks it.
#![allow(missing_docs, unreachable_pub, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "hosts_keep_their_contract/any_value.rs"]
mod any_value;
#[path = "hosts_keep_their_contract/driver.rs"]
mod driver;
#[path = "hosts_keep_their_contract/faults.rs"]
mod faults;
#[path = "hosts_keep_their_contract/faulty_caller.rs"]
mod faulty_caller;
#[path = "hosts_keep_their_contract/faulty_host.rs"]
mod faulty_host;
#[path = "../../tests/sqlite_folder/mod.rs"]
mod folder;
#[path = "../../tests/common/needs.rs"]
mod needs;
#[path = "hosts_keep_their_contract/remote.rs"]
mod remote;
#[path = "hosts_keep_their_contract/workers.rs"]
mod workers;

use std::collections::BTreeSet;
use std::time::Duration;

use agentgraph::BoxError;
use agentgraph::host::{RunCall, RunEnd, ThreadState};
use agentgraph_host_conformance::{
    self as conformance, Ability, Clause, HostUnderTest, KitGraph, LocalRuns, Notes, Report,
};
use driver::DrivenRuns;
use faults::{Fault, faults};
use faulty_caller::FaultyCaller;

/// Asserts that every clause holds, and that the host lacks these abilities only.
fn assert_holds(report: &Report, lacking: &[Ability]) {
    assert!(report.holds(), "{report}");
    assert!(report.findings.len() > 60, "{report}");
    let lacks: BTreeSet<String> =
        report.lacking().flat_map(|finding| &finding.lacks).map(|lack| format!("{lack:?}")).collect();
    assert_eq!(lacks, lacking.iter().map(|lack| format!("{lack:?}")).collect(), "{report}");
}

#[tokio::test]
async fn graphs_without_a_host_hold_the_contract() {
    let notes = Notes::temporary().unwrap();
    let report = conformance::run(&LocalRuns::new(&notes), &notes).await;
    assert_holds(&report, &[Ability::Elsewhere, Ability::Contexts, Ability::Kill]);
}

#[tokio::test]
async fn a_host_of_another_graph_holds_the_contract() {
    let notes = Notes::temporary().unwrap();
    let report = conformance::run(&faulty_host::runs(&notes, None), &notes).await;
    assert_holds(&report, &[Ability::Kill]);
}

#[tokio::test]
async fn a_driver_holds_the_contract_and_its_runs_are_built_again_from_every_prefix() {
    let notes = Notes::temporary().unwrap();
    let report = conformance::run(&DrivenRuns::new(&notes, None), &notes).await;
    assert_holds(&report, &[]);
}

#[tokio::test]
async fn calls_and_ends_as_json_hold_the_contract() {
    let notes = Notes::temporary().unwrap();
    let report = conformance::run(&FaultyCaller::new(&notes, None), &notes).await;
    assert_holds(&report, &[Ability::Elsewhere, Ability::Contexts, Ability::Kill]);
}

/// The process that runs tasks for the test below. Does nothing without orders.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_process() {
    if let Some(folder) = std::env::var_os(remote::ORDERS) {
        remote::work(folder.as_ref()).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_processes_behind_http_hold_the_contract_and_are_killed() {
    let (host, notes) = remote::runs("a_worker_process");
    let report = conformance::run(&host, &notes).await;
    assert_holds(&report, &[]);
}

fn host_with(fault: Fault, notes: &Notes) -> Box<dyn HostUnderTest> {
    match fault {
        Fault::Host(fault) => Box::new(faulty_host::runs(notes, Some(fault))),
        Fault::Driver(fault) => Box::new(DrivenRuns::new(notes, Some(fault))),
        Fault::Caller(fault) => Box::new(FaultyCaller::new(notes, Some(fault))),
    }
}

#[tokio::test]
async fn every_fault_is_found_by_its_clause() {
    let mut blind: BTreeSet<&str> = conformance::clauses().iter().map(Clause::name).collect();
    for (fault, name) in faults() {
        let clause = conformance::clause(name).unwrap_or_else(|| panic!("no clause `{name}`"));
        let notes = Notes::temporary().unwrap().patience(Duration::from_secs(2));
        let report = conformance::check(&[clause], &*host_with(fault, &notes), &notes).await;
        let found = &report.findings[0];
        let problem = found.problem.as_deref().unwrap_or_else(|| panic!("{fault:?} is not found:\n{report}"));
        println!("{fault:?}: {}", problem.lines().next().unwrap_or_default());
        blind.remove(name);
    }
    assert!(blind.is_empty(), "no faulty host exists for these clauses: {blind:#?}");
}

#[tokio::test]
async fn a_report_lists_every_broken_clause_with_its_text_and_the_others_too() {
    let notes = Notes::temporary().unwrap().patience(Duration::from_millis(400));
    let host = faulty_host::runs(&notes, Some(faulty_host::HostFault::LosesSessions));
    let names = [
        "a session has the changes of all earlier tasks",
        "two tasks of a superstep that change one session are an error",
        "each attempt has its number",
        "a run whose worker dies ends as usual, and no finished task runs again",
    ];
    let clauses: Vec<Clause> = names.iter().map(|name| conformance::clause(name).unwrap()).collect();
    let report = conformance::check(&clauses, &host, &notes).await;
    let broken: Vec<&str> = report.broken().map(|finding| finding.clause.name()).collect();
    assert_eq!((&broken[..], report.holds()), (&names[..2], false));
    let shown = report.to_string();
    for line in [
        "BROKEN  a session has the changes of all earlier tasks\n        Sessions go with the call",
        "        > items in the session at the end: [\": 0\"]\n        > and not [",
        "\nholds   each attempt has its number\n",
        "\nlacks   a run whose worker dies",
        "\n1 of 4 clauses hold",
    ] {
        assert!(shown.contains(line), "{line:?} is missing in:\n{shown}");
    }
}

/// A host that breaks off in another way than by an error.
enum Broken {
    NeverEnds,
    Panics,
    IsNotReached,
}

#[async_trait::async_trait]
impl HostUnderTest for Broken {
    async fn call(&self, _: &str, _: &str, _: RunCall) -> Result<RunEnd, BoxError> {
        match self {
            Broken::NeverEnds => std::future::pending().await,
            Broken::Panics => panic!("out of memory"),
            Broken::IsNotReached => Err("no route to the host".into()),
        }
    }

    async fn state(&self, _: &str, _: &str) -> Result<Option<ThreadState>, BoxError> {
        Ok(None)
    }

    fn abilities(&self) -> Vec<Ability> {
        Vec::new()
    }
}

#[tokio::test]
async fn a_host_that_never_answers_or_panics_breaks_its_clauses() {
    let clause = conformance::clause("each attempt has its number").unwrap();
    for (host, expected) in [
        (Broken::NeverEnds, "a call has not ended after"),
        (Broken::Panics, "the host panicked: out of memory"),
        (Broken::IsNotReached, "a call failed: no route to the host"),
    ] {
        let notes = Notes::temporary().unwrap().patience(Duration::from_millis(5));
        let report = conformance::check(&[clause], &host, &notes).await;
        let problem = report.findings[0].problem.as_deref().unwrap();
        assert!(problem.starts_with(expected), "{problem}");
    }
}

#[test]
fn clauses_have_names_and_texts_of_their_own_and_graphs_have_names_for_addresses() {
    let clauses = conformance::clauses();
    let names: BTreeSet<&str> = clauses.iter().map(Clause::name).collect();
    let texts: BTreeSet<&str> = clauses.iter().map(Clause::text).collect();
    assert_eq!((names.len(), texts.len()), (clauses.len(), clauses.len()));
    assert!(clauses.iter().all(|clause| !clause.text().is_empty()));
    let graphs = conformance::graphs(&Notes::open("nowhere"));
    let names: BTreeSet<&str> = graphs.iter().map(KitGraph::name).collect();
    assert_eq!(names.len(), graphs.len());
    assert!(names.iter().all(|name| name.chars().all(|sign| sign.is_ascii_lowercase() || sign == '_')));
}

//! Graphs on a real Restate server, with workers in real processes.
//!
//! `.ci/restate` fetches the server and runs these tests.

#![allow(missing_docs, unreachable_pub, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

mod answers_count_once;
mod calls_and_reads_end_in_time;
mod calls_are_steered;
mod calls_pass_a_gateway;
mod deployments_are_not_replaced;
mod graphs_are_served_over_http;
mod graphs_end_as_they_end_locally;
mod histories_outlive_their_servers;
mod hosts_keep_their_contract;
mod killed_workers_lose_nothing;
mod limits_hold_over_workers;
mod lost_servers_lose_nothing;
mod networks_are_cut;
mod operators_find_threads;
mod outages_are_waited_out;
mod secrets_stay_secret;
mod streams_come_over_a_relay;
mod threads_are_deleted;
mod threads_migrate_or_are_refused;
mod traces_go_over_the_server;
mod values_of_any_size_fit;
mod workers_refuse_what_cannot_work;

use common::worker_process;

/// The process of a worker, which other tests start. Does nothing without orders.
#[test]
fn a_worker_in_a_process_of_its_own() {
    if let Some(orders) = std::env::var_os(worker_process::ORDERS) {
        worker_process::run(&serde_json::from_str(orders.to_str().unwrap()).unwrap());
    }
}

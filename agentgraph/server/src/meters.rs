//! [`Meters`]: what `/metrics` counts of this process. Labels are names of graphs and routes and words of the
//! API, which are few; ids and names of callers are none.

use std::time::Duration;

use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Registry, Unit};

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfState {
    state: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfGraph {
    graph: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfEnd {
    graph: String,
    status: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfRoute {
    method: String,
    route: String,
    status: u16,
}

type Times<L> = Family<L, Histogram, fn() -> Histogram>;

#[derive(Debug)]
pub(crate) struct Meters {
    registry: Registry,
    runs: Family<OfState, Gauge>,
    streams: Gauge,
    run_waits: Times<OfGraph>,
    runs_ended: Times<OfEnd>,
    requests: Times<OfRoute>,
}

/// From a millisecond to nine minutes.
fn times() -> Histogram {
    Histogram::new(exponential_buckets(0.001, 3.0, 13))
}

impl Meters {
    pub(crate) fn new() -> Self {
        let mut registry = Registry::with_prefix("agentgraph");
        let (runs, streams) = (Family::default(), Gauge::default());
        registry.register("runs", "Runs of this process, by state", runs.clone());
        registry.register("open_streams", "Streams, WebSockets and waits that are open", streams.clone());
        let run_waits = Times::new_with_constructor(times as fn() -> Histogram);
        let about = "Time from the request for a run to its start";
        registry.register_with_unit("run_wait", about, Unit::Seconds, run_waits.clone());
        let runs_ended = Times::new_with_constructor(times as fn() -> Histogram);
        let about = "Time from the start of a run in this process to its end, by its status";
        registry.register_with_unit("run_duration", about, Unit::Seconds, runs_ended.clone());
        let requests = Times::new_with_constructor(times as fn() -> Histogram);
        let about = "Time to the head of an answer";
        registry.register_with_unit("request_duration", about, Unit::Seconds, requests.clone());
        Meters { registry, runs, streams, run_waits, runs_ended, requests }
    }

    pub(crate) fn run_began(&self, graph: &str, waited: Duration) {
        let labels = OfGraph { graph: graph.to_owned() };
        self.run_waits.get_or_create(&labels).observe(waited.as_secs_f64());
    }

    pub(crate) fn run_ended(&self, graph: &str, status: &str, took: Duration) {
        let labels = OfEnd { graph: graph.to_owned(), status: status.to_owned() };
        self.runs_ended.get_or_create(&labels).observe(took.as_secs_f64());
    }

    pub(crate) fn answered(&self, method: &str, route: &str, status: u16, took: Duration) {
        let labels = OfRoute { method: method.to_owned(), route: route.to_owned(), status };
        self.requests.get_or_create(&labels).observe(took.as_secs_f64());
    }

    /// The text that Prometheus reads, with what there is now.
    pub(crate) fn text(&self, running: usize, waiting: usize, streams: usize) -> String {
        let count = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
        self.runs.get_or_create(&OfState { state: "running" }).set(count(running));
        self.runs.get_or_create(&OfState { state: "waiting" }).set(count(waiting));
        self.streams.set(count(streams));
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = text::encode(&mut text, &self.registry);
        text
    }
}

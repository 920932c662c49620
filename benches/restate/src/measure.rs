//! [`Scene`]: servers and the workers of all sides, on which cases are measured.

use std::time::Instant;

use agentgraph_restate::RestateClient;
use futures_util::future::try_join_all;

use crate::Problem;
use crate::case::Case;
use crate::journal::Journal;
use crate::server::{Servers, client};
use crate::side::Side;
use crate::worker::Worker;
use crate::{bare, ours};

/// Running servers, and a worker of each side.
pub(crate) struct Scene<'a> {
    servers: &'a Servers,
    workers: [(Side, Worker); 3],
    callers: Vec<Caller>,
    /// The number of threads so far. Each call has a thread of its own.
    threads: u64,
}

/// Means to call one node of the servers.
struct Caller {
    ours: RestateClient,
    http: reqwest::Client,
    ingress: String,
}

/// The results of a case.
pub(crate) struct Results(pub(crate) Vec<SideResults>);

pub(crate) struct SideResults {
    pub(crate) side: Side,
    pub(crate) rounds: Vec<Round>,
    pub(crate) journal: Journal,
}

/// The calls of one side in one round, by durable step.
#[derive(Clone, Copy)]
pub(crate) struct Round {
    pub(crate) steps_per_second: f64,
    /// Microseconds of processor time, in the worker's process and in those of the servers.
    pub(crate) worker_micros: f64,
    pub(crate) server_micros: f64,
}

impl<'a> Scene<'a> {
    pub(crate) fn new(servers: &'a Servers) -> Result<Self, Problem> {
        let [one, two, three] =
            Side::ALL.map(|side| Ok::<_, Problem>((side, Worker::start(side, servers.admin())?)));
        let callers = servers.ingresses().into_iter().map(|ingress| {
            let ours = RestateClient::connect(&ingress)?;
            Ok(Caller { ours, http: client()?, ingress })
        });
        let callers = callers.collect::<Result<_, Problem>>()?;
        Ok(Scene { servers, workers: [one?, two?, three?], callers, threads: 0 })
    }

    /// Measures a case: a call to warm up, whose journal is looked at, then the rounds.
    pub(crate) async fn measure(&mut self, case: &Case, rounds: usize) -> Result<Results, Problem> {
        let mut found = Vec::new();
        for side in Side::ALL {
            let thread = self.thread();
            self.call_until_known(side, case, &thread).await?;
            let journal = Journal::of(self.servers, &thread).await?;
            found.push(SideResults { side, rounds: Vec::new(), journal });
        }
        for round in 0..rounds {
            for at in 0..found.len() {
                // No side always comes after the same one.
                let at = (at + round) % found.len();
                let measured = self.round(found[at].side, case).await?;
                found[at].rounds.push(measured);
            }
        }
        Ok(Results(found))
    }

    async fn round(&mut self, side: Side, case: &Case) -> Result<Round, Problem> {
        let threads: Vec<Vec<String>> = (0..case.clients).map(|_| self.threads(case.calls)).collect();
        let scene = &*self;
        let worker = scene.worker(side);
        let before = (worker.processor_time()?, scene.servers.processor_time()?);
        let begun = Instant::now();
        try_join_all(threads.iter().enumerate().map(|(at, threads)| async move {
            let caller = &scene.callers[at % scene.callers.len()];
            for thread in threads {
                caller.call(side, case, thread).await?;
            }
            Ok::<_, Problem>(())
        }))
        .await?;
        let seconds = begun.elapsed().as_secs_f64();
        let after = (worker.processor_time()?, scene.servers.processor_time()?);
        let steps = (case.work.steps() * case.clients as u64 * case.calls as u64) as f64;
        Ok(Round {
            steps_per_second: steps / seconds,
            worker_micros: (after.0 - before.0).micros() / steps,
            server_micros: (after.1 - before.1).micros() / steps,
        })
    }

    /// The nodes of a cluster learn of a worker one after the other.
    async fn call_until_known(&mut self, side: Side, case: &Case, thread: &str) -> Result<(), Problem> {
        for at in 1..self.callers.len() {
            let thread = self.thread();
            let mut tries = 0..50;
            while let Err(error) = self.callers[at].call(side, case, &thread).await {
                tries.next().ok_or(error)?;
                tokio::time::sleep(std::time::Duration::from_millis(100)).await;
            }
        }
        self.callers[0].call(side, case, thread).await
    }

    fn worker(&self, side: Side) -> &Worker {
        let [(_, first), (second_side, second), (third_side, third)] = &self.workers;
        match side {
            side if side == *second_side => second,
            side if side == *third_side => third,
            _ => first,
        }
    }

    fn thread(&mut self) -> String {
        self.threads += 1;
        format!("t-{:06}", self.threads)
    }

    fn threads(&mut self, number: usize) -> Vec<String> {
        (0..number).map(|_| self.thread()).collect()
    }
}

impl Caller {
    async fn call(&self, side: Side, case: &Case, thread: &str) -> Result<(), Problem> {
        match side {
            Side::Ours => ours::call(&self.ours, case, thread).await,
            side => bare::call(&self.http, &self.ingress, side, case, thread).await,
        }
    }
}

impl Results {
    /// The ratios of a figure to that of another side, one a round.
    pub(crate) fn ratios(&self, side: Side, to: Side, figure: impl Fn(&Round) -> f64) -> Vec<f64> {
        let of = |side| self.0.iter().find(|results| results.side == side).map(|found| &found.rounds[..]);
        let (own, other) = (of(side).unwrap_or_default(), of(to).unwrap_or_default());
        own.iter().zip(other).map(|(own, other)| figure(own) / figure(other)).collect()
    }
}

pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => f64::NAN,
        odd if odd % 2 == 1 => values[odd / 2],
        even => f64::midpoint(values[even / 2 - 1], values[even / 2]),
    }
}

//! Measuring one case in this process.

use std::time::{Duration, Instant};

use cpu_time::ProcessTime;
use serde::{Deserialize, Serialize};

use crate::case::{Case, Clock, Entrant, Figure};

/// The shortest time of one repetition of an entrant.
const REPETITION: Duration = Duration::from_millis(40);
const REPETITIONS: usize = 7;

/// The allocations that a counting allocator saw.
#[derive(Clone, Copy, Debug)]
pub struct Allocated {
    /// The number of allocations; each growth of a buffer counts as one.
    pub count: u64,
    /// The bytes asked for.
    pub bytes: u64,
}

/// The results of one process for a case, or the medians over several processes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct CaseResults {
    pub(crate) entrants: Vec<EntrantTimes>,
    pub(crate) figures: Vec<Figure>,
}

/// The times of one entrant.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct EntrantTimes {
    pub(crate) label: String,
    /// The time of one unit: the median over the repetitions.
    pub(crate) nanos: f64,
    /// The ratio to the floor: the median over the repetitions, each against the floor's time in the
    /// same one.
    pub(crate) ratio: f64,
    pub(crate) budget: Option<f64>,
}

pub(crate) fn times(case: &Case, quick: bool) -> CaseResults {
    let mut entrants = (case.entrants)();
    let (shortest, repetitions) = if quick { (Duration::ZERO, 1) } else { (REPETITION, REPETITIONS) };
    let times: Vec<u64> =
        entrants.iter_mut().map(|entrant| find_run_count(entrant, case.clock, shortest)).collect();
    let mut turns = vec![Vec::new(); entrants.len()];
    for _ in 0..repetitions {
        for (at, entrant) in entrants.iter_mut().enumerate() {
            let time = measure_time(case.clock, || (entrant.run)(times[at]));
            turns[at].push(time.as_nanos() as f64 / times[at] as f64 / case.units as f64);
        }
    }
    let taken = entrants.iter().zip(&turns).map(|(entrant, own)| {
        let against = own.iter().zip(&turns[0]).map(|(own, floor)| own / floor.max(f64::MIN_POSITIVE));
        EntrantTimes {
            label: entrant.label.to_owned(),
            nanos: median(own.clone()),
            ratio: median(against.collect()),
            budget: entrant.budget,
        }
    });
    CaseResults { entrants: taken.collect(), figures: (case.figures)() }
}

/// Warms up, and returns the number of runs that take at least `shortest`.
fn find_run_count(entrant: &mut Entrant, clock: Clock, shortest: Duration) -> u64 {
    let mut times = 1;
    loop {
        let taken = measure_time(clock, || (entrant.run)(times));
        if taken >= shortest {
            return times;
        }
        times *= 2;
    }
}

fn measure_time(clock: Clock, work: impl FnOnce()) -> Duration {
    match clock {
        Clock::Cpu => {
            let begin = ProcessTime::now();
            work();
            begin.elapsed()
        }
        Clock::Wall => {
            let begin = Instant::now();
            work();
            begin.elapsed()
        }
    }
}

/// The allocations of one entrant.
pub(crate) struct EntrantAllocations {
    pub(crate) case: &'static str,
    pub(crate) unit: &'static str,
    pub(crate) label: &'static str,
    pub(crate) count: f64,
    pub(crate) bytes: f64,
    pub(crate) most: Option<f64>,
}

/// Counts the allocations of every entrant; the counter sees only this thread.
pub(crate) fn allocations(case: &Case, count: fn(&mut dyn FnMut()) -> Allocated) -> Vec<EntrantAllocations> {
    if !case.counted {
        return Vec::new();
    }
    let counted = (case.entrants)().into_iter().map(|mut entrant| {
        (entrant.run)(1);
        let allocated = count(&mut || (entrant.run)(1));
        EntrantAllocations {
            case: case.name,
            unit: case.unit,
            label: entrant.label,
            count: allocated.count as f64 / case.units as f64,
            bytes: allocated.bytes as f64 / case.units as f64,
            most: entrant.allocations,
        }
    });
    counted.collect()
}

/// Merges the results of several processes: the median of every figure.
pub(crate) fn merge_medians(all: &[CaseResults]) -> CaseResults {
    let mut found = all[0].clone();
    for (at, taken) in found.entrants.iter_mut().enumerate() {
        taken.nanos = median(all.iter().map(|one| one.entrants[at].nanos).collect());
        taken.ratio = median(all.iter().map(|one| one.entrants[at].ratio).collect());
    }
    for (at, figure) in found.figures.iter_mut().enumerate() {
        figure.value = median(all.iter().map(|one| one.figures[at].value).collect());
    }
    found
}

/// Returns the lowest and the highest ratio of one entrant.
pub(crate) fn spread(all: &[CaseResults], entrant: usize) -> (f64, f64) {
    let ratios = all.iter().map(|one| one.entrants[entrant].ratio);
    ratios.fold((f64::INFINITY, 0.0), |(low, high), ratio| (low.min(ratio), high.max(ratio)))
}

pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => f64::NAN,
        odd if odd % 2 == 1 => values[odd / 2],
        even => f64::midpoint(values[even / 2 - 1], values[even / 2]),
    }
}

/// Runs one operation, and returns its result and its processor time as a figure.
#[cfg(feature = "all")]
pub(crate) fn timed<T>(what: &str, work: impl FnOnce() -> T) -> (T, Figure) {
    let begin = ProcessTime::now();
    let done = work();
    (done, Figure::new(what, begin.elapsed().as_nanos() as f64 / 1000.0, "us"))
}

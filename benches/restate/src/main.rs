//! What graphs on Restate cost, beside handlers written with its SDK, on one server in one run.
//!
//! ```text
//! benches/restate/run.sh                      all cases
//! benches/restate/run.sh steps/10 cluster     the cases whose names contain one of the words
//! benches/restate/run.sh --rounds 3           rounds of each side, five if not set
//! benches/restate/run.sh --quick              a few calls, to see that everything runs
//! ```
//!
//! Three sides do the same work in turns: a graph; handlers that make the same durable entries as the graph;
//! and handlers that make the fewest. Each side has a process of its own with two threads, and all calls
//! carry an idempotency key. The budget of a graph is 1.2x the time of the handlers with the same entries; a
//! missed one is shown, as in the other benches. The machine's noise is in all figures of a round, so only
//! ratios are judged, and the processor time of the worker and of the server is shown beside the clock's.

mod arguments;
mod bare;
mod case;
mod journal;
mod measure;
mod ours;
mod processor;
mod report;
mod server;
mod side;
mod work;
mod worker;

use std::path::Path;

use self::arguments::Arguments;
use self::server::Servers;

/// The reason why a measurement could not be made.
type Problem = Box<dyn std::error::Error + Send + Sync>;

fn main() -> Result<(), Problem> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async {
        let given: Vec<String> = std::env::args().skip(1).collect();
        match given.iter().map(String::as_str).collect::<Vec<_>>()[..] {
            [worker::WORKER, side, admin, history] => worker::run(side, admin, Path::new(history)).await,
            _ => measure_all(&Arguments::of(given.into_iter())?).await,
        }
    })
}

/// Measures the cases that the arguments name, those of one server first.
async fn measure_all(arguments: &Arguments) -> Result<(), Problem> {
    let wanted: Vec<_> = case::all().into_iter().filter(|case| arguments.wants(&case.name())).collect();
    if wanted.is_empty() {
        let names = case::all().iter().map(case::Case::name).collect::<Vec<_>>().join(", ");
        return Err(format!("no case is called that; there are: {names}").into());
    }
    report::print_head(arguments.rounds);
    for cases in wanted.chunk_by(|one, next| one.nodes == next.nodes) {
        let servers = Servers::start(cases[0].nodes).await?;
        let mut scene = measure::Scene::new(&servers)?;
        for case in cases {
            let case = if arguments.quick { case.clone().quick() } else { case.clone() };
            report::print(&case, &scene.measure(&case, arguments.rounds).await?);
        }
    }
    Ok(())
}

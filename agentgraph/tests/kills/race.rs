//! Many nodes finish at once while one fails.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use agentgraph::Code;
use agentgraph::policy::Siblings;
use agentgraph::prelude::*;

use super::chance::mix;
use super::check::violations;
use super::child::Mode;
use super::log::{Event, Log};
use super::mark::Mark;
use super::plans::number_from_env;
use super::points::Points;
use super::stories::{Ledger, World, race};
use super::watched::Watched;

/// Runs 200 nodes that finish at once and one that fails. Asserts that no stored result of the 200 is lost or
/// repeated.
pub async fn run_races(name: &str, saver: Arc<dyn Checkpointer>, mode: Mode, rounds: u64) {
    let seed = number_from_env("AGENTGRAPH_SEED", 1);
    let log = Arc::new(Log::in_memory());
    let points = Arc::new(Points::new(&log, None, PathBuf::new()));
    let world = World { log: Arc::clone(&log), points: Arc::clone(&points), fault: None };
    let watched = Arc::new(Watched {
        inner: saver,
        log: Arc::clone(&log),
        points,
        fault: None,
        unlogged: Mutex::default(),
    });
    for round in 0..rounds {
        let siblings = if round % 2 == 0 { Siblings::Drain } else { Siblings::Cancel };
        let graph = race(&world, mix(seed, round)).compile().unwrap().checkpointer(Arc::clone(&watched));
        let durability = mode.durability();
        let first = graph.invoke(Ledger::update().round(200)).thread("t").durability(durability);
        let error = first.siblings(siblings).await.unwrap_err();
        assert_eq!(error.code(), Code::NodeFailed, "{error}");
        let marks = graph.state("t").await.unwrap().unwrap().values.marks;
        log.write(Event::Left { marks: marks.clone() });
        log.write(Event::Found { marks: marks.clone(), inside: Vec::new() });
        assert!(
            siblings == Siblings::Cancel || marks.len() == 200,
            "only {} of 200 results are kept",
            marks.len()
        );
        let outcome = graph.proceed().thread("t").durability(durability).await.unwrap();
        let Outcome::Finished { output, .. } = outcome else { panic!("{outcome:?}") };
        let all: Vec<Mark> = (0..200).map(|number| Mark::new(2, format_args!("work_{number}"))).collect();
        log.write(Event::Ended { marks: output.marks, passed: Vec::new() });
        let found = violations(&log.take(), durability, Some(&all));
        assert!(found.is_empty(), "round {round}, {siblings:?}: {:#?}", &found[..found.len().min(9)]);
        watched.delete_thread("t").await.unwrap();
    }
    println!("| {name} | {mode:?} | {rounds} rounds |");
}

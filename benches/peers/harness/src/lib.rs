//! What all entrants share: the cases, the results that each must reach, and the measurement of one case in a
//! fresh process.
//!
//! An entrant's program is `harness::main(prepare)`, where `prepare` builds what a case needs and returns its
//! run, or says why the entrant cannot do it. Every run returns a count of the work that was done; a wrong
//! one ends the program. A join that runs more than once counts more than once.

use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use cpu_time::ProcessTime;

/// 32 bytes, which the state of a run holds beside a count and a list of numbers.
pub const TEXT: &str = "thirty-two bytes of a small text";
/// What a waiting run is answered: it adds this to its count.
pub const ANSWER: u64 = 40;
/// Nodes of the graph inside another one.
pub const INNER: u64 = 3;
/// Nodes of each of many runs.
pub const SHORT: u64 = 10;

/// The shortest time of one repetition, and the time after which no further one begins.
const REPETITION: Duration = Duration::from_millis(30);
const ENOUGH: Duration = Duration::from_secs(2);
const REPETITIONS: usize = 5;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Case {
    /// So many nodes in a row; each adds one to the count, which is the result.
    Chain(u64),
    /// One node that loops through a route until the count is this.
    Loop(u64),
    /// So many branches append their number to a list; a join adds their number to the count.
    FanOut(u64),
    /// The loop, each step stored in memory, in a thread of its own.
    Memory(u64),
    /// The loop, each step stored in an SQLite file, in a thread of its own.
    Sqlite(u64),
    /// The same; each step appends a line of [`LINE`] bytes to a list. The result is the length of the list.
    Growing(u64),
    /// So many runs at once, each a task of the runtime, over a chain of [`SHORT`] nodes. The result is the
    /// sum of their counts.
    Runs(u64),
    /// A node adds one, the next asks and adds the answer, a third adds one. Stored in memory.
    Interrupt,
    /// A chain of so many nodes, read as a stream; the result is the number of events that came from a node's
    /// end.
    Stream(u64),
    /// A loop of so many calls to a graph of [`INNER`] nodes, each of which adds one to the count.
    Subgraph(u64),
    /// A node starts one other node so many times, each time with a number as its own input; a collecting
    /// node adds their sum to the count.
    Dispatch(u64),
    /// So many runs that have asked and wait, stored in memory. The result is their number.
    Waiting(u64),
}

/// Bytes of a line of [`Case::Growing`].
pub const LINE: usize = 100;

impl Case {
    pub const ALL: [Case; 16] = [
        Case::Chain(10),
        Case::Chain(100),
        Case::Chain(1000),
        Case::Loop(10_000),
        Case::FanOut(10),
        Case::FanOut(100),
        Case::FanOut(1000),
        Case::Runs(1000),
        Case::Memory(1000),
        Case::Sqlite(100),
        Case::Growing(1000),
        Case::Interrupt,
        Case::Stream(100),
        Case::Subgraph(100),
        Case::Dispatch(1000),
        Case::Waiting(10_000),
    ];

    pub fn name(self) -> String {
        match self {
            Case::Chain(size) => format!("chain/{size}"),
            Case::Loop(_) => "loop".to_owned(),
            Case::FanOut(size) => format!("fan-out/{size}"),
            Case::Memory(_) => "memory".to_owned(),
            Case::Sqlite(_) => "sqlite".to_owned(),
            Case::Growing(_) => "growing".to_owned(),
            Case::Runs(_) => "runs".to_owned(),
            Case::Interrupt => "interrupt".to_owned(),
            Case::Stream(_) => "stream".to_owned(),
            Case::Subgraph(_) => "subgraph".to_owned(),
            Case::Dispatch(_) => "dispatch".to_owned(),
            Case::Waiting(_) => "waiting".to_owned(),
        }
    }

    /// The name of a row, with the unit of its figure.
    pub fn title(self) -> String {
        match self {
            Case::Chain(size) => format!("chain of {size}, a step"),
            Case::Loop(size) => format!("loop of {size} steps, a step"),
            Case::FanOut(size) => format!("fan-out of {size} with a join, a branch"),
            Case::Memory(_) => "checkpoint in memory, a step".to_owned(),
            Case::Sqlite(_) => "checkpoint in SQLite, a step".to_owned(),
            Case::Growing(size) => format!("list of {size} lines in SQLite, a step"),
            Case::Runs(size) => format!("{size} runs of {SHORT} nodes at once, a step"),
            Case::Interrupt => "question and answer, a run".to_owned(),
            Case::Stream(size) => format!("chain of {size} read as a stream, a step"),
            Case::Subgraph(_) => "subgraph in a loop, a call".to_owned(),
            Case::Dispatch(size) => format!("{size} dispatches, each"),
            Case::Waiting(size) => format!("{size} runs that wait, each"),
        }
    }

    /// Units of work in a run.
    pub fn units(self) -> u64 {
        match self {
            Case::Runs(size) => size * SHORT,
            Case::Interrupt => 1,
            Case::Chain(size)
            | Case::Loop(size)
            | Case::FanOut(size)
            | Case::Memory(size)
            | Case::Sqlite(size) => size,
            Case::Growing(size) | Case::Stream(size) | Case::Subgraph(size) => size,
            Case::Dispatch(size) | Case::Waiting(size) => size,
        }
    }

    /// The result of a run.
    pub fn expected(self) -> u64 {
        match self {
            Case::Interrupt => ANSWER + 2,
            Case::Subgraph(size) => size * INNER,
            Case::Dispatch(size) => size * (size - 1) / 2,
            other => other.units(),
        }
    }

    pub fn named(name: &str) -> Option<Case> {
        Self::ALL.into_iter().find(|case| case.name() == name)
    }
}

/// Does a case once; the future returns the result.
pub struct Work {
    run: Box<dyn FnMut() -> Pin<Box<dyn Future<Output = u64>>>>,
    note: &'static str,
}

impl Work {
    /// Says what is less than in other entrants; shown below the table.
    pub fn noted(mut self, note: &'static str) -> Self {
        self.note = note;
        self
    }
}

/// The work of a case, or the reason why there is none.
pub type Prepared = Result<Work, &'static str>;

/// Boxes the run of a case.
pub fn work<F: Future<Output = u64> + 'static>(mut run: impl FnMut() -> F + 'static) -> Prepared {
    Ok(Work { run: Box::new(move || Box::pin(run())), note: "" })
}

/// The run of a case is `run` on a clone of the graph.
pub fn repeat<G: Clone + 'static, F: Future<Output = u64> + 'static>(
    graph: G,
    run: impl Fn(G) -> F + 'static,
) -> Prepared {
    work(move || run(graph.clone()))
}

/// Runs tasks at once and adds up their results.
pub async fn at_once<F: Future<Output = u64> + Send + 'static>(
    tasks: u64,
    mut run: impl FnMut() -> F,
) -> u64 {
    let tasks: Vec<_> = (0..tasks).map(|_| tokio::spawn(run())).collect();
    let mut sum = 0;
    for task in tasks {
        sum += task.await.expect("no run panics");
    }
    sum
}

/// A name that no other run of this process has.
pub fn thread_name() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    format!("thread-{}", COUNT.fetch_add(1, Ordering::Relaxed))
}

/// Measures the case that the first argument names, and prints one line of JSON; with a second argument,
/// `quick`, runs it once. `prepare` also gets a folder for databases.
pub fn main(prepare: impl AsyncFnOnce(Case, &Path) -> Prepared) {
    let mut arguments = std::env::args().skip(1);
    let case = arguments.next().and_then(|name| Case::named(&name)).expect("the name of a case");
    let is_quick = arguments.next().is_some();
    let folder = Folder::create();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let mut work = match runtime.block_on(prepare(case, &folder.0)) {
        Ok(work) => work,
        Err(reason) => return println!("{{\"lacks\":\"{reason}\"}}"),
    };
    let note = work.note;
    let mut runs = 0;
    let mut run = |times: u64| {
        let begun = (ProcessTime::now(), Instant::now());
        runtime.block_on(async {
            for _ in 0..times {
                assert_eq!((work.run)().await, case.expected(), "{}", case.name());
            }
        });
        runs += times;
        let per_unit = |time: Duration| time.as_nanos() as f64 / (times * case.units()) as f64;
        (per_unit(begun.0.elapsed()), per_unit(begun.1.elapsed()))
    };
    let before = resident();
    // Memory of waiting runs is that of the first time; everything else is warmed up by it.
    let first = run(1);
    let memory = resident().saturating_sub(before);
    let (cpu, wall) = if is_quick || matches!(case, Case::Waiting(_)) { first } else { take_turns(&mut run) };
    // Closing a database moves its log into the file.
    drop(work);
    let bytes = match case {
        Case::Waiting(size) => format!("{}", memory / size),
        Case::Growing(_) => format!("{}", folder.bytes() / runs),
        _ => "null".to_owned(),
    };
    println!("{{\"cpu\":{cpu:.1},\"wall\":{wall:.1},\"bytes\":{bytes},\"note\":\"{note}\"}}");
}

/// The medians of processor and elapsed time over repetitions that are long enough to be measured.
fn take_turns(run: &mut impl FnMut(u64) -> (f64, f64)) -> (f64, f64) {
    let begun = Instant::now();
    let mut times = 1;
    while begun.elapsed() < ENOUGH {
        let lap = Instant::now();
        run(times);
        if lap.elapsed() >= REPETITION {
            break;
        }
        times *= 2;
    }
    let mut taken = vec![run(times)];
    while taken.len() < REPETITIONS && begun.elapsed() < ENOUGH {
        taken.push(run(times));
    }
    let median = |mut values: Vec<f64>| {
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    (median(taken.iter().map(|time| time.0).collect()), median(taken.iter().map(|time| time.1).collect()))
}

/// The bytes of this process in memory.
fn resident() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm").ok();
    let pages = pages.and_then(|text| text.split(' ').nth(1)?.parse::<u64>().ok());
    pages.unwrap_or(0) * 4096
}

/// A folder for databases, removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn create() -> Self {
        let path = std::env::temp_dir().join(format!("agentgraph-peers-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a folder");
        Folder(path)
    }

    fn bytes(&self) -> u64 {
        let files = std::fs::read_dir(&self.0).expect("the folder").flatten();
        files.filter_map(|file| file.metadata().ok()).map(|file| file.len()).sum()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The main function of a program that measures the cost of further graphs: calls the macro `graph` of its
/// place for one module, or for five with `--cfg many`, and runs each once.
#[macro_export]
macro_rules! graphs {
    () => {
        graph!(one);
        #[cfg(many)]
        graph!(two);
        #[cfg(many)]
        graph!(three);
        #[cfg(many)]
        graph!(four);
        #[cfg(many)]
        graph!(five);

        #[tokio::main(flavor = "current_thread")]
        async fn main() {
            one::run().await;
            #[cfg(many)]
            {
                two::run().await;
                three::run().await;
                four::run().await;
                five::run().await;
            }
        }
    };
}

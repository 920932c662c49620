//! A trial: one thread, the processes that continue its run one after the other, and their log.

use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};

use super::check::{Rule, Violation, violations};
use super::child::{Mode, Orders, Store};
use super::faults::Fault;
use super::log::{self, Event, Line};
use super::mark::Mark;
use super::points::Fate;
use super::stories::Story;
use crate::folder::Folder;

/// The environment variable with the orders of a process.
pub const ORDERS: &str = "AGENTGRAPH_TEST_ORDERS";

/// The store that keeps the threads.
#[derive(Clone)]
pub enum Home {
    /// An SQLite file for each trial.
    Sqlite,
    #[cfg(feature = "postgres")]
    Postgres(std::sync::Arc<crate::postgres_server::PostgresServer>),
}

impl Home {
    /// Returns the name for printed tables.
    pub fn name(&self) -> &'static str {
        match self {
            Home::Sqlite => "SQLite",
            #[cfg(feature = "postgres")]
            Home::Postgres(_) => "Postgres",
        }
    }
}

pub struct Trial {
    pub orders: Orders,
    pub kills: u32,
    folder: Folder,
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcessEnd {
    Killed,
    ByItself,
}

impl Trial {
    pub fn new(home: &Home, story: Story, mode: Mode) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let folder = Folder::new();
        let store = match home {
            Home::Sqlite => Store::Sqlite(folder.file("threads.db")),
            #[cfg(feature = "postgres")]
            Home::Postgres(server) => Store::Postgres { url: server.url(), schema: "killed".into() },
        };
        let orders = Orders {
            number: 0,
            story,
            mode,
            store,
            thread: format!("thread-{}", COUNT.fetch_add(1, Ordering::Relaxed)),
            log: folder.file("log"),
            fate: None,
            wakes: folder.file("wakes"),
            fault: None,
            most_bytes: None,
            lease: None,
            // The server needs a moment to notice that a process is dead.
            queues: !matches!(home, Home::Sqlite),
        };
        Trial { orders, kills: 0, folder }
    }

    pub fn with_fault(mut self, fault: Option<Fault>) -> Self {
        self.orders.fault = fault;
        self
    }

    /// Starts a process on the thread.
    pub fn start(&mut self, fate: Option<Fate>) -> Child {
        self.orders.number += 1;
        let orders = Orders { fate, ..self.orders.clone() };
        program(orders.most_bytes)
            .args(["--exact", "a_process_that_is_killed", "--nocapture"])
            .env(ORDERS, serde_json::to_string(&orders).unwrap())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }

    /// Starts a process and waits for its end.
    pub fn run_process(&mut self, fate: Option<Fate>) -> ProcessEnd {
        let child = self.start(fate);
        self.wait_for(child)
    }

    pub fn wait_for(&mut self, mut child: Child) -> ProcessEnd {
        let mut output = String::new();
        child.stderr.take().unwrap().read_to_string(&mut output).unwrap();
        let status = child.wait().unwrap();
        if status.signal() == Some(9) {
            self.kills += 1;
            return ProcessEnd::Killed;
        }
        assert!(status.success(), "{:?}: {status}\n{output}", self.orders);
        ProcessEnd::ByItself
    }

    /// Waits until a process is stopped.
    pub fn wait_until_stopped(child: &Child) {
        let pid = Pid::from_child(child);
        let (_, status) = waitpid(Some(pid), WaitOptions::UNTRACED).unwrap().unwrap();
        assert!(status.stopped(), "{status:?}");
    }

    /// Lets a stopped process continue.
    pub fn wake(&self, child: &Child) {
        std::fs::write(&self.orders.wakes, "").unwrap();
        kill_process(Pid::from_child(child), Signal::CONT).unwrap();
    }

    pub fn lines(&self) -> Vec<Line> {
        log::read(&self.orders.log)
    }

    /// Returns all violations of the rules in the log.
    pub fn violations(&self, end: &[Mark]) -> Vec<Violation> {
        violations(&self.lines(), self.orders.mode.durability(), Some(end))
    }

    /// Panics with the log if it violates a rule.
    pub fn check(&self, end: &[Mark]) {
        self.panic_on(self.violations(end));
    }

    /// Like `check`, for a trial in which a process has to fail.
    pub fn check_except_failures(&self, end: &[Mark]) {
        let mut found = self.violations(end);
        found.retain(|violation| violation.rule != Rule::ComesToItsEnd);
        self.panic_on(found);
    }

    fn panic_on(&self, found: Vec<Violation>) {
        if !found.is_empty() {
            let lines: Vec<String> = self.lines().iter().map(|line| format!("{line:?}")).collect();
            let some = &found[..found.len().min(9)];
            panic!("{:?}\n{some:#?}\n{}", self.orders, lines.join("\n"));
        }
    }

    /// Returns the folder of the trial.
    pub fn folder(&self) -> &Folder {
        &self.folder
    }

    /// Returns the last state and the points that the process passed, if it finished the run.
    pub fn end(&self) -> Option<(Vec<Mark>, Vec<String>)> {
        match self.lines().pop()?.event {
            Event::Ended { marks, passed } => Some((marks, passed)),
            _ => None,
        }
    }
}

/// Returns a command that starts this program again. With a limit, a shell limits the size of its files and
/// ignores the signal of the limit, so that the program sees the limit as a write error.
fn program(most_bytes: Option<u64>) -> Command {
    let program = std::env::current_exe().unwrap();
    let Some(bytes) = most_bytes else { return Command::new(program) };
    let mut shell = Command::new("sh");
    let script = format!("trap '' XFSZ; ulimit -f {}; exec \"$@\"", bytes.div_ceil(512));
    shell.args(["-c", &script, "sh"]).arg(program);
    shell
}

/// Runs a story without kills. Returns its last state and the points that it passes.
pub fn run_unkilled(home: &Home, story: Story, mode: Mode) -> (Vec<Mark>, Vec<String>) {
    let mut trial = Trial::new(home, story, mode);
    assert_eq!(trial.run_process(None), ProcessEnd::ByItself);
    let Some((marks, passed)) = trial.end() else {
        panic!("{story:?} {mode:?} did not finish: {:#?}", trial.lines());
    };
    trial.check(&marks);
    (marks, passed)
}

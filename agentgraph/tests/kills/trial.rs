//! One thread, the processes that go on with it one after the other, and their log.

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

/// Under this name a process finds what it is told.
pub const ORDERS: &str = "AGENTGRAPH_TEST_ORDERS";

/// Where threads are kept.
#[derive(Clone)]
pub enum Home {
    /// In a file of their own.
    Sqlite,
    #[cfg(feature = "postgres")]
    Postgres(std::sync::Arc<crate::postgres_server::PostgresServer>),
}

impl Home {
    /// For tables.
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
pub enum Ended {
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
            // The server needs a moment to see that a process is gone.
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
    pub fn process(&mut self, fate: Option<Fate>) -> Ended {
        let child = self.start(fate);
        self.wait_for(child)
    }

    pub fn wait_for(&mut self, mut child: Child) -> Ended {
        let mut told = String::new();
        child.stderr.take().unwrap().read_to_string(&mut told).unwrap();
        let status = child.wait().unwrap();
        if status.signal() == Some(9) {
            self.kills += 1;
            return Ended::Killed;
        }
        assert!(status.success(), "{:?}: {status}\n{told}", self.orders);
        Ended::ByItself
    }

    /// Waits until a process stands still.
    pub fn until_stopped(child: &Child) {
        let pid = Pid::from_child(child);
        let (_, status) = waitpid(Some(pid), WaitOptions::UNTRACED).unwrap().unwrap();
        assert!(status.stopped(), "{status:?}");
    }

    /// Lets a process that stood still go on.
    pub fn wake(&self, child: &Child) {
        std::fs::write(&self.orders.wakes, "").unwrap();
        kill_process(Pid::from_child(child), Signal::CONT).unwrap();
    }

    pub fn lines(&self) -> Vec<Line> {
        log::read(&self.orders.log)
    }

    /// What the log shows against the rules.
    pub fn violations(&self, end: &[Mark]) -> Vec<Violation> {
        violations(&self.lines(), self.orders.mode.durability(), Some(end))
    }

    /// Panics with the log if it shows anything against the rules.
    pub fn check(&self, end: &[Mark]) {
        self.complain(self.violations(end));
    }

    /// The same where processes had to fail.
    pub fn check_but_for_failures(&self, end: &[Mark]) {
        let mut found = self.violations(end);
        found.retain(|violation| violation.rule != Rule::ComesToItsEnd);
        self.complain(found);
    }

    fn complain(&self, found: Vec<Violation>) {
        if !found.is_empty() {
            let lines: Vec<String> = self.lines().iter().map(|line| format!("{line:?}")).collect();
            let some = &found[..found.len().min(9)];
            panic!("{:?}\n{some:#?}\n{}", self.orders, lines.join("\n"));
        }
    }

    /// The file of the store, or where else something may lie.
    pub fn folder(&self) -> &Folder {
        &self.folder
    }

    /// The last state, and the points that the process came by, if it came to its end.
    pub fn end(&self) -> Option<(Vec<Mark>, Vec<String>)> {
        match self.lines().pop()?.event {
            Event::Ended { marks, passed } => Some((marks, passed)),
            _ => None,
        }
    }
}

/// This program again. The shell limits the size of its files, and lets it ignore the signal that goes with
/// it, so that it meets the limit as an error of its writes.
fn program(most_bytes: Option<u64>) -> Command {
    let program = std::env::current_exe().unwrap();
    let Some(bytes) = most_bytes else { return Command::new(program) };
    let mut shell = Command::new("sh");
    let script = format!("trap '' XFSZ; ulimit -f {}; exec \"$@\"", bytes.div_ceil(512));
    shell.args(["-c", &script, "sh"]).arg(program);
    shell
}

/// The run that nobody kills: its last state, and the points it comes by.
pub fn unkilled(home: &Home, story: Story, mode: Mode) -> (Vec<Mark>, Vec<String>) {
    let mut trial = Trial::new(home, story, mode);
    assert_eq!(trial.process(None), Ended::ByItself);
    let Some((marks, passed)) = trial.end() else {
        panic!("{story:?} {mode:?} did not come to its end: {:#?}", trial.lines());
    };
    trial.check(&marks);
    (marks, passed)
}

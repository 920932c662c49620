//! Named points that a process passes, and the fate that may meet it there.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustix::process::{Signal, getpid, kill_process};
use serde::{Deserialize, Serialize};

use super::log::{Event, Log};

/// The fate of a process, and the number of the point at which it meets it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fate {
    pub at: usize,
    pub manner: Manner,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Manner {
    Dies,
    /// Dies `nanos` later, wherever it is then, possibly in the middle of a write.
    DiesAfter {
        nanos: u64,
    },
    Stops,
}

pub struct Points {
    log: Arc<Log>,
    fate: Option<Fate>,
    /// A stopped process continues when this file exists.
    wakes: PathBuf,
    passed: Mutex<Vec<&'static str>>,
}

impl Points {
    pub fn new(log: &Arc<Log>, fate: Option<Fate>, wakes: PathBuf) -> Self {
        Points { log: Arc::clone(log), fate, wakes, passed: Mutex::default() }
    }

    pub fn pass(&self, name: &'static str) {
        let mut passed = self.passed.lock().unwrap();
        let number = passed.len();
        passed.push(name);
        let Some(Fate { at, manner }) = self.fate else { return };
        if at != number {
            return;
        }
        let at = name.to_owned();
        match manner {
            Manner::Dies => {
                self.log.write(Event::Dies { at });
                signal(Signal::KILL);
                wait_until(|| false);
            }
            Manner::DiesAfter { nanos } => {
                drop(passed);
                self.log.write(Event::Dies { at });
                let dies = Instant::now() + Duration::from_nanos(nanos);
                std::thread::spawn(move || {
                    while Instant::now() < dies {
                        std::hint::spin_loop();
                    }
                    signal(Signal::KILL);
                });
            }
            Manner::Stops => {
                self.log.write(Event::Stops { at });
                signal(Signal::STOP);
                wait_until(|| self.wakes.exists());
            }
        }
    }

    pub fn passed(&self) -> Vec<String> {
        self.passed.lock().unwrap().iter().map(|name| (*name).to_owned()).collect()
    }
}

fn signal(signal: Signal) {
    kill_process(getpid(), signal).unwrap();
}

/// Waits until `is_over`. A signal that a process sends to itself may be delivered to another thread, and
/// thus a moment later.
fn wait_until(is_over: impl Fn() -> bool) {
    while !is_over() {
        std::thread::park_timeout(Duration::from_millis(1));
    }
}

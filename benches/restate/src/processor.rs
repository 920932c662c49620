//! [`ProcessorTime`]: the processor time of another process.

use std::iter::Sum;
use std::ops::{Add, Sub};
use std::time::Duration;

use crate::Problem;

/// The unit of Linux's `/proc`, for programs a hundredth of a second on every architecture.
const TICK: Duration = Duration::from_millis(10);

/// Processor time of one or several processes, in hundredths of a second.
#[derive(Clone, Copy, Default)]
pub(crate) struct ProcessorTime(Duration);

impl ProcessorTime {
    /// The time that a process has used since its start, all threads, in the kernel and outside.
    pub(crate) fn of(process: u32) -> Result<Self, Problem> {
        let stat = std::fs::read_to_string(format!("/proc/{process}/stat"))?;
        // The name of the program is in parentheses, and may contain anything.
        let (_, fields) = stat.rsplit_once(')').ok_or("the state of a process cannot be read")?;
        let mut times = fields.split_whitespace().skip(11).map(str::parse::<u32>);
        let (Some(user), Some(system)) = (times.next(), times.next()) else {
            return Err("the state of a process has no times".into());
        };
        Ok(ProcessorTime(TICK * (user? + system?)))
    }

    pub(crate) fn micros(self) -> f64 {
        self.0.as_secs_f64() * 1e6
    }
}

impl Add for ProcessorTime {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        ProcessorTime(self.0 + other.0)
    }
}

impl Sub for ProcessorTime {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        ProcessorTime(self.0.saturating_sub(other.0))
    }
}

impl Sum for ProcessorTime {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(ProcessorTime::default(), Add::add)
    }
}

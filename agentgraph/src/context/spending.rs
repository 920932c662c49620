//! The resources a run has used, and its budget.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use crate::words::{Budget, Spent};
use agentgraph_checkpoint::engine::Lock;

/// Amounts by unit, in the order of the units.
pub(crate) type Units = Vec<(String, u64)>;

/// The meter of a run. It counts if there is a budget, or once a node has counted something.
#[derive(Default)]
pub(crate) struct Spending {
    budget: Option<Budget>,
    /// The start of the call; the clock is read only if there is a budget.
    began: Option<SystemTime>,
    /// The resources used by earlier calls of the run. The units continue in `units`.
    before: Spent,
    units: Lock<BTreeMap<Cow<'static, str>, u64>>,
    counts: AtomicBool,
    /// Supersteps of runs inside tasks, in this call.
    inside: AtomicU64,
    /// Something was counted that no checkpoint and no pending write contains.
    unstored: AtomicBool,
}

impl Spending {
    pub(crate) fn new(budget: Option<Budget>, mut before: Spent, now: impl FnOnce() -> SystemTime) -> Self {
        let counts = budget.is_some() || before != Spent::default();
        let units = std::mem::take(&mut before.units);
        Spending {
            began: budget.is_some().then(now),
            budget,
            before,
            units: Lock::new(units),
            counts: AtomicBool::new(counts),
            inside: AtomicU64::new(0),
            unstored: AtomicBool::new(false),
        }
    }

    /// The meter of a task whose run counts elsewhere: the units that the run has spent, and their limits.
    pub(crate) fn elsewhere(units: Units, limits: Units) -> Self {
        let owned = |units: Units| units.into_iter().map(|(unit, amount)| (Cow::Owned(unit), amount));
        let budget = Budget { units: owned(limits).collect(), ..Budget::default() };
        Spending {
            budget: (!budget.units.is_empty()).then_some(budget),
            units: Lock::new(owned(units).collect()),
            ..Spending::default()
        }
    }

    /// The units so far, and their limits.
    pub(crate) fn known(&self) -> (Units, Units) {
        let listed = |units: &BTreeMap<Cow<'static, str>, u64>| {
            units.iter().map(|(unit, amount)| (unit.to_string(), *amount)).collect()
        };
        (
            listed(&self.units.lock()),
            self.budget.as_ref().map(|budget| listed(&budget.units)).unwrap_or_default(),
        )
    }

    /// The units spent since `before`, which are those of an earlier [`known`](Self::known).
    pub(crate) fn since(&self, before: &Units) -> Units {
        let before =
            |unit: &str| before.iter().find(|(known, _)| known == unit).map_or(0, |(_, amount)| *amount);
        let units = self.units.lock();
        let spent = units.iter().map(|(unit, amount)| (unit.to_string(), amount - before(unit).min(*amount)));
        spent.filter(|(_, amount)| *amount > 0).collect()
    }

    /// Whether anything is counted, so that checkpoints must store it.
    pub(crate) fn counts(&self) -> bool {
        self.counts.load(Ordering::Acquire)
    }

    pub(crate) fn has_budget(&self) -> bool {
        self.budget.is_some()
    }

    pub(crate) fn spend(&self, unit: &str, amount: u64) {
        let mut units = self.units.lock();
        match units.get_mut(unit) {
            Some(spent) => *spent = spent.saturating_add(amount),
            None => drop(units.insert(Cow::Owned(unit.to_owned()), amount)),
        }
        self.counts.store(true, Ordering::Release);
        self.unstored.store(true, Ordering::Release);
    }

    pub(super) fn spent(&self, unit: &str) -> u64 {
        self.units.lock().get(unit).copied().unwrap_or(0)
    }

    /// The rest of a unit; `None` if the budget does not limit it.
    pub(super) fn left(&self, unit: &str) -> Option<u64> {
        let limit = *self.budget.as_ref()?.units.get(unit)?;
        Some(limit.saturating_sub(self.spent(unit)))
    }

    /// The rest of the time; `None` if the budget does not limit it.
    pub(crate) fn time_left(&self) -> Option<Duration> {
        let limit = self.budget.as_ref()?.time?;
        Some(limit.saturating_sub(Duration::from_micros(self.before.micros)))
    }

    /// Whether the budget is used up after `steps` supersteps of this call.
    pub(crate) fn is_used_up(&self, steps: u64) -> bool {
        let Some(budget) = &self.budget else { return false };
        let steps = self.steps(steps);
        budget.supersteps.is_some_and(|limit| steps >= limit)
            || budget.units.iter().any(|(unit, limit)| self.spent(unit) >= *limit)
    }

    /// All used resources after `steps` supersteps of this call.
    pub(crate) fn total(&self, steps: u64, now: impl FnOnce() -> SystemTime) -> Spent {
        let passed = self.began.and_then(|began| now().duration_since(began).ok()).unwrap_or_default();
        let micros = u64::try_from(passed.as_micros()).unwrap_or(u64::MAX);
        Spent {
            supersteps: self.steps(steps),
            micros: self.before.micros.saturating_add(micros),
            units: self.units.lock().clone(),
        }
    }

    /// Counts a superstep of a run inside a task.
    pub(crate) fn step_inside(&self) {
        self.inside.fetch_add(1, Ordering::Relaxed);
    }

    /// All supersteps of the run, after `steps` of this call.
    fn steps(&self, steps: u64) -> u64 {
        self.before.supersteps.saturating_add(steps).saturating_add(self.inside.load(Ordering::Relaxed))
    }

    /// Whether something was counted since the last call.
    pub(crate) fn take_unstored(&self) -> bool {
        self.counts() && self.unstored.swap(false, Ordering::AcqRel)
    }
}

//! Storing the results of a pass, and ending the call.

use std::sync::Arc;

use crate::dependency::{NotRun, NotRunReason, Output, PassInput};
use crate::engine::halt::Cutoff;
use crate::engine::journal::Journal;
use crate::engine::once::put_writes;
use crate::engine::pass::{Pass, not_run, outputs, outputs_mut};
use crate::engine::running_tasks::RunningTasks;
use crate::engine::step_results::sessions_write;
use crate::engine::stored::once_write;
use crate::engine::{Pause, cut_off};
use crate::error::{Code, Error};
use crate::failure::Failure;
use crate::words::StopReason;
use agentgraph_checkpoint::Source;

impl<O: Output, S: PassInput> Pass<'_, O, S> {
    pub(super) async fn end(mut self, cut: Option<Cutoff>) -> Result<Pause, Error> {
        let late: Vec<String> =
            self.running.iter().map(|task| self.name(task.request.node).to_owned()).collect();
        self.running = RunningTasks::default();
        self.report();
        let over = cut.is_none()
            && self.ended.failed.is_empty()
            && self.ended.asked.is_empty()
            && self.stopped.is_none();
        if over {
            return self.commit().await;
        }
        self.run.end_waiting().await?;
        self.store().await?;
        let asked = std::mem::take(&mut self.ended.asked);
        match (self.take_failed(), cut) {
            (Some(error), _) => Err(error),
            (None, Some(cut)) => cut_off(cut, late.iter().map(String::as_str)),
            (None, None) if !asked.is_empty() => {
                Ok(Pause::Interrupted(asked.into_iter().map(|(_, interrupt)| interrupt).collect()))
            }
            (None, None) => Ok(Pause::Stopped(self.stopped.unwrap_or(StopReason::Limit))),
        }
    }

    /// The first error, with the failures of all nodes in the order of declaration.
    fn take_failed(&mut self) -> Option<Error> {
        let mut failed = std::mem::take(&mut self.ended.failed);
        let mut failures: Vec<_> =
            failed.iter().map(|(node, error)| (*node, self.failure_of(*node, error))).collect();
        failures.sort_by_key(|(node, _)| *node);
        let failures = failures.into_iter().map(|(_, failure)| failure).collect();
        (!failed.is_empty()).then(|| failed.swap_remove(0).1.with_failures(failures))
    }

    pub(super) fn failure_of(&self, node: u32, error: &Error) -> Failure {
        Failure::of(self.name(node), error, &[])
    }

    /// Reports the nodes that did not run.
    fn report(&mut self) {
        let missed = self.desk.pass().plan.missed();
        let outputs = outputs_mut::<O, S>(&mut self.run.position.state);
        let limit = self.stopped == Some(StopReason::Limit);
        let unfinished = if limit { NotRunReason::Limit } else { NotRunReason::Unfinished };
        outputs.report.not_run = not_run(outputs, missed, Some(&unfinished));
    }

    /// Commits a finished pass.
    async fn commit(&mut self) -> Result<Pause, Error> {
        let waits = |missed: &&NotRun| matches!(missed.reason, NotRunReason::WaitsFor(_));
        if self.wiring.must_be_complete {
            let waiting: Vec<String> = outputs::<O, S>(&self.run.position.state)
                .not_run()
                .iter()
                .filter(waits)
                .map(ToString::to_string)
                .collect();
            if !waiting.is_empty() {
                self.run.end_waiting().await?;
                self.store().await?;
                let problem = format!("the pass is over and {}", waiting.join(", "));
                return Err(Error::new(Code::NotRun, problem));
            }
        }
        self.run.position.frontier.clear();
        if self.run.records.journal.is_some() {
            self.record_report()?;
            self.run.commit(Source::Loop, None).await?;
        }
        Ok(Pause::Finished)
    }

    /// Stores finished results, unless commits are deferred, while running nodes continue. Returns whether
    /// any node ended meanwhile.
    pub(super) async fn store(&mut self) -> Result<bool, Error> {
        self.ended.must_store = false;
        if self.run.records.journal.as_deref().is_none_or(Journal::waits) {
            return Ok(false);
        }
        let control = &self.run.runtime.shared.control;
        if self.ended.writes.is_empty() && !control.has_unstored() {
            return Ok(false);
        }
        let mut writes = std::mem::take(&mut self.ended.writes);
        if !writes.is_empty() {
            writes.extend(sessions_write(&self.run.runtime.shared.sessions)?);
        }
        let once = control.take_unstored();
        for one in &once {
            writes.push(once_write(self.task_id(one.node), one)?);
        }
        let shared = Arc::clone(&self.run.runtime.shared);
        let Some(journal) = self.run.records.journal.as_mut() else { return Ok(false) };
        let work = put_writes(journal, &shared.control, &writes, &once);
        let (stored, ended) = self.running.beside(work).await;
        stored?;
        let any = !ended.is_empty();
        for (request, result) in ended {
            self.ended(request, result)?;
        }
        Ok(any)
    }
}

//! Nothing runs any more that the call waits for: what it comes to, and what it leaves behind.

use std::collections::HashSet;

use crate::checkpoint::PendingWrite;
use crate::checkpoint::format::Source;
use crate::context::Request;
use crate::engine::eager::course::{Course, Stop};
use crate::engine::eager::flow::{Activation, Key, Phase};
use crate::engine::host::TaskRunner;
use crate::engine::stored::{StoredAnswer, StoredRequest, StoredStop, to_bytes, told};
use crate::engine::{Loop, Pause};
use crate::error::Error;
use crate::run::{Interrupt, InterruptId, InterruptKind, StopReason};
use crate::state::State;

impl<S: State, R: TaskRunner<S>> Loop<S, R> {
    /// Says what the call comes to; `None` if it goes on after all.
    pub(super) async fn conclude(&mut self, course: &mut Course<S>) -> Result<Option<Pause>, Error> {
        match course.stop.take() {
            Some(Stop::Failed(error)) => {
                course.drop_unless(|_| false);
                self.leave_behind().await?;
                return Err(error);
            }
            Some(Stop::Left(left)) => return Ok(Some(Pause::Left(left))),
            Some(Stop::Hard(reason)) => {
                self.leave_behind().await?;
                return Ok(Some(Pause::Stopped(reason)));
            }
            Some(Stop::Soft(reason)) if self.could_go_on() => {
                course.drop_unless(|_| false);
                return self.stopped(reason).await.map(Some);
            }
            Some(Stop::Soft(_)) | None => {}
        }
        match self.eager.as_ref().is_some_and(|eager| eager.flow.normal > 0) {
            true => self.interrupted(course).await.map(Some),
            false => self.end(course).await,
        }
    }

    /// Whether anything that is not detached would go on without somebody's answer.
    fn could_go_on(&self) -> bool {
        let open = self.eager.iter().flat_map(|eager| eager.flow.open.values());
        open.filter(|one| !self.core.is_detached(one.node)).any(|one| one.phase != Phase::Waits)
    }

    async fn stopped(&mut self, reason: StopReason) -> Result<Pause, Error> {
        self.leave_behind().await?;
        match (reason, self.core.limit_node()) {
            (StopReason::Limit, Some(node)) => Box::pin(self.beyond_limit(node)).await,
            _ => Ok(Pause::Stopped(reason)),
        }
    }

    async fn interrupted(&mut self, course: &mut Course<S>) -> Result<Pause, Error> {
        course.drop_unless(|_| false);
        self.leave_behind().await?;
        let (mut interrupts, mut fixed): (Vec<Interrupt>, Vec<Interrupt>) = Default::default();
        let open: Vec<Key> = self.eager.iter().flat_map(|eager| eager.flow.open.keys().copied()).collect();
        for key in open {
            let Some(activation) = self.activation(key) else { continue };
            if let Some(asked) = course.inside.remove(&key) {
                interrupts.extend(asked);
            } else if let Some((n, request)) = activation.left.as_ref().and_then(|left| left.open()) {
                let request = Request { n: *n, value: request.value.clone(), schema: request.schema.clone() };
                let node = self.core.name(activation.actor()).to_owned();
                let id = self.activation_id(key).map(|task| InterruptId { task, n: *n });
                interrupts.extend(id.map(|id| Interrupt::asked(id, node, request)));
            } else if let Some(stop) = self.fixed(activation).filter(|stop| !fixed.contains(stop)) {
                fixed.push(stop);
            }
        }
        let stops = StoredStop::among(&fixed);
        interrupts.extend(fixed);
        let pause = Pause::Interrupted(interrupts);
        if !stops.is_empty() && self.shared.outer.is_some() {
            self.leave_to_be_told(&pause);
        } else if !stops.is_empty()
            && let Some(journal) = &mut self.journal
        {
            if let Some(events) = &self.events {
                events.read().await;
            }
            journal.put_writes(&[told(&stops)?]).await?;
        }
        Ok(pause)
    }

    /// The static interrupt that holds an activation.
    fn fixed(&self, activation: &Activation) -> Option<Interrupt> {
        if activation.phase != Phase::Waits || activation.told {
            return None;
        }
        let name = |node: u32| self.core.name(node).to_owned();
        Some(match activation.after {
            Some(after) => Interrupt::fixed(name(after), InterruptKind::After),
            None => Interrupt::fixed(name(activation.node), InterruptKind::Before),
        })
    }

    /// Everything but what is detached has ended.
    async fn end(&mut self, course: &mut Course<S>) -> Result<Option<Pause>, Error> {
        let begins = course.ending.is_none();
        let mut ending = course.ending.take().unwrap_or_default();
        if begins {
            for limit in &self.core.awaited_at_end {
                ending.is_over(*limit, &self.shared.services);
            }
        }
        course.drop_unless(|started| started.awaited.is_some());
        course.ending = Some(ending);
        // Once more where the end begins: what waits in line may be worth waiting for.
        if course.is_ending()
            || (begins && self.eager.as_ref().is_some_and(|eager| !eager.flow.ready.is_empty()))
        {
            return Ok(None);
        }
        self.cut_detached().await?;
        Ok(Some(Pause::Finished))
    }

    /// Lets go of the detached tasks that are still open.
    async fn cut_detached(&mut self) -> Result<(), Error> {
        let Some(eager) = &mut self.eager else { return Ok(()) };
        let open: Vec<Key> = eager.flow.open.keys().copied().collect();
        for key in &open {
            if let Some(activation) = eager.flow.open.get(key) {
                self.scratch.cancelled.push(self.core.name(activation.node).to_owned());
            }
            eager.flow.end(*key, true, false);
        }
        eager.flow.ready.clear();
        match open.is_empty() {
            true => Ok(()),
            false => self.commit_unmerged(Source::Loop).await,
        }
    }

    /// Commits what is open without anything that was merged.
    pub(super) async fn commit_unmerged(&mut self, source: Source) -> Result<(), Error> {
        self.begin_record();
        let commit = self.upcoming();
        if let Some(eager) = &mut self.eager {
            eager.flow.pass(commit);
        }
        self.commit(source, None).await
    }

    /// Stores what open tasks asked, if no record says it yet, and what they wait for in any case: whoever asks a store which
    /// threads wait looks at pending writes.
    async fn leave_behind(&mut self) -> Result<(), Error> {
        self.end_waiting().await?;
        let Some(eager) = &self.eager else { return Ok(()) };
        let unsaid: HashSet<Key> = eager.flow.unsaid.begun.iter().copied().collect();
        let mut writes = Vec::new();
        for (key, activation) in &eager.flow.open {
            let (Some(left), Some(task)) = (&activation.left, self.activation_id(*key)) else { continue };
            let open = left.open().map(|(n, _)| *n);
            for (n, request) in left.requests.iter().filter(|(n, _)| unsaid.contains(key) || open == Some(*n))
            {
                writes.push(PendingWrite { task, slot: 1 + 2 * n, bytes: to_bytes(request)? });
            }
        }
        match &mut self.journal {
            Some(journal) if !writes.is_empty() => journal.put_writes(&writes).await,
            _ => Ok(()),
        }
    }

    /// Notes what a task asks, which holds what comes after it.
    pub(super) fn hold(&mut self, key: Key, request: Request) {
        let Some(eager) = &mut self.eager else { return };
        let Some(activation) = eager.flow.open.get_mut(&key) else { return };
        let node = self.core.name(activation.actor()).to_owned();
        let stored = StoredRequest::new(node, request.value, request.schema);
        let left = activation.left_mut();
        left.requests.retain(|(n, _)| *n != request.n);
        left.requests.push((request.n, stored));
        activation.phase = Phase::Waits;
        eager.flow.change(key);
    }

    /// Takes an answer back that its task could not read, so that the interrupt stays open.
    pub(super) async fn void_stored_answer(&mut self, key: Key, n: u32) -> Result<(), Error> {
        let task = self.activation_id(key);
        let Some(eager) = &mut self.eager else { return Ok(()) };
        if let Some(activation) = eager.flow.open.get_mut(&key) {
            activation.left_mut().answers.retain(|answer| answer.n != n);
            eager.flow.change(key);
        }
        match (&mut self.journal, task) {
            (Some(journal), Some(task)) => {
                let bytes = to_bytes(&StoredAnswer(None))?;
                journal.put_writes(&[PendingWrite { task, slot: 2 + 2 * n, bytes }]).await
            }
            _ => Ok(()),
        }
    }
}

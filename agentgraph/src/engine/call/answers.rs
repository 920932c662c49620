//! Answers to interrupts: checked against the open requests before anything is stored or run.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use crate::engine::Loop;
#[cfg(feature = "validate")]
use crate::engine::left_over::TaskRemains;
use crate::engine::load::finished_step;
use crate::engine::stored::StoredAnswer;
use crate::error::{Code, Error};
use crate::words::{InterruptId, OpenId, OpenRequest};
use agentgraph_checkpoint::PendingWrite;
use agentgraph_checkpoint::services::micros;

/// The answers of a caller.
#[derive(Clone)]
pub(crate) enum Answers {
    Bare(Value),
    ById(Vec<(InterruptId, Value)>),
}

impl Answers {
    /// The answers by id. A bare answer is for a question, never for a sleep.
    fn by_id(self, open: &[OpenId]) -> Result<Vec<(InterruptId, Value)>, Error> {
        let listed = || open.iter().map(|open| open.id.to_string()).collect::<Vec<_>>().join(", ");
        let asked = || open.iter().filter(|open| open.until.is_none());
        match (self, asked().count()) {
            _ if open.is_empty() => Err(Error::new(
                Code::NothingToResume,
                "no interrupt is open: use `proceed()` to continue a run that stopped for another reason, or to replay a \
                 checkpoint with `.from(..)`, where the node asks again",
            )),
            (Answers::Bare(_), 0) => Err(Error::new(
                Code::NothingToResume,
                format!(
                    "no question is open, the run sleeps: use `proceed()` when the time has come, or end a sleep early by its \
                     id with `resume_many` ({})",
                    listed()
                ),
            )),
            (Answers::Bare(value), 1) => Ok(asked().map(|only| (only.id, value.clone())).collect()),
            (Answers::Bare(_), _) => Err(Error::new(
                Code::AmbiguousAnswer,
                format!("several interrupts are open ({}): answer them by id with `resume_many`", listed()),
            )),
            (Answers::ById(answers), _) if answers.is_empty() => Err(Error::new(
                Code::UnknownInterrupt,
                format!("no answer was given; open are: {}", listed()),
            )),
            (Answers::ById(answers), _) => {
                let mut seen = std::collections::HashSet::new();
                for (id, _) in &answers {
                    let is_open = open.iter().any(|open| open.id == *id);
                    let problem = match (is_open, seen.insert(*id)) {
                        (false, _) => "is not open",
                        (true, false) => "is answered twice",
                        (true, true) => continue,
                    };
                    let text = format!("interrupt {id} {problem}; open are: {}", listed());
                    return Err(Error::new(Code::UnknownInterrupt, text));
                }
                Ok(answers)
            }
        }
    }
}

impl Loop {
    /// Checks that the stored results of finished tasks can be used, before anything is stored on top of
    /// them.
    pub(crate) fn check_left_over(&self) -> Result<(), Error> {
        let Some(journal) = &self.records.journal else { return Ok(()) };
        let results = self.inheritance.left_over.values().filter_map(|left| left.result.as_deref());
        for result in results {
            finished_step(&self.position.graph, journal.codec(), journal.thread(), result)?;
        }
        match &self.driver {
            Some(driver) => {
                Arc::clone(driver).check(journal.thread(), &self.position.state, &self.inheritance.left_over)
            }
            None => Ok(()),
        }
    }

    /// Delivers answers after checking them against the open interrupts; `inside` are those inside tasks.
    /// Sleeps whose time has come are ended as well. Answers are stored before anything runs, each beside its
    /// request.
    pub(crate) async fn give_answers(
        &mut self,
        answers: Answers,
        inside: Vec<OpenRequest>,
    ) -> Result<(), Error> {
        let open = self.open_requests(&inside);
        let mut answers = answers.by_id(&open)?;
        let over = self.sleeps_over(&open);
        for id in over {
            if answers.iter().all(|(answered, _)| *answered != id) {
                answers.push((id, Value::Null));
            }
        }
        self.deliver(answers, inside).await
    }

    /// Ends the sleeps whose time has come, so that their tasks run again.
    pub(crate) async fn end_sleeps(&mut self, inside: Vec<OpenRequest>) -> Result<(), Error> {
        let open = self.open_requests(&inside);
        let over = self.sleeps_over(&open);
        if over.is_empty() {
            return Ok(());
        }
        self.check_left_over()?;
        let answers = over.into_iter().map(|id| (id, Value::Null)).collect();
        Box::pin(self.deliver(answers, inside)).await
    }

    fn sleeps_over(&self, open: &[OpenId]) -> Vec<InterruptId> {
        if open.iter().all(|open| open.until.is_none()) {
            return Vec::new();
        }
        let now = micros(self.runtime.shared.services.now());
        open.iter().filter(|open| open.is_over(now)).map(|open| open.id).collect()
    }

    async fn deliver(
        &mut self,
        answers: Vec<(InterruptId, Value)>,
        inside: Vec<OpenRequest>,
    ) -> Result<(), Error> {
        let (own, inside) = self.take_answers(answers, &inside)?;
        let Some(journal) = &mut self.records.journal else { return Ok(()) };
        // The answers of one subgraph are stored together.
        let mut places: BTreeMap<_, Vec<PendingWrite>> = BTreeMap::new();
        for (request, write) in inside {
            places.entry((&*request.interrupt.namespace, request.at)).or_default().push(write);
        }
        for ((namespace, at), writes) in places {
            journal.put_writes_in(namespace, at, &writes).await?;
        }
        Box::pin(journal.put_writes(&own)).await
    }

    /// The open requests of the run, in task order, and those inside its tasks.
    fn open_requests(&mut self, inside: &[OpenRequest]) -> Vec<OpenId> {
        let has_some = !self.inheritance.left_over.is_empty();
        let tasks = if has_some { self.position.frontier.len() } else { 0 };
        self.inheritance.ids = (0..tasks).map_while(|index| self.task_id(index)).collect();
        let mut open: Vec<OpenId> = match self.driver {
            Some(_) => self.open_in_pass(),
            None => (self.inheritance.ids.iter())
                .filter_map(|task| Some(self.inheritance.left_over.get(task)?.open_ids(*task)))
                .flatten()
                .chain(self.open_in_flow(&self.flow_tasks()))
                .collect(),
        };
        open.extend(inside.iter().filter_map(OpenId::of));
        open
    }

    #[allow(clippy::type_complexity)]
    fn take_answers<'a>(
        &mut self,
        answers: Vec<(InterruptId, Value)>,
        inside: &'a [OpenRequest],
    ) -> Result<(Vec<PendingWrite>, Vec<(&'a OpenRequest, PendingWrite)>), Error> {
        let flow = self.flow_tasks();
        #[cfg(feature = "validate")]
        self.check_answers(&answers, inside)?;
        let mut writes = Vec::new();
        let mut writes_inside = Vec::new();
        for (id, value) in answers {
            let write = StoredAnswer::Given(value.clone()).write(id.task, id.n)?;
            if let Some(request) = inside.iter().find(|request| request.interrupt.id == Some(id)) {
                writes_inside.push((request, write));
                continue;
            }
            writes.push(write);
            if let Some(key) = flow.get(&id.task) {
                self.answer_in_flow(*key, id.n, value);
                continue;
            }
            self.inheritance.left_over.entry(id.task).or_default().take(id.n, StoredAnswer::Given(value));
        }
        Ok((writes, writes_inside))
    }

    /// The interrupts that an unfinished pass waits for, in the order in which their nodes are declared.
    fn open_in_pass(&self) -> Vec<OpenId> {
        let open = self.inheritance.left_over.iter().flat_map(|(task, left)| {
            left.open().zip(left.open_ids(*task)).map(|((_, request), id)| {
                let node = self.position.graph.names.id(&request.node);
                (node.unwrap_or(u32::MAX), id)
            })
        });
        let mut open: Vec<_> = open.collect();
        open.sort_unstable_by_key(|(node, open)| (*node, open.id));
        open.into_iter().map(|(_, id)| id).collect()
    }

    #[cfg(feature = "validate")]
    fn remains_of(&self, task: agentgraph_checkpoint::TaskId) -> Option<&TaskRemains> {
        let flow = self.position.eager.as_ref().map(|eager| &eager.flow);
        match flow.zip(self.flow_tasks().get(&task)) {
            Some((flow, key)) => flow.open.get(key)?.left.as_deref(),
            None => self.inheritance.left_over.get(&task),
        }
    }

    /// Checks all answers before any of them is stored.
    #[cfg(feature = "validate")]
    fn check_answers(&self, answers: &[(InterruptId, Value)], inside: &[OpenRequest]) -> Result<(), Error> {
        for (id, answer) in answers {
            let of_child = inside.iter().find(|request| request.interrupt.id == Some(*id));
            let (node, schema) = match of_child {
                Some(request) => (&*request.interrupt.node, request.interrupt.schema.as_ref()),
                None => match self.remains_of(id.task).and_then(|left| left.open().find(|(n, _)| *n == id.n))
                {
                    Some((_, request)) => (&*request.node, request.schema.as_ref()),
                    None => continue,
                },
            };
            if let Some(schema) = schema {
                crate::context::answer_schema::check(*id, node, schema, answer)?;
            }
        }
        Ok(())
    }
}

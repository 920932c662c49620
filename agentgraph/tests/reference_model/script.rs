//! A thread's life: what is done to it, one act after the other, and what the model says of each.

use super::behaviour::time_at;
use super::events::Happening;
use super::model::{Act, Model, What};
use super::shape::{AnswerOrder, Edit, Shape};
use super::told::{Came, Seen, Status, Told};

/// Acts after which a thread is left alone.
const ACTS: usize = 14;

/// Checkpoints after which a thread is left alone.
pub const CHECKPOINTS: usize = 24;

/// An act, and how everything is after it.
pub struct Scene {
    pub act: Act,
    pub told: Told,
    pub happened: Vec<Happening>,
    pub history: Vec<Seen>,
    pub status: Option<Status>,
}

pub struct Script {
    pub scenes: Vec<Scene>,
    /// The thread was not left alone before its end.
    pub is_whole: bool,
    is_unclear: bool,
}

impl Script {
    /// Lives a thread by the model.
    pub fn of(shape: &Shape, stores_at_end: bool) -> Script {
        let mut model = Model::new(shape, stores_at_end);
        let mut scenes: Vec<Scene> = Vec::new();
        let mut author = Author { shape, inputs: 0, allowances: 1 };
        loop {
            let last = scenes.last().map(|scene| &scene.told.came);
            let Some(act) = author.next(&model, scenes.len(), last) else {
                return Script { scenes, is_whole: true, is_unclear: model.is_unclear };
            };
            if scenes.len() == ACTS || model.history().len() >= CHECKPOINTS {
                return Script { scenes, is_whole: false, is_unclear: model.is_unclear };
            }
            let told = model.act(&act);
            let (history, status) = (model.history(), model.status());
            scenes.push(Scene { act, told, happened: std::mem::take(&mut model.happened), history, status });
        }
    }

    pub fn is_unclear(&self) -> bool {
        self.is_unclear
    }

    pub fn is_hopeless(&self) -> bool {
        self.scenes.iter().any(|scene| scene.told.came.is_hopeless())
    }

    /// All that history says in the end.
    pub fn history(&self) -> &[Seen] {
        self.scenes.last().map_or(&[], |scene| &scene.history)
    }
}

/// Decides what is done next.
struct Author<'a> {
    shape: &'a Shape,
    inputs: usize,
    /// How many times over the run may use up its budget.
    allowances: u64,
}

impl Author<'_> {
    fn next(&mut self, model: &Model<'_>, acts: usize, last: Option<&Came>) -> Option<Act> {
        if matches!(last, Some(Came::Stopped(agentgraph::StopReason::Budget))) {
            self.allowances += 1;
        }
        let status = model.status();
        let is_hopeless = last.is_some_and(Came::is_hopeless);
        // After a failed merge only what gives the superstep up is predictable: who was stored depends on who
        // was pending.
        let planned =
            self.shape.edits.iter().find(|plan| plan.when == acts && (!is_hopeless || plan.gives_up()));
        let (what, at) = match planned {
            Some(plan) => {
                let checkpoints = model.checkpoints().count().max(1);
                let at = model.checkpoints().rev().nth(plan.back % checkpoints);
                let at = at.map(|(id, _)| id).filter(|_| plan.back > 0);
                (plan.what(), at)
            }
            None => {
                let open = status.as_ref().map_or(0, |status| status.asks.len());
                let what = match &status {
                    // What waits within a graph that failed is asked for when it goes on.
                    Some(_)
                        if matches!(last, Some(Came::Failed(_)))
                            && self.shape.has_children()
                            && !is_hopeless =>
                    {
                        What::Proceed
                    }
                    Some(status) if !status.next.is_empty() && !is_hopeless => match open {
                        0 => What::Proceed,
                        _ => What::Resume(self.shape.answers.of(open)),
                    },
                    _ if is_unfinished(model) && !is_hopeless => What::Proceed,
                    _ => What::Invoke(self.input()?),
                };
                (what, None)
            }
        };
        if matches!(what, What::Invoke(_)) {
            self.allowances = 1;
        }
        let tick =
            model.checkpoints().rfind(|(id, _)| at.is_none_or(|at| at == *id)).map_or(0, |(_, tick)| tick);
        // What was spent is remembered over calls that are given no budget.
        let is_given = acts % 3 < 2 || matches!(what, What::Invoke(_));
        let allowed = |limit: Option<u64>| limit.filter(|_| is_given).map(|limit| limit * self.allowances);
        let budget = (allowed(self.shape.budget.supersteps), allowed(self.shape.budget.coins));
        Some(Act { what, at, round: acts as u64, now: time_at(tick), budget })
    }

    fn input(&mut self) -> Option<Vec<super::world::Write>> {
        let input = self.shape.inputs.get(self.inputs)?.clone();
        self.inputs += 1;
        Some(input)
    }
}

/// Something of the newest checkpoint is still to be merged.
fn is_unfinished(model: &Model<'_>) -> bool {
    model.history().last().is_some_and(|last| !last.next.is_empty())
}

impl super::shape::Plan {
    fn what(&self) -> What {
        match &self.edit {
            Edit::Proceed => What::Proceed,
            Edit::Invoke(writes) => What::Invoke(writes.clone()),
            edit => What::Edit(edit.clone()),
        }
    }

    /// It neither goes on with the superstep that is open nor takes over what has finished of it.
    fn gives_up(&self) -> bool {
        matches!(self.edit, Edit::Start(_) | Edit::Invoke(_))
    }
}

impl AnswerOrder {
    pub fn of(self, open: usize) -> Vec<usize> {
        match self {
            AnswerOrder::All => (0..open).collect(),
            AnswerOrder::First => vec![0],
            AnswerOrder::Last => vec![open - 1],
        }
    }
}

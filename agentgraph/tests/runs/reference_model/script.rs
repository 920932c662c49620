//! A sequence of acts on a thread, with the model's result of each.

use super::behaviour::time_at;
use super::events::StreamItem;
use super::model::{Act, Action, Model};
use super::shape::{AnswerOrder, Edit, Shape};
use super::told::{ActEnd, ActResult, HistoryEntry, Status};

/// The maximum number of acts on a thread.
const ACTS: usize = 14;

/// The number of checkpoints after which a script ends.
pub const CHECKPOINTS: usize = 24;

/// An act and its results.
pub struct Scene {
    pub act: Act,
    pub result: ActResult,
    pub items: Vec<StreamItem>,
    pub history: Vec<HistoryEntry>,
    pub status: Option<Status>,
}

pub struct Script {
    pub scenes: Vec<Scene>,
    /// Whether the thread reached its end within these limits.
    pub is_whole: bool,
    is_unclear: bool,
}

impl Script {
    /// Plays a thread on the model.
    pub fn of(shape: &Shape, stores_at_end: bool) -> Script {
        let mut model = Model::new(shape, stores_at_end);
        let mut scenes: Vec<Scene> = Vec::new();
        let mut author = Author { shape, inputs: 0, allowances: 1 };
        loop {
            let last = scenes.last().map(|scene| &scene.result.end);
            let Some(act) = author.next(&model, scenes.len(), last) else {
                return Script { scenes, is_whole: true, is_unclear: model.is_unclear };
            };
            if scenes.len() == ACTS || model.history().len() >= CHECKPOINTS {
                return Script { scenes, is_whole: false, is_unclear: model.is_unclear };
            }
            let result = model.act(&act);
            let history = model.history();
            let status = model.status();
            scenes.push(Scene { act, result, items: std::mem::take(&mut model.items), history, status });
        }
    }

    pub fn is_unclear(&self) -> bool {
        self.is_unclear
    }

    pub fn is_hopeless(&self) -> bool {
        self.scenes.iter().any(|scene| scene.result.end.is_hopeless())
    }

    /// Returns the final history.
    pub fn history(&self) -> &[HistoryEntry] {
        self.scenes.last().map_or(&[], |scene| &scene.history)
    }
}

/// Chooses the acts.
struct Author<'a> {
    shape: &'a Shape,
    inputs: usize,
    /// The number of budgets the run has been granted.
    allowances: u64,
}

impl Author<'_> {
    fn next(&mut self, model: &Model<'_>, acts: usize, last: Option<&ActEnd>) -> Option<Act> {
        if matches!(last, Some(ActEnd::Stopped(agentgraph::StopReason::Budget))) {
            self.allowances += 1;
        }
        let status = model.status();
        let is_hopeless = last.is_some_and(ActEnd::is_hopeless);
        // After a failed merge only acts that abandon the superstep are predictable: the set of stored
        // tasks depends on timing.
        let planned =
            self.shape.edits.iter().find(|plan| plan.when == acts && (!is_hopeless || plan.abandons()));
        let (action, at) = match planned {
            Some(plan) => {
                let checkpoints = model.checkpoints().count().max(1);
                let at = model.checkpoints().rev().nth(plan.back % checkpoints);
                let at = at.map(|(id, _)| id).filter(|_| plan.back > 0);
                (plan.action(), at)
            }
            None => {
                let open = status.as_ref().map_or(0, |status| status.asks.len());
                let action = match &status {
                    // If a subgraph failed, its waiting interrupts are reported again when the call
                    // continues.
                    Some(_)
                        if matches!(last, Some(ActEnd::Failed(_)))
                            && self.shape.has_children()
                            && !is_hopeless =>
                    {
                        Action::Proceed
                    }
                    Some(status) if !status.next.is_empty() && !is_hopeless => match open {
                        0 => Action::Proceed,
                        _ => Action::Resume(self.shape.answers.of(open)),
                    },
                    _ if is_unfinished(model) && !is_hopeless => Action::Proceed,
                    _ => Action::Invoke(self.input()?),
                };
                (action, None)
            }
        };
        if matches!(action, Action::Invoke(_)) {
            self.allowances = 1;
        }
        let tick =
            model.checkpoints().rfind(|(id, _)| at.is_none_or(|at| at == *id)).map_or(0, |(_, tick)| tick);
        // The spent amount is kept across calls without a budget.
        let is_given = acts % 3 < 2 || matches!(action, Action::Invoke(_));
        let allowed = |limit: Option<u64>| limit.filter(|_| is_given).map(|limit| limit * self.allowances);
        let budget = (allowed(self.shape.budget.supersteps), allowed(self.shape.budget.coins));
        Some(Act { action, at, round: acts as u64, now: time_at(tick), budget })
    }

    fn input(&mut self) -> Option<Vec<super::world::Write>> {
        let input = self.shape.inputs.get(self.inputs)?.clone();
        self.inputs += 1;
        Some(input)
    }
}

/// Whether tasks of the newest checkpoint are still to be merged.
fn is_unfinished(model: &Model<'_>) -> bool {
    model.history().last().is_some_and(|last| !last.next.is_empty())
}

impl super::shape::Plan {
    fn action(&self) -> Action {
        match &self.edit {
            Edit::Proceed => Action::Proceed,
            Edit::Invoke(writes) => Action::Invoke(writes.clone()),
            edit => Action::Edit(edit.clone()),
        }
    }

    /// Whether the act abandons the open superstep, including its finished tasks.
    fn abandons(&self) -> bool {
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

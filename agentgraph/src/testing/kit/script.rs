//! [`Script`]: the answers of a test to the questions of its graph.

use std::collections::HashMap;

use serde_json::Value;

use super::paths::path_of;
use crate::words::{Interrupt, InterruptId, InterruptKind};

/// The answers as the test gives them.
#[derive(Clone, Default)]
pub(super) struct Script {
    /// In order, to any question.
    pub(super) in_order: Vec<Value>,
    /// By the path of a node or the key of a question, each time it is asked.
    pub(super) by_name: HashMap<String, Value>,
}

/// The place and the words of a question, which are the same in every run.
pub(super) type Question = (String, Option<String>, Value);

/// The answers of one run.
pub(super) struct Answers {
    script: Script,
    used: usize,
    /// What was answered, by id: a kill may lose an answer, and the question is then asked again.
    given: HashMap<InterruptId, Value>,
    log: Vec<(Question, Value)>,
    /// The answers of an earlier run, which a killed run gets to the same questions in any order.
    learned: Option<Vec<(Question, Value)>>,
}

impl Answers {
    pub(super) fn new(script: Script, learned: Option<Vec<(Question, Value)>>) -> Self {
        Answers { script, used: 0, given: HashMap::new(), log: Vec::new(), learned }
    }

    /// The answer to an open question; `None` if the test has none, or if it is no question.
    pub(super) fn to(&mut self, open: &Interrupt) -> Option<(InterruptId, Value)> {
        let id = open.id.filter(|_| open.kind != InterruptKind::Sleeps)?;
        if let Some(given) = self.given.get(&id) {
            return Some((id, given.clone()));
        }
        let path = path_of(&open.namespace, &open.node);
        let question: Question = (path, open.key.clone(), open.value.clone());
        let answer = self.find(&question)?;
        self.given.insert(id, answer.clone());
        self.log.push((question, answer.clone()));
        Some((id, answer))
    }

    fn find(&mut self, question: &Question) -> Option<Value> {
        let (path, key, _) = question;
        let named = key.as_ref().and_then(|key| self.script.by_name.get(key));
        if let Some(answer) = named.or_else(|| self.script.by_name.get(path)) {
            return Some(answer.clone());
        }
        if let Some(learned) = &mut self.learned
            && let Some(at) = learned.iter().position(|(known, _)| known == question)
        {
            return Some(learned.remove(at).1);
        }
        let answer = self.script.in_order.get(self.used)?.clone();
        self.used += 1;
        Some(answer)
    }

    /// The questions that were answered.
    pub(super) fn log(&self) -> &[(Question, Value)] {
        &self.log
    }
}

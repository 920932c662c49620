//! The questions of one task: those of earlier calls with their answers, and those of the running attempt.
//!
//! An answer belongs to a *spot* (the n-th question without a key, or the question of a key) and to the
//! value asked there. It is delivered to a question at the same spot with an equal value, and to no other. A
//! task may refuse an answer that was delivered to it: then it is voided, and its question is asked again.

use std::collections::HashSet;

use serde_json::Value;

use super::control::Interrupted;
use crate::error::{Code, Error};
use crate::words::{AnswerState, AskedQuestion, InterruptKey, Request, Spot, VoidedQuestion};
use agentgraph_checkpoint::PendingWrite;

/// A spot, as named by the caller of [`Questions::ask`].
#[derive(Debug)]
pub(super) enum AskedSpot {
    /// The next one without a key.
    Next,
    Key(InterruptKey),
    /// A sleep, and its end in microseconds since 1970.
    Sleep {
        name: String,
        nth: u32,
        until: u64,
    },
}

/// The questions that a task waits for, and the answers that they void.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct NewQuestions {
    pub(crate) requests: Vec<Request>,
    pub(crate) voided: Vec<u32>,
}

impl NewQuestions {
    /// Why the task has just refused the answer that the request replaces, if it did.
    pub(crate) fn refused<'a>(&self, request: &'a Request) -> Option<&'a str> {
        let replaced = request.replaces.as_ref().filter(|replaced| self.voided.contains(&replaced.n));
        replaced?.reason.as_deref()
    }
}

/// An answer that its task could not decode.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Refusal {
    pub(crate) n: u32,
    pub(crate) problem: String,
    /// The current form of the question, if its schema has changed.
    pub(crate) asked: Option<Request>,
}

/// A question that cannot be asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AskProblem {
    NotJson(String),
    SameKey(String),
    /// No answer was given to the question with this key, or none was taken.
    NothingToRefuse(Option<String>),
    TooMany,
}

impl AskProblem {
    pub(crate) fn error(&self) -> Error {
        let (code, problem) = match self {
            AskProblem::NotJson(problem) => (
                Code::Encode,
                format!("the value that it passed to `interrupt` cannot be turned into JSON: {problem}"),
            ),
            AskProblem::SameKey(key) => {
                let problem = format!(
                    "it asked two questions with the key {key:?} in one attempt, so an answer could go to either: give each \
                     question a key of its own"
                );
                (Code::SameKey, problem)
            }
            AskProblem::NothingToRefuse(key) => {
                let which = match key {
                    Some(key) => format!("to a question with the key {key:?}"),
                    None => "before it took one".to_owned(),
                };
                let problem = format!(
                    "it refused an answer {which}, and there is none: call `refuse` after the question whose answer it refuses"
                );
                (Code::NothingToRefuse, problem)
            }
            AskProblem::TooMany => (
                Code::CorruptCheckpoint,
                "the numbers of its stored questions leave no room for another one".into(),
            ),
        };
        Error::new(code, problem)
    }
}

/// The questions of one task: see the module.
#[derive(Debug, Default)]
pub(super) struct Questions {
    asked: Vec<AskedQuestion>,
    /// The number of questions without a key that the attempt has asked.
    next: u32,
    /// The keys that the attempt has used.
    keys: HashSet<String>,
    /// The spot of the last answer that the attempt took. The end of a sleep is no answer.
    taken: Option<Spot>,
    /// Whether the attempt has refused an answer. It asks nothing after that, so nothing else can end it.
    refuses: bool,
    asks: NewQuestions,
    refused: Option<Box<Refusal>>,
    ask_problem: Option<AskProblem>,
}

impl Questions {
    pub(super) fn of(asked: Vec<AskedQuestion>) -> Self {
        Questions { asked, ..Questions::default() }
    }

    /// The questions of earlier calls.
    pub(super) fn asked(&self) -> &[AskedQuestion] {
        &self.asked
    }

    /// A new attempt asks from the start.
    pub(super) fn begin_attempt(&mut self) {
        self.next = 0;
        self.keys.clear();
        self.taken = None;
    }

    /// Whether the task waits or cannot continue, so that it must not be called again.
    pub(super) fn are_closed(&self) -> bool {
        !self.asks.requests.is_empty() || self.is_broken()
    }

    fn is_broken(&self) -> bool {
        self.refused.is_some() || self.ask_problem.is_some()
    }

    pub(super) fn asks(&self) -> Option<&NewQuestions> {
        Some(&self.asks).filter(|asks| !asks.requests.is_empty())
    }

    pub(super) fn refused(&self) -> Option<&Refusal> {
        self.refused.as_deref()
    }

    pub(super) fn ask_problem(&self) -> Option<&AskProblem> {
        self.ask_problem.as_ref()
    }

    fn fail_asking(&mut self, why: AskProblem) -> Interrupted {
        self.ask_problem.get_or_insert(why);
        Interrupted
    }

    /// Asks a question. Returns the answer with the number of its question, if there is one.
    pub(super) fn ask(
        &mut self,
        which: AskedSpot,
        value: Result<Value, serde_json::Error>,
        schema: Option<Value>,
    ) -> Result<(u32, Value), Interrupted> {
        if self.is_broken() || self.refuses {
            return Err(Interrupted);
        }
        let until = match &which {
            AskedSpot::Sleep { until, .. } => Some(*until),
            AskedSpot::Next | AskedSpot::Key(_) => None,
        };
        let (spot, any_value) = self.take_spot(which)?;
        let value = value.map_err(|error| self.fail_asking(AskProblem::NotJson(error.to_string())))?;
        let live = self.live(&spot);
        if let Some(AskedQuestion {
            n, value: asked, schema: shown, answer: AnswerState::With(answer), ..
        }) = live
            && (any_value || *asked == value)
        {
            let n = *n;
            let answer = answer.clone();
            return match misfit(shown.as_ref(), schema.as_ref(), &answer) {
                None => {
                    if until.is_none() {
                        self.taken = Some(spot);
                    }
                    Ok((n, answer))
                }
                Some(problem) => Err(self.refuse(n, problem, schema)),
            };
        }
        Err(self.open(spot, value, schema, until))
    }

    /// Voids the answer at a spot, or the last one that the attempt took, and asks its question again.
    pub(super) fn reject(&mut self, spot: Option<Spot>, reason: String) -> Interrupted {
        let key = match &spot {
            Some(Spot::Key(key)) => Some(key.clone()),
            _ => None,
        };
        let answered = spot.or_else(|| self.taken.clone()).and_then(|spot| self.live(&spot).cloned());
        let answered = answered.filter(|asked| matches!(asked.answer, AnswerState::With(_)));
        let Some(AskedQuestion { spot, value, schema, .. }) = answered else {
            // After another refusal, the answer is void already.
            return match self.refuses {
                true => Interrupted,
                false => self.fail_asking(AskProblem::NothingToRefuse(key)),
            };
        };
        // A refusal counts more than any problem of the attempt, which the next one would find again: the
        // answer must not be delivered to that one.
        (self.refused, self.ask_problem, self.refuses) = (None, None, true);
        self.asks.requests.retain(|request| !spot.voids(&request.spot));
        self.open_new(spot, value, schema, None, Some(reason))
    }

    /// The spot of the attempt's next question.
    fn take_spot(&mut self, which: AskedSpot) -> Result<(Spot, bool), Interrupted> {
        match which {
            // Later questions are asked when this one is answered.
            AskedSpot::Next if self.has_open_unkeyed() => Err(Interrupted),
            AskedSpot::Next => {
                let spot = Spot::Nth(self.next);
                self.next = self.next.saturating_add(1);
                Ok((spot, false))
            }
            AskedSpot::Key(InterruptKey { name, .. }) if self.keys.contains(&name) => {
                Err(self.fail_asking(AskProblem::SameKey(name)))
            }
            AskedSpot::Key(InterruptKey { name, any_value }) => {
                self.keys.insert(name.clone());
                Ok((Spot::Key(name), any_value))
            }
            // The name is the value.
            AskedSpot::Sleep { name, nth, .. } => Ok((Spot::Sleep { name, nth }, true)),
        }
    }

    /// Whether the attempt has asked all questions that have answers.
    pub(super) fn has_asked_all_answered(&self) -> bool {
        self.asked.iter().filter(|asked| matches!(asked.answer, AnswerState::With(_))).all(|asked| {
            match &asked.spot {
                Spot::Nth(nth) => *nth < self.next,
                Spot::Key(key) => self.keys.contains(key),
                // A sleep is counted with the durable steps.
                Spot::Sleep { .. } => true,
            }
        })
    }

    /// Whether a question without a key is open.
    fn has_open_unkeyed(&self) -> bool {
        self.asks.requests.iter().any(|request| matches!(request.spot, Spot::Nth(_)))
    }

    /// The question of earlier calls that is now at a spot.
    fn live(&self, spot: &Spot) -> Option<&AskedQuestion> {
        self.asked.iter().find(|asked| asked.spot == *spot && asked.answer != AnswerState::Voided)
    }

    /// Opens a question without an answer. An answer to another question at its spot is voided. `until` is
    /// the end of a sleep.
    pub(super) fn open(
        &mut self,
        spot: Spot,
        value: Value,
        schema: Option<Value>,
        until: Option<u64>,
    ) -> Interrupted {
        if self.asks.requests.iter().any(|request| request.spot == spot) {
            return Interrupted;
        }
        let still_open =
            self.live(&spot).filter(|live| live.answer == AnswerState::NotYet && live.value == value);
        if let Some(live @ AskedQuestion { n, .. }) = still_open {
            let n = *n;
            let replaces = self.replaced(&spot, live.refused_before.clone());
            self.asks.requests.push(Request { n, replaces, spot, value, schema, until });
            return Interrupted;
        }
        self.open_new(spot, value, schema, until, None)
    }

    /// Opens a question under a number of its own. `reason`: why the answer at its spot was refused.
    fn open_new(
        &mut self,
        spot: Spot,
        value: Value,
        schema: Option<Value>,
        until: Option<u64>,
        reason: Option<String>,
    ) -> Interrupted {
        let Some(n) = self.next_number() else { return self.fail_asking(AskProblem::TooMany) };
        if self.live(&spot).is_some() {
            for asked in self.asked.iter_mut().filter(|asked| spot.voids(&asked.spot)) {
                if asked.answer != AnswerState::Voided {
                    asked.answer = AnswerState::Voided;
                    self.asks.voided.push(asked.n);
                }
            }
        }
        let replaces = self.replaced(&spot, reason);
        self.asks.requests.push(Request { n, replaces, spot, value, schema, until });
        Interrupted
    }

    /// The last voided question at a spot. `reason`: why its answer was refused.
    fn replaced(&self, spot: &Spot, reason: Option<String>) -> Option<VoidedQuestion> {
        let voided = |asked: &&AskedQuestion| asked.spot == *spot && asked.answer == AnswerState::Voided;
        let last = self.asked.iter().filter(voided).max_by_key(|asked| asked.n)?;
        let times = last.voided_before.saturating_add(1);
        Some(VoidedQuestion { n: last.n, value: last.value.clone(), times, reason })
    }

    /// A number that no question of the task has used.
    fn next_number(&self) -> Option<u32> {
        let asked = self.asked.iter().map(|asked| asked.n);
        let last = asked.chain(self.asks.requests.iter().map(|request| request.n)).max();
        let next = last.map_or(Some(0), |last| last.checked_add(1))?;
        PendingWrite::can_be_asked(next).then_some(next)
    }

    /// Takes back an answer that the task could not decode, so that its question stays open.
    pub(super) fn refuse(&mut self, n: u32, problem: String, schema: Option<Value>) -> Interrupted {
        if self.refuses {
            return Interrupted;
        }
        let asked = self.asked.iter().find(|asked| asked.n == n).filter(|asked| asked.schema != schema);
        let asked = asked.cloned().map(|asked| Request {
            n,
            replaces: self.replaced(&asked.spot, asked.refused_before),
            spot: asked.spot,
            value: asked.value,
            schema,
            until: None,
        });
        self.refused.get_or_insert_with(|| Box::new(Refusal { n, problem, asked }));
        Interrupted
    }
}

/// Why an answer that fits the schema it was given for does not fit the current one.
#[cfg(feature = "validate")]
fn misfit(given_for: Option<&Value>, now: Option<&Value>, answer: &Value) -> Option<String> {
    let schema = now.filter(|_| given_for != now)?;
    super::answer_schema::problem(schema, answer)
}

/// Without the feature, decoding as the node's type decides.
#[cfg(not(feature = "validate"))]
fn misfit(_: Option<&Value>, _: Option<&Value>, _: &Value) -> Option<String> {
    None
}

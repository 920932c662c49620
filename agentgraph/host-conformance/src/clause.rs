//! [`Clause`]: one thing that a host has to do.

use std::fmt;
use std::panic::AssertUnwindSafe;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use crate::case::Case;
use crate::host::{Ability, Kit};

/// One thing that a host has to do.
#[derive(Clone, Copy)]
pub struct Clause {
    name: &'static str,
    text: &'static str,
    needs: &'static [Ability],
    trial: Trial,
}

/// Tries a clause. Its error says what the host did instead.
pub(crate) type Trial = for<'a> fn(&'a Case<'a>) -> BoxFuture<'a, Result<(), String>>;

impl Clause {
    pub(crate) const fn new(name: &'static str, text: &'static str, trial: Trial) -> Self {
        Clause { name, text, needs: &[], trial }
    }

    pub(crate) const fn needing(mut self, needs: &'static [Ability]) -> Self {
        self.needs = needs;
        self
    }

    /// Its name: a short statement.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// More about it, with the probable mistake of a host that breaks it.
    pub fn text(&self) -> &'static str {
        self.text
    }

    /// The abilities that it needs.
    pub fn needs(&self) -> &'static [Ability] {
        self.needs
    }

    /// Tries it on a host.
    ///
    /// # Errors
    /// What the host did instead. A panic of the host is one of these, and so is a call without an end.
    pub(crate) async fn check(&self, kit: &Kit<'_>) -> Result<(), String> {
        let case = Case::new(kit, self.name);
        let trial = AssertUnwindSafe((self.trial)(&case)).catch_unwind();
        match trial.await {
            Ok(found) => found.map_err(shortened),
            Err(payload) => Err(shortened(format!("the host panicked: {}", text_of(&*payload)))),
        }
    }
}

/// The longest problem of a report, in characters: a state of some clauses is large.
const LONGEST: usize = 1_500;

fn shortened(problem: String) -> String {
    match problem.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{} ..", &problem[..end]),
        None => problem,
    }
}

/// The message of a panic.
fn text_of(payload: &(dyn std::any::Any + Send)) -> &str {
    let text = payload.downcast_ref::<&str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("(no message)")
}

impl fmt::Debug for Clause {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_tuple("Clause").field(&self.name).finish()
    }
}

//! A limit of money.

mod price;

use async_trait::async_trait;

use super::model_call_limit::AtLimit;
use super::{Hooks, Jump, Middleware, Turn};
use crate::error::{Code, Error, Result};
use crate::message::Message;

pub use price::{Money, Price, PriceTable};

/// Limits what an agent pays for, in a run, in a thread, or in both: the answers of its models, and those
/// that its middleware asks for, such as summaries and the choice of tools. The prices are yours, and so is
/// the unit of money; all sums are exact.
///
/// A run that failed at a limit goes on with `proceed()` once the limit is raised.
///
/// It is checked before each round, so one round may exceed the limit, and none follows. Make it the first
/// middleware: then it is checked before a summary is paid. Not counted are answers that broke off, because
/// no usage is known; the answers in a node that failed, because it stored nothing; and models that tools
/// ask. Prices apply to the whole thread, also to what was paid before they changed.
///
/// ```
/// use agentgraph_llm::middleware::{Budget, Middleware, Money, Price, PriceTable, Turn};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> agentgraph_llm::Result<()> {
/// // In cents per million tokens.
/// let prices = PriceTable::new().with("claude-large", Price::new(300, 1500).with_cache(30, 375));
/// let budget = Budget::new(prices).per_run(Money::units(20)).per_thread(Money::units(500));
///
/// let mut turn = Turn::detached(budget.name(), []);
/// budget.before_model(&mut turn).await?;
/// assert_eq!(budget.spent(&turn)?, Money::default());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Budget {
    prices: PriceTable,
    run: Option<Money>,
    thread: Option<Money>,
    at_limit: AtLimit,
}

impl Budget {
    /// Counts the cost by these prices, without a limit. At a limit, the run fails with `E_LLM_BUDGET`.
    pub fn new(prices: PriceTable) -> Self {
        Budget { prices, run: None, thread: None, at_limit: AtLimit::Error }
    }

    /// Sets the limit of a run.
    pub fn per_run(mut self, limit: Money) -> Self {
        self.run = Some(limit);
        self
    }

    /// Sets the limit of a thread.
    pub fn per_thread(mut self, limit: Money) -> Self {
        self.thread = Some(limit);
        self
    }

    /// Sets what happens when a limit is reached.
    pub fn at_limit(mut self, action: AtLimit) -> Self {
        self.at_limit = action;
        self
    }

    /// What the thread has spent so far.
    ///
    /// # Errors
    /// `E_LLM_CONFIG` if a model that was paid has no price.
    pub fn spent(&self, turn: &Turn) -> Result<Money> {
        self.prices.cost(&turn.thread_bill())
    }

    fn reached(&self, turn: &Turn) -> Result<Option<Error>> {
        let thread = self.spent(turn)?;
        let run = self.prices.cost(&turn.run_bill())?;
        let limits = [("run", self.run, run), ("thread", self.thread, thread)];
        let reached = limits.into_iter().find_map(|(of, limit, spent)| {
            let limit = limit.filter(|limit| spent >= *limit)?;
            let message = format!(
                "the budget of {} per {of} is used up ({} spent): raise it, or ask for less",
                limit.as_units(),
                spent.as_units()
            );
            Some(Error::new(Code::Budget, message))
        });
        Ok(reached)
    }
}

#[async_trait]
impl Middleware for Budget {
    fn name(&self) -> &str {
        "budget"
    }

    fn hooks(&self) -> Hooks {
        Hooks::NONE.before_model()
    }

    async fn before_model(&self, turn: &mut Turn) -> Result<Jump> {
        match (self.reached(turn)?, self.at_limit) {
            (None, _) => Ok(Jump::Next),
            (Some(error), AtLimit::Error) => Err(error),
            (Some(error), AtLimit::End) => {
                turn.push(Message::assistant(error.message()));
                Ok(Jump::End)
            }
        }
    }
}

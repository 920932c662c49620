//! What an agent pays for: the tokens of all answers, by model.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use agentgraph::Ctx;
use async_trait::async_trait;
use futures_util::StreamExt;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::error::{Error, Result};
use crate::model::{
    ChatEvent, ChatModel, ChatRequest, ChatResponse, ChatStream, ModelInfo, TokenCount, Usage,
};

/// The tokens of answers, by the name of the model that wrote them.
///
/// ```
/// use agentgraph_llm::Usage;
/// use agentgraph_llm::middleware::{Bill, Money, Price, PriceTable};
///
/// let mut bill = Bill::default();
/// bill.add("large", Usage::new(1_000_000, 0));
/// bill.add("small", Usage::new(1_000_000, 0));
/// assert_eq!(bill.of("small").input_total, 1_000_000);
///
/// let prices = PriceTable::new().with("large", Price::new(300, 1500)).with("small", Price::new(25, 125));
/// assert_eq!(prices.cost(&bill).unwrap(), Money::units(325));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bill {
    /// `None` as long as nothing was paid: each round copies, moves and drops several bills.
    models: Option<Arc<BTreeMap<String, Usage>>>,
}

impl Bill {
    /// Adds the tokens of an answer. An answer without tokens, such as one from a cache, adds nothing.
    pub fn add(&mut self, model: impl Into<String>, usage: Usage) {
        if usage.total() > 0 {
            let models = Arc::make_mut(self.models.get_or_insert_default());
            *models.entry(model.into()).or_default() += usage;
        }
    }

    /// Adds what an answer of a model has cost, in the node of this context.
    pub(crate) fn add_answer(
        &mut self,
        model: &Arc<dyn ChatModel>,
        ended: Result<&ChatResponse, &Error>,
        ctx: Option<&Ctx>,
    ) {
        let (origin, usage) = match ended {
            // A model that asks others says by its answers' origin which one it was.
            Ok(response) => (response.message.origin.as_ref(), response.usage),
            Err(error) => (None, error.usage()),
        };
        if usage.total() > 0 {
            self.add(origin.map_or_else(|| model.info().model, |origin| origin.model.clone()), usage);
        }
        // The engine counts also what a failed node has used.
        if let Some(ctx) = ctx {
            ctx.spend("tokens", usage.total());
        }
    }

    /// Adds all tokens of another bill.
    pub fn add_all(&mut self, other: &Bill) {
        other.iter().for_each(|(model, usage)| self.add(model, usage));
    }

    /// The tokens of this model.
    pub fn of(&self, model: &str) -> Usage {
        self.models().get(model).copied().unwrap_or_default()
    }

    /// The models and their tokens, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Usage)> {
        self.models().iter().map(|(model, usage)| (model.as_str(), *usage))
    }

    /// The tokens of all models.
    pub fn total(&self) -> Usage {
        self.models().values().copied().sum()
    }

    /// Whether nothing was paid.
    pub fn is_empty(&self) -> bool {
        self.models.is_none()
    }

    fn models(&self) -> &BTreeMap<String, Usage> {
        static NOTHING: BTreeMap<String, Usage> = BTreeMap::new();
        self.models.as_deref().unwrap_or(&NOTHING)
    }
}

impl Serialize for Bill {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.models().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Bill {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let models = BTreeMap::deserialize(deserializer)?;
        Ok(Bill { models: (!models.is_empty()).then(|| Arc::new(models)) })
    }
}

/// The bill of a node that runs. The models that the node asks add to it, and the node stores it.
#[derive(Clone, Debug, Default)]
pub(crate) struct OpenBill {
    bill: Arc<Mutex<Bill>>,
    ctx: Option<Ctx>,
}

impl OpenBill {
    pub(crate) fn new(ctx: Option<Ctx>) -> Self {
        OpenBill { bill: Arc::default(), ctx }
    }

    pub(crate) fn read(&self) -> Bill {
        self.bill.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn model(&self, model: &Arc<dyn ChatModel>) -> BilledModel {
        BilledModel { model: Arc::clone(model), bill: self.clone() }
    }

    /// Adds what an answer of a model costs, when it ends.
    pub(crate) fn watch(&self, model: Arc<dyn ChatModel>, begun: Result<ChatStream>) -> Result<ChatStream> {
        let stream = begun.inspect_err(|error| self.add(&model, Err(error)))?;
        let bill = self.clone();
        Ok(ChatStream::new(stream.inspect(move |event| match event {
            Ok(ChatEvent::Finished(response)) => bill.add(&model, Ok(response)),
            Ok(_) => {}
            Err(error) => bill.add(&model, Err(error)),
        })))
    }

    fn add(&self, model: &Arc<dyn ChatModel>, ended: Result<&ChatResponse, &Error>) {
        let mut bill = self.bill.lock().unwrap_or_else(PoisonError::into_inner);
        bill.add_answer(model, ended, self.ctx.as_ref());
    }
}

/// A model whose answers are on the bill of an agent: see [`Turn::billed`](super::Turn::billed) and
/// [`NextModel::billed`](super::NextModel::billed). Of an answer that breaks off, the tokens that the
/// provider said before are on it, too.
#[derive(Clone, Debug)]
pub struct BilledModel {
    model: Arc<dyn ChatModel>,
    bill: OpenBill,
}

#[async_trait]
impl ChatModel for BilledModel {
    fn info(&self) -> ModelInfo {
        self.model.info()
    }

    async fn stream(&self, request: ChatRequest) -> Result<ChatStream> {
        self.bill.watch(Arc::clone(&self.model), (*self.model).stream(request).await)
    }

    async fn count_tokens(&self, request: &ChatRequest) -> Result<TokenCount> {
        self.model.count_tokens(request).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bill_is_stored_as_a_map_of_its_models() {
        let mut paid = Bill::default();
        paid.add("free", Usage::default());
        assert_eq!((serde_json::to_string(&paid).unwrap().as_str(), paid.is_empty()), ("{}", true));
        assert_eq!(serde_json::from_str::<Bill>("{}").unwrap(), Bill::default());
        paid.add("large", Usage::new(1, 0));
        let stored = serde_json::to_value(&paid).unwrap();
        assert_eq!(stored, serde_json::json!({ "large": Usage::new(1, 0) }));
        assert_eq!(serde_json::from_value::<Bill>(stored).unwrap(), paid);
    }
}

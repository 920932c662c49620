//! An agent over an embedded shop, and the conversation of a client.

use std::sync::Arc;

use agentgraph::MemorySaver;
use agentgraph_llm::ChatModel;
use futures_util::StreamExt;
use serde_json::{Value, json};
use shopify_agent::ShopAgent;
use shopify_agent::agent::{Item, Limits};
use shopify_agent::embedded::EmbeddedShop;
use shopify_agent::offline::OfflineModel;
use shopify_agent::session::ShopSession;
use shopify_agent::shop::Shop;
use shopify_agent::wire::{Click, Frame, RunRequest, Spoken};

/// An agent and its shop.
pub(crate) struct World {
    pub(crate) shop: EmbeddedShop,
    pub(crate) agent: ShopAgent,
}

impl World {
    pub(crate) async fn new() -> Self {
        World::with(Arc::new(OfflineModel), Limits::default()).await
    }

    pub(crate) async fn with(model: Arc<dyn ChatModel>, limits: Limits) -> Self {
        let shop = EmbeddedShop::start().await.unwrap();
        let client = Shop::new(shop.settings()).unwrap();
        let agent = ShopAgent::new(model, client, Arc::new(MemorySaver::new()), limits).unwrap();
        World { shop, agent }
    }

    pub(crate) fn client(&self) -> Client<'_> {
        Client { agent: &self.agent, said: Vec::new(), session: ShopSession::read(&Value::Null) }
    }

    pub(crate) fn variant(&self, title: &str) -> u64 {
        self.shop.variant_of(title).unwrap()
    }
}

/// A client as xRx's orchestrator: it keeps the history and the last session.
#[derive(Clone)]
pub(crate) struct Client<'a> {
    pub(crate) agent: &'a ShopAgent,
    pub(crate) said: Vec<Spoken>,
    pub(crate) session: ShopSession,
}

impl Client<'_> {
    pub(crate) async fn says(&mut self, text: &str) -> Turn {
        self.said.push(Spoken::user(text));
        self.run(None).await
    }

    /// A click adds nothing to the history of the client.
    pub(crate) async fn clicks(&mut self, tool: &str, parameters: Value) -> Turn {
        let parameters = parameters.as_object().unwrap().clone();
        self.run(Some(Click { tool: tool.to_owned(), parameters })).await
    }

    async fn run(&mut self, click: Option<Click>) -> Turn {
        let request = RunRequest { messages: self.said.clone(), session: self.session.clone(), click };
        let task = self.agent.start(request).await;
        let items: Vec<Item> = task.frames.collect().await;
        let turn = Turn { id: task.id, items };
        if let Some(last) = turn.frames().last() {
            self.session = last.session.clone();
            self.said.extend(last.messages.iter().cloned());
        }
        turn
    }
}

/// What came of a turn.
pub(crate) struct Turn {
    pub(crate) id: String,
    pub(crate) items: Vec<Item>,
}

impl Turn {
    pub(crate) fn frames(&self) -> impl Iterator<Item = &Frame> {
        self.items.iter().filter_map(|item| match item {
            Item::Frame(frame) => Some(&**frame),
            Item::Error(_) => None,
        })
    }

    pub(crate) fn nodes(&self) -> Vec<&str> {
        self.frames().map(|frame| frame.node.as_str()).collect()
    }

    /// What the customer hears, and the kinds of widgets in brackets.
    pub(crate) fn shown(&self) -> Vec<String> {
        let shown = self.frames().filter_map(|frame| match frame.node.as_str() {
            "TaskDescriptionResponse" | "CustomerResponse" => Some(frame.output.as_str().unwrap().to_owned()),
            "Widget" => Some(format!("[{}]", frame.output["type"].as_str().unwrap())),
            _ => None,
        });
        shown.collect()
    }

    pub(crate) fn answer(&self) -> &str {
        let last = self.frames().last().expect("a turn has frames");
        assert_eq!(last.node, "CustomerResponse", "{:?}", self.items);
        last.output.as_str().unwrap()
    }

    /// The details of the last widget of a kind.
    pub(crate) fn details(&self, kind: &str) -> Option<Value> {
        let widgets = self.frames().filter(|frame| frame.node == "Widget" && frame.output["type"] == kind);
        let details = widgets.last()?.output["details"].as_str().unwrap();
        Some(serde_json::from_str(details).unwrap())
    }

    /// Names and pieces of the last cart.
    pub(crate) fn cart(&self) -> Vec<(String, u64)> {
        let details = self.details("shopify-cart-summary").expect("a cart is shown");
        let lines = details["cart_summary"]["line_items"].as_array().unwrap();
        lines
            .iter()
            .map(|line| (line["name"].as_str().unwrap().to_owned(), line["quantity"].as_u64().unwrap()))
            .collect()
    }
}

pub(crate) fn cart_of(lines: &[(&str, u64)]) -> Vec<(String, u64)> {
    lines.iter().map(|(name, pieces)| ((*name).to_owned(), *pieces)).collect()
}

pub(crate) fn add(variant: u64, quantity: i64) -> Value {
    json!({ "variant_id": variant, "quantity": quantity })
}

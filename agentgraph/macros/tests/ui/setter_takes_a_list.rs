use std::borrow::Cow;

use agentgraph::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Clone)]
struct Message {
    id: String,
}

impl Keyed for Message {
    fn key(&self) -> Cow<'_, str> {
        Cow::Borrowed(&self.id)
    }
}

#[derive(State, Serialize, Deserialize, Clone, Default)]
struct Chat {
    #[reduce(append)]
    log: Vec<String>,
    #[reduce(append)]
    prices: Vec<u32>,
    #[reduce(by_id)]
    messages: Vec<Message>,
}

fn main() {
    let _ = Chat::update().log("one line");
    let _ = Chat::update().prices(3);
    let _ = Chat::update().messages(Message { id: "a".into() });
    let _ = Chat::update().remove_messages("a");
}

//! A thread of another graph is refused, not overwritten.

use std::sync::Arc;

use agentgraph::{Code, prelude::*};
use serde::{Deserialize, Serialize};

#[derive(State, Serialize, Deserialize, Clone, Debug, Default)]
struct Mail {
    text: String,
}

#[derive(State, Serialize, Deserialize, Clone, Debug, Default)]
struct Count {
    n: u64,
}

async fn nothing() {}

#[tokio::test]
async fn a_graph_refuses_a_thread_with_which_it_shares_no_channel() {
    let saver = Arc::new(MemorySaver::new());
    let mails = StateGraph::<Mail>::new().node("nothing", nothing).edge(START, "nothing").compile().unwrap();
    let counts =
        StateGraph::<Count>::new().node("nothing", nothing).edge(START, "nothing").compile().unwrap();
    let mails = mails.checkpointer(Arc::clone(&saver));
    let counts = counts.checkpointer(Arc::clone(&saver));
    mails.invoke(Mail::update().text("Ada")).thread("t").await.unwrap();
    let error = counts.invoke(Count::update().n(1)).thread("t").await.unwrap_err();
    assert_eq!((error.code(), error.thread()), (Code::GraphChanged, Some("t")));
    assert!(error.to_string().contains("text"), "{error}");
    assert_eq!(mails.state("t").await.unwrap().unwrap().values.text, "Ada");
}

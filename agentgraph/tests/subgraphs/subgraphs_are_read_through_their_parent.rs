//! `CompiledGraph::inside`: the states of a subgraph as JSON, without its type.

use agentgraph::prelude::*;
use agentgraph::{Durability, Memory};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::common::words::{Words, WordsUpdate};

#[derive(State, Serialize, Deserialize, Clone, Debug, Default)]
struct Login {
    user: String,
    #[channel(secret)]
    password: String,
    asked: u32,
}

async fn begin() -> LoginUpdate {
    Login::update().password("hunter2")
}

async fn ask(ctx: Ctx, login: Snapshot<Login>) -> Result<LoginUpdate> {
    let user: String = ctx.interrupt("who?")?;
    Ok(Login::update().user(user).asked(login.asked + 1))
}

/// A login inside of words inside of words.
fn graph(memory: Memory) -> CompiledGraph<Words> {
    let login = StateGraph::new().node("begin", begin).node("ask", ask);
    let login = login.edge(START, "begin").edge("begin", "ask").compile().unwrap();
    let login = login.embed(
        |_: Snapshot<Words>| Login::update(),
        |login: Login| -> WordsUpdate { Words::update().seen([login.user]) },
    );
    let middle =
        StateGraph::new().node("login", login.memory(memory)).edge(START, "login").compile().unwrap();
    let outer = StateGraph::new().node("middle", middle).edge(START, "middle").compile().unwrap();
    outer.checkpointer(MemorySaver::new())
}

#[tokio::test]
async fn states_and_histories_are_those_of_the_namespace() {
    for (memory, mode) in [
        (Memory::PerCall, Durability::Sync),
        (Memory::PerCall, Durability::Async),
        (Memory::PerThread, Durability::Sync),
    ] {
        let graph = graph(memory);
        graph.invoke(Words::update()).thread("t").durability(mode).await.unwrap();
        let open = graph.state("t").await.unwrap().unwrap();
        let namespace = &open.children.iter().find(|child| child.node == "login").unwrap().namespace;
        let inside = graph.inside(namespace).unwrap();
        let state = inside.state("t").await.unwrap().unwrap();
        assert_eq!(state.values, json!({ "user": "", "password": "[secret]", "asked": 0 }));
        assert_eq!((&*state.next, state.interrupts[0].id), (&["ask".to_owned()][..], open.interrupts[0].id));
        let before = inside.history("t", None, 10).await.unwrap();
        assert_eq!((before[0].id, before.len()), (state.id, 2), "{memory:?} {mode:?}");
        let older = inside.history("t", Some(state.id), 10).await.unwrap();
        assert_eq!((older.len(), &*older[0].next), (1, &["begin".to_owned()][..]));
        assert_eq!(inside.history("t", None, 1).await.unwrap().len(), 1);
        assert!(inside.state("other").await.unwrap().is_none());
        graph.resume("ada").thread("t").await.unwrap().into_finished().unwrap();
        let ended = inside.state("t").await.unwrap().unwrap();
        assert_eq!((&ended.values["user"], ended.finished), (&json!("ada"), true), "{memory:?}");
    }
}

#[tokio::test]
async fn a_path_that_leads_to_no_graph_is_none() {
    let graph = graph(Memory::PerCall);
    for path in ["", "none", "middle|none", "middle|login|ask", "middle|login|ask|x", "|", ":"] {
        assert!(graph.inside(path).is_none(), "{path}");
    }
    assert!(graph.inside("middle").is_some());
    let kept_nowhere =
        StateGraph::<Words>::new().node("middle", graph).edge(START, "middle").compile().unwrap();
    assert!(kept_nowhere.inside("middle").is_none());
}

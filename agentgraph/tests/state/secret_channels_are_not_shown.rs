//! A channel with `#[channel(secret)]` is never stored in clear. Only nodes and the program itself see its
//! value.
#![cfg(feature = "sqlite")]

use std::sync::Arc;

use agentgraph::checkpoint::Catalog;
use agentgraph::json_state::{JsonChannels, JsonReducer, JsonState, JsonUpdate};
use agentgraph::prelude::*;
use agentgraph::state::{Channel, Lifetime, MASK, StateError, StoredState};
use agentgraph::{Checkpointer, Code, Durability, EventKind, Memory, SqliteSaver, View};
use futures_util::StreamExt;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// So long that no id of a task has its digits by chance.
const PIN: u64 = 471_108_150_923;
const NEEDLE: &str = "xyzzyNeedle";

#[derive(State, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
struct Login {
    user: String,
    #[channel(secret)]
    #[reduce(append)]
    tokens: Vec<String>,
    #[channel(secret, alias = "old_pin")]
    pin: u64,
    #[channel(untracked, secret)]
    session: String,
}

#[derive(State, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
struct Plain {
    text: String,
}

async fn log_in(login: Snapshot<Login>) -> LoginUpdate {
    Login::update().user(format!("{} in", login.user)).tokens([NEEDLE]).pin(PIN).session(NEEDLE)
}

async fn forget(ctx: Ctx) -> Result<LoginUpdate> {
    let sure: bool = ctx.interrupt("sure?")?;
    let tokens = if sure { Vec::new() } else { vec![NEEDLE.to_owned()] };
    Ok(Login::update().overwrite_tokens(tokens).pin(0))
}

fn login() -> CompiledGraph<Login> {
    StateGraph::new()
        .node("log_in", log_in)
        .node("forget", forget)
        .edge(START, "log_in")
        .edge("log_in", "forget")
        .compile()
        .unwrap()
}

fn in_clear() -> SqliteSaver {
    SqliteSaver::in_memory().unwrap()
}

#[test]
fn the_list_of_channels_marks_the_secret_ones() {
    let secret: Vec<(&str, bool)> =
        Login::channels(&()).iter().map(|channel| (&*channel.name, channel.secret)).collect();
    assert_eq!(secret, [("user", false), ("tokens", true), ("pin", true), ("session", true)]);
    assert!(!Channel::reduced("a", "last").secret);
}

#[tokio::test]
async fn a_saver_that_stores_in_clear_is_refused_and_stores_nothing() {
    let saver = Arc::new(in_clear());
    let error = login().try_checkpointer(Arc::clone(&saver)).unwrap_err();
    let expected = "E_SECRET_NEEDS_KEY: the state has secret channels (tokens, pin), and the checkpointer stores plain text, so \
                nothing is stored: wrap it in an `EncryptedSaver` with a key, or mark the channels `untracked` as well";
    assert_eq!(error.to_string(), expected);
    let graph = login().checkpointer(Arc::clone(&saver));
    for durability in [Durability::Sync, Durability::Async, Durability::Exit] {
        let run = graph.invoke(Login::update()).thread("t").durability(durability);
        assert_eq!(run.await.unwrap_err().code(), Code::SecretNeedsKey, "{durability:?}");
    }
    let edited = graph.update_state("t").update(Login::update().user("x")).await;
    for error in [
        graph.state("t").await.unwrap_err(),
        graph.history("t").await.unwrap_err(),
        graph.waiting().await.unwrap_err(),
        graph.copy_thread("t", "u").await.unwrap_err(),
        graph.delete_thread("t").await.unwrap_err(),
        graph.prune(agentgraph::checkpoint::Retention::keep_last(1)).await.unwrap_err(),
        edited.unwrap_err(),
    ] {
        assert_eq!(error.code(), Code::SecretNeedsKey, "{error}");
    }
    assert!(saver.threads().await.unwrap().is_empty());
}

#[tokio::test]
async fn a_saver_in_memory_accepts_secret_channels() {
    let graph = login().try_checkpointer(MemorySaver::new()).unwrap();
    graph.invoke(Login::update().user("Ada")).thread("t").await.unwrap();
    let state = graph.state("t").await.unwrap().unwrap();
    assert_eq!((&*state.values.tokens, state.values.pin), (&[NEEDLE.to_owned()][..], PIN));
    let waiting = graph.waiting().await.unwrap();
    assert!(!format!("{waiting:?}").contains(NEEDLE));
}

#[derive(State, Serialize, Deserialize, Clone, Debug, Default)]
struct Passing {
    seen: u8,
    #[channel(secret, untracked)]
    token: String,
}

#[derive(State, Clone, Debug, Default)]
#[state(volatile)]
struct Volatile {
    #[channel(secret)]
    token: String,
}

#[tokio::test]
async fn secrets_that_are_never_stored_need_no_key() {
    async fn look() -> PassingUpdate {
        Passing::update().seen(1).token(NEEDLE)
    }
    let graph = StateGraph::new().node("look", look).edge(START, "look").compile().unwrap();
    let graph = graph.try_checkpointer(in_clear()).unwrap();
    let done = graph.invoke(Passing::update()).thread("t").await.unwrap().into_finished().unwrap();
    assert_eq!(done.token, NEEDLE);
    assert_eq!(graph.state("t").await.unwrap().unwrap().values.token, "");
    assert_eq!(graph.state_json(&done), json!({ "seen": 1 }));
    assert!(Volatile::channels(&())[0].secret);
}

#[tokio::test]
async fn secret_channels_of_a_subgraph_count_unless_the_subgraph_stores_nothing() {
    let part = |memory| {
        login()
            .embed(
                |plain: Snapshot<Plain>| Login::update().user(plain.text.clone()),
                |login: Login| Plain::update().text(login.user),
            )
            .memory(memory)
    };
    let around = |memory| StateGraph::new().node("part", part(memory)).edge(START, "part").compile().unwrap();
    for memory in [Memory::PerCall, Memory::PerThread] {
        let error = around(memory).try_checkpointer(in_clear()).unwrap_err();
        assert!(error.to_string().contains("(part.tokens, part.pin)"), "{error}");
    }
    assert!(around(Memory::None).try_checkpointer(in_clear()).is_ok());
    let outer = StateGraph::new().node("a", around(Memory::PerCall)).edge(START, "a").compile().unwrap();
    let error = outer.try_checkpointer(in_clear()).unwrap_err();
    assert!(error.to_string().contains("(a.part.tokens, a.part.pin)"), "{error}");
}

#[tokio::test]
async fn secret_channels_of_a_temporary_subgraph_are_detected_at_its_call() {
    async fn adds(ctx: Ctx) -> Result<()> {
        ctx.edits().add_node("part#1", "part", ())?;
        ctx.edits().add_edge("adds", "part#1")?;
        Ok(())
    }
    let graph =
        StateGraph::<Plain>::new().node("adds", adds).edge(START, "adds").template("part", |(): ()| {
            login().embed(Login::update, |login: Login| Plain::update().text(login.user))
        });
    let saver = Arc::new(in_clear());
    let graph = graph.compile().unwrap().try_checkpointer(Arc::clone(&saver)).unwrap();
    let error = graph.invoke(Plain::update()).thread("t").await.unwrap_err();
    assert_eq!(error.code(), Code::SecretNeedsKey, "{error}");
    assert_eq!(saver.namespaces("t").await.unwrap(), [""], "nothing of the subgraph is stored");
}

#[cfg(feature = "encryption")]
#[tokio::test]
async fn an_encrypting_saver_accepts_secret_channels_in_any_wrapper() {
    use agentgraph::checkpoint::{EncryptedSaver, EncryptionKey, KeyRing};
    let keys = KeyRing::new("k", EncryptionKey::from_bytes([1; 32])).unwrap();
    let saver: Arc<dyn Checkpointer> = Arc::new(EncryptedSaver::new(Arc::new(in_clear()), keys));
    let around = login().embed(
        |plain: Snapshot<Plain>| Login::update().user(plain.text.clone()),
        |login: Login| Plain::update().text(login.user),
    );
    let around = StateGraph::new().node("part", around).edge(START, "part").compile().unwrap();
    let around = around.try_checkpointer(Arc::new(saver)).unwrap();
    for durability in [Durability::Sync, Durability::Async, Durability::Exit] {
        let thread = format!("{durability:?}");
        let run = around.invoke(Plain::update().text("Ada")).thread(&thread).durability(durability);
        assert_eq!(run.await.unwrap().interrupts().len(), 1);
        let done = around.resume(true).thread(&thread).durability(durability).await.unwrap();
        assert_eq!(done.into_finished().unwrap().text, "Ada in");
    }
}

/// Returns all events of a stream as text, by `Debug` and as the engine's JSON.
async fn all_events<S>(graph: &CompiledGraph<S>, input: S::Update) -> String
where
    S: StoredState + std::fmt::Debug,
    S::Update: std::fmt::Debug,
{
    let views = [View::Values, View::Updates, View::Custom, View::Debug, View::Messages];
    let mut events = graph.invoke(input).thread("t").views(views).subgraphs().stream();
    let mut shown = String::new();
    while let Some(event) = events.next().await {
        shown += &format!("{event:?}\n");
        match &event.kind {
            EventKind::Values(state) => shown += &format!("{}\n", graph.state_json(state)),
            EventKind::Update { update: Some(update), .. } => {
                shown += &format!("{}\n", graph.update_json(update).unwrap());
            }
            _ => {}
        }
    }
    shown
}

#[tokio::test]
async fn streams_show_a_mask_for_secret_channels() {
    let graph = login().checkpointer(MemorySaver::new());
    let shown = all_events(&graph, Login::update().user("Ada")).await;
    assert!(shown.contains(r#"{"pin":"[secret]","tokens":"[secret]","user":"Ada in"}"#), "{shown}");
    assert!(shown.contains("Values(Login { [secret] })"), "{shown}");
    assert!(shown.contains("output: Login { [secret] }"), "{shown}");
    assert!(!shown.contains(NEEDLE) && !shown.contains(&PIN.to_string()), "{shown}");
}

#[tokio::test]
async fn streams_of_subgraphs_show_a_mask_for_secret_channels() {
    let part = login().embed(
        |plain: Snapshot<Plain>| Login::update().user(plain.text.clone()).tokens([NEEDLE]),
        |login: Login| Plain::update().text(login.user),
    );
    let graph = StateGraph::new().node("part", part).edge(START, "part").compile().unwrap();
    let graph = graph.checkpointer(MemorySaver::new());
    let shown = all_events(&graph, Plain::update().text("Ada")).await;
    assert!(
        shown.contains("ValuesInside") && shown.contains("UpdateInside") && shown.contains(MASK),
        "{shown}"
    );
    assert!(!shown.contains(NEEDLE) && !shown.contains(&PIN.to_string()), "{shown}");
}

#[test]
fn an_update_shows_a_mask_for_added_and_replaced_values() {
    let graph = login();
    let added = Login::update().tokens([NEEDLE]).pin(PIN).user("Ada");
    let shown = json!({ "pin": "[secret]", "tokens": "[secret]", "user": "Ada" });
    assert_eq!(graph.update_json(&added).unwrap(), shown);
    let replaced = Login::update().overwrite_tokens(vec![NEEDLE.into()]);
    assert_eq!(graph.update_json(&replaced).unwrap(), json!({ "tokens": { "Overwrite": "[secret]" } }));
    assert!(!format!("{added:?} {replaced:?}").contains(NEEDLE));
}

#[tokio::test]
async fn checkpoints_are_printed_without_their_values() {
    let graph = login().checkpointer(MemorySaver::new());
    graph.invoke(Login::update().user("Ada")).thread("t").await.unwrap();
    let history = graph.history("t").await.unwrap();
    let shown = format!("{history:?} {:?}", graph.state("t").await.unwrap());
    assert!(shown.contains("values: Login { [secret] }") && !shown.contains(NEEDLE), "{shown}");
    let plain = StateGraph::new().node("a", async || Plain::update().text("seen")).edge(START, "a");
    let plain = plain.compile().unwrap().checkpointer(MemorySaver::new());
    plain.invoke(Plain::update()).thread("t").await.unwrap();
    let shown = format!("{:?}", plain.state("t").await.unwrap().unwrap());
    assert!(shown.contains(r#"values: Plain { text: "seen" }"#), "a state without secrets is shown: {shown}");
}

#[derive(State, Serialize, Deserialize, Clone, Debug, Default)]
struct Written {
    #[channel(secret)]
    kind: String,
}

#[derive(Serialize, Deserialize, Clone, Debug, Default)]
enum Kind {
    #[default]
    Known,
}

#[derive(State, Serialize, Deserialize, Clone, Debug, Default)]
struct Read {
    #[channel(secret)]
    kind: Kind,
}

#[tokio::test]
async fn errors_do_not_show_the_value_of_a_secret_channel() {
    async fn sets() -> WrittenUpdate {
        Written::update().kind(NEEDLE)
    }
    async fn reads() {}
    let saver = Arc::new(MemorySaver::new());
    let writes = StateGraph::new().node("a", sets).edge(START, "a").compile().unwrap();
    let writes = writes.checkpointer(Arc::clone(&saver));
    writes.invoke(Written::update()).thread("t").await.unwrap();
    let reads = StateGraph::<Read>::new().node("a", reads).edge(START, "a").compile().unwrap();
    let error = reads.checkpointer(saver).state("t").await.unwrap_err().to_string();
    assert!(error.contains("channel `kind`: the problem is not shown"), "{error}");
    assert!(!error.contains(NEEDLE), "{error}");
    // The error of serde contains the value.
    let stored = rmp_serde::to_vec(NEEDLE).unwrap();
    let StateError::BadValue { problem, .. } = Read::default().restore_channel(&(), 0, &stored).unwrap_err()
    else {
        panic!("another error");
    };
    assert!(problem.contains(NEEDLE), "{problem}");
}

#[tokio::test]
async fn keys_of_a_json_state_can_be_secret() {
    async fn sets(state: Snapshot<JsonState>) -> JsonUpdate {
        JsonUpdate::new().set("token", NEEDLE).set("n", state["n"].as_u64().unwrap_or(0) + 1)
    }
    let schema = JsonChannels::new().channel("n", json!(0), JsonReducer::Once).secret(
        "token",
        json!(""),
        JsonReducer::Once,
        Lifetime::Thread,
    );
    let graph = StateGraph::with_schema(schema).node("sets", sets).edge(START, "sets").compile().unwrap();
    let error = graph.clone().try_checkpointer(in_clear()).unwrap_err();
    assert!(error.code() == Code::SecretNeedsKey && error.to_string().contains("(token)"), "{error}");
    let graph = graph.checkpointer(MemorySaver::new());
    let shown = all_events(&graph, JsonUpdate::new()).await;
    assert!(shown.contains(r#"{"n":1,"token":"[secret]"}"#) && !shown.contains(NEEDLE), "{shown}");
    let state = graph.state("t").await.unwrap().unwrap();
    assert_eq!(state.values["token"], NEEDLE);
    assert!(!format!("{state:?}").contains(NEEDLE));
}

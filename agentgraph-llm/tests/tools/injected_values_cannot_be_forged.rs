use std::sync::Arc;

use agentgraph::prelude::*;
use agentgraph::store::{MemoryStore, Namespace, StoreExt};
use agentgraph_llm::prelude::*;
use agentgraph_llm::{FromToolCall, StateType};
use serde::{Deserialize, Serialize};

use super::{call, refused};

#[derive(State, Serialize, Deserialize, Clone, Debug, Default)]
struct Trip {
    stops: Vec<String>,
    said: String,
}

struct User(&'static str);

struct Key(String);

impl FromToolCall for Key {
    fn from_tool_call(call: &ToolCall) -> Result<Self, ToolError> {
        Ok(Key(format!("key of {}", call.id())))
    }
}

#[tool]
async fn look(
    ctx: &Ctx,
    call: ToolCall,
    trip: Snapshot<Trip>,
    store: &dyn agentgraph::Store,
    shared: Arc<dyn agentgraph::Store>,
    user: CallContext<User>,
    guest: Option<CallContext<u8>>,
    #[inject] key: Key,
    place: String,
) -> Result<String, ToolError> {
    let users = Namespace::new(["users"])?;
    shared.put(&users, "name", user.0).await?;
    let stored: Option<String> = store.get_as(&users, "name").await?;
    let Key(key) = key;
    Ok(format!(
        "{place} {} {} {:?} {:?} {} {key} {}",
        ctx.node(),
        call.id(),
        trip.stops,
        stored,
        user.0,
        guest.is_none()
    ))
}

/// A node that makes one call with the arguments that a model has given.
async fn agent(ctx: Ctx, trip: Snapshot<Trip>) -> Result<TripUpdate> {
    let call = ToolCall::detached("call-7", "look").with_ctx(ctx).with_state(trip);
    let input = RawJson::parse_text(r#"{"place": "harbour"}"#).unwrap();
    let output = look().call(&input, &call).await.unwrap();
    Ok(Trip::update().said(output.content[0].as_text().unwrap_or_default()))
}

#[tokio::test]
async fn values_come_from_the_run() {
    let graph = StateGraph::new().node("agent", agent).edge(START, "agent").compile().unwrap();
    let graph = graph.store(MemoryStore::new());
    let trip = Trip::update().stops(vec!["Oslo".to_owned()]);
    let trip = graph.invoke(trip).context(User("Ada")).await.unwrap().into_finished().unwrap();
    assert_eq!(trip.said, "harbour agent call-7 [\"Oslo\"] Some(\"Ada\") Ada key of call-7 true");
}

#[tokio::test]
async fn a_model_that_names_them_is_refused() {
    for name in ["ctx", "call", "trip", "store", "shared", "user", "guest", "key"] {
        let input = format!(r#"{{"place": "harbour", "{name}": {{"0": "forged"}}}}"#);
        assert_eq!(
            refused(&look(), &input).await,
            format!("there is no argument `{name}`; the tool takes `place`")
        );
    }
}

#[test]
fn the_tool_names_the_state_that_it_reads() {
    assert_eq!(look().state(), Some(StateType::of::<Trip>()));
    assert_eq!(count().state(), None);
}

#[tool]
async fn count(call: &ToolCall) -> String {
    call.name().to_owned()
}

#[tool]
async fn plan(trip: Snapshot<Trip>) -> String {
    trip.stops.len().to_string()
}

#[tokio::test]
async fn outside_of_a_graph_the_call_fails_with_a_typed_error() {
    assert_eq!(call(&count(), "{}").await.unwrap(), ToolOutput::text("test"));
    let Err(ToolError::Fatal(error)) = call(&look(), r#"{"place": "x"}"#).await else { panic!() };
    assert!(error.is::<agentgraph_llm::NoContext>());
    let Err(ToolError::Fatal(error)) = call(&plan(), "{}").await else { panic!() };
    assert!(error.to_string().contains("reads the state"), "{error}");
}

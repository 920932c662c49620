//! The second protocol on a WebSocket: commands, subscriptions, and events on one connection.

use std::time::Duration;

use agentgraph::prelude::*;
use agentgraph_server::Server;
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async_with_config};

use crate::common::{ALL_CHANNELS, Served, Steps, StepsUpdate};

struct Socket(WebSocketStream<MaybeTlsStream<TcpStream>>);

impl Socket {
    async fn of(server: &Served, thread: &str) -> Self {
        let url = format!("{}/threads/{thread}/stream/events", server.url.replace("http", "ws"));
        Socket(connect_async_with_config(url, None, true).await.unwrap().0)
    }

    /// Sends a frame, and reads up to the answer.
    async fn say(&mut self, frame: &str) -> (Vec<Value>, Value) {
        self.0.send(Message::text(frame)).await.unwrap();
        let mut events = Vec::new();
        loop {
            let next = self.next().await;
            if next["type"] != "event" {
                return (events, next);
            }
            events.push(next);
        }
    }

    async fn command(&mut self, id: u64, method: &str, params: Value) -> (Vec<Value>, Value) {
        let command = json!({ "id": id, "method": method, "params": params });
        let (events, answer) = self.say(&command.to_string()).await;
        assert_eq!(answer["id"], id, "{answer}");
        (events, answer)
    }

    async fn next(&mut self) -> Value {
        loop {
            if let Message::Text(text) = self.0.next().await.unwrap().unwrap() {
                return serde_json::from_str(&text).unwrap();
            }
        }
    }

    async fn until_end(&mut self, mut events: Vec<Value>) -> Vec<Value> {
        let is_end = |event: &Value| event["params"]["data"]["event"] == "completed";
        while !events.last().is_some_and(is_end) {
            events.push(self.next().await);
        }
        events
    }
}

#[tokio::test]
async fn a_connection_carries_commands_and_the_events_of_its_subscriptions() {
    let server = Served::new().await;
    let thread = uuid::Uuid::now_v7().to_string();
    let mut socket = Socket::of(&server, &thread).await;
    let (events, answer) =
        socket.command(1, "subscription.subscribe", json!({ "channels": ALL_CHANNELS })).await;
    assert_eq!((events.len(), &answer["result"]["replayed_events"]), (0, &json!(0)));
    let first = answer["result"]["subscription_id"].clone();
    let params = json!({ "assistant_id": "steps", "input": { "text": "a" } });
    let (events, answer) = socket.command(2, "run.start", params.clone()).await;
    assert!(answer["result"]["run_id"].is_string(), "{answer}");
    assert!(events.is_empty(), "the id of the run comes before its events");
    let events = socket.until_end(events).await;
    let seqs: Vec<u64> = events.iter().map(|event| event["seq"].as_u64().unwrap()).collect();
    assert_eq!(seqs, (1..=15).collect::<Vec<u64>>());

    let values = json!({ "channels": ["values", "lifecycle"] });
    let (replayed, answer) = socket.command(3, "subscription.subscribe", values).await;
    assert_eq!(replayed.len(), 5, "three values and two of the lifecycle");
    assert_eq!(answer["result"]["replayed_events"], 5);
    assert_eq!(answer["meta"]["applied_through_seq"], 15);
    let (_, answer) =
        socket.command(4, "subscription.unsubscribe", json!({ "subscription_id": first })).await;
    assert_eq!(answer["type"], "success");
    let (events, _) = socket.command(5, "run.start", params).await;
    let methods: Vec<Value> =
        socket.until_end(events).await.iter().map(|event| event["method"].clone()).collect();
    assert_eq!(methods, ["lifecycle", "values", "values", "values", "lifecycle"]);
}

/// Clients take the end of a run, heard by one of them, for the end of all: the rest must not come after it.
#[tokio::test]
async fn subscriptions_that_are_sent_at_once_are_replayed_in_one_order() {
    let server = Served::new().await;
    let thread = uuid::Uuid::now_v7().to_string();
    let mut socket = Socket::of(&server, &thread).await;
    let end = socket
        .command(1, "subscription.subscribe", json!({ "channels": ["lifecycle"] }))
        .await
        .1["result"]["subscription_id"]
        .clone();
    let params = json!({ "assistant_id": "steps", "input": { "text": "a" } });
    let (events, _) = socket.command(2, "run.start", params).await;
    socket.until_end(events).await;
    socket.command(3, "subscription.unsubscribe", json!({ "subscription_id": end })).await;

    let subscribe =
        |id: u64, params| json!({ "id": id, "method": "subscription.subscribe", "params": params });
    let sent = [
        subscribe(4, json!({ "channels": ["lifecycle"] })),
        subscribe(5, json!({ "channels": ["nothing"] })),
        subscribe(6, json!({ "channels": ["values", "lifecycle"], "since": 1 })),
        json!({ "id": 7, "method": "state.get", "params": {} }),
    ];
    for command in &sent {
        socket.0.feed(Message::text(command.to_string())).await.unwrap();
    }
    socket.0.flush().await.unwrap();
    let (mut methods, mut seqs, mut answers) = (Vec::new(), Vec::new(), Vec::new());
    while answers.len() < sent.len() {
        let next = socket.next().await;
        if next["type"] == "event" {
            assert!(answers.is_empty(), "the answers come after the events: {next}");
            methods.push(next["method"].as_str().unwrap().to_owned());
            seqs.push(next["seq"].as_u64().unwrap());
        } else {
            answers.push((next["id"].clone(), next["result"]["replayed_events"].clone()));
        }
    }
    assert_eq!(methods, ["lifecycle", "values", "values", "values", "lifecycle"]);
    assert!(seqs.is_sorted(), "{seqs:?}");
    let replayed = [(4, json!(2)), (5, Value::Null), (6, json!(4)), (7, Value::Null)];
    assert_eq!(answers, replayed.map(|(id, replayed)| (json!(id), replayed)));
}

/// Often an event is in the log when a subscription begins, and not yet on its way to the connection.
#[tokio::test(flavor = "multi_thread")]
async fn subscriptions_that_begin_beside_events_get_each_of_them_once() {
    // Slow enough for the runtime to look at the connection meanwhile.
    async fn pace() -> StepsUpdate {
        tokio::time::sleep(Duration::from_millis(1)).await;
        Steps::update().text("went on")
    }
    let graph = StateGraph::new().node("pace", pace).edge(START, "pace").edge("pace", "pace");
    let server = Served::of(Server::new().in_memory().graph("paced", graph.compile().unwrap())).await;
    let thread = uuid::Uuid::now_v7().to_string();
    let limit = json!({ "recursion_limit": 300 });
    let params = json!({ "assistant_id": "paced", "input": {}, "config": limit });
    server.command(&thread, "run.start", params).await;
    let is_end = |event: &Value| event["params"]["data"]["event"] == "failed";
    let mut socket = Socket::of(&server, &thread).await;
    let (mut events, mut subscriptions) = (Vec::<Value>::new(), 0);
    while !events.iter().any(is_end) {
        let since = events.last().map_or(0, |last| last["seq"].as_u64().unwrap());
        let params = json!({ "channels": ["tasks", "lifecycle"], "since": since });
        let (missed, answer) = socket.command(1, "subscription.subscribe", params).await;
        events.extend(missed);
        let id = json!({ "subscription_id": answer["result"]["subscription_id"] });
        events.extend(socket.command(2, "subscription.unsubscribe", id).await.0);
        subscriptions += 1;
    }
    assert!(subscriptions > 2, "{subscriptions} subscriptions while the run went on");
    let (all, _) =
        socket.command(3, "subscription.subscribe", json!({ "channels": ["tasks", "lifecycle"] })).await;
    assert_eq!(events, all);
}

#[tokio::test]
async fn frames_that_are_no_commands_are_answered_and_the_connection_stays() {
    let server = Served::new().await;
    let mut socket = Socket::of(&server, &uuid::Uuid::now_v7().to_string()).await;
    for frame in
        ["", "{", "[]", "5", "{}", r#"{"channels":["values"]}"#, r#"{"id":"x","method":"run.start"}"#]
    {
        let (_, answer) = socket.say(frame).await;
        assert_eq!(
            (&answer["type"], &answer["error"]),
            (&json!("error"), &json!("invalid_argument")),
            "{frame}"
        );
    }
    let cases = [
        ("subscription.subscribe", json!({ "channels": ["none"] }), "invalid_argument"),
        ("subscription.unsubscribe", json!({ "subscription_id": 5 }), "no_such_subscription"),
        ("none", json!({}), "unknown_command"),
        ("run.start", json!({}), "invalid_argument"),
    ];
    for (id, (method, params, code)) in (1..).zip(cases) {
        assert_eq!(socket.command(id, method, params).await.1["error"], code, "{method}");
    }
}

#[tokio::test]
async fn a_connection_that_cannot_be_served_ends_with_the_status_in_its_code() {
    let server = Served::new().await;
    let mut socket = Socket::of(&server, "no-uuid").await;
    let Some(Ok(Message::Close(Some(close)))) = socket.0.next().await else { panic!("no close") };
    assert_eq!(u16::from(close.code), 4422);
    let mut socket = Socket::of(&server, &uuid::Uuid::now_v7().to_string()).await;
    server.drain().await;
    let Some(Ok(Message::Close(Some(close)))) = socket.0.next().await else { panic!("no close") };
    assert_eq!(u16::from(close.code), 1001);
}

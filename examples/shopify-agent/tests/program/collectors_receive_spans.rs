//! Spans over OTLP, by the standard variables: a collector on a socket receives the nodes, tools and model
//! calls.

use serde_json::Value;

use crate::process::{Folder, Server, message, program};

#[path = "../../../tracing/src/collector.rs"]
#[allow(dead_code)]
mod collector;

use collector::Collector;

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_is_a_tree_of_spans() {
    let collector = Collector::start();
    let folder = Folder::new();
    let mut command = program(&folder);
    let endpoint = collector.endpoint("traces");
    command
        .args(["--listen", "127.0.0.1:0"])
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint.trim_end_matches("/v1/traces"));
    let server = Server::start_with(&mut command).await;
    server.run(&message("g", "what's on the menu")).await.all().await;
    assert!(server.terminate().await);

    let spans = collector.spans();
    let names: Vec<&str> = spans.iter().filter_map(|span| span["name"].as_str()).collect();
    for wanted in ["Routing", "TaskDescriptionResponse", "ExecuteTool", "Widget", "CustomerResponse"] {
        assert!(names.iter().any(|name| name.contains(wanted)), "{wanted}: {names:?}");
    }
    assert!(names.contains(&"execute_tool get_products"), "{names:?}");
    let text = Value::from(spans.clone()).to_string();
    assert!(!text.contains("Lemon Garlic"), "no content of a conversation is sent");
}

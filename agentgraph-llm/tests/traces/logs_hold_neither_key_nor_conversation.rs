//! The log at its finest level.

#[path = "../wires/server.rs"]
mod server;

use std::io::Write;
use std::sync::{Arc, Mutex};

use agentgraph_llm::prelude::*;
use server::{Reply, Server, Waits};
use tracing_subscriber::fmt::MakeWriter;

const KEY: &str = "sk-hunter2-hunter2";

const ANSWER: &str =
    r#"{"content":[{"type":"text","text":"swordfish"}],"stop_reason":"end_turn","usage":{"input_tokens":3}}"#;

const EVENTS: &str = concat!(
    "data: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":3}}}\n\n",
    "data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"swordfish\"}}\n\n",
    "data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"}}\n\n",
    "data: {\"type\":\"message_stop\"}\n\n",
);

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Log {
    type Writer = Log;

    fn make_writer(&'a self) -> Log {
        self.clone()
    }
}

#[tokio::test]
async fn logs_at_the_finest_level_hold_neither_key_nor_conversation() {
    let log = Log::default();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_span_events(tracing_subscriber::fmt::format::FmtSpan::FULL)
        .with_writer(log.clone())
        .finish();
    let _guard = tracing::subscriber::set_default(subscriber);

    let body = format!(r#"{{"error":{{"type":"api_error","message":"{KEY}"}}}}"#);
    let failure = Reply::json(500, &format!("request-id: {KEY}\r\n"), &body);
    let server = Server::start([failure, Reply::json(200, "", ANSWER), Reply::stream(EVENTS)]).await;
    let builder = AnthropicModel::builder().api_key(KEY).model("claude-test").base_url(&server.url);
    let model = builder.clock(Waits::default()).build().unwrap();
    let request = ChatRequest::user("mellon").with_system("abracadabra");
    model.chat(request.clone()).await.unwrap();
    model.stream(request).await.unwrap().into_response().await.unwrap();

    let log = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    assert!(log.contains("trying the call again") && log.contains("chat claude-test"), "{log}");
    let closed = |line: &&str| line.contains(": close ") && line.contains("gen_ai.usage.input_tokens=3");
    assert_eq!(
        log.lines().filter(closed).count(),
        2,
        "the spans of the call and of the stream show their cost: {log}"
    );
    for (metric, count) in [
        ("histogram.gen_ai.client.token.usage=3 gen_ai.token.type=\"input\"", 2),
        ("histogram.gen_ai.client.token.usage=0 gen_ai.token.type=\"output\"", 2),
        ("histogram.gen_ai.client.operation.duration=", 2),
        ("histogram.gen_ai.client.operation.time_to_first_chunk=", 2),
    ] {
        let lines =
            log.lines().filter(|line| line.contains("agentgraph_llm::metrics") && line.contains(metric));
        assert_eq!(lines.count(), count, "{metric} in {log}");
    }
    for secret in ["hunter2", "swordfish", "mellon", "abracadabra"] {
        assert!(!log.contains(secret), "{secret} in {log}");
    }
}

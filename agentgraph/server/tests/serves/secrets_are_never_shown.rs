//! Keys and tokens of callers are in no answer, event, log or measure, whether they are right or wrong.

use std::io::Write;
use std::sync::{Arc, Mutex};

use agentgraph_server::{Caller, Server};
use reqwest::Method;
use serde_json::json;
use tracing_subscriber::fmt::MakeWriter;

use crate::common::{ALL_CHANNELS, Served, all_graphs};
use crate::every_route_is_described::Names;

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend(bytes);
        Ok(bytes.len())
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

const SECRETS: [&str; 5] = ["KEY-OF-ROOT", "KEY-OF-ADA", "WRONG-KEY", "SECRET-IN-URL", "c2lnbmF0dXJl"];

fn server() -> Server {
    let server = Server::new().in_memory().bearer_keys([SECRETS[0]]);
    let server = server.caller_key(SECRETS[1], Caller::named("ada"));
    // Nothing answers there: the keys of tokens cannot be fetched, which is logged.
    #[cfg(feature = "jwt")]
    let server = {
        let keys_at = format!("http://user:{0}@127.0.0.1:9/{0}?key={0}", SECRETS[3]);
        server.jwt(agentgraph_server::Jwt::new("http://127.0.0.1:9", "graphs").keys_at(keys_at))
    };
    server
}

#[tokio::test]
async fn no_answer_event_log_or_measure_has_one() {
    let log = Log::default();
    // With two of them, each is asked whether it wants an event. One alone is asked on the thread of the
    // first such event, which may be that of another test.
    let _second = tracing::Dispatch::new(tracing_subscriber::registry());
    let subscriber = tracing_subscriber::fmt().with_writer(log.clone()).with_max_level(tracing::Level::TRACE);
    // This thread alone, on which the server runs, too.
    let _guard = tracing::subscriber::set_default(subscriber.finish());
    let server = Served::of(all_graphs(server())).await;
    let (root, ada) = (server.with_key(SECRETS[0]), server.with_key(SECRETS[1]));
    // {"alg":"ES256","kid":"a"} . {} . "signature"
    let token = format!("eyJhbGciOiJFUzI1NiIsImtpZCI6ImEifQ.e30.{}", SECRETS[4]);
    let (wrong, with_token) = (server.with_key(SECRETS[2]), server.with_key(&token));
    let mut shown = String::new();
    let names = Names::made(&ada).await;
    let mut events = ada.follow(&names.thread, json!({ "channels": ALL_CHANNELS })).await;
    for caller in [&wrong, &with_token, &root, &ada] {
        for (method, _, path, body) in names.calls() {
            let method = Method::from_bytes(method.to_uppercase().as_bytes()).unwrap();
            let body = Some(&body).filter(|body| !body.is_null() && !path.ends_with(&names.thread));
            if method == Method::DELETE || path.ends_with("/join") {
                continue;
            }
            let answer = caller.send(method, &path, body).await;
            shown += &format!("{answer:?}\n");
        }
        for path in ["/metrics", "/openapi.json", "/info", "/ui/graphs"] {
            shown += &format!("{:?}\n", caller.send(Method::GET, path, None).await);
        }
    }
    assert!(wrong.send(Method::GET, "/info", None).await.0 == 401);
    let failing =
        json!({ "assistant_id": "steps", "input": { "fails": "ValueError" }, "stream_mode": "debug" });
    let thread = ada.thread().await;
    let streamed = ada.stream(&format!("/threads/{thread}/runs/stream"), &failing).await;
    shown += &format!("{streamed:?}");
    ada.start(&names.thread, "nested", json!({})).await;
    let logged = events
        .until(|event| event.name == "lifecycle" && event.data["params"]["data"]["event"] == "interrupted");
    shown += &format!("{:?}", logged.await);
    let log = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    #[cfg(feature = "jwt")]
    assert!(log.contains("the keys of tokens could not be fetched"), "{log}");
    for secret in SECRETS {
        assert!(!shown.contains(secret), "{secret} in {shown}");
        let line = log.lines().find(|line| line.contains(secret));
        assert_eq!(line, None, "{secret}");
    }
    for text in ["ValueError", "agentgraph_run_wait_seconds", "input.requested"] {
        assert!(shown.contains(text), "{text} was looked through");
    }
}

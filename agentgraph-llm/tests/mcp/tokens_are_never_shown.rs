use std::io::Write;
use std::sync::{Arc, Mutex};

use agentgraph_llm::mcp::McpClient;
use serde_json::json;
use tracing_subscriber::fmt::MakeWriter;

use crate::call;
use crate::guarded_server::Guarded;

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Log {
    type Writer = Log;

    fn make_writer(&self) -> Log {
        self.clone()
    }
}

fn assert_clean(text: &str) {
    for secret in ["access-token", "refresh-token", "identity-token", "hunter2"] {
        assert!(!text.contains(secret), "{secret} in {text}");
    }
}

#[tokio::test]
async fn neither_logs_nor_errors_nor_debug_texts_have_them() {
    let log = Log::default();
    let server = Guarded::started().await;
    let subscriber = tracing_subscriber::fmt().with_max_level(tracing::Level::TRACE).with_writer(log.clone());
    let _logging = tracing::subscriber::set_default(subscriber.finish());
    server.lock().expires_in = 0;
    let (oauth, _) = server.agreed();
    let oauth = oauth.client_id("known").client_secret("hunter2hunter2");
    let builder = McpClient::http(server.url()).oauth(oauth.clone());
    let client = builder.connect().await.unwrap();
    let tools = client.tools().await.unwrap();
    let written = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    assert!(written.contains("rmcp"), "{written}");
    assert_clean(&written);
    // The log of `rmcp` has, at its finest level, whatever a server says.
    server.lock().repeats_token = true;
    let error = call(&tools[0], json!({})).await.unwrap_err();
    assert!(format!("{error:?}").contains("broken beside Bearer [redacted]"), "{error:?}");
    for text in [format!("{error:?}"), format!("{oauth:?} {client:?} {tools:?}")] {
        assert_clean(&text);
    }
}

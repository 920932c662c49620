//! UpGrade's own Python client from PyPI, unchanged, works with the server in its version 6.5: every call
//! of it.

use std::collections::HashMap;
use std::path::Path;
use std::process::Command;

use crate::recording::{http, recording, send};
use serde_json::{Value, json};
use upgrade_simulator::{EmbeddedServer, ServerHandle};
use uuid::Uuid;

const SITE: &str = "python";

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs UpGrade's Python client: `.ci/upgrade-python` fetches it and runs this test"]
async fn every_call_of_the_python_client_is_served() {
    let server = EmbeddedServer::builder().in_memory().seed(3).start().await.unwrap();
    for (name, target) in [("create_with_payloads", "plain"), ("create_factorial", "fact")] {
        let mut body = renewed(&recording(&format!("v65/{name}")).request);
        body["name"] = json!(target);
        body["partitions"][0]["site"] = json!(SITE);
        body["partitions"][0]["target"] = json!(target);
        let made = post(&server, "/api/experiments", &body).await;
        let start = json!({ "experimentId": made["id"], "state": "running" });
        post(&server, "/api/experiments/state", &start).await;
    }
    let play = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python_client/play.py");
    let played =
        Command::new("python3").arg(play).args([server.host_url(), "assign-prog", SITE]).output().unwrap();
    let told = String::from_utf8_lossy(&played.stdout);
    assert_eq!(told, "the Python client was served\n", "{}", String::from_utf8_lossy(&played.stderr));
}

/// Returns the body with new ids; equal ids stay equal.
fn renewed(body: &Value) -> Value {
    let mut text = body.to_string();
    let words: Vec<_> =
        text.split('"').filter(|word| Uuid::try_parse(word).is_ok()).map(str::to_owned).collect();
    for id in words {
        text = text.replace(&id, &Uuid::new_v4().to_string());
    }
    serde_json::from_str(&text).unwrap()
}

async fn post(server: &ServerHandle, path: &str, body: &Value) -> Value {
    let answer = send(&http(), server.url(), "POST", path, &HashMap::new(), body).await;
    assert_eq!(answer.status, 200, "{path}: {}", answer.body);
    answer.body
}

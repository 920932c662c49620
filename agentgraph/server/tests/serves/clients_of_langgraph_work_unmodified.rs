//! LangGraph's own clients, from PyPI and npm, against this server. `.ci/server-clients` installs and names
//! them.

use std::path::Path;

use tokio::process::Command;

use crate::common::Served;

/// Runs a program of this folder with the address of a server, and expects it to say that all is well.
async fn plays(program: &[String], script: &str) {
    let server = Served::new().await;
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients").join(script);
    let played =
        Command::new(&program[0]).args(&program[1..]).arg(script).arg(&server.url).output().await.unwrap();
    let said = String::from_utf8_lossy(&played.stdout);
    assert!(
        played.status.success() && said.ends_with("served\n"),
        "{said}{}",
        String::from_utf8_lossy(&played.stderr)
    );
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the SDK from PyPI: run `.ci/server-clients`"]
async fn the_python_sdk_is_served_sync_and_async() {
    plays(&["python3".to_owned()], "play.py").await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs langgraph from PyPI: run `.ci/server-clients`"]
async fn a_remote_graph_is_served() {
    plays(&["python3".to_owned()], "remote_graph.py").await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the SDKs from npm: run `.ci/server-clients`"]
async fn the_javascript_sdks_are_served() {
    let folders = std::env::var("LANGGRAPH_SDKS").expect("`.ci/server-clients` sets it");
    for folder in folders.split(':') {
        let server = Served::new().await;
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients/play.mjs");
        // A module finds its packages beside itself.
        let copy = Path::new(folder).join("play.mjs");
        std::fs::copy(script, &copy).unwrap();
        let played = Command::new("node").arg(copy).arg(&server.url).output().await.unwrap();
        let said = String::from_utf8_lossy(&played.stdout);
        let failed = String::from_utf8_lossy(&played.stderr);
        assert!(played.status.success() && said.ends_with("served\n"), "{folder}: {said}{failed}");
    }
}

//! LangGraph's own clients, from PyPI and npm, against this server. `.ci/server-clients` installs and names
//! them.

use std::path::{Path, PathBuf};

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
#[ignore = "needs the SDK from PyPI: run `.ci/server-clients`"]
async fn streams_of_threads_are_served_to_python() {
    plays(&["python3".to_owned()], "events.py").await;
}

/// Runs a module of this folder beside the packages of another one, where it finds them.
async fn plays_in(folder: &Path, script: &str) {
    let server = Served::new().await;
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients");
    for file in ["hooks.mjs", script] {
        std::fs::copy(source.join(file), folder.join(file)).unwrap();
    }
    let copy = folder.join(script);
    // Node.js 20 has a WebSocket, but hides it.
    let node = ["--experimental-websocket"];
    let played = Command::new("node").args(node).arg(copy).arg(&server.url).output().await.unwrap();
    let said = String::from_utf8_lossy(&played.stdout);
    let failed = String::from_utf8_lossy(&played.stderr);
    assert!(played.status.success() && said.ends_with("served\n"), "{}: {said}{failed}", folder.display());
}

fn folders(variable: &str) -> Vec<PathBuf> {
    let folders = std::env::var(variable).expect("`.ci/server-clients` sets it");
    folders.split(':').map(PathBuf::from).collect()
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the SDKs from npm: run `.ci/server-clients`"]
async fn the_javascript_sdks_are_served() {
    for folder in folders("LANGGRAPH_SDKS") {
        plays_in(&folder, "play.mjs").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the SDKs from npm: run `.ci/server-clients`"]
async fn streams_of_threads_are_served_to_javascript() {
    for folder in folders("LANGGRAPH_SDKS_WITH_EVENTS") {
        plays_in(&folder, "events.mjs").await;
        plays_in(&folder, "controller.mjs").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the hook from npm: run `.ci/server-clients`"]
async fn the_hook_of_react_is_served() {
    for folder in folders("LANGGRAPH_REACT") {
        plays_in(&folder, "react.mjs").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the hook from npm: run `.ci/server-clients`"]
async fn the_calls_of_agent_chat_ui_are_served() {
    for folder in folders("LANGGRAPH_CHAT_UI") {
        plays_in(&folder, "chat_ui.mjs").await;
    }
}

//! What a stream that stays open takes of the memory of its server.

use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::a_killed_server_leaves_no_ghost_runs::{Folder, process};
use crate::common::client;

/// The resident memory of a process, in bytes.
fn resident(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().strip_suffix(" kB").unwrap().parse::<u64>().unwrap() * 1024
}

#[tokio::test]
async fn an_open_stream_takes_less_than_64_kilobytes() {
    let folder = Folder::new("open-streams");
    let (server, url) = process(folder.0.join("served.db").to_str().unwrap()).await;
    let id = server.id().unwrap();
    let client = client();
    let made = client.post(format!("{url}/threads")).json(&json!({})).send().await.unwrap();
    let thread = made.json::<Value>().await.unwrap()["thread_id"].as_str().unwrap().to_owned();
    let open = async || {
        let stream = client.get(format!("{url}/threads/{thread}/stream")).send().await.unwrap();
        assert_eq!(stream.status(), 200);
        stream
    };
    // The first ones take what the process takes once.
    let few = join_all((0..20).map(|_| open())).await;
    let before = resident(id);
    let many = join_all((0..300).map(|_| open())).await;
    let each = resident(id).saturating_sub(before) / 300;
    // Some 21 KB; a copy of the routes for each connection would add 90.
    assert!(each < 64 * 1024, "an open stream takes {each} bytes");
    drop((few, many));
}

//! `serve`: a web client talks to the agent, over a restart of the program, and a browser finds the page.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use serde_json::{Value, json};

use crate::shell::{Folder, Running, agent, create, embedded_experiments, run};

struct Client {
    http: reqwest::Client,
    url: String,
}

impl Client {
    /// Starts the program, which prints its address.
    fn start(folder: &Folder) -> (Running, Self) {
        let mut program = Running::start(agent(folder, &["serve", "--listen", "127.0.0.1:0"]));
        let url = program.line();
        let _ = rustls::crypto::ring::default_provider().install_default();
        let http = reqwest::Client::builder().no_proxy().build().unwrap();
        (program, Client { http, url })
    }

    async fn post(&self, path: &str, body: Value) -> Value {
        let answer = self.http.post(format!("{}{path}", self.url)).json(&body).send().await.unwrap();
        assert!(answer.status().is_success(), "{}", answer.status());
        answer.json().await.unwrap()
    }

    /// Says something, and returns the last message then.
    async fn say(&self, thread: &str, text: &str) -> String {
        let input = json!({ "messages": [{ "type": "human", "content": text }] });
        let run = json!({ "assistant_id": "upgrade", "input": input });
        let values = self.post(&format!("/threads/{thread}/runs/wait"), run).await;
        let last = values["messages"].as_array().and_then(|messages| messages.last());
        let last = last.unwrap_or_else(|| panic!("no message: {values}"));
        assert_eq!(last["type"], "ai", "{values}");
        last["content"].as_str().unwrap().to_owned()
    }
}

#[test]
fn a_conversation_goes_on_after_the_program_was_killed() {
    let folder = Folder::new();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (program, client) = Client::start(&folder);
    let thread = runtime.block_on(async {
        let thread = client.post("/threads", json!({})).await["thread_id"].as_str().unwrap().to_owned();
        assert!(client.say(&thread, &create("Foo")).await.contains("Foo"));
        let page = client.http.get(format!("{}/ui/", client.url)).send().await.unwrap();
        assert!(page.text().await.unwrap().contains("<html"));
        thread
    });
    program.kill();
    assert!(embedded_experiments(&folder).is_empty());

    let (program, client) = Client::start(&folder);
    let done = runtime.block_on(client.say(&thread, "yes"));
    assert!(done.contains("Experiment 'Foo' was created"), "{done}");
    program.kill();
    assert_eq!(embedded_experiments(&folder).len(), 1);
}

#[test]
fn an_address_that_others_reach_is_refused() {
    let folder = Folder::new();
    let refused = run(&folder, &["serve", "--listen", "0.0.0.0:0"], "");
    assert_eq!(refused.code(), 2);
    assert!(refused.err().contains("serve on 127.0.0.1"), "{}", refused.err());
}

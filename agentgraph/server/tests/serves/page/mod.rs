//! The page in Chromium, against real servers with real runs.

mod a_run_is_a_test_to_paste;
mod axe_finds_nothing;
mod branches_are_compared_and_replayed;
mod checkpoints_are_inspected_and_forked;
mod edits_joins_and_orders_are_shown;
mod findings_are_read_from_files;
mod graphs;
mod hostile_content_never_runs;
mod keys_restarts_and_deletions_are_told;
mod large_threads_cost_the_page_no_more;
mod questions_are_answered_by_forms;
mod runs_are_seen_as_they_go;
mod runs_begin_with_a_message_or_a_form;
mod screens_fit_into_a_narrow_window;
mod subgraphs_open_in_place;
mod the_store_is_browsed;
mod threads_are_found_and_removed;
mod tokens_and_money_are_counted;

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use agentgraph::policy::RetryPolicy;
use agentgraph::prelude::*;
use agentgraph_server::Server;
use schemars::JsonSchema;
use serde_json::{Value, json};

use crate::browser::Browser;
use crate::common::{Served, Steps, StepsUpdate, all_graphs};

/// A server and the browser that shows its page.
struct Page {
    // Dropped first: a page without its server would ask for it on.
    browser: Browser,
    server: Served,
}

impl Page {
    async fn open() -> Self {
        Page::of(Served::new().await, "").await
    }

    async fn of(server: Served, at: &str) -> Self {
        let browser = Browser::shared(&format!("{}/ui/{at}", server.url)).await;
        Page { browser, server }
    }

    async fn shows(&self, at: &str) {
        self.browser.goto(&format!("{}/ui/{at}", self.server.url)).await;
    }

    /// Waits until the page says a text.
    async fn says(&self, text: &str) {
        let text = json!(text);
        self.browser.until(&format!("return document.body.innerText.includes({text})")).await;
    }

    /// Waits until a CSS selector finds a number of elements.
    async fn has(&self, selector: &str, count: usize) {
        let selector = json!(selector);
        self.browser.until(&format!("return document.querySelectorAll({selector}).length === {count}")).await;
    }

    /// Waits until a node of the drawing has a class.
    async fn draws(&self, node: &str, class: &str) {
        self.has(&format!(".drawing .node[data-node=\"{node}\"].{class}"), 1).await;
    }

    /// Clicks the first element of a CSS selector, when there is one.
    async fn clicks_on(&self, selector: &str) {
        let selector = json!(selector);
        let click = format!(
            "const found = document.querySelector({selector}); found?.click(); return found !== null"
        );
        self.browser.until(&click).await;
    }

    async fn address(&self) -> String {
        self.browser.script("return location.hash").await.as_str().unwrap().to_owned()
    }

    async fn elements(&self) -> u64 {
        self.browser.script("return document.querySelectorAll('*').length").await.as_u64().unwrap()
    }

    async fn state(&self, thread: &str) -> Value {
        self.server.get(&format!("/threads/{thread}/state")).await
    }

    async fn until_status(&self, thread: &str, status: &str) {
        let wait = async {
            while self.server.get(&format!("/threads/{thread}")).await["status"] != status {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let waited = tokio::time::timeout(Duration::from_secs(60), wait).await;
        assert!(waited.is_ok(), "the thread was never {status}");
    }
}

/// Runs a graph on a thread of its own, to the end of the run.
async fn ran(server: &Served, graph: &str, input: Value) -> String {
    let thread = server.thread().await;
    let body = json!({ "assistant_id": graph, "input": input });
    server.post(&format!("/threads/{thread}/runs/wait"), &body).await;
    thread
}

#[derive(serde::Serialize, serde::Deserialize, JsonSchema, Clone, Debug)]
struct Verdict {
    /// For the log.
    reason: String,
    copies: u32,
    grade: Grade,
}

#[derive(serde::Serialize, serde::Deserialize, JsonSchema, Clone, Debug)]
#[serde(rename_all = "snake_case")]
enum Grade {
    Good,
    Poor,
}

async fn decide(ctx: Ctx, steps: Snapshot<Steps>) -> Result<StepsUpdate> {
    let question = json!({ "question": format!("Send {}?", steps.text), "pages": 12 });
    let verdict: Verdict = ctx.interrupt_with_schema(question)?;
    Ok(Steps::update().seen([json!(verdict).to_string()]))
}

/// A graph that asks a question with a schema.
fn deciding() -> CompiledGraph<Steps> {
    let graph = StateGraph::new().node("decide", decide);
    graph.edge(START, "decide").compile().unwrap()
}

async fn flaky(tries: Dep<AtomicU32>) -> Result<StepsUpdate> {
    if tries.fetch_add(1, Ordering::Relaxed) == 0 {
        return Err("the service said 503".into());
    }
    Ok(Steps::update().seen(["flaky"]))
}

/// A node that succeeds in its second attempt.
fn trying() -> CompiledGraph<Steps> {
    let node = flaky.retry(RetryPolicy::attempts(3).initial(Duration::from_millis(80)));
    let graph = StateGraph::new().node("flaky", node).edge(START, "flaky");
    graph.dep(AtomicU32::new(0)).compile().unwrap()
}

fn more_graphs() -> Server {
    all_graphs(Server::new().in_memory()).graph("decide", deciding()).graph("trying", trying())
}

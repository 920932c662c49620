//! The page of `serve` in Chromium: a run from its start to its submission, hostile texts, reload, narrow
//! screens, accessibility.

use std::sync::Arc;

use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::browser::Browser;
use crate::common::Folder;
use crate::shell::{Running, program};

const HOSTILE: &str = "<img src=x onerror=\"document.title='run'\"><script>document.title='run'</script>";

async fn opened(mut running: Running) -> (Running, Browser) {
    let url = running.line();
    (running, Browser::open(&url).await)
}

fn status(part: &str) -> String {
    format!("return document.getElementById('status').textContent.includes({})", json!(part))
}

#[tokio::test]
async fn a_run_goes_from_a_click_to_its_score_and_is_submitted_once() {
    let folder = Folder::new();
    let (_running, browser) = opened(Running::start(program(&folder, &["serve"]))).await;
    browser.until("return document.querySelectorAll('#questions > li').length === 20").await;
    browser.until(&status("No run yet.")).await;
    browser.types("#limit", "3").await;
    browser.clicks("Run").await;
    browser.until(&status("3 of 3 answered.")).await;
    browser.until("return document.querySelectorAll('#questions > li').length === 3").await;
    browser.until("return document.getElementById('start').disabled === false").await;
    let text = browser.text().await;
    assert!(text.contains("right answers\n3 of 3 (100 %)") && text.contains("310.8"), "{text}");
    assert!(text.contains("right, final answer"), "{text}");

    browser.types("#username", "ada").await;
    browser.types("#code", "https://code.example/agent").await;
    let submit = "document.getElementById('hand-in').click()";
    browser.script(submit).await;
    // It is asked, and nothing is sent before the reply.
    browser
        .until("return document.getElementById('asked').textContent === 'Submit 3 of 3 answers as ada?'")
        .await;
    browser.clicks("Cancel").await;
    assert_eq!(browser.script("return document.getElementById('submission').textContent").await, "");
    browser.script(submit).await;
    browser.clicks("Submit them").await;
    browser.until("return document.getElementById('submission').textContent.startsWith('Submitted: 15.0 %, 3 right.')").await;
    browser.script(submit).await;
    browser.clicks("Submit them").await;
    browser
        .until("return document.getElementById('reply').textContent.startsWith('E_GAIA_SUBMITTED: ')")
        .await;
    browser.reload().await;
    browser.until("return document.getElementById('submission').textContent.startsWith('Submitted: 15.0 %, 3 right.')").await;

    let lock = std::fs::File::create(folder.file("data/run.lock")).unwrap();
    lock.lock().unwrap();
    browser.script("document.getElementById('start').click()").await;
    browser.until("return document.getElementById('reply').textContent.startsWith('E_GAIA_IN_USE: ')").await;
}

/// A model that calls a tool and answers, both with hostile texts, each time that it is let.
fn model(gate: &Arc<Semaphore>) -> String {
    let app = Router::new().route("/v1/chat/completions", post(answer)).with_state(Arc::clone(gate));
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    tokio::spawn(async {
        axum::serve(tokio::net::TcpListener::from_std(listener).unwrap(), app).await.unwrap();
    });
    url
}

async fn answer(State(gate): State<Arc<Semaphore>>, Json(body): Json<Value>) -> Response {
    gate.acquire().await.unwrap().forget();
    let is_second = body["messages"].as_array().unwrap().iter().any(|message| message["role"] == "tool");
    let (delta, stop) = if is_second {
        (json!({ "role": "assistant", "content": format!("FINAL ANSWER: {HOSTILE}") }), "stop")
    } else {
        let arguments = json!({ "expression": HOSTILE }).to_string();
        let call = json!({ "index": 0, "id": "c1", "type": "function", "function": { "name": "calculator", "arguments": arguments } });
        (json!({ "role": "assistant", "tool_calls": [call] }), "tool_calls")
    };
    let event = |delta: Value, stop: Value| {
        let choices = json!([{ "index": 0, "delta": delta, "finish_reason": stop }]);
        let event = json!({ "id": "1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": choices });
        format!("data: {event}\n\n")
    };
    let events = [event(delta, Value::Null), event(json!({}), json!(stop)), "data: [DONE]\n\n".to_owned()];
    ([(CONTENT_TYPE, "text/event-stream")], events.concat()).into_response()
}

/// The page for one question with hostile texts, whose model waits.
async fn gated(folder: &Folder) -> (Arc<Semaphore>, Running, Browser) {
    let gate = Arc::new(Semaphore::new(0));
    let url = model(&gate);
    let questions = json!([{ "task_id": "a/b", "question": HOSTILE, "Level": 1, "file_name": "a.html", "Final answer": HOSTILE }]);
    folder.write("work/a.html", HOSTILE);
    let file = folder.write("work/questions.json", questions.to_string());
    let mut command =
        program(folder, &["serve", "--questions", file.to_str().unwrap(), "--model", "openai-chat:m"]);
    command.args(["--fallback", "none"]).env("OPENAI_API_KEY", "sk-of-the-test").env("OPENAI_BASE_URL", &url);
    let (running, browser) = opened(Running::start(command)).await;
    (gate, running, browser)
}

#[tokio::test(flavor = "multi_thread")]
async fn steps_are_shown_as_they_come_a_reload_shows_the_same_and_hostile_texts_are_texts() {
    let folder = Folder::new();
    let (gate, running, browser) = gated(&folder).await;
    browser.until("return document.querySelectorAll('#questions > li').length === 1").await;
    let shown =
        "return [...document.querySelectorAll('#questions .head')].map(head => head.textContent).join()";
    browser.clicks("Run").await;
    browser.until(&status("Running.")).await;
    // The model has not answered yet.
    browser.until("return [...document.querySelectorAll('#questions .head')].length === 2").await;
    assert_eq!(browser.script(shown).await, "Instructions,Question");
    gate.add_permits(1);
    browser.until("return document.querySelector('#questions').textContent.includes('Error')").await;
    let before = browser.script(shown).await;
    assert!(before.as_str().unwrap().starts_with("Instructions,Question,Call of calculator"), "{before}");
    browser.reload().await;
    browser.until("return document.querySelector('#questions').textContent.includes('Error')").await;
    assert_eq!(browser.script(shown).await, before);
    browser.until(&status("Running.")).await;
    gate.add_permits(1);
    browser.until(&status("1 of 1 answered.")).await;
    browser.until("return document.getElementById('start').disabled === false").await;

    let texts = "return ['.question', '.answer'].map(kind => document.querySelector(`#questions ${kind}`).textContent)";
    assert_eq!(browser.script(texts).await, json!([HOSTILE, HOSTILE]));
    let inside = "return document.querySelectorAll('main img, main script').length";
    assert_eq!(browser.script(inside).await, 0);
    assert_eq!(browser.script("return document.title").await, "GAIA agent");
    let text = browser.text().await;
    assert!(text.contains("right answers\n1 of 1 (100 %)"), "{text}");
    assert_eq!(
        browser.script("return document.getElementById('submit').hidden").await,
        true,
        "there is no server"
    );
    let link = "const link = document.querySelector('#questions a'); return [link.getAttribute('href'), link.download]";
    assert_eq!(browser.script(link).await, json!(["/page/files/a%2Fb", "a.html"]));
    drop(running);
    browser.until(&status("The program does not answer.")).await;
}

#[tokio::test]
async fn a_narrow_screen_needs_no_sideways_scrolling() {
    let folder = Folder::new();
    let (_running, browser) = opened(Running::start(program(&folder, &["serve"]))).await;
    browser.narrows().await;
    let fits = "return document.documentElement.scrollWidth <= innerWidth";
    browser.until("return document.querySelectorAll('#questions > li').length === 20").await;
    assert_eq!(browser.script(fits).await, true);
    browser.clicks("Run").await;
    browser.until(&status("19 of 20 answered.")).await;
    browser.script("document.querySelectorAll('details').forEach(details => details.open = true)").await;
    assert_eq!(browser.script(fits).await, true);
}

/// Run by `.ci/axe`, which gets axe-core from npm.
#[tokio::test]
#[ignore = "needs axe-core: `.ci/axe` runs it"]
async fn axe_finds_nothing() {
    let folder = Folder::new();
    let (_running, browser) = opened(Running::start(program(&folder, &["serve"]))).await;
    for scheme in ["light", "dark"] {
        browser.prefers(scheme).await;
        browser.until("return document.querySelectorAll('#questions > li').length === 20").await;
        browser.passes_axe("questions").await;
        browser.clicks("Run").await;
        browser.until(&status("19 of 20 answered.")).await;
        browser.script("document.querySelectorAll('details').forEach(details => details.open = true)").await;
        browser.passes_axe("answers").await;
        browser.script("document.getElementById('username').value = 'ada'; document.getElementById('code').value = 'https://code.example'").await;
        browser.until("return document.getElementById('hand-in').disabled === false").await;
        browser.script("document.getElementById('hand-in').click()").await;
        browser.until("return document.getElementById('sure').open").await;
        browser.passes_axe("the question").await;
        browser.clicks("Cancel").await;
    }
}

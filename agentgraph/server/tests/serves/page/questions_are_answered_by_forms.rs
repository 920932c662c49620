//! The open questions of all threads.

use serde_json::json;

use super::{Page, graphs, more_graphs, ran};
use crate::common::Served;

/// Fills in the form of the n-th question.
async fn fill(page: &Page, nth: usize, reason: &str, copies: &str, grade: &str) {
    let card = format!(".question:nth-child({nth})");
    page.browser.types(&format!("{card} [name=reason]"), reason).await;
    page.browser.types(&format!("{card} [name=copies]"), copies).await;
    page.browser.types(&format!("{card} [name=grade]"), grade).await;
}

#[tokio::test]
async fn several_questions_with_schemas_are_answered_at_once() {
    let server = Served::of(more_graphs()).await;
    let threads = [
        ran(&server, "decide", json!({ "text": "one" })).await,
        ran(&server, "decide", json!({ "text": "two" })).await,
    ];
    let page = Page::of(server, "#/questions").await;
    page.has(".question", 2).await;
    page.says("Send one?").await;
    page.says("For the log.").await;
    assert_eq!(
        page.browser.script("return document.getElementById('question-count').textContent").await,
        "2"
    );
    fill(&page, 1, "fine", "2", "good").await;
    fill(&page, 2, "bad", "0", "poor").await;
    page.browser.clicks("Answer 2 questions").await;
    page.has(".question", 0).await;
    page.says("No question is open.").await;
    let mut answers = Vec::new();
    for thread in &threads {
        page.until_status(thread, "idle").await;
        answers.push(page.state(thread).await["values"]["seen"][0].as_str().unwrap().to_owned());
    }
    answers.sort();
    let expected = [
        json!({ "copies": 0, "grade": "poor", "reason": "bad" }).to_string(),
        json!({ "copies": 2, "grade": "good", "reason": "fine" }).to_string(),
    ];
    assert_eq!(
        answers.iter().map(|one| sorted(one)).collect::<Vec<_>>(),
        expected.each_ref().map(|one| sorted(one))
    );
}

/// The same JSON with its fields in one order.
fn sorted(json: &str) -> String {
    let fields: std::collections::BTreeMap<String, serde_json::Value> = serde_json::from_str(json).unwrap();
    json!(fields).to_string()
}

#[tokio::test]
async fn an_incomplete_form_is_not_sent_and_keeps_what_was_typed() {
    let server = Served::of(more_graphs()).await;
    let thread = ran(&server, "decide", json!({ "text": "one" })).await;
    let page = Page::of(server, &format!("#/questions?thread={thread}")).await;
    page.has(".question", 1).await;
    page.browser.types(".question input[type=text]", "fine").await;
    page.browser.clicks("Answer").await;
    page.says("missing").await;
    page.has("[aria-invalid=true]", 1).await;
    assert_eq!(
        page.browser.script("return document.querySelector('.question [name=reason]').value").await,
        "fine"
    );
    assert_eq!(page.server.get(&format!("/threads/{thread}")).await["status"], "interrupted");
}

#[tokio::test]
async fn a_question_without_a_schema_takes_json_and_texts() {
    let server = Served::new().await;
    let (one, two) = (ran(&server, "ask", json!({})).await, ran(&server, "nested", json!({})).await);
    let page = Page::of(server, &format!("#/questions?thread={one}")).await;
    page.browser.clicks("Yes (true)").await;
    page.browser.clicks("Answer").await;
    page.until_status(&one, "idle").await;
    assert_eq!(page.state(&one).await["values"]["answers"], json!([true]));
    page.has(".question", 0).await;
    page.shows("#/questions").await;
    page.has(".question", 1).await;
    page.browser.types(".question textarea", "as you like").await;
    page.browser.clicks("Answer").await;
    page.until_status(&two, "idle").await;
    assert_eq!(page.state(&two).await["values"]["answers"], json!(["as you like"]));
}

#[tokio::test]
async fn a_question_whose_answer_was_voided_stands_beside_the_new_one() {
    let server = Served::of(graphs::server()).await;
    let thread = ran(&server, "order", json!({ "text": "x" })).await;
    let page = Page::of(server, &format!("#/questions?thread={thread}")).await;
    let answer = async |text: &str| {
        page.browser.types(".question textarea", text).await;
        page.browser.clicks("Answer").await;
    };
    let card = "return [...document.querySelectorAll('.question .replaced, .question .asked')].map(one => \
                one.innerText.replace(/\\s+/g, ' ').trim()).join('; ')";
    page.browser.until(&format!("{card} === 'How many copies?'")).await;
    answer("12").await;
    let refused = "How many copies? Its answer was refused: nine at most; How many copies?";
    page.browser.until(&format!("{card} === '{refused}'")).await;
    answer("3").await;
    page.browser.until(&format!("{card} === \"At 0 o'clock?\"")).await;
    answer("true").await;
    let moved = "At 0 o'clock? Its answer is void: the node asked something else.; At 1 o'clock?";
    page.browser.until(&format!("{card} === \"{moved}\"")).await;
    assert_eq!(page.state(&thread).await["values"]["seen"], json!([]));
}

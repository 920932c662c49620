//! The page in Chromium: a purchase, cancel, reload, tabs, kills, escaping, narrow screens, accessibility.

use serde_json::json;
use shopify_agent::embedded::EmbeddedShop;

use crate::browser::Browser;
use crate::process::{Folder, Server};

const QUESTION: &str = "What kind of wing sauces do you have?";

async fn opened(folder: &Folder) -> (EmbeddedShop, Server, Browser) {
    let shop = EmbeddedShop::start().await.unwrap();
    let server = Server::for_shop(folder, &shop, &[]).await;
    let browser = Browser::open(&server.url).await;
    (shop, server, browser)
}

#[tokio::test]
async fn a_purchase_goes_from_the_first_question_to_the_number_with_one_click() {
    let folder = Folder::new();
    let (shop, _server, browser) = opened(&folder).await;
    browser.says(QUESTION).await;
    browser.hears("Any of these look good to you?").await;
    let talk = browser.talk().await;
    let position = |text: &str| talk.find(text).unwrap_or_else(|| panic!("{text} in {talk}"));
    assert!(position("One sec I'll check our options today") < position("On the menu"));
    assert!(position("On the menu") < position("Any of these look good to you?"));

    browser.says("Yeah I'll get 6 lemon garlic and 12 hot buffalo").await;
    browser.hears("Anything else today?").await;
    assert_eq!(browser.script("return document.getElementById('count').textContent").await, "18");

    browser.clicks("Order now").await;
    browser.hears("Your order is placed").await;
    assert_eq!(shop.orders().len(), 1);
    assert!(browser.talk().await.contains(&shop.orders()[0]));
    assert_eq!(browser.script("return document.getElementById('count').textContent").await, "0");
}

#[tokio::test]
async fn cards_are_clicked_from_the_list_to_the_cart_and_pieces_are_taken_out() {
    let folder = Folder::new();
    let (shop, _server, browser) = opened(&folder).await;
    browser.says("do you have coleslaw").await;
    browser.hears("Any of these look good to you?").await;
    browser.clicks("Coleslaw").await;
    browser.hears("Would you like some?").await;
    // By keyboard: the number, then Enter.
    browser.types(".pieces", "\u{e009}a\u{e000}3\u{e007}").await;
    browser.hears("Anything else today?").await;
    assert_eq!(shop.carts(), [vec![("Coleslaw".to_owned(), 3)]]);
    browser.clicks("−").await;
    browser.until("return document.getElementById('count').textContent === '2'").await;
    browser.hears("Anything else today?").await;
    browser.clicks("Remove").await;
    browser.hears("Your cart is empty").await;
    assert!(shop.carts().is_empty());
}

#[tokio::test]
async fn a_turn_is_stopped_in_its_middle_and_the_next_one_works() {
    let folder = Folder::new();
    let (shop, _server, browser) = opened(&folder).await;
    shop.delay(std::time::Duration::from_secs(30));
    browser.says(QUESTION).await;
    browser.until("return document.getElementById('talk').innerText.includes('One sec')").await;
    browser.clicks("Stop").await;
    browser.hears("Stopped").await;
    shop.delay(std::time::Duration::ZERO);
    browser.says("show my cart").await;
    browser.hears("Your cart is empty").await;
    assert!(!browser.talk().await.contains("On the menu"));
}

#[tokio::test]
async fn a_reload_finds_the_conversation_and_the_cart_again() {
    let folder = Folder::new();
    let (_shop, _server, browser) = opened(&folder).await;
    browser.says("add 2 colas").await;
    browser.hears("Anything else today?").await;
    let before = browser.talk().await;
    browser.reload().await;
    browser.hears("Anything else today?").await;
    assert_eq!(browser.talk().await, before);
    browser.clicks("Cart").await;
    browser.hears("Say when I should place the order").await;
    assert_eq!(browser.script("return document.getElementById('count').textContent").await, "2");
}

#[tokio::test]
async fn two_tabs_are_two_conversations_also_if_one_is_a_copy() {
    let folder = Folder::new();
    let (shop, _server, browser) = opened(&folder).await;
    browser.says("add 2 colas").await;
    browser.hears("Anything else today?").await;
    // A tab that is opened by a page begins with a copy of what that one keeps.
    browser.script("window.open(location.href)").await;
    let tabs = browser.tabs().await;
    browser.switch_to(&tabs[1]).await;
    browser.until("return document.getElementById('talk') !== null && document.getElementById('talk').innerText === ''").await;
    browser.says("add 1 coleslaw").await;
    browser.hears("Anything else today?").await;
    let mut carts = shop.carts();
    carts.sort();
    assert_eq!(carts, [vec![("Cola".to_owned(), 2)], vec![("Coleslaw".to_owned(), 1)]]);
    browser.switch_to(&tabs[0]).await;
    assert!(!browser.talk().await.contains("Coleslaw"));
}

#[tokio::test]
async fn after_a_kill_and_a_reload_the_answer_is_there_and_each_item_once() {
    let folder = Folder::new();
    let shop = EmbeddedShop::start().await.unwrap();
    let server = Server::for_shop(&folder, &shop, &["--shop-seconds", "600"]).await;
    let url = server.url.clone();
    let browser = Browser::open(&url).await;
    shop.silence_next(1);
    browser.says("add 6 lemon garlic and 12 hot buffalo").await;
    while shop.mutations() == 0 {
        tokio::task::yield_now().await;
    }
    server.kill().await;
    let address = url.trim_start_matches("http://").trim_end_matches('/');
    let _server = Server::for_shop(&folder, &shop, &["--listen", address]).await;
    browser.reload().await;
    browser.hears("Anything else today?").await;
    let expected = [vec![("Lemon Garlic Wings".to_owned(), 6), ("Hot Buffalo Wings".to_owned(), 12)]];
    assert_eq!(shop.carts(), expected);
    assert_eq!(browser.script("return document.getElementById('count').textContent").await, "18");
}

#[tokio::test]
async fn texts_of_products_are_shown_and_never_run() {
    let folder = Folder::new();
    let (_shop, _server, browser) = opened(&folder).await;
    browser.says("what's on the menu").await;
    browser.hears("Any of these look good to you?").await;
    assert!(browser.talk().await.contains("<script>alert(\"Cookie\")</script>"));
    browser.clicks("Cookie").await;
    browser.hears("Would you like some?").await;
    assert!(browser.talk().await.contains("& <b>extra</b> chocolate"));
    let inside = "return document.querySelectorAll('#talk script, #talk b:not(.step b)').length";
    assert_eq!(browser.script(inside).await, 0);
}

#[tokio::test]
async fn a_narrow_screen_needs_no_sideways_scrolling() {
    let folder = Folder::new();
    let (_shop, _server, browser) = opened(&folder).await;
    browser.narrows().await;
    let fits = "const cut = element => element.getBoundingClientRect().right > element.closest('.card').getBoundingClientRect().right; \
                return document.documentElement.scrollWidth <= innerWidth && \
                document.getElementById('talk').scrollWidth <= innerWidth && \
                ![...document.querySelectorAll('.card *')].some(cut)";
    browser.says(QUESTION).await;
    browser.hears("Any of these look good to you?").await;
    assert_eq!(browser.script(fits).await, true);
    browser.clicks("Lemon Garlic Wings").await;
    browser.hears("Would you like some?").await;
    assert_eq!(browser.script(fits).await, true);
    browser.says("I'll get 6 lemon garlic and 12 hot buffalo").await;
    browser.hears("Anything else today?").await;
    assert_eq!(browser.script(fits).await, true);
}

#[tokio::test]
async fn everything_works_without_speech() {
    let folder = Folder::new();
    let (_shop, server, browser) = opened(&folder).await;
    browser.until("return document.getElementById('speak').hidden === !('speechSynthesis' in window)").await;
    // A browser that has neither.
    let without = "delete window.speechSynthesis; delete window.webkitSpeechRecognition; delete window.SpeechRecognition;";
    browser.devtools("Page.addScriptToEvaluateOnNewDocument", json!({ "source": without })).await;
    browser.goto(&server.url).await;
    browser.says("show my cart").await;
    browser.hears("Your cart is empty").await;
    assert_eq!(browser.script("return document.getElementById('listen').hidden").await, true);
}

/// Run by `.ci/axe`, which gets axe-core from npm.
#[tokio::test]
#[ignore = "needs axe-core: `.ci/axe` runs it"]
async fn axe_finds_nothing() {
    let folder = Folder::new();
    let (_shop, _server, browser) = opened(&folder).await;
    for scheme in ["light", "dark"] {
        browser.prefers(scheme).await;
        browser.clicks("New conversation").await;
        browser.passes_axe("empty").await;
        browser.says(QUESTION).await;
        browser.hears("Any of these look good to you?").await;
        browser.passes_axe("products").await;
        browser.clicks("Lemon Garlic Wings").await;
        browser.hears("Would you like some?").await;
        browser.passes_axe("details").await;
        browser.says("add 2 lemonade").await;
        browser.hears("Which do you mean").await;
        browser.says("I'll get 6 lemon garlic").await;
        browser.hears("Anything else today?").await;
        browser.passes_axe("cart").await;
        browser.clicks("Order now").await;
        browser.hears("Your order is placed").await;
        browser.passes_axe("order").await;
    }
}

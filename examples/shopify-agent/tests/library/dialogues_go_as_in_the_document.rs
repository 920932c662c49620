//! Both dialogues of the document, word for word, and a purchase to its end.

use serde_json::json;

use crate::support::{World, add, cart_of};

const QUESTION: &str = "What kind of wing sauces do you have?";

#[tokio::test]
async fn a_spoken_order_of_two_items_is_shown_and_answered() {
    let world = World::new().await;
    let mut client = world.client();

    let asked = client.says(QUESTION).await;
    let expected =
        ["One sec I'll check our options today", "[shopify-product-list]", "Any of these look good to you?"];
    assert_eq!(asked.shown(), expected);

    let ordered = client.says("Yeah I'll get 6 lemon garlic and 12 hot buffalo").await;
    let shown = ordered.shown();
    assert_eq!(shown.first().unwrap(), "Let me add those to your order quick");
    assert_eq!(shown.last().unwrap(), "Anything else today?");
    assert_eq!(shown[1..shown.len() - 1], ["[shopify-cart-summary]", "[shopify-cart-summary]"]);
    assert_eq!(ordered.cart(), cart_of(&[("Lemon Garlic Wings", 6), ("Hot Buffalo Wings", 12)]));
    let details = ordered.details("shopify-cart-summary").unwrap();
    assert_eq!(details["cart_summary"]["total_price"], "23.10");
}

#[tokio::test]
async fn a_click_is_answered_with_the_cart_and_without_a_waiting_sentence() {
    let world = World::new().await;
    let mut client = world.client();
    client.says(QUESTION).await;

    let clicked = client.clicks("add_item_to_cart", add(world.variant("Lemon Garlic Wings"), 6)).await;
    assert_eq!(clicked.shown(), ["[shopify-cart-summary]", "Anything else today?"]);
    assert_eq!(clicked.cart(), cart_of(&[("Lemon Garlic Wings", 6)]));
}

#[tokio::test]
async fn a_purchase_ends_with_a_number_and_its_status() {
    let world = World::new().await;
    let mut client = world.client();
    client.says("add 2 colas").await;
    let asked = client.says("place the order").await;
    // The cart was shown in the turn before, and these words consent.
    let details = asked.details("shopify-order-confirmation").unwrap();
    assert_eq!(world.shop.orders(), [details["confirmation_number"].as_str().unwrap()]);
    assert!(asked.answer().contains(&world.shop.orders()[0]), "{}", asked.answer());
    assert_eq!(json!(client.session)["cart_id"], json!(null));

    let status = client.says("where is my order?").await;
    assert_eq!(
        status.details("shopify-order-status").unwrap()["confirmation_number"],
        details["confirmation_number"]
    );
}

#[tokio::test]
async fn sizes_are_asked_for_and_never_guessed() {
    let world = World::new().await;
    let mut client = world.client();
    let asked = client.says("add a garden pizza").await;
    assert_eq!(
        asked.answer(),
        "Which do you mean: Garden Pizza (Small) or Garden Pizza (Medium) or Garden Pizza (Large)?"
    );
    let added = client.says("add a large garden pizza").await;
    assert_eq!(added.cart(), cart_of(&[("Garden Pizza", 1)]));
    assert_eq!(
        added.details("shopify-cart-summary").unwrap()["cart_summary"]["line_items"][0]["variant_title"],
        "Large"
    );
}

#[tokio::test]
async fn a_sentence_that_is_not_understood_is_answered_with_those_that_are() {
    let world = World::new().await;
    let answer = world.client().says("sing me a song").await;
    assert!(answer.answer().contains("understand only"), "{}", answer.answer());
    assert_eq!(answer.nodes(), ["Routing", "CustomerResponse"]);
}

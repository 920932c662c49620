//! An order is placed for exactly the cart that the customer consented to, and never by a model's word.

use std::sync::Arc;

use agentgraph_llm::prelude::*;
use serde_json::{Value, json};
use shopify_agent::agent::Limits;
use shopify_agent::session::ShopSession;

use crate::support::{Turn, World, add, cart_of};

const SUBMIT: &str = "submit_cart_for_order";

fn is_confirmed(turn: &Turn) -> bool {
    turn.details("shopify-order-confirmation").is_some()
}

#[tokio::test]
async fn a_click_on_the_shown_cart_orders_it() {
    let world = World::new().await;
    let mut client = world.client();
    client.clicks("add_item_to_cart", add(world.variant("Cola"), 3)).await;
    client.says("do you have fries").await;
    let ordered = client.clicks(SUBMIT, json!({})).await;
    assert!(is_confirmed(&ordered), "a click counts as long as the cart is as shown");
    assert_eq!(world.shop.orders().len(), 1);
}

/// A model that orders whatever is said.
fn greedy() -> Arc<dyn ChatModel> {
    Arc::new(ScriptedModel::from_fn(|request| {
        let system = request.system.clone().unwrap_or_default();
        let has_used = system.contains("{\"description\":\"The customer said");
        let reply = match system.lines().find_map(|line| line.strip_prefix("# Task: ")).unwrap_or_default() {
            "Routing" if !has_used => json!({"next-action": "call-tool"}),
            "Routing" => json!({"next-action": "respond-to-customer"}),
            "ChooseTool" => json!({"tool": SUBMIT}),
            "IdentifyToolParams" => json!({"parameters": {"consent": true}}),
            "ConvertNaturalLanguage" => json!({"description": "The customer said yes, order it."}),
            _ => json!({"response": "Ordered! Yes!"}),
        };
        Reply::text(reply.to_string())
    }))
}

#[tokio::test]
async fn a_model_that_orders_by_itself_orders_nothing() {
    let world = World::with(greedy(), Limits::default()).await;
    let mut client = world.client();
    client.clicks("add_item_to_cart", add(world.variant("Cola"), 3)).await;
    for words in ["show my cart", "yes but later", "the assistant said yes", "hm"] {
        let turn = client.says(words).await;
        assert!(!is_confirmed(&turn), "{words}");
        assert_eq!(turn.cart(), cart_of(&[("Cola", 3)]), "the cart is shown for the customer's consent");
    }
    assert!(world.shop.orders().is_empty());
    assert!(is_confirmed(&client.says("Yes!").await));
}

#[tokio::test]
async fn a_yes_counts_only_directly_after_the_cart_was_shown() {
    let world = World::new().await;
    let mut client = world.client();
    client.says("add 2 colas").await;
    client.says("do you have fries").await;
    let asked = client.says("place the order").await;
    assert!(!is_confirmed(&asked));
    assert_eq!(asked.answer(), "Shall I place the order for $3.98?");
    assert!(is_confirmed(&client.says("yes").await));
}

#[tokio::test]
async fn a_changed_price_asks_again_with_the_new_total() {
    let world = World::new().await;
    let mut client = world.client();
    client.says("add 2 colas").await;
    world.shop.set_price(world.variant("Cola"), "2.50".parse().unwrap());
    let asked = client.clicks(SUBMIT, json!({})).await;
    assert!(!is_confirmed(&asked) && world.shop.orders().is_empty());
    assert_eq!(asked.details("shopify-cart-summary").unwrap()["cart_summary"]["total_price"], "5.00");
    assert!(asked.answer().contains("has changed") && asked.answer().contains("$5.00"), "{}", asked.answer());
    assert!(is_confirmed(&client.clicks(SUBMIT, json!({})).await));
}

#[tokio::test]
async fn a_cart_that_was_changed_elsewhere_asks_again() {
    let world = World::new().await;
    let mut client = world.client();
    client.says("add 2 colas").await;
    let mut other = client.clone();
    other.clicks("add_item_to_cart", add(world.variant("Coleslaw"), 1)).await;
    assert!(!is_confirmed(&client.clicks(SUBMIT, json!({})).await));
    assert!(world.shop.orders().is_empty());
}

#[tokio::test]
async fn a_product_that_is_gone_is_taken_out_and_the_rest_is_asked_for() {
    let world = World::new().await;
    let mut client = world.client();
    client.says("add 2 colas and 1 coleslaw").await;
    world.shop.remove_product(world.shop.product_of("Cola").unwrap());
    let asked = client.clicks(SUBMIT, json!({})).await;
    assert!(!is_confirmed(&asked) && world.shop.orders().is_empty());
    assert_eq!(asked.cart(), cart_of(&[("Coleslaw", 1)]));
    assert!(asked.answer().contains("Cola is no longer sold"), "{}", asked.answer());
    assert!(is_confirmed(&client.says("yes").await));
}

#[tokio::test]
async fn a_cart_of_products_that_are_all_gone_is_empty() {
    let world = World::new().await;
    let mut client = world.client();
    client.says("add 2 colas").await;
    world.shop.remove_product(world.shop.product_of("Cola").unwrap());
    let asked = client.clicks(SUBMIT, json!({})).await;
    assert!(!is_confirmed(&asked));
    assert!(asked.answer().contains("cart is empty"), "{}", asked.answer());
}

#[tokio::test]
async fn what_is_sold_out_meanwhile_is_not_ordered() {
    let world = World::new().await;
    let mut client = world.client();
    client.says("add 2 colas").await;
    world.shop.set_stock(world.variant("Cola"), 1);
    let refused = client.clicks(SUBMIT, json!({})).await;
    assert!(!is_confirmed(&refused) && world.shop.orders().is_empty());
    assert!(refused.answer().contains("Only 1 of Cola are left"), "{}", refused.answer());
}

#[tokio::test]
async fn an_empty_cart_and_a_second_submit_are_refused_in_words_and_never_confirmed() {
    let world = World::new().await;
    let mut client = world.client();
    let refused = client.clicks(SUBMIT, json!({})).await;
    assert!(!is_confirmed(&refused));
    assert!(refused.answer().contains("The cart is empty"), "{}", refused.answer());

    client.says("add 2 colas").await;
    assert!(is_confirmed(&client.clicks(SUBMIT, json!({})).await));
    let again = client.clicks(SUBMIT, json!({})).await;
    assert!(!is_confirmed(&again));
    assert!(again.answer().contains("ordered already"), "{}", again.answer());
    assert_eq!(world.shop.orders().len(), 1);
}

#[tokio::test]
async fn a_session_of_another_conversation_opens_neither_its_cart_nor_its_order() {
    let world = World::new().await;
    let mut owner = world.client();
    owner.says("add 2 colas").await;
    let mut session = json!(owner.session);
    session["guid"] = json!("another");
    let mut stranger = world.client();
    stranger.session = ShopSession::read(&session);
    let looked = stranger.says("show my cart").await;
    assert_eq!(looked.cart(), []);
    assert!(!is_confirmed(&stranger.clicks(SUBMIT, json!({})).await));

    assert!(is_confirmed(&owner.clicks(SUBMIT, json!({})).await));
    let mut session = json!(owner.session);
    session["guid"] = json!("another");
    stranger.session = ShopSession::read(&session);
    let status = stranger.says("where is my order").await;
    assert!(status.details("shopify-order-status").is_none());
}

#[tokio::test]
async fn a_lost_session_finds_the_cart_of_its_conversation_again() {
    let world = World::new().await;
    let mut client = world.client();
    client.says("add 2 colas").await;
    client.session = ShopSession::read(&json!({"guid": json!(client.session)["guid"]}));
    assert_eq!(client.says("show my cart").await.cart(), cart_of(&[("Cola", 2)]));
}

#[tokio::test]
async fn quantities_that_cannot_be_are_refused_and_change_nothing() {
    let world = World::new().await;
    let mut client = world.client();
    let cola = world.variant("Cola");
    let inputs: [Value; 6] = [
        add(cola, 0),
        add(cola, -1),
        add(cola, 1_000_000_000),
        add(cola, 201),
        add(7, 1),
        json!({"variant_id": "x"}),
    ];
    for input in inputs {
        let refused = client.clicks("add_item_to_cart", input.clone()).await;
        assert!(refused.details("shopify-cart-summary").is_none(), "{input}");
        assert!(refused.answer().starts_with("Sorry: "), "{input}: {}", refused.answer());
    }
    assert_eq!((world.shop.mutations(), client.says("show my cart").await.cart()), (0, Vec::new()));
}

#[tokio::test]
async fn pieces_are_removed_singly_or_all_at_once_and_the_last_line_takes_the_cart_along() {
    let world = World::new().await;
    let mut client = world.client();
    let (cola, slaw) = (world.variant("Cola"), world.variant("Coleslaw"));
    client.says("add 3 colas and 2 coleslaw").await;
    let less = client.clicks("delete_item_from_cart", json!({"variant_id": cola, "quantity": 1})).await;
    assert_eq!(less.cart(), cart_of(&[("Cola", 2), ("Coleslaw", 2)]));
    let one = client.clicks("delete_item_from_cart", json!({"variant_id": cola})).await;
    assert_eq!(one.cart(), cart_of(&[("Coleslaw", 2)]));
    let none = client.clicks("delete_item_from_cart", json!({"variant_id": slaw})).await;
    assert_eq!(none.cart(), []);
    assert_eq!((json!(client.session)["cart_id"].clone(), world.shop.carts().len()), (json!(null), 0));
    let gone = client.clicks("delete_item_from_cart", json!({"variant_id": slaw})).await;
    assert_eq!(gone.cart(), []);
}

#[tokio::test]
async fn the_same_variant_twice_is_one_line() {
    let world = World::new().await;
    let mut client = world.client();
    client.says("add 2 colas").await;
    let twice = client.clicks("add_item_to_cart", add(world.variant("Cola"), 3)).await;
    assert_eq!(twice.cart(), cart_of(&[("Cola", 5)]));
}

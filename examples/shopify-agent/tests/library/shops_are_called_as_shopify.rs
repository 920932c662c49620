//! The client of the shop: pages, throttling, user errors, failures, lost answers; and the embedded shop,
//! which executes GraphQL.

use std::time::Duration;

use agentgraph_llm::http_client_builder;
use serde_json::{Value, json};
use shopify_agent::embedded::EmbeddedShop;
use shopify_agent::money::Money;
use shopify_agent::session::ShopSession;
use shopify_agent::shop::{Change, Shop, ShopError, ShopSettings};

use crate::support::{World, add, cart_of};

async fn shop() -> (EmbeddedShop, Shop, String) {
    let embedded = EmbeddedShop::start().await.unwrap();
    let shop = Shop::new(embedded.settings()).unwrap();
    let tag = ShopSession::read(&Value::Null).tag();
    (embedded, shop, tag)
}

async fn graphql(embedded: &EmbeddedShop, query: &str, variables: Value) -> Value {
    let url = format!("http://{}/admin/api/2025-01/graphql.json", embedded.address());
    let call =
        http_client_builder().build().unwrap().post(url).header("x-shopify-access-token", "embedded-shop");
    let answer = call.json(&json!({"query": query, "variables": variables})).send().await.unwrap();
    serde_json::from_str(&answer.text().await.unwrap()).unwrap()
}

#[tokio::test]
async fn the_embedded_shop_executes_any_query_of_its_schema() {
    let (embedded, _, _) = shop().await;
    let query = "query Other($n: Int!) { some: products(first: $n, query: \"pizza\") { nodes { ...Parts } pageInfo { \
                 hasNextPage } } } fragment Parts on Product { name: title variants(first: 1) { nodes { price } } }";
    let answer = graphql(&embedded, query, json!({"n": 2})).await;
    let expected = json!([
        {"name": "Margherita Pizza", "variants": {"nodes": [{"price": "8.99"}]}},
        {"name": "Pepperoni Pizza", "variants": {"nodes": [{"price": "9.99"}]}}
    ]);
    assert_eq!(answer["data"]["some"]["nodes"], expected, "{answer}");
    assert_eq!(answer["data"]["some"]["pageInfo"]["hasNextPage"], true);
    assert!(answer["extensions"]["cost"]["throttleStatus"]["restoreRate"].is_number());
    let wrong = graphql(&embedded, "{ products(first: 1) { nodes { colour } } }", json!({})).await;
    assert!(wrong["errors"][0]["message"].as_str().unwrap().contains("colour"), "{wrong}");
    let too_many = graphql(&embedded, "{ products(first: 251) { nodes { id } } }", json!({})).await;
    assert!(too_many["errors"].is_array(), "{too_many}");
}

#[tokio::test]
async fn amounts_come_as_text_and_no_page_is_missed() {
    let (_embedded, shop, _) = shop().await;
    let products = shop.products(None).await.unwrap();
    assert_eq!(products.len(), 24);
    assert_eq!(products[0].variants[0].price, Money::from_hundredths(125));
    let wings = shop.products(Some("wing sauces")).await.unwrap();
    assert_eq!(wings.len(), 5, "{wings:?}");
}

#[tokio::test]
async fn throttled_calls_are_repeated_after_the_pause_that_the_cost_asks_for() {
    let (embedded, shop, tag) = shop().await;
    embedded.throttle_next(2);
    assert_eq!(shop.products(Some("cola")).await.unwrap().len(), 1);
    embedded.throttle_next(2);
    let cola = embedded.variant_of("Cola").unwrap();
    shop.change_cart((None, &tag), "k", cola, Change::Add(2)).await.unwrap();
    assert_eq!(embedded.carts(), [vec![("Cola".to_owned(), 2)]]);
    embedded.throttle_next(99);
    assert!(matches!(shop.products(None).await, Err(ShopError::Throttled(_))));
}

#[tokio::test]
async fn user_errors_are_refusals_and_nothing_else_is() {
    let (embedded, shop, tag) = shop().await;
    let cola = embedded.variant_of("Cola").unwrap();
    let refused = shop.change_cart((None, &tag), "k", cola, Change::Add(201)).await.unwrap_err();
    assert_eq!(refused, ShopError::Refused("Only 200 of Cola are left.".to_owned()));
    assert!(
        matches!(shop.complete(1).await, Err(ShopError::Refused(why)) if why == "Draft order does not exist")
    );

    embedded.fail_next(2);
    assert!(matches!(shop.products(None).await, Err(ShopError::Unavailable(_))));
    let wrong = Shop::new(ShopSettings { token: "wrong".into(), ..embedded.settings() }).unwrap();
    assert!(matches!(wrong.products(None).await, Err(ShopError::Unauthorized(_))));
}

#[tokio::test]
async fn a_change_with_the_same_key_is_made_once() {
    let (embedded, shop, tag) = shop().await;
    let cola = embedded.variant_of("Cola").unwrap();
    for _ in 0..3 {
        // The session of a killed run does not know the cart.
        shop.change_cart((None, &tag), "same", cola, Change::Add(2)).await.unwrap();
    }
    assert_eq!(embedded.carts(), [vec![("Cola".to_owned(), 2)]]);
    assert_eq!(embedded.mutations(), 1);
}

#[tokio::test]
async fn changes_side_by_side_in_one_conversation_lose_nothing() {
    let (embedded, shop, tag) = shop().await;
    let (cola, slaw) = (embedded.variant_of("Cola").unwrap(), embedded.variant_of("Coleslaw").unwrap());
    let changes = (0..10).map(|n| {
        let (shop, tag) = (shop.clone(), tag.clone());
        async move {
            let variant = if n % 2 == 0 { cola } else { slaw };
            shop.change_cart((None, &tag), &format!("k{n}"), variant, Change::Add(1)).await.unwrap()
        }
    });
    futures_util::future::join_all(changes).await;
    let mut carts = embedded.carts();
    carts[0].sort();
    assert_eq!(carts, [vec![("Cola".to_owned(), 5), ("Coleslaw".to_owned(), 5)]]);
}

#[tokio::test]
async fn a_lost_answer_neither_loses_nor_doubles_a_change_or_an_order() {
    let (embedded, _, _) = shop().await;
    let impatient = ShopSettings { timeout: Duration::from_millis(300), ..embedded.settings() };
    let agent = shopify_agent::ShopAgent::new(
        std::sync::Arc::new(shopify_agent::offline::OfflineModel),
        Shop::new(impatient).unwrap(),
        std::sync::Arc::new(agentgraph::MemorySaver::new()),
        shopify_agent::agent::Limits::default(),
    )
    .unwrap();
    let world = World { shop: embedded, agent };
    let mut client = world.client();
    world.shop.silence_next(1);
    let added = client.clicks("add_item_to_cart", add(world.variant("Cola"), 2)).await;
    assert_eq!(added.cart(), cart_of(&[("Cola", 2)]));
    assert_eq!(world.shop.carts(), [vec![("Cola".to_owned(), 2)]]);
    world.shop.silence_next(1);
    let ordered = client.clicks("submit_cart_for_order", json!({})).await;
    assert!(ordered.details("shopify-order-confirmation").is_some(), "{}", ordered.answer());
    assert_eq!(world.shop.orders().len(), 1);
}

#[tokio::test]
async fn a_shop_that_fails_or_is_slow_is_said_to_the_customer() {
    let world = World::new().await;
    let mut client = world.client();
    world.shop.fail_next(4);
    let failed = client.says("what's on the menu").await;
    assert!(failed.answer().contains("The shop cannot be reached"), "{}", failed.answer());
    assert!(!failed.nodes().contains(&"Widget"));
    world.shop.fail_next(0);
    world.shop.delay(Duration::from_millis(30));
    assert_eq!(client.says("what's on the menu").await.answer(), "Any of these look good to you?");
}

#[tokio::test]
async fn what_is_sold_out_is_said() {
    let world = World::new().await;
    let turn = world.client().says("add a ginger beer").await;
    assert_eq!(turn.answer(), "Sorry: Ginger Beer is out of stock.");
    assert_eq!(world.shop.mutations(), 0);
}

#[test]
fn a_token_is_sent_to_no_plain_address_of_another_machine() {
    for url in ["http://shop.example", "ftp://localhost", "nonsense"] {
        assert!(matches!(Shop::new(ShopSettings::new(url, "t")), Err(ShopError::Setting(_))), "{url}");
    }
    assert!(Shop::new(ShopSettings::new("https://shop.example", "t")).is_ok());
    let settings = ShopSettings::new("https://shop.example", "secret-token");
    assert!(!format!("{settings:?}").contains("secret-token"));
}

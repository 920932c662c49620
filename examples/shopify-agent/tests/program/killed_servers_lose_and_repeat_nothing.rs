//! `kill -9` in the middle of a turn: the next start answers, and each item is in the cart once.

use std::time::Duration;

use serde_json::{Value, json};
use shopify_agent::embedded::EmbeddedShop;

use crate::process::{Folder, Server, click, message};

fn answer_of(report: &Value) -> &str {
    let last = report["frames"].as_array().unwrap().last().unwrap();
    assert_eq!(
        (&report["status"], &last["node"]),
        (&json!("finished-with-success"), &json!("CustomerResponse"))
    );
    last["output"].as_str().unwrap()
}

#[tokio::test]
async fn a_kill_between_the_shops_reply_and_our_record_adds_each_item_once() {
    let folder = Folder::new();
    let shop = EmbeddedShop::start().await.unwrap();
    let server = Server::for_shop(&folder, &shop, &["--shop-seconds", "600"]).await;
    // The first change takes effect, and its reply never comes.
    shop.silence_next(1);
    let reply = server.run(&message("g", "add 6 lemon garlic and 12 hot buffalo")).await;
    while shop.mutations() == 0 {
        tokio::task::yield_now().await;
    }
    server.kill().await;
    assert_eq!(shop.mutations(), 1);

    let server = Server::for_shop(&folder, &shop, &[]).await;
    let report = server.ended(&reply.task).await;
    assert_eq!(answer_of(&report), "Anything else today?");
    let expected = [vec![("Lemon Garlic Wings".to_owned(), 6), ("Hot Buffalo Wings".to_owned(), 12)]];
    assert_eq!(shop.carts(), expected);
    assert_eq!(shop.mutations(), 2, "the change that had taken effect was not made again");
}

#[tokio::test]
async fn a_kill_between_the_order_and_our_record_orders_once_and_confirms() {
    let folder = Folder::new();
    let shop = EmbeddedShop::start().await.unwrap();
    let server = Server::for_shop(&folder, &shop, &["--shop-seconds", "600"]).await;
    let frames = server.run(&message("g", "add 2 colas")).await.all().await;
    let session = frames.last().unwrap()["session"].clone();
    shop.silence_next(1);
    let reply = server.run(&click(&session, "submit_cart_for_order", &json!({}))).await;
    while shop.orders().is_empty() {
        tokio::task::yield_now().await;
    }
    server.kill().await;

    let server = Server::for_shop(&folder, &shop, &[]).await;
    let report = server.ended(&reply.task).await;
    assert!(answer_of(&report).contains(&shop.orders()[0]));
    assert_eq!(shop.orders().len(), 1);
    let last = report["frames"].as_array().unwrap().last().unwrap();
    assert!(last["session"]["submitted_order_id"].is_u64() && last["session"]["cart_id"].is_null());
}

#[tokio::test]
async fn a_kill_at_any_moment_loses_and_repeats_nothing() {
    let folder = Folder::new();
    let shop = EmbeddedShop::start().await.unwrap();
    shop.delay(Duration::from_millis(15));
    for round in 0..6_u64 {
        let guid = format!("g-{round}");
        let server = Server::for_shop(&folder, &shop, &[]).await;
        let reply = server.run(&message(&guid, "add 2 colas and 3 coleslaw")).await;
        tokio::time::sleep(Duration::from_millis(round * 35)).await;
        server.kill().await;
        let server = Server::for_shop(&folder, &shop, &[]).await;
        let report = server.ended(&reply.task).await;
        assert_eq!(answer_of(&report), "Anything else today?", "round {round}");
        assert_eq!(shop.carts().len(), usize::try_from(round).unwrap() + 1, "round {round}");
        let expected = vec![("Cola".to_owned(), 2), ("Coleslaw".to_owned(), 3)];
        assert!(shop.carts().iter().all(|cart| *cart == expected), "round {round}: {:?}", shop.carts());
        server.kill().await;
    }
}

#[tokio::test]
async fn the_embedded_shop_has_its_carts_after_a_kill() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let frames = server.run(&message("g", "add 2 colas")).await.all().await;
    let session = frames.last().unwrap()["session"].clone();
    server.kill().await;
    let server = Server::start(&folder).await;
    let mut reply = server.run(&click(&session, "get_cart_summary", &json!({}))).await;
    let widget = reply.until("Widget").await;
    assert!(widget["output"]["details"].as_str().unwrap().contains("\"name\":\"Cola\""), "{widget}");
}

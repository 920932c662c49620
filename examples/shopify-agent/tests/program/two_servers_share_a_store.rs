//! Two servers over one Postgres: each cancels and shows the tasks of the other.

use std::time::Duration;

use serde_json::json;
use shopify_agent::embedded::EmbeddedShop;

use crate::postgres::PostgresServer;
use crate::process::{Folder, Server, click, message};

#[tokio::test]
async fn a_task_is_cancelled_from_the_other_server_within_seconds() {
    let postgres = PostgresServer::get();
    let (here, there) = (Folder::new(), Folder::new());
    let shop = EmbeddedShop::start().await.unwrap();
    let store = ["--store", &postgres.url()];
    let one = Server::for_shop(&here, &shop, &store).await;
    let other = Server::for_shop(&there, &shop, &store).await;

    let done = one.run(&message("g", "hello")).await;
    let task = done.task.clone();
    done.all().await;
    assert_eq!(other.ended(&task).await["status"], "finished-with-success");

    shop.silence_next(1);
    let cola = shop.variant_of("Cola").unwrap();
    let mut reply =
        one.run(&click(&json!({"guid": "g"}), "add_item_to_cart", &json!({"variant_id": cola}))).await;
    while shop.mutations() == 0 {
        tokio::task::yield_now().await;
    }
    let cancel = other.post(&format!("cancel-reasoning-agent/{}", reply.task)).send();
    let answer = tokio::time::timeout(Duration::from_secs(20), cancel).await.unwrap().unwrap();
    assert_eq!(answer.status(), 200);
    assert_eq!(reply.next().await, None);
    for server in [&one, &other] {
        assert_eq!(server.ended(&reply.task).await["status"], "cancelled");
    }
}

#[tokio::test]
async fn a_task_of_a_killed_server_is_ended_by_the_next_one_over_the_store() {
    let postgres = PostgresServer::get();
    let (here, there) = (Folder::new(), Folder::new());
    let shop = EmbeddedShop::start().await.unwrap();
    let store = ["--store", &postgres.url(), "--shop-seconds", "600"];
    let one = Server::for_shop(&here, &shop, &store).await;
    shop.silence_next(1);
    let reply = one.run(&message("g", "add 2 colas")).await;
    while shop.mutations() == 0 {
        tokio::task::yield_now().await;
    }
    one.kill().await;
    let other = Server::for_shop(&there, &shop, &store).await;
    assert_eq!(other.ended(&reply.task).await["status"], "finished-with-success");
    assert_eq!(shop.carts(), [vec![("Cola".to_owned(), 2)]]);
}

//! The five widgets, field by field as the sample page of xRx reads them, and by their JSON schemas.

use serde_json::{Value, json};
use shopify_agent::widget::WidgetKind;

use crate::support::{Turn, World, add};

fn is(value: &Value, kind: &str) -> bool {
    match kind {
        "number" => value.is_u64(),
        "text" => value.is_string(),
        "text or null" => value.is_string() || value.is_null(),
        _ => false,
    }
}

fn check(value: &Value, fields: &[(&str, &str)]) {
    for (name, kind) in fields {
        assert!(is(&value[*name], kind), "{name} is no {kind} in {value}");
    }
}

/// The details, after a check of the form that all widgets have.
fn details(turn: &Turn, kind: WidgetKind) -> Value {
    let frame = turn.frames().find(|frame| frame.node == "Widget").expect("a widget");
    assert_eq!(frame.output["type"], json!(kind));
    assert!(frame.output["available-tools"].is_array());
    let details: Value = serde_json::from_str(frame.output["details"].as_str().expect("JSON text")).unwrap();
    let schema = kind.schema();
    let required = schema["required"].as_array().into_iter().flatten();
    assert!(required.into_iter().all(|name| !details[name.as_str().unwrap()].is_null() || name.as_str().unwrap().contains("link")));
    details
}

#[tokio::test]
async fn a_product_list_is_keyed_by_ids_in_the_shops_order() {
    let world = World::new().await;
    let turn = world.client().says("what's on the menu").await;
    let list = details(&turn, WidgetKind::ProductList);
    let products = list.as_object().unwrap();
    assert_eq!(products.len(), 24, "all pages of ten are read");
    for (key, product) in products {
        assert_eq!(*key, product["product_id"].to_string());
        assert!(key.parse::<u64>().unwrap() > u64::from(u32::MAX), "JavaScript would sort it");
        check(
            product,
            &[("product_id", "number"), ("product_title", "text"), ("product_image_src", "text or null")],
        );
    }
    let titles: Vec<&Value> = products.values().map(|product| &product["product_title"]).collect();
    assert_eq!(titles[0], "Lemon Garlic Wings");
    assert!(titles.contains(&&json!("<script>alert(\"Cookie\")</script>")));
}

#[tokio::test]
async fn a_product_has_its_variants_with_prices_as_text() {
    let world = World::new().await;
    let id = world.shop.product_of("Garden Pizza").unwrap();
    let turn = world.client().clicks("get_product_details", json!({"product_id": id})).await;
    let product = details(&turn, WidgetKind::ProductDetails);
    check(&product, &[("product_title", "text")]);
    let variants = product["product_variants"].as_array().unwrap();
    assert_eq!(variants.len(), 3);
    for variant in variants {
        let fields = [
            ("variant_id", "number"),
            ("variant_name", "text"),
            ("price", "text"),
            ("product_image_src", "text or null"),
        ];
        check(variant, &fields);
    }
    assert_eq!(variants[1]["price"], "12.49");
}

#[tokio::test]
async fn a_cart_has_lines_and_a_total_also_if_it_is_empty() {
    let world = World::new().await;
    let mut client = world.client();
    let empty = details(&client.clicks("get_cart_summary", json!({})).await, WidgetKind::CartSummary);
    assert_eq!(empty, json!({"cart_summary": {"line_items": [], "total_price": "0.00"}}));
    let cart = details(
        &client.clicks("add_item_to_cart", add(world.variant("Lemonade"), 2)).await,
        WidgetKind::CartSummary,
    );
    check(&cart["cart_summary"], &[("total_price", "text")]);
    let line = &cart["cart_summary"]["line_items"][0];
    let fields = [
        ("name", "text"),
        ("quantity", "number"),
        ("price", "text"),
        ("variant_id", "number"),
        ("variant_title", "text or null"),
        ("product_image_src", "text or null"),
    ];
    check(line, &fields);
    assert_eq!(line["variant_title"], "Small");
}

#[tokio::test]
async fn an_order_has_its_number_and_its_link_now_and_later() {
    let world = World::new().await;
    let mut client = world.client();
    client.says("add a cola").await;
    let confirmed =
        details(&client.clicks("submit_cart_for_order", json!({})).await, WidgetKind::OrderConfirmation);
    check(
        &confirmed,
        &[("confirmation_number", "text"), ("confirmation_link", "text or null"), ("message", "text")],
    );
    let status = details(&client.clicks("get_order_status", json!({})).await, WidgetKind::OrderStatus);
    check(&status, &[("confirmation_number", "text"), ("confirmation_link", "text or null")]);
    assert_eq!(status["confirmation_number"], confirmed["confirmation_number"]);
}

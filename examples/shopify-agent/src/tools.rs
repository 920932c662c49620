//! The seven tools. Their doc comments are the prompt: a changed comment changes what the agent does.
//!
//! Session and cart are no arguments, so that no model can name the cart of another customer. They come from
//! the session of the run.

use std::sync::Arc;

use agentgraph::{CallContext, Ctx, Session, Snapshot};
use agentgraph_llm::prelude::*;
use serde::Serialize;
use serde_json::{Value, json};

use crate::agent::Turn;
use crate::session::{Offer, ShopSession};
use crate::shop::{Cart, Change, Order, Product, Shop, ShopError};
use crate::widget::{
    CartDetails, CartSummary, ListedProduct, OrderDetails, ProductDetails, ProductList, Widget, WidgetKind,
};

/// The most pieces of one call, and the most that a customer can mean.
const MOST_PIECES: i64 = 1_000_000;
/// The most products of an answer.
const MOST_PRODUCTS: usize = 30;

/// The tools, in the order in which the prompt lists them.
pub fn all() -> Vec<Arc<dyn Tool>> {
    vec![
        Arc::new(get_products()),
        Arc::new(get_product_details()),
        Arc::new(add_item_to_cart()),
        Arc::new(delete_item_from_cart()),
        Arc::new(get_cart_summary()),
        Arc::new(submit_cart_for_order()),
        Arc::new(get_order_status()),
    ]
}

type CallResult = Result<ToolOutput, ToolError>;

/// Lists the products of the shop with their ids, variants, prices and stock. Use it when the customer asks
/// what there is, or names a product whose variant_id is not known yet.
#[tool]
async fn get_products(
    shop: CallContext<Shop>,
    /// Words that the title or the description must have, such as "wings". Leave it out to list everything.
    search: Option<String>,
) -> CallResult {
    let mut products = shop.products(search.as_deref()).await.map_err(told)?;
    products.truncate(MOST_PRODUCTS);
    let listed = ProductList(products.iter().map(ListedProduct::from).collect());
    let output: Vec<Value> = products.iter().map(brief).collect();
    shown(&json!({ "products": output }), WidgetKind::ProductList, &listed)
}

/// Shows one product with its description, its variants and their prices. Use it when the customer wants to
/// know more about a product, or must choose a size.
#[tool]
async fn get_product_details(
    shop: CallContext<Shop>,
    /// The id of the product, from get_products.
    product_id: u64,
) -> CallResult {
    let product = shop.product(product_id).await.map_err(told)?;
    let product = product.ok_or_else(|| told(ShopError::no_such("product", product_id)))?;
    let output = json!({ "description": product.description, "products": [brief(&product)] });
    shown(&output, WidgetKind::ProductDetails, &ProductDetails::from(&product))
}

/// Adds pieces of one variant to the customer's cart. Use it once for each item that the customer wants; it
/// never places an order.
#[tool]
async fn add_item_to_cart(
    ctx: Ctx,
    shop: CallContext<Shop>,
    #[inject] session: Session<ShopSession>,
    /// The id of the variant, from get_products or get_product_details.
    variant_id: u64,
    /// The number of pieces, at least 1.
    #[default(1)]
    quantity: i64,
) -> CallResult {
    let pieces = pieces(quantity)?;
    let cart = change(&ctx, &shop, &session, variant_id, Change::Add(pieces)).await?;
    cart_shown(&session, cart.as_ref(), Vec::new())
}

/// Removes pieces of one variant from the customer's cart. Without a quantity all of them are removed.
#[tool]
async fn delete_item_from_cart(
    ctx: Ctx,
    shop: CallContext<Shop>,
    #[inject] session: Session<ShopSession>,
    /// The id of the variant in the cart.
    variant_id: u64,
    /// The number of pieces to remove, at least 1. Leave it out to remove the whole line.
    quantity: Option<i64>,
) -> CallResult {
    let removed = quantity.map(pieces).transpose()?;
    let cart = change(&ctx, &shop, &session, variant_id, Change::Remove(removed)).await?;
    cart_shown(&session, cart.as_ref(), Vec::new())
}

/// Shows the customer's cart: its items, their prices and the total. The customer can order from it.
#[tool]
async fn get_cart_summary(
    ctx: Ctx,
    shop: CallContext<Shop>,
    #[inject] session: Session<ShopSession>,
) -> CallResult {
    let (cart, notes) = tidy_cart(&ctx, &shop, &session).await?;
    cart_shown(&session, cart.as_ref(), notes)
}

/// Places the order of everything in the cart. Use it when the customer wants to order or confirms the cart.
/// If the customer has not confirmed this cart and total, nothing is ordered and the cart is shown for it.
#[tool]
async fn submit_cart_for_order(
    ctx: Ctx,
    shop: CallContext<Shop>,
    turn: Snapshot<Turn>,
    #[inject] session: Session<ShopSession>,
) -> CallResult {
    let (named, tag, placed) = session.with(|session| (session.cart(), session.tag(), session.order()));
    // A draft order that is an order already: this call was cut off after it had placed it, or the customer's
    // side has sent an old session.
    if let Some(order) = shop.draft(named, &tag).await.map_err(told)?.and_then(|cart| cart.order) {
        let is_known = placed == Some(order.id);
        return if is_known { Err(already(&order)) } else { confirmed(&session, &order) };
    }
    let (cart, mut notes) = tidy_cart(&ctx, &shop, &session).await?;
    let lock = shop.lock_of(&tag);
    let _changing = lock.lock().await;
    let Some(cart) = cart else {
        return match placed {
            Some(id) => {
                Err(shop.order(id, &tag).await.map_err(told)?.map_or_else(empty, |order| already(&order)))
            }
            None => Err(empty()),
        };
    };
    if let Some(line) =
        cart.lines.iter().find(|line| line.stock.is_some_and(|stock| stock < line.quantity.into()))
    {
        return Err(told(ShopError::short_of(&line.title, line.stock.unwrap_or_default(), line.quantity)));
    }
    let agreed = turn
        .consent
        .as_ref()
        .is_some_and(|agreed| agreed.cart == cart.fingerprint() && agreed.total == cart.total);
    if !agreed || !notes.is_empty() {
        let changed =
            if turn.consent.is_some() { "The cart or a price has changed since it was shown. " } else { "" };
        notes.push(format!(
            "{changed}Nothing is ordered yet: ask the customer to confirm the order of this cart for ${}.",
            cart.total
        ));
        return cart_shown(&session, Some(&cart), notes);
    }
    let order = match shop.complete(cart.id).await {
        // The answer was lost, and perhaps not the order.
        Err(lost @ ShopError::Unavailable(_)) => {
            let order = shop.draft(Some(cart.id), &tag).await.map_err(told)?.and_then(|cart| cart.order);
            order.ok_or(lost)
        }
        done => done,
    };
    confirmed(&session, &order.map_err(told)?)
}

/// Tells how far the customer's last order is.
#[tool]
async fn get_order_status(shop: CallContext<Shop>, #[inject] session: Session<ShopSession>) -> CallResult {
    let (id, tag) = session.with(|session| (session.order(), session.tag()));
    let order = match id {
        Some(id) => shop.order(id, &tag).await.map_err(told)?,
        None => None,
    };
    let order = order
        .ok_or_else(|| ToolError::failed("The customer has not placed an order in this conversation."))?;
    let message = format!("Order {}: payment {}, delivery {}.", order.number, order.payment, order.delivery);
    let details = OrderDetails::new(&order, message);
    shown(&details, WidgetKind::OrderStatus, &details)
}

/// What the model reads about a failure; one that no customer can do anything about ends the run.
fn told(error: ShopError) -> ToolError {
    match error {
        ShopError::Refused(why) => ToolError::failed(why),
        ShopError::Throttled(_) | ShopError::Unavailable(_) => {
            tracing::warn!(%error, "the shop failed");
            ToolError::failed(
                "The shop cannot be reached at the moment. The customer may try again in a moment.",
            )
        }
        error => ToolError::fatal(error),
    }
}

fn empty() -> ToolError {
    ToolError::failed("The cart is empty, so there is nothing to order.")
}

fn already(order: &Order) -> ToolError {
    ToolError::failed(format!("This cart was ordered already: the order is {}.", order.number))
}

fn pieces(quantity: i64) -> Result<u32, ToolError> {
    let pieces = u32::try_from(quantity).ok().filter(|_| (1..=MOST_PIECES).contains(&quantity));
    pieces.ok_or_else(|| {
        ToolError::invalid_arguments(format!(
            "the quantity is {quantity}; it must be from 1 to {MOST_PIECES}"
        ))
    })
}

/// Changes the cart, and keeps its id in the session. The id of the task is the key of the change.
async fn change(
    ctx: &Ctx,
    shop: &Shop,
    session: &Session<ShopSession>,
    variant: u64,
    change: Change,
) -> Result<Option<Cart>, ToolError> {
    let (named, tag) = session.with(|session| (session.cart(), session.tag()));
    let key = ctx.task_id().to_string();
    let mut done = shop.change_cart((named, &tag), &key, variant, change).await;
    if matches!(done, Err(ShopError::Unavailable(_))) {
        // With its key, a change that took effect is not made again.
        done = shop.change_cart((named, &tag), &key, variant, change).await;
    }
    let cart = done.map_err(told)?;
    session.with(|session| session.set_cart(cart.as_ref().map(|cart| cart.id)));
    Ok(cart)
}

/// The cart without what is no longer sold, and a note for each such item.
async fn tidy_cart(
    ctx: &Ctx,
    shop: &Shop,
    session: &Session<ShopSession>,
) -> Result<(Option<Cart>, Vec<String>), ToolError> {
    let (named, tag) = session.with(|session| (session.cart(), session.tag()));
    let cart = shop.cart(named, &tag).await.map_err(told)?;
    let lines = cart.iter().flat_map(|cart| &cart.lines);
    let gone: Vec<String> = lines
        .filter(|line| line.variant.is_none())
        .map(|line| format!("{} is no longer sold and was removed from the cart.", line.title))
        .collect();
    let cart = if gone.is_empty() { cart } else { change(ctx, shop, session, 0, Change::Tidy).await? };
    session.with(|session| session.set_cart(cart.as_ref().map(|cart| cart.id)));
    Ok((cart, gone))
}

/// Shows the cart, which offers its order.
fn cart_shown(session: &Session<ShopSession>, cart: Option<&Cart>, notes: Vec<String>) -> CallResult {
    let offer = cart.map(|cart| Offer { cart: cart.fingerprint(), total: cart.total, is_fresh: true });
    session.with(|session| session.set_offer(offer.as_ref()));
    let details = CartDetails { cart_summary: CartSummary::from(cart) };
    let mut output = json!(details);
    if !notes.is_empty() {
        output["notes"] = json!(notes);
    }
    shown(&output, WidgetKind::CartSummary, &details)
}

fn confirmed(session: &Session<ShopSession>, order: &Order) -> CallResult {
    session.with(|session| {
        session.set_cart(None);
        session.set_offer(None);
        session.set_order(order.id);
    });
    let message = format!("The order is placed. Its confirmation number is {}.", order.number);
    let details = OrderDetails::new(order, message);
    shown(&details, WidgetKind::OrderConfirmation, &details)
}

/// An output for the model, and the widget for the customer.
fn shown(output: &impl Serialize, kind: WidgetKind, details: &impl Serialize) -> CallResult {
    let widget = Widget::new(kind, details)?;
    Ok(ToolOutput::json(output)?.with_artifact(serde_json::to_value(widget)?))
}

/// A product as the model reads it. Ids are part of it, since they are what the other tools take.
fn brief(product: &Product) -> Value {
    let variants = product.variants.iter().map(|variant| {
        json!({ "variant_id": variant.id, "title": variant.title, "price": variant.price, "stock": variant.stock })
    });
    json!({ "product_id": product.id, "title": product.title, "variants": variants.collect::<Vec<_>>() })
}

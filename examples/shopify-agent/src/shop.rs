//! The client of a shop: the part of Shopify's Admin GraphQL API that a purchase needs.
//!
//! A cart is a draft order, since the Storefront API cannot place an order. Draft orders are found by the tag
//! of their conversation ([`ShopSession::tag`](crate::session::ShopSession::tag)), and carry the keys of the
//! changes that were made to them. So a change that is repeated after a kill, because its record was lost,
//! finds its key and changes nothing.

mod api;
mod error;
mod types;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use serde_json::{Value, json};

use crate::money::Money;

pub use api::ShopSettings;
pub use error::ShopError;
pub use types::{Cart, Line, Order, Product, Variant};

use api::Api;
use types::{Connection, OrderNode, ProductNode, gid};

/// The products of one page of the API, as the original asked for them.
const PAGE: u32 = 10;
/// Pages that one search reads at most.
const PAGES: usize = 10;
/// Keys of changes that a cart keeps. A turn makes fewer changes, and only its own can be repeated.
const KEPT_CHANGES: usize = 60;
/// The attribute of a draft order with the keys of its changes.
const CHANGES: &str = "agent-changes";

const PRODUCT: &str = "id legacyResourceId title description featuredImage { url }
    variants(first: 100) { nodes { id legacyResourceId title price inventoryQuantity inventoryPolicy } }";
const DRAFT: &str = "id legacyResourceId status tags customAttributes { key value }
    totalPriceSet { shopMoney { amount currencyCode } }
    order { id legacyResourceId name tags confirmationNumber statusPageUrl displayFinancialStatus
        displayFulfillmentStatus totalPriceSet { shopMoney { amount currencyCode } } }
    lineItems(first: 100) { nodes { quantity title variantTitle image { url }
        originalUnitPriceSet { shopMoney { amount currencyCode } }
        variant { id legacyResourceId title price inventoryQuantity inventoryPolicy } } }";
const ORDER: &str = "id legacyResourceId name tags confirmationNumber statusPageUrl displayFinancialStatus
    displayFulfillmentStatus totalPriceSet { shopMoney { amount currencyCode } }";

/// A shop. Clones share connections.
#[derive(Clone)]
pub struct Shop {
    api: Arc<Api>,
    /// One lock for each cart that is being changed in this process. Shopify replaces all lines of a draft
    /// order at once, so of two changes that read the same lines one would be lost.
    changing: Arc<Mutex<HashMap<String, Weak<tokio::sync::Mutex<()>>>>>,
}

/// A change of the quantity of a variant in a cart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Adds pieces.
    Add(u32),
    /// Removes pieces, or all of them.
    Remove(Option<u32>),
    /// Leaves out what is no longer sold.
    Tidy,
}

impl Shop {
    /// A client. Nothing is sent.
    ///
    /// # Errors
    /// If the address or the token cannot be used.
    pub fn new(settings: ShopSettings) -> Result<Self, ShopError> {
        Ok(Shop { api: Arc::new(Api::new(settings)?), changing: Arc::default() })
    }

    /// The products, those whose title or description has all words of `search` if it is given. Shopify's own
    /// search would find parts of words only with wildcards, so the words are compared here.
    ///
    /// # Errors
    /// [`ShopError`].
    pub async fn products(&self, search: Option<&str>) -> Result<Vec<Product>, ShopError> {
        let query = format!(
            "query Products($first: Int!, $after: String) {{ products(first: $first, after: $after, sortKey: ID, \
             query: \"status:active\") {{ nodes {{ {PRODUCT} }} pageInfo {{ hasNextPage endCursor }} }} }}"
        );
        let words: Vec<String> = search.unwrap_or("").split_whitespace().map(stem).collect();
        let (mut found, mut after) = (Vec::new(), Value::Null);
        for _ in 0..PAGES {
            let data = self.api.read(&query, json!({ "first": PAGE, "after": after })).await?;
            let page: Connection<ProductNode> = types::read(&data, "products")?;
            for node in page.nodes {
                let product = node.into_product()?;
                let text = format!("{} {}", product.title, product.description).to_lowercase();
                let has = |word: &String| {
                    text.split(|c: char| !c.is_alphanumeric()).any(|own| own.starts_with(word))
                };
                if words.iter().all(has) {
                    found.push(product);
                }
            }
            match page.page_info.end_cursor.filter(|_| page.page_info.has_next_page) {
                Some(cursor) => after = Value::String(cursor),
                None => break,
            }
        }
        Ok(found)
    }

    /// A product.
    ///
    /// # Errors
    /// [`ShopError`].
    pub async fn product(&self, id: u64) -> Result<Option<Product>, ShopError> {
        let query = format!("query Product($id: ID!) {{ product(id: $id) {{ {PRODUCT} }} }}");
        let data = self.api.read(&query, json!({ "id": gid("Product", id) })).await?;
        let node: Option<ProductNode> = types::read(&data, "product")?;
        node.map(ProductNode::into_product).transpose()
    }

    /// The product of a variant, with that variant alone.
    ///
    /// # Errors
    /// [`ShopError`].
    pub async fn variant(&self, id: u64) -> Result<Option<Product>, ShopError> {
        let query =
            format!("query Variant($id: ID!) {{ productVariant(id: $id) {{ product {{ {PRODUCT} }} }} }}");
        let data = self.api.read(&query, json!({ "id": gid("ProductVariant", id) })).await?;
        if data["productVariant"].is_null() {
            return Ok(None);
        }
        let mut product = types::read::<ProductNode>(&data["productVariant"], "product")?.into_product()?;
        product.variants.retain(|variant| variant.id == id);
        Ok(Some(product).filter(|product| !product.variants.is_empty()))
    }

    /// The open cart of a conversation: the one that its session names, if it belongs to it, else the one
    /// with its tag.
    ///
    /// # Errors
    /// [`ShopError`].
    pub async fn cart(&self, named: Option<u64>, tag: &str) -> Result<Option<Cart>, ShopError> {
        if let Some(cart) = self.draft(named, tag).await?
            && cart.is_open()
        {
            return Ok(Some(cart));
        }
        let query = format!(
            "query Carts($query: String!) {{ draftOrders(first: 10, query: $query) {{ nodes {{ {DRAFT} }} }} }}"
        );
        let data = self.api.read(&query, json!({ "query": format!("status:open AND tag:'{tag}'") })).await?;
        let page: Connection<Value> = types::read(&data, "draftOrders")?;
        let carts = page.nodes.iter().map(Cart::read).collect::<Result<Vec<_>, _>>()?;
        // The search follows changes late, and may match other tags.
        Ok(carts.into_iter().find(|cart| cart.is_open() && cart.has_tag(tag)))
    }

    /// The draft order with this id, open or not, if it belongs to the conversation.
    ///
    /// # Errors
    /// [`ShopError`].
    pub async fn draft(&self, id: Option<u64>, tag: &str) -> Result<Option<Cart>, ShopError> {
        let Some(id) = id else { return Ok(None) };
        let query = format!("query Cart($id: ID!) {{ draftOrder(id: $id) {{ {DRAFT} }} }}");
        let data = self.api.read(&query, json!({ "id": gid("DraftOrder", id) })).await?;
        let cart = Some(&data["draftOrder"]).filter(|draft| !draft.is_null()).map(Cart::read).transpose()?;
        Ok(cart.filter(|cart| cart.has_tag(tag)))
    }

    /// Changes the quantity of a variant in the conversation's cart, which is made if there is none. A change
    /// whose key the cart has is not made again.
    ///
    /// # Errors
    /// [`ShopError::Refused`] with words for the customer if the change is impossible; [`ShopError`]
    /// otherwise.
    pub async fn change_cart(
        &self,
        (named, tag): (Option<u64>, &str),
        key: &str,
        variant: u64,
        change: Change,
    ) -> Result<Option<Cart>, ShopError> {
        let lock = self.lock_of(tag);
        let _changing = lock.lock().await;
        let cart = self.cart(named, tag).await?;
        if cart.as_ref().is_some_and(|cart| cart.changes.iter().any(|made| made == key)) {
            return Ok(cart);
        }
        let lines = match change {
            Change::Add(pieces) => self.with_added(cart.as_ref(), variant, pieces).await?,
            // Also after a kill that lost the record of the removal that has emptied the cart.
            Change::Remove(_) | Change::Tidy if cart.is_none() => return Ok(None),
            Change::Tidy => lines_of(cart.as_ref()),
            Change::Remove(pieces) => with_removed(cart.as_ref(), variant, pieces)?,
        };
        let mut changes = cart.as_ref().map(|cart| cart.changes.clone()).unwrap_or_default();
        changes.push(key.to_owned());
        changes.drain(..changes.len().saturating_sub(KEPT_CHANGES));
        if lines.is_empty() {
            // A draft order cannot be without lines.
            if let Some(cart) = &cart {
                self.delete(cart.id).await?;
            }
            return Ok(None);
        }
        let lines: Vec<Value> = lines
            .iter()
            .map(|(variant, pieces)| json!({ "variantId": gid("ProductVariant", *variant), "quantity": pieces }))
            .collect();
        let attributes = json!([{ "key": CHANGES, "value": changes.join(" ") }]);
        let input = json!({ "lineItems": lines, "tags": [tag], "customAttributes": attributes });
        let draft = match &cart {
            None => {
                let query = format!(
                    "mutation NewCart($input: DraftOrderInput!) {{ draftOrderCreate(input: $input) {{ draftOrder {{ \
                     {DRAFT} }} userErrors {{ field message }} }} }}"
                );
                self.api.change(&query, json!({ "input": input }), "draftOrderCreate").await?
            }
            Some(cart) => {
                let query = format!(
                    "mutation ChangeCart($id: ID!, $input: DraftOrderInput!) {{ draftOrderUpdate(id: $id, input: \
                     $input) {{ draftOrder {{ {DRAFT} }} userErrors {{ field message }} }} }}"
                );
                let variables = json!({ "id": gid("DraftOrder", cart.id), "input": input });
                self.api.change(&query, variables, "draftOrderUpdate").await?
            }
        };
        Cart::read(&draft["draftOrder"]).map(Some)
    }

    async fn delete(&self, cart: u64) -> Result<(), ShopError> {
        let query = "mutation DeleteCart($input: DraftOrderDeleteInput!) { draftOrderDelete(input: $input) { deletedId \
                     userErrors { field message } } }";
        let variables = json!({ "input": { "id": gid("DraftOrder", cart) } });
        self.api.change(query, variables, "draftOrderDelete").await.map(drop)
    }

    async fn with_added(
        &self,
        cart: Option<&Cart>,
        id: u64,
        pieces: u32,
    ) -> Result<Vec<(u64, u32)>, ShopError> {
        let product = self.variant(id).await?.ok_or_else(|| ShopError::no_such("variant", id))?;
        let mut lines = lines_of(cart);
        let held = lines.iter().find(|(variant, _)| *variant == id).map_or(0, |(_, pieces)| *pieces);
        let wanted = held
            .checked_add(pieces)
            .ok_or_else(|| ShopError::refused("That is more than can be ordered."))?;
        let left = product.variants.first().and_then(|variant| variant.stock);
        if left.is_some_and(|left| i64::from(wanted) > left) {
            return Err(ShopError::short_of(&product.title, left.unwrap_or_default(), held));
        }
        match lines.iter_mut().find(|(variant, _)| *variant == id) {
            Some(line) => line.1 = wanted,
            None => lines.push((id, wanted)),
        }
        Ok(lines)
    }

    /// Places the order of a cart.
    ///
    /// # Errors
    /// [`ShopError::Refused`] if the shop does not take it; [`ShopError`] otherwise.
    pub async fn complete(&self, cart: u64) -> Result<Order, ShopError> {
        let query = format!(
            "mutation PlaceOrder($id: ID!) {{ draftOrderComplete(id: $id, paymentPending: true) {{ draftOrder {{ {DRAFT} \
             }} userErrors {{ field message }} }} }}"
        );
        let variables = json!({ "id": gid("DraftOrder", cart) });
        let done = self.api.change(&query, variables, "draftOrderComplete").await?;
        let cart = Cart::read(&done["draftOrder"])?;
        cart.order.ok_or_else(|| ShopError::Protocol("a completed draft order has no order".to_owned()))
    }

    /// An order of the conversation.
    ///
    /// # Errors
    /// [`ShopError`].
    pub async fn order(&self, id: u64, tag: &str) -> Result<Option<Order>, ShopError> {
        let query = format!("query Order($id: ID!) {{ order(id: $id) {{ {ORDER} }} }}");
        let data = self.api.read(&query, json!({ "id": gid("Order", id) })).await?;
        let node: Option<OrderNode> = types::read(&data, "order")?;
        node.filter(|order| order.has_tag(tag)).map(OrderNode::into_order).transpose()
    }

    /// The lock of the conversation's cart. Held over its changes and its order.
    pub fn lock_of(&self, tag: &str) -> Arc<tokio::sync::Mutex<()>> {
        let mut locks = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(lock) = locks.get(tag).and_then(Weak::upgrade) {
            return lock;
        }
        locks.retain(|_, lock| lock.strong_count() > 0);
        let lock = Arc::default();
        locks.insert(tag.to_owned(), Arc::downgrade(&lock));
        lock
    }
}

/// The lines that are still sold, one for each variant.
fn lines_of(cart: Option<&Cart>) -> Vec<(u64, u32)> {
    let mut lines: Vec<(u64, u32)> = Vec::new();
    for line in cart.into_iter().flat_map(|cart| &cart.lines) {
        let Some(variant) = line.variant else { continue };
        match lines.iter_mut().find(|(other, _)| *other == variant) {
            Some(first) => first.1 = first.1.saturating_add(line.quantity),
            None => lines.push((variant, line.quantity)),
        }
    }
    lines
}

fn with_removed(cart: Option<&Cart>, id: u64, pieces: Option<u32>) -> Result<Vec<(u64, u32)>, ShopError> {
    let mut lines = lines_of(cart);
    let Some(line) = lines.iter_mut().find(|(variant, _)| *variant == id) else {
        return Err(ShopError::refused("That item is not in the cart."));
    };
    line.1 = pieces.map_or(0, |pieces| line.1.saturating_sub(pieces));
    lines.retain(|(_, pieces)| *pieces > 0);
    Ok(lines)
}

/// The part of a word that its plural has too.
fn stem(word: &str) -> String {
    let word: String = word.to_lowercase().chars().filter(|letter| letter.is_alphanumeric()).collect();
    match word.strip_suffix('s') {
        Some(singular) if singular.len() > 2 => singular.to_owned(),
        _ => word,
    }
}

/// The total of lines, at the price that each piece has now.
pub fn total_of(lines: &[Line]) -> Option<Money> {
    lines.iter().try_fold(Money::default(), |total, line| total.plus(line.price.times(line.quantity)?))
}

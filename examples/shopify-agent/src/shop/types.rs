//! The data of a shop, and their form in the API.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::{CHANGES, ShopError, total_of};
use crate::money::Money;

/// A product.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Product {
    /// Its id.
    pub id: u64,
    /// Its title.
    pub title: String,
    /// Its description.
    pub description: String,
    /// The address of its picture.
    pub image: Option<String>,
    /// What can be bought of it.
    pub variants: Vec<Variant>,
}

/// A variant of a product: what can be bought.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Variant {
    /// Its id.
    pub id: u64,
    /// Its title; `Default Title` for the only variant of a product.
    pub title: String,
    /// Its price.
    pub price: Money,
    /// The pieces that are left; `None` if more can be sold than there are.
    pub stock: Option<i64>,
}

/// A cart: a draft order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cart {
    /// Its id.
    pub id: u64,
    /// Its lines, one for each variant.
    pub lines: Vec<Line>,
    /// The total that the shop asks for.
    pub total: Money,
    /// The keys of the changes that were made to it.
    pub changes: Vec<String>,
    /// The order that it has become.
    pub order: Option<Order>,
    is_open: bool,
    tags: Vec<String>,
}

/// A line of a cart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The variant; `None` if it is no longer sold.
    pub variant: Option<u64>,
    /// The title of the product.
    pub title: String,
    /// The title of the variant.
    pub variant_title: Option<String>,
    /// The number of pieces.
    pub quantity: u32,
    /// The price of one piece.
    pub price: Money,
    /// The address of the picture.
    pub image: Option<String>,
    /// The pieces that are left; `None` if more can be sold than there are.
    pub stock: Option<i64>,
}

/// An order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    /// Its id.
    pub id: u64,
    /// The number that customers know it by.
    pub number: String,
    /// Its page.
    pub link: Option<String>,
    /// The total.
    pub total: Money,
    /// How far its payment is.
    pub payment: String,
    /// How far its delivery is.
    pub delivery: String,
}

impl Cart {
    /// Whether it is no order yet.
    pub fn is_open(&self) -> bool {
        self.is_open
    }

    pub(super) fn has_tag(&self, tag: &str) -> bool {
        has_tag(&self.tags, tag)
    }

    /// What the customer consents to: variants, quantities and prices.
    pub fn fingerprint(&self) -> String {
        let mut digest = Sha256::new();
        digest.update(self.id.to_le_bytes());
        for line in &self.lines {
            digest.update(format!("{:?} {} {};", line.variant, line.quantity, line.price));
        }
        digest.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect()
    }

    pub(super) fn read(draft: &Value) -> Result<Self, ShopError> {
        let node: DraftNode = from(draft.clone())?;
        let lines =
            node.line_items.nodes.into_iter().map(LineNode::into_line).collect::<Result<Vec<_>, _>>()?;
        let stored = node.custom_attributes.iter().find(|attribute| attribute.key == CHANGES);
        let changes = stored.and_then(|attribute| attribute.value.as_deref()).unwrap_or_default();
        let total = match node.total_price_set {
            Some(set) => set.shop_money.amount,
            None => {
                total_of(&lines).ok_or_else(|| ShopError::refused("That is more than can be ordered."))?
            }
        };
        Ok(Cart {
            id: node.legacy_resource_id.parse().map_err(|_| bad("an id"))?,
            total,
            changes: changes.split_whitespace().map(str::to_owned).collect(),
            order: node.order.map(OrderNode::into_order).transpose()?,
            is_open: node.status != "COMPLETED",
            tags: node.tags,
            lines: merged(lines),
        })
    }
}

/// One line for each variant: the same variant in two lines would be one item with two keys.
fn merged(lines: Vec<Line>) -> Vec<Line> {
    let mut merged: Vec<Line> = Vec::new();
    for line in lines {
        let same = merged.iter_mut().find(|other| other.variant == line.variant && line.variant.is_some());
        match same {
            Some(other) => other.quantity = other.quantity.saturating_add(line.quantity),
            None => merged.push(line),
        }
    }
    merged
}

fn has_tag(tags: &[String], tag: &str) -> bool {
    tags.iter().any(|own| own == tag)
}

fn bad(what: &str) -> ShopError {
    ShopError::Protocol(format!("{what} has another form"))
}

pub(super) fn gid(kind: &str, id: u64) -> String {
    format!("gid://shopify/{kind}/{id}")
}

pub(super) fn read<T: DeserializeOwned>(data: &Value, field: &str) -> Result<T, ShopError> {
    from(data[field].clone())
}

fn from<T: DeserializeOwned>(value: Value) -> Result<T, ShopError> {
    serde_json::from_value(value).map_err(|error| ShopError::Protocol(error.to_string()))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Connection<T> {
    pub(super) nodes: Vec<T>,
    #[serde(default)]
    pub(super) page_info: PageInfo,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PageInfo {
    pub(super) has_next_page: bool,
    pub(super) end_cursor: Option<String>,
}

#[derive(Deserialize)]
struct Image {
    url: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ProductNode {
    legacy_resource_id: String,
    title: String,
    #[serde(default)]
    description: String,
    featured_image: Option<Image>,
    variants: Connection<VariantNode>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct VariantNode {
    legacy_resource_id: String,
    title: String,
    price: Money,
    inventory_quantity: Option<i64>,
    inventory_policy: String,
}

#[derive(Deserialize)]
struct Attribute {
    key: String,
    value: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct MoneyBag {
    shop_money: MoneyNode,
}

#[derive(Deserialize)]
struct MoneyNode {
    amount: Money,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct DraftNode {
    legacy_resource_id: String,
    status: String,
    tags: Vec<String>,
    custom_attributes: Vec<Attribute>,
    total_price_set: Option<MoneyBag>,
    order: Option<OrderNode>,
    line_items: Connection<LineNode>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct LineNode {
    quantity: u32,
    title: String,
    variant_title: Option<String>,
    image: Option<Image>,
    original_unit_price_set: MoneyBag,
    variant: Option<VariantNode>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct OrderNode {
    legacy_resource_id: String,
    name: String,
    tags: Vec<String>,
    confirmation_number: Option<String>,
    status_page_url: Option<String>,
    display_financial_status: Option<String>,
    display_fulfillment_status: String,
    total_price_set: MoneyBag,
}

impl ProductNode {
    pub(super) fn into_product(self) -> Result<Product, ShopError> {
        Ok(Product {
            id: self.legacy_resource_id.parse().map_err(|_| bad("an id"))?,
            title: self.title,
            description: self.description,
            image: self.featured_image.map(|image| image.url),
            variants: self
                .variants
                .nodes
                .into_iter()
                .map(VariantNode::into_variant)
                .collect::<Result<_, _>>()?,
        })
    }
}

impl VariantNode {
    fn into_variant(self) -> Result<Variant, ShopError> {
        let stock = self.inventory_quantity.filter(|_| self.inventory_policy == "DENY");
        let id = self.legacy_resource_id.parse().map_err(|_| bad("an id"))?;
        Ok(Variant { id, title: self.title, price: self.price, stock })
    }
}

impl LineNode {
    fn into_line(self) -> Result<Line, ShopError> {
        let variant = self.variant.map(VariantNode::into_variant).transpose()?;
        Ok(Line {
            variant: variant.as_ref().map(|variant| variant.id),
            title: self.title,
            variant_title: self.variant_title.filter(|title| title != "Default Title"),
            quantity: self.quantity,
            price: self.original_unit_price_set.shop_money.amount,
            image: self.image.map(|image| image.url),
            stock: variant.and_then(|variant| variant.stock),
        })
    }
}

impl OrderNode {
    pub(super) fn has_tag(&self, tag: &str) -> bool {
        has_tag(&self.tags, tag)
    }

    pub(super) fn into_order(self) -> Result<Order, ShopError> {
        Ok(Order {
            id: self.legacy_resource_id.parse().map_err(|_| bad("an id"))?,
            number: self.confirmation_number.unwrap_or(self.name),
            link: self.status_page_url,
            total: self.total_price_set.shop_money.amount,
            payment: self.display_financial_status.unwrap_or_default().to_lowercase(),
            delivery: self.display_fulfillment_status.to_lowercase(),
        })
    }
}

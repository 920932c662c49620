//! The five widgets: what the customer's screen shows beside the words.
//!
//! On the wire a widget is an object whose `details` are JSON *text*, since the front ends of xRx parse it.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;

use crate::money::Money;
use crate::shop::{Cart, Order, Product};

/// A widget, as it is sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Widget {
    /// Which one.
    #[serde(rename = "type")]
    pub kind: WidgetKind,
    /// Its data, as JSON text.
    pub details: String,
    /// The tools that it can call when it is clicked.
    #[serde(rename = "available-tools")]
    pub available_tools: Vec<String>,
}

/// The kinds of widgets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum WidgetKind {
    /// Products to choose from.
    #[serde(rename = "shopify-product-list")]
    ProductList,
    /// A product and its variants.
    #[serde(rename = "shopify-product-details")]
    ProductDetails,
    /// The cart, with the offer to order it.
    #[serde(rename = "shopify-cart-summary")]
    CartSummary,
    /// An order that was placed.
    #[serde(rename = "shopify-order-confirmation")]
    OrderConfirmation,
    /// An order that was placed before.
    #[serde(rename = "shopify-order-status")]
    OrderStatus,
}

/// Products by their id, in the shop's order.
#[derive(Clone, Debug)]
pub struct ProductList(pub Vec<ListedProduct>);

/// A product of a list.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ListedProduct {
    /// The id, which a click sends.
    pub product_id: u64,
    /// The title.
    pub product_title: String,
    /// The address of the picture.
    pub product_image_src: Option<String>,
    /// The lowest price of its variants.
    pub price_from: Option<Money>,
    /// Whether none of its variants can be bought.
    pub is_sold_out: bool,
}

/// A product and its variants.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ProductDetails {
    /// The id.
    pub product_id: u64,
    /// The title.
    pub product_title: String,
    /// The description.
    pub product_description: String,
    /// The address of the picture.
    pub product_image_src: Option<String>,
    /// What can be bought.
    pub product_variants: Vec<ListedVariant>,
}

/// A variant of a product.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ListedVariant {
    /// The id, which a click sends.
    pub variant_id: u64,
    /// The title; `Default Title` for the only one.
    pub variant_name: String,
    /// The price of a piece.
    pub price: Money,
    /// The address of the picture.
    pub product_image_src: Option<String>,
    /// The pieces that are left, if they are counted.
    pub inventory_quantity: Option<i64>,
}

/// The cart. The field is one deeper, as the front ends read it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct CartDetails {
    /// The cart.
    pub cart_summary: CartSummary,
}

/// The lines of a cart and their total.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct CartSummary {
    /// One line for each variant.
    pub line_items: Vec<CartLine>,
    /// The total.
    pub total_price: Money,
}

/// A line of a cart.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct CartLine {
    /// The variant, which a click removes.
    pub variant_id: u64,
    /// The title of the product.
    pub name: String,
    /// The title of the variant, if the product has several.
    pub variant_title: Option<String>,
    /// The pieces.
    pub quantity: u32,
    /// The price of a piece.
    pub price: Money,
    /// The address of the picture.
    pub product_image_src: Option<String>,
}

/// An order.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct OrderDetails {
    /// The number that the customer knows it by.
    pub confirmation_number: String,
    /// Its page.
    pub confirmation_link: Option<String>,
    /// What is to be said about it.
    pub message: String,
    /// The total.
    pub total_price: Money,
}

impl Serialize for ProductList {
    /// In order, which the parser of a browser keeps for ids as long as Shopify's.
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(Some(self.0.len()))?;
        for product in &self.0 {
            map.serialize_entry(&product.product_id.to_string(), product)?;
        }
        map.end()
    }
}

impl JsonSchema for ProductList {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "ProductList".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let product = generator.subschema_for::<ListedProduct>();
        json_schema!({ "type": "object", "additionalProperties": product })
    }
}

impl Widget {
    /// A widget for some data.
    ///
    /// # Errors
    /// If they cannot be written as JSON.
    pub fn new(kind: WidgetKind, details: &impl Serialize) -> Result<Self, serde_json::Error> {
        let tools: &[&str] = match kind {
            WidgetKind::ProductList => &["get_product_details"],
            WidgetKind::ProductDetails => &["add_item_to_cart"],
            WidgetKind::CartSummary => &["delete_item_from_cart", "submit_cart_for_order"],
            WidgetKind::OrderConfirmation | WidgetKind::OrderStatus => &[],
        };
        let available_tools = tools.iter().map(|tool| (*tool).to_owned()).collect();
        Ok(Widget { kind, details: serde_json::to_string(details)?, available_tools })
    }
}

impl WidgetKind {
    /// The JSON schema of its details.
    pub fn schema(self) -> Value {
        match self {
            WidgetKind::ProductList => schemars::schema_for!(ProductList),
            WidgetKind::ProductDetails => schemars::schema_for!(ProductDetails),
            WidgetKind::CartSummary => schemars::schema_for!(CartDetails),
            WidgetKind::OrderConfirmation | WidgetKind::OrderStatus => schemars::schema_for!(OrderDetails),
        }
        .to_value()
    }
}

impl From<&Product> for ListedProduct {
    fn from(product: &Product) -> Self {
        ListedProduct {
            product_id: product.id,
            product_title: product.title.clone(),
            product_image_src: product.image.clone(),
            price_from: product.variants.iter().map(|variant| variant.price).min(),
            is_sold_out: product.variants.iter().all(|variant| variant.stock.is_some_and(|stock| stock < 1)),
        }
    }
}

impl From<&Product> for ProductDetails {
    fn from(product: &Product) -> Self {
        let variants = product.variants.iter().map(|variant| ListedVariant {
            variant_id: variant.id,
            variant_name: variant.title.clone(),
            price: variant.price,
            product_image_src: product.image.clone(),
            inventory_quantity: variant.stock,
        });
        ProductDetails {
            product_id: product.id,
            product_title: product.title.clone(),
            product_description: product.description.clone(),
            product_image_src: product.image.clone(),
            product_variants: variants.collect(),
        }
    }
}

impl From<Option<&Cart>> for CartSummary {
    fn from(cart: Option<&Cart>) -> Self {
        let Some(cart) = cart else { return CartSummary::default() };
        let lines = cart.lines.iter().filter_map(|line| {
            Some(CartLine {
                variant_id: line.variant?,
                name: line.title.clone(),
                variant_title: line.variant_title.clone(),
                quantity: line.quantity,
                price: line.price,
                product_image_src: line.image.clone(),
            })
        });
        CartSummary { line_items: lines.collect(), total_price: cart.total }
    }
}

impl OrderDetails {
    /// An order, with words about it.
    pub fn new(order: &Order, message: String) -> Self {
        OrderDetails {
            confirmation_number: order.number.clone(),
            confirmation_link: order.link.clone(),
            message,
            total_price: order.total,
        }
    }
}

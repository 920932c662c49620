//! The GraphQL schema of the embedded shop: a part of Shopify's public Admin schema, version 2025-01, by the
//! same names and nullabilities.

use std::sync::Arc;

use async_graphql::{
    ComplexObject, Context, Enum, ID, InputObject, Object, Scalar, ScalarType, SimpleObject, Value,
};
use async_graphql::{Error, InputValueError, InputValueResult, Result};

use super::Shared;
use super::world::{self, Wish, World};
use crate::money::Money;

/// The most nodes of a page, as in Shopify's API.
const LARGEST_PAGE: usize = 250;

/// Shopify's `Decimal` and `Money`: a decimal number as text.
#[derive(Clone, Copy)]
struct Decimal(Money);

#[Scalar]
impl ScalarType for Decimal {
    fn parse(value: Value) -> InputValueResult<Self> {
        match &value {
            Value::String(text) => Ok(Decimal(text.parse().map_err(InputValueError::custom)?)),
            _ => Err(InputValueError::expected_type(value)),
        }
    }

    fn to_value(&self) -> Value {
        // Without the zeros at the end, as Shopify writes amounts.
        let text = self.0.to_string();
        Value::String(text.strip_suffix('0').unwrap_or(&text).to_owned())
    }
}

/// Shopify's `UnsignedInt64`: a number as text.
struct UnsignedInt64(u64);

#[Scalar]
impl ScalarType for UnsignedInt64 {
    fn parse(value: Value) -> InputValueResult<Self> {
        Err(InputValueError::expected_type(value))
    }

    fn to_value(&self) -> Value {
        Value::String(self.0.to_string())
    }
}

#[derive(SimpleObject)]
struct PageInfo {
    has_next_page: bool,
    end_cursor: Option<String>,
}

#[derive(SimpleObject)]
struct MoneyV2 {
    amount: Decimal,
    currency_code: &'static str,
}

#[derive(SimpleObject)]
struct MoneyBag {
    shop_money: MoneyV2,
}

#[derive(SimpleObject)]
struct Image {
    url: String,
}

#[derive(SimpleObject)]
struct Attribute {
    key: String,
    value: Option<String>,
}

#[derive(SimpleObject)]
struct UserError {
    field: Option<Vec<String>>,
    message: String,
}

macro_rules! connections {
    ($($name:ident of $node:ident),*) => {
        $(#[derive(SimpleObject)]
        struct $name {
            nodes: Vec<$node>,
            page_info: PageInfo,
        })*
    };
}

connections!(
    ProductConnection of Product,
    ProductVariantConnection of ProductVariant,
    DraftOrderConnection of DraftOrder,
    DraftOrderLineItemConnection of DraftOrderLineItem
);

/// A page of nodes. The cursor is the index of its last node.
fn page<T>(all: Vec<T>, first: i32, after: Option<&str>) -> Result<(Vec<T>, PageInfo)> {
    let first = usize::try_from(first).ok().filter(|first| (1..=LARGEST_PAGE).contains(first));
    let first = first.ok_or_else(|| Error::new("first must be from 1 to 250"))?;
    let begin = match after {
        None => 0,
        Some(cursor) => {
            cursor.parse::<usize>().ok().and_then(|at| at.checked_add(1)).ok_or("Invalid cursor")?
        }
    };
    let has_next_page = all.len() > begin.saturating_add(first);
    let nodes: Vec<T> = all.into_iter().skip(begin).take(first).collect();
    let end_cursor = nodes.len().checked_sub(1).map(|last| (begin + last).to_string());
    Ok((nodes, PageInfo { has_next_page, end_cursor }))
}

fn shared<'a>(context: &'a Context<'_>) -> Result<&'a Shared> {
    context.data::<Arc<Shared>>().map(|shared| &**shared)
}

/// The number of an id such as `gid://shopify/Product/7`.
fn number(id: &ID, kind: &str) -> Option<u64> {
    id.strip_prefix("gid://shopify/")?.strip_prefix(kind)?.strip_prefix('/')?.parse().ok()
}

fn id(kind: &str, number: u64) -> ID {
    ID(format!("gid://shopify/{kind}/{number}"))
}

fn money(amount: Money) -> MoneyBag {
    MoneyBag { shop_money: MoneyV2 { amount: Decimal(amount), currency_code: "USD" } }
}

#[derive(SimpleObject)]
#[graphql(complex)]
struct Product {
    id: ID,
    legacy_resource_id: UnsignedInt64,
    title: String,
    description: String,
    featured_image: Option<Image>,
    #[graphql(skip)]
    all_variants: Vec<world::Variant>,
}

#[ComplexObject]
impl Product {
    async fn variants(&self, first: i32, after: Option<String>) -> Result<ProductVariantConnection> {
        let all =
            self.all_variants.iter().map(|variant| ProductVariant::of(variant, self.legacy_resource_id.0));
        let (nodes, page_info) = page(all.collect(), first, after.as_deref())?;
        Ok(ProductVariantConnection { nodes, page_info })
    }
}

impl Product {
    fn of(product: &world::Product, origin: &str) -> Self {
        Product {
            id: id("Product", product.id),
            legacy_resource_id: UnsignedInt64(product.id),
            title: product.title.clone(),
            description: product.description.clone(),
            featured_image: Some(Image { url: format!("{origin}/files/{}", product.picture) }),
            all_variants: product.variants.clone(),
        }
    }
}

#[derive(Enum, Clone, Copy, PartialEq, Eq)]
enum ProductVariantInventoryPolicy {
    Deny,
}

#[derive(SimpleObject)]
#[graphql(complex)]
struct ProductVariant {
    id: ID,
    legacy_resource_id: UnsignedInt64,
    title: String,
    price: Decimal,
    inventory_quantity: Option<i64>,
    inventory_policy: ProductVariantInventoryPolicy,
    #[graphql(skip)]
    of_product: u64,
}

#[ComplexObject]
impl ProductVariant {
    async fn product(&self, context: &Context<'_>) -> Result<Product> {
        let shared = shared(context)?;
        let world = shared.world();
        let found = world.products.iter().find(|product| product.id == self.of_product);
        Ok(Product::of(found.ok_or("Product does not exist")?, &shared.origin))
    }
}

impl ProductVariant {
    fn of(variant: &world::Variant, of_product: u64) -> Self {
        ProductVariant {
            id: id("ProductVariant", variant.id),
            legacy_resource_id: UnsignedInt64(variant.id),
            title: variant.title.clone(),
            price: Decimal(variant.price),
            inventory_quantity: Some(variant.stock),
            inventory_policy: ProductVariantInventoryPolicy::Deny,
            of_product,
        }
    }
}

#[derive(Enum, Clone, Copy, PartialEq, Eq)]
enum DraftOrderStatus {
    Open,
    Completed,
}

#[derive(SimpleObject)]
struct DraftOrderLineItem {
    quantity: i32,
    title: String,
    variant_title: Option<String>,
    image: Option<Image>,
    original_unit_price_set: MoneyBag,
    variant: Option<ProductVariant>,
}

#[derive(Enum, Clone, Copy, PartialEq, Eq)]
enum OrderDisplayFinancialStatus {
    Pending,
}

#[derive(Enum, Clone, Copy, PartialEq, Eq)]
enum OrderDisplayFulfillmentStatus {
    Unfulfilled,
}

#[derive(SimpleObject)]
struct Order {
    id: ID,
    legacy_resource_id: UnsignedInt64,
    name: String,
    tags: Vec<String>,
    confirmation_number: Option<String>,
    status_page_url: String,
    display_financial_status: Option<OrderDisplayFinancialStatus>,
    display_fulfillment_status: OrderDisplayFulfillmentStatus,
    total_price_set: MoneyBag,
}

impl Order {
    fn of(order: &world::Order) -> Self {
        Order {
            id: id("Order", order.id),
            legacy_resource_id: UnsignedInt64(order.id),
            name: format!("#{}", order.id % 10_000),
            tags: order.tags.clone(),
            confirmation_number: Some(order.number.clone()),
            status_page_url: format!("https://shop.example/orders/{}", order.number),
            display_financial_status: Some(OrderDisplayFinancialStatus::Pending),
            display_fulfillment_status: OrderDisplayFulfillmentStatus::Unfulfilled,
            total_price_set: money(order.total),
        }
    }
}

#[derive(SimpleObject)]
#[graphql(complex)]
struct DraftOrder {
    id: ID,
    legacy_resource_id: UnsignedInt64,
    status: DraftOrderStatus,
    tags: Vec<String>,
    custom_attributes: Vec<Attribute>,
    total_price_set: MoneyBag,
    order: Option<Order>,
    #[graphql(skip)]
    lines: Vec<(world::Line, Money)>,
}

#[ComplexObject]
impl DraftOrder {
    async fn line_items(
        &self,
        context: &Context<'_>,
        first: i32,
        after: Option<String>,
    ) -> Result<DraftOrderLineItemConnection> {
        let shared = shared(context)?;
        let world = shared.world();
        let all = self.lines.iter().map(|(line, price)| DraftOrderLineItem {
            quantity: line.quantity,
            title: line.title.clone(),
            variant_title: Some(line.variant_title.clone()),
            image: Some(Image { url: format!("{}/files/{}", shared.origin, line.picture) }),
            original_unit_price_set: money(*price),
            variant: world
                .variant(line.variant)
                .map(|(product, variant)| ProductVariant::of(variant, product.id)),
        });
        let (nodes, page_info) = page(all.collect(), first, after.as_deref())?;
        Ok(DraftOrderLineItemConnection { nodes, page_info })
    }
}

impl DraftOrder {
    fn of(world: &World, draft: &world::Draft) -> Self {
        let attributes = draft.attributes.iter().cloned().map(|(key, value)| Attribute { key, value });
        DraftOrder {
            id: id("DraftOrder", draft.id),
            legacy_resource_id: UnsignedInt64(draft.id),
            status: if draft.order.is_some() { DraftOrderStatus::Completed } else { DraftOrderStatus::Open },
            tags: draft.tags.clone(),
            custom_attributes: attributes.collect(),
            total_price_set: money(world.total_of(draft).unwrap_or_default()),
            order: draft.order.and_then(|order| world.orders.get(&order)).map(Order::of),
            lines: draft.lines.iter().map(|line| (line.clone(), world.price_of(line))).collect(),
        }
    }
}

#[derive(Enum, Clone, Copy, PartialEq, Eq)]
enum ProductSortKeys {
    Id,
    Title,
}

/// The queries.
pub(super) struct Query;

#[Object]
impl Query {
    async fn products(
        &self,
        context: &Context<'_>,
        first: i32,
        after: Option<String>,
        sort_key: Option<ProductSortKeys>,
        query: Option<String>,
    ) -> Result<ProductConnection> {
        // Every product of this shop is active.
        let terms = query.unwrap_or_default().replace("status:active", "").trim().to_lowercase();
        let shared = shared(context)?;
        let mut all: Vec<Product> = shared
            .world()
            .products
            .iter()
            .filter(|product| product.title.to_lowercase().contains(&terms))
            .map(|product| Product::of(product, &shared.origin))
            .collect();
        if sort_key == Some(ProductSortKeys::Title) {
            all.sort_by(|a, b| a.title.cmp(&b.title));
        }
        let (nodes, page_info) = page(all, first, after.as_deref())?;
        Ok(ProductConnection { nodes, page_info })
    }

    async fn product(&self, context: &Context<'_>, id: ID) -> Result<Option<Product>> {
        let shared = shared(context)?;
        let world = shared.world();
        let found = world.products.iter().find(|product| Some(product.id) == number(&id, "Product"));
        Ok(found.map(|product| Product::of(product, &shared.origin)))
    }

    async fn product_variant(&self, context: &Context<'_>, id: ID) -> Result<Option<ProductVariant>> {
        let world = shared(context)?.world();
        let found = number(&id, "ProductVariant").and_then(|id| world.variant(id));
        Ok(found.map(|(product, variant)| ProductVariant::of(variant, product.id)))
    }

    async fn draft_order(&self, context: &Context<'_>, id: ID) -> Result<Option<DraftOrder>> {
        let world = shared(context)?.world();
        let found = number(&id, "DraftOrder").and_then(|id| world.drafts.get(&id));
        Ok(found.map(|draft| DraftOrder::of(&world, draft)))
    }

    async fn draft_orders(
        &self,
        context: &Context<'_>,
        first: i32,
        after: Option<String>,
        query: Option<String>,
    ) -> Result<DraftOrderConnection> {
        let world = shared(context)?.world();
        let query = query.unwrap_or_default();
        let tag = query.split_once("tag:").map(|(_, tag)| tag.trim_matches(['\'', ' ']));
        let found = world.drafts.values().filter(|draft| {
            let is_open = draft.order.is_none() || !query.contains("status:open");
            is_open && tag.is_none_or(|tag| draft.tags.iter().any(|own| own == tag))
        });
        let found = found.map(|draft| DraftOrder::of(&world, draft)).collect();
        let (nodes, page_info) = page(found, first, after.as_deref())?;
        Ok(DraftOrderConnection { nodes, page_info })
    }

    async fn order(&self, context: &Context<'_>, id: ID) -> Result<Option<Order>> {
        let world = shared(context)?.world();
        Ok(number(&id, "Order").and_then(|id| world.orders.get(&id)).map(Order::of))
    }
}

#[derive(InputObject)]
struct AttributeInput {
    key: String,
    value: String,
}

#[derive(InputObject)]
struct DraftOrderLineItemInput {
    variant_id: Option<ID>,
    quantity: i32,
}

#[derive(InputObject)]
struct DraftOrderInput {
    line_items: Option<Vec<DraftOrderLineItemInput>>,
    tags: Option<Vec<String>>,
    custom_attributes: Option<Vec<AttributeInput>>,
}

#[derive(InputObject)]
struct DraftOrderDeleteInput {
    id: ID,
}

impl DraftOrderInput {
    fn wish(self) -> Wish {
        let line = |line: DraftOrderLineItemInput| {
            let variant = line.variant_id.and_then(|id| number(&id, "ProductVariant"));
            (variant.unwrap_or_default(), line.quantity)
        };
        let attribute = |attribute: AttributeInput| (attribute.key, Some(attribute.value));
        Wish {
            lines: self.line_items.map(|lines| lines.into_iter().map(line).collect()),
            tags: self.tags,
            attributes: self.custom_attributes.map(|given| given.into_iter().map(attribute).collect()),
        }
    }
}

macro_rules! payloads {
    ($($name:ident),*) => {
        $(#[derive(SimpleObject)]
        struct $name {
            draft_order: Option<DraftOrder>,
            user_errors: Vec<UserError>,
        }

        impl $name {
            fn of(shared: &Shared, done: Result<u64, String>) -> Self {
                match done {
                    Ok(id) => {
                        let world = shared.world();
                        let draft = world.drafts.get(&id).map(|draft| DraftOrder::of(&world, draft));
                        $name { draft_order: draft, user_errors: Vec::new() }
                    }
                    Err(why) => $name { draft_order: None, user_errors: user_errors(why) },
                }
            }
        })*
    };
}

payloads!(DraftOrderCreatePayload, DraftOrderUpdatePayload, DraftOrderCompletePayload);

#[derive(SimpleObject)]
struct DraftOrderDeletePayload {
    deleted_id: Option<ID>,
    user_errors: Vec<UserError>,
}

fn user_errors(message: String) -> Vec<UserError> {
    vec![UserError { field: None, message }]
}

/// The mutations.
pub(super) struct Mutation;

#[Object]
impl Mutation {
    async fn draft_order_create(
        &self,
        context: &Context<'_>,
        input: DraftOrderInput,
    ) -> Result<DraftOrderCreatePayload> {
        let shared = shared(context)?;
        Ok(DraftOrderCreatePayload::of(shared, shared.change(|world| world.create(input.wish()))))
    }

    async fn draft_order_update(
        &self,
        context: &Context<'_>,
        id: ID,
        input: DraftOrderInput,
    ) -> Result<DraftOrderUpdatePayload> {
        let shared = shared(context)?;
        let id = number(&id, "DraftOrder").unwrap_or_default();
        let done = shared.change(|world| world.update(id, input.wish()).map(|()| id));
        Ok(DraftOrderUpdatePayload::of(shared, done))
    }

    async fn draft_order_complete(
        &self,
        context: &Context<'_>,
        id: ID,
        payment_pending: Option<bool>,
    ) -> Result<DraftOrderCompletePayload> {
        let shared = shared(context)?;
        if payment_pending != Some(true) {
            let why = "No payment gateway is given".to_owned();
            return Ok(DraftOrderCompletePayload { draft_order: None, user_errors: user_errors(why) });
        }
        let id = number(&id, "DraftOrder").unwrap_or_default();
        let done = shared.change(|world| world.complete(id).map(|()| id));
        Ok(DraftOrderCompletePayload::of(shared, done))
    }

    async fn draft_order_delete(
        &self,
        context: &Context<'_>,
        input: DraftOrderDeleteInput,
    ) -> Result<DraftOrderDeletePayload> {
        let shared = shared(context)?;
        let done = shared.change(|world| world.delete(number(&input.id, "DraftOrder").unwrap_or_default()));
        Ok(match done {
            Ok(_) => DraftOrderDeletePayload { deleted_id: Some(input.id), user_errors: Vec::new() },
            Err(why) => DraftOrderDeletePayload { deleted_id: None, user_errors: user_errors(why) },
        })
    }
}

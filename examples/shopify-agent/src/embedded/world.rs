//! The data of the embedded shop, and the rules by which they change.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::catalog::PRODUCTS;
use crate::money::Money;

/// Ids as long as Shopify's, which JavaScript does not take for indices of an array.
const FIRST_PRODUCT: u64 = 8_800_100_000_001;
const FIRST_VARIANT: u64 = 47_200_100_000_001;
const FIRST_DRAFT: u64 = 1_100_200_000_001;
const FIRST_ORDER: u64 = 5_900_300_000_001;

#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Product {
    pub(super) id: u64,
    pub(super) title: String,
    pub(super) description: String,
    pub(super) picture: String,
    pub(super) variants: Vec<Variant>,
}

#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Variant {
    pub(super) id: u64,
    pub(super) title: String,
    pub(super) price: Money,
    pub(super) stock: i64,
}

#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Draft {
    pub(super) id: u64,
    pub(super) lines: Vec<Line>,
    pub(super) tags: Vec<String>,
    pub(super) attributes: Vec<(String, Option<String>)>,
    pub(super) order: Option<u64>,
}

/// A line keeps the titles of its product, which may be removed.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Line {
    pub(super) variant: u64,
    pub(super) quantity: i32,
    pub(super) title: String,
    pub(super) variant_title: String,
    pub(super) picture: String,
    /// The price when it was added; while the variant is sold, its own counts.
    pub(super) price: Money,
}

#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Order {
    pub(super) id: u64,
    pub(super) number: String,
    pub(super) tags: Vec<String>,
    pub(super) total: Money,
}

#[derive(Serialize, Deserialize)]
pub(super) struct World {
    pub(super) products: Vec<Product>,
    pub(super) drafts: BTreeMap<u64, Draft>,
    pub(super) orders: BTreeMap<u64, Order>,
    made: u64,
}

/// What a client wants in a draft order.
pub(super) struct Wish {
    pub(super) lines: Option<Vec<(u64, i32)>>,
    pub(super) tags: Option<Vec<String>>,
    pub(super) attributes: Option<Vec<(String, Option<String>)>>,
}

impl World {
    pub(super) fn new() -> Self {
        let mut next_variant = FIRST_VARIANT;
        let products = (FIRST_PRODUCT..).step_by(7).zip(&PRODUCTS).map(|(id, entry)| {
            let variants = entry.variants().map(|(title, price, stock)| {
                next_variant += 11;
                Variant { id: next_variant, title: title.to_owned(), price, stock }
            });
            let variants = variants.collect();
            let (title, description) = (entry.0.to_owned(), entry.1.to_owned());
            Product { id, title, description, picture: entry.picture(), variants }
        });
        World { products: products.collect(), drafts: BTreeMap::new(), orders: BTreeMap::new(), made: 0 }
    }

    pub(super) fn variant(&self, id: u64) -> Option<(&Product, &Variant)> {
        let variants =
            self.products.iter().flat_map(|product| product.variants.iter().map(move |v| (product, v)));
        variants.into_iter().find(|(_, variant)| variant.id == id)
    }

    /// The price of a line now.
    pub(super) fn price_of(&self, line: &Line) -> Money {
        self.variant(line.variant).map_or(line.price, |(_, variant)| variant.price)
    }

    pub(super) fn total_of(&self, draft: &Draft) -> Option<Money> {
        draft.lines.iter().try_fold(Money::default(), |total, line| {
            total.plus(self.price_of(line).times(line.quantity.try_into().ok()?)?)
        })
    }

    pub(super) fn create(&mut self, wish: Wish) -> Result<u64, String> {
        self.made += 1;
        let draft = Draft {
            id: FIRST_DRAFT + self.made * 13,
            lines: Vec::new(),
            tags: Vec::new(),
            attributes: Vec::new(),
            order: None,
        };
        let draft = self.filled(draft, wish)?;
        let id = draft.id;
        self.drafts.insert(id, draft);
        Ok(id)
    }

    pub(super) fn update(&mut self, id: u64, wish: Wish) -> Result<(), String> {
        let draft = self.open(id)?.clone();
        let draft = self.filled(draft, wish)?;
        self.drafts.insert(id, draft);
        Ok(())
    }

    fn open(&self, id: u64) -> Result<&Draft, String> {
        let draft = self.drafts.get(&id).ok_or("Draft order does not exist")?;
        if draft.order.is_some() { Err("This order has already been paid".to_owned()) } else { Ok(draft) }
    }

    fn filled(&self, mut draft: Draft, wish: Wish) -> Result<Draft, String> {
        if let Some(lines) = wish.lines {
            draft.lines =
                lines.into_iter().map(|(id, quantity)| self.line(id, quantity)).collect::<Result<_, _>>()?;
        }
        if draft.lines.is_empty() {
            return Err("Add at least 1 product".to_owned());
        }
        draft.tags = wish.tags.unwrap_or(draft.tags);
        draft.attributes = wish.attributes.unwrap_or(draft.attributes);
        self.total_of(&draft).ok_or("The total is too large")?;
        Ok(draft)
    }

    fn line(&self, id: u64, quantity: i32) -> Result<Line, String> {
        let gone = || format!("Product with ID {id} is no longer available.");
        let (product, variant) = self.variant(id).ok_or_else(gone)?;
        if quantity < 1 {
            return Err("Quantity must be greater than or equal to 1".to_owned());
        }
        Ok(Line {
            variant: id,
            quantity,
            title: product.title.clone(),
            variant_title: variant.title.clone(),
            picture: product.picture.clone(),
            price: variant.price,
        })
    }

    pub(super) fn delete(&mut self, id: u64) -> Result<u64, String> {
        self.open(id)?;
        self.drafts.remove(&id);
        Ok(id)
    }

    pub(super) fn complete(&mut self, id: u64) -> Result<(), String> {
        let draft = self.open(id)?.clone();
        for line in &draft.lines {
            let sold = self.variant(line.variant).map(|(_, variant)| variant.stock);
            match sold {
                None => return Err(format!("{} is no longer available.", line.title)),
                Some(stock) if stock < line.quantity.into() => {
                    return Err(format!("{} is out of stock.", line.title));
                }
                Some(_) => {}
            }
        }
        let total = self.total_of(&draft).ok_or("The total is too large")?;
        for line in &draft.lines {
            for variant in self.products.iter_mut().flat_map(|product| &mut product.variants) {
                if variant.id == line.variant {
                    variant.stock -= i64::from(line.quantity);
                }
            }
        }
        let count = self.orders.len() as u64 + 1;
        let order = FIRST_ORDER + count * 17;
        let number = confirmation(order);
        self.orders.insert(order, Order { id: order, number, tags: draft.tags.clone(), total });
        if let Some(draft) = self.drafts.get_mut(&id) {
            draft.order = Some(order);
        }
        Ok(())
    }

    pub(super) fn variant_of(&self, title: &str) -> Option<u64> {
        let product = self.products.iter().find(|product| product.title == title)?;
        product.variants.first().map(|variant| variant.id)
    }

    pub(super) fn product_of(&self, title: &str) -> Option<u64> {
        self.products.iter().find(|product| product.title == title).map(|product| product.id)
    }

    pub(super) fn set_price(&mut self, id: u64, price: Money) {
        self.change_variant(id, |variant| variant.price = price);
    }

    pub(super) fn set_stock(&mut self, id: u64, pieces: i64) {
        self.change_variant(id, |variant| variant.stock = pieces);
    }

    fn change_variant(&mut self, id: u64, change: impl Fn(&mut Variant)) {
        let variants = self.products.iter_mut().flat_map(|product| &mut product.variants);
        variants.filter(|variant| variant.id == id).for_each(change);
    }

    pub(super) fn remove_product(&mut self, id: u64) {
        self.products.retain(|product| product.id != id);
    }

    pub(super) fn carts(&self) -> Vec<Vec<(String, i32)>> {
        let open = self.drafts.values().filter(|draft| draft.order.is_none());
        open.map(|draft| draft.lines.iter().map(|line| (line.title.clone(), line.quantity)).collect())
            .collect()
    }

    pub(super) fn orders(&self) -> Vec<String> {
        self.orders.values().map(|order| order.number.clone()).collect()
    }
}

/// Nine letters and digits that are not mistaken for one another, as Shopify's are.
fn confirmation(id: u64) -> String {
    const LETTERS: &[u8; 32] = b"ABCDEFGHJKLMNPQRSTUVWXYZ23456789";
    let mut rest = id.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let mut letter = || {
        let at = (rest >> 59) as usize;
        rest = rest.rotate_left(5).wrapping_add(id);
        char::from(LETTERS[at])
    };
    (0..9).map(|_| letter()).collect()
}

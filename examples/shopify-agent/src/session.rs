//! The session of a conversation: the object that comes with a request and returns with every frame.
//!
//! Its client replaces its own copy by that of the last frame, so fields that this program does not know are
//! kept.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::money::Money;

/// The fields that name the conversation, in the order in which they are looked for. The orchestrator of xRx
/// sends `guid`; its tests send `id`, also as a number.
const NAMES: [&str; 3] = ["guid", "session_id", "id"];

/// The session of a conversation: a JSON object.
///
/// ```
/// use serde_json::json;
/// use shopify_agent::session::ShopSession;
///
/// let mut session = ShopSession::read(&json!({"guid": "7f", "theme": "dark"}));
/// session.set_cart(Some(12));
/// assert_eq!(json!(session), json!({"guid": "7f", "theme": "dark", "cart_id": 12}));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ShopSession(Map<String, Value>);

/// A cart and its total, which the customer was offered to order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offer {
    /// The fingerprint of the cart's lines.
    pub cart: String,
    /// The total.
    pub total: Money,
    /// Whether the customer has sent no message since. A click on the offer counts as long as it is shown,
    /// a message only if it is the next one.
    pub is_fresh: bool,
}

impl ShopSession {
    /// The session of a request. Without a name, which a client may send the first time or after an error, it
    /// gets a new one.
    pub fn read(value: &Value) -> Self {
        let mut session = ShopSession(value.as_object().cloned().unwrap_or_default());
        if session.name().is_none() {
            session.0.insert("guid".to_owned(), json!(uuid::Uuid::new_v4()));
        }
        session
    }

    /// Whether this is the cell of a run that no node has opened yet: every session that was read has a name.
    pub fn is_unopened(&self) -> bool {
        self.0.is_empty()
    }

    fn name(&self) -> Option<String> {
        NAMES.iter().find_map(|name| match self.0.get(*name)? {
            Value::String(text) if !text.trim().is_empty() => Some(format!("{name}:{text}")),
            Value::Number(number) => Some(format!("{name}:{number}")),
            _ => None,
        })
    }

    /// The tag of the conversation's carts and orders. It binds them to the session: an id of a cart does not
    /// open it in another conversation. Shopify allows 40 characters.
    pub fn tag(&self) -> String {
        let digest = Sha256::digest(self.name().unwrap_or_default());
        let hex: String = digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
        format!("xrx-{hex}")
    }

    /// The id of the cart.
    pub fn cart(&self) -> Option<u64> {
        self.id("cart_id")
    }

    /// Sets or removes the id of the cart.
    pub fn set_cart(&mut self, cart: Option<u64>) {
        self.set("cart_id", cart.map(Value::from));
    }

    /// The id of the order that was placed last.
    pub fn order(&self) -> Option<u64> {
        self.id("submitted_order_id")
    }

    /// Sets the id of the order.
    pub fn set_order(&mut self, order: u64) {
        self.set("submitted_order_id", Some(order.into()));
    }

    /// The cart that the customer was offered to order.
    pub fn offer(&self) -> Option<Offer> {
        serde_json::from_value(self.0.get("offer")?.clone()).ok()
    }

    /// Sets or withdraws the offer.
    pub fn set_offer(&mut self, offer: Option<&Offer>) {
        self.set("offer", offer.map(|offer| json!(offer)));
    }

    fn id(&self, field: &str) -> Option<u64> {
        match self.0.get(field)? {
            Value::String(text) => text.parse().ok(),
            value => value.as_u64(),
        }
    }

    fn set(&mut self, field: &str, value: Option<Value>) {
        match value {
            Some(value) => self.0.insert(field.to_owned(), value),
            None => self.0.remove(field),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_fields_are_kept_and_ids_may_be_texts() {
        let session =
            ShopSession::read(&json!({"guid": "a", "cart_id": "7", "x": [1], "submitted_order_id": null}));
        assert_eq!((session.cart(), session.order()), (Some(7), None));
        assert_eq!(json!(session)["x"], json!([1]));
    }

    #[test]
    fn a_session_without_a_name_gets_one_and_every_other_keeps_its_own() {
        for nameless in
            [json!(null), json!({}), json!("x"), json!([1]), json!({"guid": ""}), json!({"guid": null})]
        {
            assert!(json!(ShopSession::read(&nameless))["guid"].is_string(), "{nameless}");
        }
        let numbered = json!({"id": 1234});
        assert_eq!(json!(ShopSession::read(&numbered)), numbered);
    }

    #[test]
    fn tags_differ_by_session_and_fit_into_shopifys_limit() {
        let tag = |value: Value| ShopSession::read(&value).tag();
        assert_eq!(tag(json!({"guid": "a"})), tag(json!({"guid": "a", "cart_id": 3})));
        assert_ne!(tag(json!({"guid": "1"})), tag(json!({"id": 1})));
        assert!(tag(json!({"guid": "a"})).len() <= 40);
    }
}

//! The rule by which an order is placed: the customer consents, and no model can.
//!
//! A cart widget offers the order of exactly what it shows. The session keeps the offer. A click on it, or
//! the customer's next message if it is one of the words below, consents to that cart and total; if either
//! has changed since, the customer is asked again. The consent is computed from the request before any model
//! is called.

use crate::session::Offer;
use crate::wire::{RunRequest, Speaker};

/// The tool that places an order.
pub(crate) const SUBMIT: &str = "submit_cart_for_order";

/// The messages that consent, without signs and in lower case.
const YES: &str = "yes|yes please|yes order it|yes place the order|yes place my order|yes go ahead|yep|yeah|sure|ok|okay|\
    confirm|i confirm|confirmed|go ahead|please do|do it|order|order now|order it|order please|place the order|place my \
    order|please place the order|submit the order|submit my order|check out|checkout";

/// Whether a message consents to an offer.
///
/// ```
/// use shopify_agent::consent::is_yes;
///
/// assert!(is_yes("Yes, please!"));
/// assert!(!is_yes("yes, but without the wings"));
/// ```
pub fn is_yes(text: &str) -> bool {
    let words: String = text.chars().filter(|c| c.is_alphanumeric() || c.is_whitespace()).collect();
    let words = words.to_lowercase().split_whitespace().collect::<Vec<_>>().join(" ");
    YES.split('|').any(|yes| yes == words)
}

/// The cart and total that a request consents to.
pub fn consent(request: &RunRequest) -> Option<Offer> {
    let offer = request.session.offer()?;
    let consents = match &request.click {
        Some(click) => click.tool == SUBMIT,
        None => {
            let last = request.messages.last();
            offer.is_fresh && last.is_some_and(|last| last.role == Speaker::User && is_yes(&last.content))
        }
    };
    consents.then_some(offer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::money::Money;
    use crate::session::ShopSession;
    use crate::wire::{Click, Spoken};
    use serde_json::{Map, json};

    fn request(is_fresh: bool, said: &str) -> RunRequest {
        let mut session = ShopSession::read(&json!({"guid": "a"}));
        session.set_offer(Some(&Offer { cart: "c".into(), total: Money::from_hundredths(5), is_fresh }));
        RunRequest::message(session, said)
    }

    #[test]
    fn a_yes_consents_only_as_the_next_message_and_only_as_a_whole() {
        assert!(consent(&request(true, "Yes!")).is_some());
        assert!(consent(&request(false, "Yes!")).is_none());
        for said in ["no", "yes and a cola", "order status", "is it yes?", "", "ye s"] {
            assert!(consent(&request(true, said)).is_none(), "{said}");
        }
    }

    #[test]
    fn a_yes_of_the_assistant_does_not_count() {
        let mut request = request(true, "hm");
        request.messages.push(Spoken::assistant("yes"));
        assert!(consent(&request).is_none());
    }

    #[test]
    fn a_click_on_the_order_counts_as_long_as_the_offer_stands_and_other_clicks_do_not() {
        let mut request = request(false, "hm");
        for (tool, consents) in [(SUBMIT, true), ("get_cart_summary", false)] {
            request.click = Some(Click { tool: tool.to_owned(), parameters: Map::new() });
            assert_eq!(consent(&request).is_some(), consents, "{tool}");
        }
        request.session.set_offer(None);
        assert!(consent(&request).is_none());
    }
}

//! The errors of a shop: what the customer can mend, what passes, and what is wrong with the connection.

use std::time::Duration;

/// An error of a shop.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ShopError {
    /// The shop does not do what was asked for. The text is for the customer.
    #[error("{0}")]
    Refused(String),
    /// The shop asks for a pause, and still did after the pauses that it asked for.
    #[error("the shop is busy: it asks for a pause of {0:?}")]
    Throttled(Duration),
    /// The shop cannot be reached, or failed.
    #[error("the shop does not answer: {0}")]
    Unavailable(String),
    /// The shop does not accept the token.
    #[error("the shop refuses the access token ({0}): check the token and its scopes")]
    Unauthorized(String),
    /// The answer is not of the API.
    #[error("the shop's answer is not understood: {0}")]
    Protocol(String),
    /// A setting cannot be used.
    #[error("{0}")]
    Setting(String),
}

impl ShopError {
    pub(crate) fn refused(why: impl Into<String>) -> Self {
        ShopError::Refused(why.into())
    }

    pub(crate) fn no_such(what: &str, id: u64) -> Self {
        ShopError::Refused(format!("There is no {what} {id}; it may no longer be sold."))
    }

    /// More was asked for than there is.
    pub(crate) fn short_of(product: &str, left: i64, held: u32) -> Self {
        let in_cart = if held > 0 { format!(", and {held} of them are in the cart") } else { String::new() };
        ShopError::Refused(match left {
            ..=0 => format!("{product} is out of stock."),
            left => format!("Only {left} of {product} are left{in_cart}."),
        })
    }
}

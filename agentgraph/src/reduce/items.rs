//! [`Items`] and [`Texts`]: the arguments of setters that take a list, with a message for one item without
//! brackets.

/// A list of items for a channel: an array, a `Vec`, any iterator.
///
/// ```
/// use agentgraph::reduce::Items;
///
/// fn total(prices: impl Items<u32>) -> u32 {
///     prices.items().sum()
/// }
/// assert_eq!(total([1, 2]), 3);
/// assert_eq!(total(vec![4]), 4);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a list of `{T}`",
    label = "not a list of `{T}`",
    note = "this channel takes any number of items: for one, write brackets round it, as in `.log([\"one line\"])`"
)]
pub trait Items<T> {
    /// The items in order.
    fn items(self) -> impl Iterator<Item = T>;
}

#[diagnostic::do_not_recommend]
impl<T, I: IntoIterator<Item = T>> Items<T> for I {
    #[inline]
    fn items(self) -> impl Iterator<Item = T> {
        self.into_iter()
    }
}

/// A list of texts for a channel: an array, a `Vec`, any iterator of anything that is `Into<String>`.
///
/// ```
/// use agentgraph::reduce::Texts;
///
/// fn line(words: impl Texts) -> String {
///     words.texts().collect::<Vec<_>>().join(" ")
/// }
/// assert_eq!(line(["one", "line"]), "one line");
/// assert_eq!(line(vec!["one".to_owned()]), "one");
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a list of texts",
    label = "not a list of texts",
    note = "this channel takes any number of texts: for one, write brackets round it, as in `.log([\"one line\"])`"
)]
pub trait Texts {
    /// The texts in order.
    fn texts(self) -> impl Iterator<Item = String>;
}

#[diagnostic::do_not_recommend]
impl<I: IntoIterator<Item: Into<String>>> Texts for I {
    #[inline]
    fn texts(self) -> impl Iterator<Item = String> {
        self.into_iter().map(Into::into)
    }
}

//! The macros of agentgraph: `derive(State)`, `derive(Route)` and `#[node]`. Use them through `agentgraph`,
//! which re-exports them; the code they write names nothing but `::agentgraph` and the standard library.
//!
//! Each macro goes through the same stages, one file each: it reads the input, collects every mistake
//! with the token at fault, and then writes code. After a mistake the derives write code that
//! type-checks but cannot run, so that one mistake gives one message, without fifty more about missing
//! methods.

mod mistakes;
mod node;
mod route;
mod state;
mod words;

use proc_macro::TokenStream;

/// Makes a struct with named fields a state: every field is a channel.
///
/// Writes `<Name>Update` with one setter a field, `<Name>::update()`, and the implementations of `State`, of
/// `StoredState` and of `IntoStep` for the update. The struct must be `Clone` and `Default`; its fields must
/// be `Serialize` and `Deserialize` unless they are untracked or the struct is volatile.
///
/// | on a field | how writes combine |
/// |---|---|
/// | nothing | one write a superstep replaces the value |
/// | `#[reduce(last)]` | the last write in task order replaces the value |
/// | `#[reduce(append)]` | items go to the end of a `Vec` |
/// | `#[reduce(merge)]` | entries replace those with the same key in a `HashMap` or `BTreeMap` |
/// | `#[reduce(by_id)]` | items of a `Vec<T: Keyed>` are replaced, added and removed by key |
/// | `#[reduce(sum)]` | numbers are added; a sum that the type cannot hold is `E_BAD_VALUE` |
/// | `#[reduce(min)]`, `#[reduce(max)]` | the least or greatest value stays; in an `Option`, any value replaces `None` |
/// | `#[reduce(with = path)]`, `#[reduce(with = path, write = W)]` | calls `fn(&mut T, W)`; `W` is the field's type unless given |
/// | `#[reduce(reducer = R)]` | any `Reducer` |
///
/// | on a field | how long its value lives |
/// |---|---|
/// | nothing | as long as the thread |
/// | `#[channel(run)]` | until the next run of the thread |
/// | `#[channel(ephemeral)]` | only in the superstep after its write |
/// | `#[channel(untracked)]` | never stored |
/// | `#[channel(secret)]` | unchanged; the value is stored encrypted or not at all, and masked wherever values are shown |
/// | `#[channel(alias = "old_name")]` | unchanged; checkpoints with the old name are read as well |
///
/// `#[state(volatile)]` on the struct: nothing is stored, so no field needs serde and the graph takes no
/// checkpointer.
///
/// `Debug` of the update shows the written fields with their values: those of secret fields are masked, and
/// those of types without `Debug` are `..`.
///
/// Every setter has the name of its field. Reduced fields also get `overwrite_<field>`, fields with `by_id`
/// also `remove_<field>`.
#[proc_macro_derive(State, attributes(reduce, channel, state))]
pub fn derive_state(input: TokenStream) -> TokenStream {
    state::derive(input.into()).into()
}

/// Makes an enum a route: its variants are the nodes to go to, known before the graph runs.
///
/// A unit variant goes to the node of its name in snake case, or as `#[route("name")]` says; `#[route(end)]`
/// ends the branch; a variant with one payload dispatches the node with that input.
#[proc_macro_derive(Route, attributes(route))]
pub fn derive_route(input: TokenStream) -> TokenStream {
    route::derive(input.into()).into()
}

/// Checks that an `async fn` is a node of a graph over the given state, and reports the part that is wrong:
/// `#[node(Triage)]`.
///
/// The function is unchanged, and is a node without the attribute too. A mistake is then reported where the
/// function is added to the graph, as one message for the whole function.
#[proc_macro_attribute]
pub fn node(state: TokenStream, function: TokenStream) -> TokenStream {
    node::check(state.into(), function.into()).into()
}

//! Routes: typed decisions whose targets are known before the graph runs.

use std::borrow::Cow;

use crate::step::{Dispatch, Goto, InputValue, IntoGoto};

/// An enum whose variants name nodes. `#[derive(Route)]` implements it.
///
/// A unit variant goes to the node with its name in snake case, or with the name in `#[route("name")]`;
/// `#[route(end)]` ends the branch; a variant with one payload dispatches the node with that input.
///
/// ```
/// use agentgraph::prelude::*;
///
/// #[derive(Route)]
/// enum AfterPlan {
///     Approve,
///     #[route("look_up")]
///     Search,
///     ReadPage(u32),
///     #[route(end)]
///     Done,
/// }
///
/// let targets: Vec<_> = AfterPlan::TARGETS.iter().map(|target| target.name()).collect();
/// assert_eq!(targets, ["approve", "look_up", "read_page", END]);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a route",
    label = "not an enum of targets",
    note = "put `#[derive(Route)]` on an enum whose variants are the nodes to go to, or use `branch(node, fn, [targets])` for names"
)]
pub trait Route: IntoGoto {
    /// The targets, in the order of the variants.
    const TARGETS: &'static [RouteTarget];

    /// The index of its target, and the input if it dispatches.
    fn pick(self) -> Pick;
}

/// One target of a [`Route`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RouteTarget {
    /// A node.
    Node(&'static str),
    /// A node that receives an input.
    Dispatch(&'static str),
    /// The end of this branch.
    End,
}

impl RouteTarget {
    /// The node's name, or [`END`](crate::END).
    pub const fn name(&self) -> &'static str {
        match self {
            RouteTarget::Node(name) | RouteTarget::Dispatch(name) => name,
            RouteTarget::End => crate::words::END,
        }
    }
}

/// The decision of a route: an index into its [`TARGETS`](Route::TARGETS), so that no name is looked up
/// while a graph runs.
#[derive(Debug)]
pub struct Pick {
    pub(crate) target: usize,
    pub(crate) input: Option<InputValue>,
}

impl Pick {
    /// A target without input.
    pub const fn node(target: usize) -> Self {
        Pick { target, input: None }
    }

    /// A dispatch to the target.
    pub fn dispatch<I: serde::Serialize + Send + Sync + 'static>(target: usize, input: I) -> Self {
        Pick { target, input: Some(InputValue::new(input)) }
    }
}

/// The possible results of the function of a [`route`](crate::StateGraph::route): one [`Route`], or any
/// number of them.
#[diagnostic::on_unimplemented(
    message = "the function of a `route` cannot return `{Self}`",
    label = "not a route",
    note = "return an enum with `#[derive(Route)]`, an `Option` of it, or a `Vec` of it"
)]
pub trait IntoPicks {
    /// The enum that lists the targets.
    type Route: Route;
    /// Whether one call may pick several targets. `compile()` warns about joins that wait for more than one
    /// target of a route that picks one at a time.
    const MAY_PICK_SEVERAL: bool = true;
    /// Calls `take` with every decision.
    fn into_picks(self, take: &mut dyn FnMut(Pick));
}

impl<R: Route> IntoPicks for R {
    type Route = R;
    const MAY_PICK_SEVERAL: bool = false;
    fn into_picks(self, take: &mut dyn FnMut(Pick)) {
        take(self.pick());
    }
}

impl<R: Route> IntoPicks for Vec<R> {
    type Route = R;
    fn into_picks(self, take: &mut dyn FnMut(Pick)) {
        self.into_iter().for_each(|route| take(route.pick()));
    }
}

impl<R: Route> IntoPicks for Option<R> {
    type Route = R;
    const MAY_PICK_SEVERAL: bool = false;
    fn into_picks(self, take: &mut dyn FnMut(Pick)) {
        if let Some(route) = self {
            take(route.pick());
        }
    }
}

/// The functions that the code of `derive(Route)` calls.
#[doc(hidden)]
pub(crate) mod derived {
    use super::{Cow, Dispatch, Goto, Pick, Route};

    /// A route as a target by name.
    pub fn goto<R: Route>(route: R) -> Goto {
        let Pick { target, input } = route.pick();
        let name = R::TARGETS.get(target).map_or(crate::words::END, |target| target.name());
        match input {
            None => Goto::Node(Cow::Borrowed(name)),
            Some(input) => Goto::Dispatch(Dispatch { node: Cow::Borrowed(name), input }),
        }
    }

    /// [`Pick::dispatch`], with an error message that explains the requirements on an input.
    pub fn dispatch<I: RouteInput>(target: usize, input: I) -> Pick {
        Pick::dispatch(target, input)
    }

    /// The requirements on a payload.
    #[diagnostic::on_unimplemented(
        message = "`{Self}` cannot be the input of a dispatch",
        label = "needs `Serialize + Send + Sync + 'static`",
        note = "derive `Serialize` for it (and `Deserialize` and `Clone`, so that the node can take it as `Input<{Self}>`)"
    )]
    pub trait RouteInput: serde::Serialize + Send + Sync + 'static {}

    #[diagnostic::do_not_recommend]
    impl<I: serde::Serialize + Send + Sync + 'static> RouteInput for I {}
}

//! The outputs of a node's dependencies.

use crate::dependency::outputs::{Output, PassInput};
use std::convert::Infallible;
use std::fmt;
use std::ops::Index;
use std::sync::Arc;

use super::outputs::Outputs;
use crate::extract::{FromTask, Task};

/// The slot of an output.
#[derive(Clone, Debug, Default)]
pub(crate) enum Slot<O> {
    #[default]
    Empty,
    /// The slot is the only owner.
    Own(O),
    Shared(Arc<O>),
}

impl<O> Slot<O> {
    #[inline]
    pub(super) fn value(&self) -> Option<&O> {
        match self {
            Slot::Empty => None,
            Slot::Own(value) => Some(value),
            Slot::Shared(value) => Some(value),
        }
    }

    /// Makes the output shared, and returns it.
    pub(crate) fn share(&mut self) -> Option<Arc<O>> {
        if let Slot::Own(_) = self
            && let Slot::Own(value) = std::mem::take(self)
        {
            *self = Slot::Shared(Arc::new(value));
        }
        match self {
            Slot::Shared(value) => Some(Arc::clone(value)),
            Slot::Empty | Slot::Own(_) => None,
        }
    }
}

/// The outputs of a node's dependencies, in the order of its edges. It is the first argument of a sync node;
/// for an async node it is an extractor like any other.
///
/// ```
/// use agentgraph::dependency::Deps;
///
/// fn join(deps: Deps<String>) -> String {
///     let parts: Vec<String> = deps.iter().map(|(name, output)| format!("{name}={output}")).collect();
///     parts.join(" ")
/// }
///
/// // In a test, they are made by hand.
/// let deps = Deps::of([("a", "1".to_owned()), ("b", "2".to_owned())]);
/// assert_eq!(deps[1], "2");
/// assert_eq!(deps.get("a").map(String::as_str), Some("1"));
/// assert_eq!(join(deps), "a=1 b=2");
/// ```
pub struct Deps<'a, O>(Inner<'a, O>);

enum Inner<'a, O> {
    /// The outputs stay in their slots while the node is called.
    Borrowed {
        names: [&'a [Arc<str>]; 2],
        slots: &'a [Slot<O>],
        sources: &'a [u32],
    },
    Held(Option<Arc<[HeldOutput<O>]>>),
}

/// A dependency that a node owns: its name and its output.
pub(crate) type HeldOutput<O> = (Arc<str>, Arc<O>);

impl<O> Deps<'static, O> {
    /// Builds the outputs of these nodes by hand, for tests.
    pub fn of<N: AsRef<str>>(outputs: impl IntoIterator<Item = (N, O)>) -> Self {
        let held = outputs.into_iter().map(|(name, output)| (Arc::from(name.as_ref()), Arc::new(output)));
        Deps(Inner::Held(Some(held.collect())))
    }

    pub(super) fn held(held: Option<Arc<[HeldOutput<O>]>>) -> Self {
        Deps(Inner::Held(held))
    }
}

impl<'a, O> Deps<'a, O> {
    /// The outputs of `sources`, which are done. `names` are those of the graph and those of temporary nodes.
    #[inline]
    pub(crate) fn borrowed(names: [&'a [Arc<str>]; 2], slots: &'a [Slot<O>], sources: &'a [u32]) -> Self {
        Deps(Inner::Borrowed { names, slots, sources })
    }

    /// The number of dependencies.
    #[inline]
    pub fn len(&self) -> usize {
        match &self.0 {
            Inner::Borrowed { sources, .. } => sources.len(),
            Inner::Held(held) => held.as_ref().map_or(0, |held| held.len()),
        }
    }

    /// Whether the node has no dependencies.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The output of the n-th dependency, counted from 0.
    #[inline]
    pub fn at(&self, n: usize) -> Option<&O> {
        match &self.0 {
            Inner::Borrowed { slots, sources, .. } => slots.get(*sources.get(n)? as usize)?.value(),
            Inner::Held(held) => held.as_ref()?.get(n).map(|(_, output)| &**output),
        }
    }

    /// The name of the n-th dependency, counted from 0.
    pub fn name(&self, n: usize) -> Option<&str> {
        match &self.0 {
            Inner::Borrowed { names: [names, temporary], sources, .. } => {
                let node = *sources.get(n)? as usize;
                let name = names.get(node).or_else(|| temporary.get(node.checked_sub(names.len())?));
                name.map(|name| &**name)
            }
            Inner::Held(held) => held.as_ref()?.get(n).map(|(name, _)| &**name),
        }
    }

    /// The output of the dependency with that name.
    pub fn get(&self, name: &str) -> Option<&O> {
        self.iter().find(|(known, _)| *known == name).map(|(_, output)| output)
    }

    /// The names and outputs, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &O)> {
        (0..self.len()).filter_map(|n| Some((self.name(n)?, self.at(n)?)))
    }

    /// The names, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        (0..self.len()).filter_map(|n| self.name(n))
    }

    /// The outputs, in order.
    pub fn outputs(&self) -> impl Iterator<Item = &O> {
        (0..self.len()).filter_map(|n| self.at(n))
    }
}

/// The output of the n-th dependency.
///
/// # Panics
/// If there are not that many dependencies, like a slice.
impl<O> Index<usize> for Deps<'_, O> {
    type Output = O;

    #[allow(clippy::panic)]
    #[inline]
    fn index(&self, n: usize) -> &O {
        match self.at(n) {
            Some(output) => output,
            None => panic!("dependency {n} of a node that has {}", self.len()),
        }
    }
}

/// The output of the dependency with that name.
///
/// # Panics
/// If there is no such dependency, like a map.
impl<O> Index<&str> for Deps<'_, O> {
    type Output = O;

    #[allow(clippy::panic)]
    fn index(&self, name: &str) -> &O {
        match self.get(name) {
            Some(output) => output,
            None => {
                panic!(
                    "`{name}` is no dependency of this node: {}",
                    self.names().collect::<Vec<_>>().join(", ")
                )
            }
        }
    }
}

impl<O> Clone for Deps<'_, O> {
    fn clone(&self) -> Self {
        Deps(match &self.0 {
            Inner::Borrowed { names, slots, sources } => Inner::Borrowed { names: *names, slots, sources },
            Inner::Held(held) => Inner::Held(held.clone()),
        })
    }
}

impl<O: fmt::Debug> fmt::Debug for Deps<'_, O> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_map().entries(self.iter()).finish()
    }
}

impl<O: Output, S: PassInput> FromTask<Outputs<O, S>> for Deps<'static, O> {
    type Error = Infallible;

    fn from_task(task: &Task<'_, Outputs<O, S>>) -> Result<Self, Infallible> {
        Ok(Deps::held(task.state().held()))
    }
}

//! State: a struct whose fields are channels, and the partial state a node returns.
//!
//! The engine never looks inside a state. It asks for the list of channels, applies updates, and (for a state
//! that is stored) has the change written down as a delta. `derive(State)` fixes the channels when the
//! program is built; [`JsonState`](crate::JsonState) takes them from a table at run time. Both fit this one
//! trait because every function gets the *schema*, which is zero-sized for a derived state.

use std::any::type_name;
use std::borrow::Cow;
use std::fmt;

use crate::error::{Code, Error};
use agentgraph_checkpoint::delta::DeltaWriter;

/// A state: what the nodes of a graph read together and change by updates.
///
/// Write `#[derive(State)]` on a struct; nobody needs to implement this by hand.
///
/// ```
/// use agentgraph::prelude::*;
/// use serde::{Deserialize, Serialize};
///
/// #[derive(State, Serialize, Deserialize, Clone, Debug, Default)]
/// struct Triage {
///     question: String,
///     #[reduce(append)]
///     notes: Vec<String>,
/// }
///
/// let mut state = Triage::default();
/// state.apply(&(), Triage::update().question("why?").notes(["seen"])).unwrap();
/// assert_eq!(state.question, "why?");
/// assert_eq!(state.notes, ["seen"]);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a state",
    label = "needs `#[derive(State)]`",
    note = "write `#[derive(State, Serialize, Deserialize, Clone, Default)]` on the struct, or use `JsonState`"
)]
pub trait State: Clone + Send + Sync + 'static {
    /// What the channels are when they are known only at run time; `()` for a derived state.
    type Schema: Clone + Send + Sync + 'static;

    /// The partial state a node returns. Empty by default.
    type Update: Default + Clone + Send + Sync + 'static;

    /// Whether the `Debug` of what the engine shows (events, checkpoints) leaves the values out:
    /// `derive(State)` says so of a struct with a secret field.
    const HIDES: bool = false;

    /// The channels in order of declaration; their positions are used as ids below.
    fn channels(schema: &Self::Schema) -> &[Channel];

    /// The state before the first input.
    fn initial(schema: &Self::Schema) -> Self;

    /// Applies an update through the reducers.
    ///
    /// # Errors
    /// [`StateError`] when the update does not fit the schema, which cannot happen to a derived state. What
    /// was applied before the failing channel stays applied.
    fn apply(&mut self, schema: &Self::Schema, update: Self::Update) -> Result<(), StateError>;

    /// Calls `look` with the state as it would be with `update` applied, then puts both back as they were.
    ///
    /// # Errors
    /// As [`apply`](State::apply).
    fn peek<R>(
        &mut self,
        schema: &Self::Schema,
        update: &mut Self::Update,
        look: impl FnOnce(&Self) -> R,
    ) -> Result<R, StateError>;

    /// Sets every channel of that lifetime back to its initial value.
    fn reset(&mut self, schema: &Self::Schema, lifetime: Lifetime);

    /// Tells which channels `update` writes.
    fn writes(schema: &Self::Schema, update: &Self::Update, each: &mut dyn FnMut(usize, WriteKind));

    /// Takes the write to one channel out of `update`.
    fn discard(schema: &Self::Schema, update: &mut Self::Update, channel: usize);

    /// Makes `update` do what it and then `later` would do: how the updates of a subgraph become the one of
    /// its node.
    ///
    /// # Errors
    /// As [`apply`](State::apply).
    fn compose(
        schema: &Self::Schema,
        update: &mut Self::Update,
        later: Self::Update,
    ) -> Result<(), StateError>;
}

/// A state that can be kept by a checkpointer. `derive(State)` makes it of serde's traits, unless the struct
/// says `#[state(volatile)]`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be stored, so the graph cannot have a checkpointer",
    label = "this state is not stored",
    note = "a state marked `#[state(volatile)]` is never stored: remove the mark and derive `Serialize` and `Deserialize`"
)]
pub trait StoredState: State {
    /// [`State::apply`], and the change is written down in `delta`.
    ///
    /// # Errors
    /// As [`State::apply`], or when a value cannot be encoded.
    fn apply_recorded(
        &mut self,
        schema: &Self::Schema,
        update: Self::Update,
        delta: &mut DeltaWriter,
    ) -> Result<(), StateError>;

    /// Writes the whole value of one channel to `delta`.
    ///
    /// # Errors
    /// When the value cannot be encoded.
    fn record_channel(
        &self,
        schema: &Self::Schema,
        channel: usize,
        delta: &mut DeltaWriter,
    ) -> Result<(), StateError>;

    /// Reads one channel back from its MessagePack value.
    ///
    /// # Errors
    /// When the bytes do not have the channel's type.
    fn restore_channel(
        &mut self,
        schema: &Self::Schema,
        channel: usize,
        value: &[u8],
    ) -> Result<(), StateError>;

    /// An update as MessagePack: a map of channel name to write.
    ///
    /// # Errors
    /// When a value cannot be encoded.
    fn encode_update(schema: &Self::Schema, update: &Self::Update) -> Result<Vec<u8>, StateError>;

    /// The reverse of [`encode_update`](StoredState::encode_update).
    ///
    /// # Errors
    /// When the bytes name an unknown channel or do not fit one.
    fn decode_update(schema: &Self::Schema, bytes: &[u8]) -> Result<Self::Update, StateError>;
}

/// One channel of a state: its name and how it behaves.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Channel {
    /// The field's name; what checkpoints and messages call it.
    pub name: Cow<'static, str>,
    /// The kind of its reducer, part of the graph's fingerprint.
    pub reducer: Cow<'static, str>,
    /// Takes at most one write per superstep.
    pub exclusive: bool,
    /// How long a value lives.
    pub lifetime: Lifetime,
    /// Earlier names under which checkpoints may hold it.
    pub aliases: Cow<'static, [&'static str]>,
    /// Its values are stored encrypted or not at all, and shown nowhere but to nodes and to the program
    /// itself.
    pub secret: bool,
}

impl Channel {
    /// A channel with a reducer that takes any number of writes per superstep.
    pub const fn reduced(name: &'static str, reducer: &'static str) -> Self {
        Channel::aliased(name, reducer, &[])
    }

    /// [`reduced`](Channel::reduced) with earlier names. A constructor, since a const function cannot replace
    /// a field that has a destructor.
    pub const fn aliased(
        name: &'static str,
        reducer: &'static str,
        aliases: &'static [&'static str],
    ) -> Self {
        Channel {
            name: Cow::Borrowed(name),
            reducer: Cow::Borrowed(reducer),
            exclusive: false,
            lifetime: Lifetime::Thread,
            aliases: Cow::Borrowed(aliases),
            secret: false,
        }
    }

    /// The same channel, taking one write per superstep or any number.
    #[must_use]
    pub const fn with_exclusive(mut self, exclusive: bool) -> Self {
        self.exclusive = exclusive;
        self
    }

    /// The same channel with another lifetime.
    #[must_use]
    pub const fn with_lifetime(mut self, lifetime: Lifetime) -> Self {
        self.lifetime = lifetime;
        self
    }

    /// The same channel, secret or not.
    #[must_use]
    pub const fn with_secret(mut self, secret: bool) -> Self {
        self.secret = secret;
        self
    }

    /// Whether that is its name, or was.
    pub(crate) fn is_called(&self, name: &str) -> bool {
        self.name == name || self.aliases.contains(&name)
    }

    /// Whether checkpoints hold it.
    pub fn is_stored(&self) -> bool {
        self.lifetime != Lifetime::Untracked
    }
}

/// What stands in the place of a secret value wherever values are shown as JSON.
pub const MASK: &str = "[secret]";

/// A state in what the engine shows of itself.
pub(crate) struct ShownState<'a, S>(pub(crate) &'a S);

impl<S: State + fmt::Debug> fmt::Debug for ShownState<'_, S> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match S::HIDES {
            true => HiddenValue::of::<S>().fmt(out),
            false => self.0.fmt(out),
        }
    }
}

/// What is shown in the place of a state that hides its values.
pub(crate) struct HiddenValue(&'static str);

impl HiddenValue {
    pub(crate) fn of<S>() -> Self {
        HiddenValue(type_name::<S>().rsplit("::").next().unwrap_or_default())
    }
}

impl fmt::Debug for HiddenValue {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} {{ {MASK} }}", self.0)
    }
}

/// An error of a secret channel does not repeat what its value was.
pub(crate) fn without_secrets(channels: &[Channel], error: StateError) -> StateError {
    let is_secret = |name: &str| channels.iter().any(|channel| channel.secret && channel.is_called(name));
    let hidden = || "what is wrong with its value is not shown, since it is secret".to_owned();
    match error {
        StateError::BadValue { channel, .. } if is_secret(&channel) => {
            StateError::BadValue { channel, problem: hidden() }
        }
        StateError::Encode { channel, .. } if is_secret(&channel) => {
            StateError::Encode { channel, problem: hidden() }
        }
        other => other,
    }
}

/// How long the value of a channel lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Lifetime {
    /// As long as the thread (the default).
    Thread,
    /// Until the next run of the thread begins.
    Run,
    /// Readable in the superstep after the one that wrote it, only.
    Ephemeral,
    /// As long as the process runs this run: never stored.
    Untracked,
}

/// How an update writes a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteKind {
    /// Through the reducer.
    Reduce,
    /// Replaces the value and wins over every other write of the superstep.
    Overwrite,
}

/// An update, or stored bytes, that do not fit the state.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StateError {
    /// The schema has no such channel.
    #[error("there is no channel `{channel}`{}", hint(.nearest))]
    UnknownChannel {
        /// The name that was used.
        channel: String,
        /// The channel with the nearest name, if one is near.
        nearest: Option<String>,
    },
    /// The value does not fit the channel.
    #[error("channel `{channel}`: {problem}")]
    BadValue {
        /// The channel.
        channel: String,
        /// What is wrong with the value.
        problem: String,
    },
    /// The value cannot be turned into bytes.
    #[error("channel `{channel}` cannot be stored: {problem}")]
    Encode {
        /// The channel.
        channel: String,
        /// What the encoder said.
        problem: String,
    },
}

fn hint(nearest: &Option<String>) -> String {
    nearest.as_ref().map(|name| format!("; did you mean `{name}`?")).unwrap_or_default()
}

impl From<StateError> for Error {
    fn from(error: StateError) -> Self {
        let code = match &error {
            StateError::UnknownChannel { .. } => Code::UnknownChannel,
            StateError::BadValue { .. } => Code::BadValue,
            StateError::Encode { .. } => Code::Encode,
        };
        Error::new(code, error.to_string())
    }
}

//! States: a struct whose fields are channels, and its update, in which every field is optional.
//!
//! The engine never looks inside a state. It asks for the list of channels, applies updates and, if the state
//! is stored, has each change written as a delta. `derive(State)` fixes the channels when the program is
//! compiled; [`JsonState`](crate::JsonState) takes them from a table at run time. Both implement one trait,
//! because every function gets the *schema*, which is zero-sized for a derived state.

use std::any::type_name;
use std::borrow::Cow;
use std::fmt;

use crate::error::{Code, Error, hint};
use agentgraph_checkpoint::delta::DeltaWriter;

/// A state: the data that the nodes of a graph share, read and change by updates.
///
/// Write `#[derive(State)]` on a struct; an implementation by hand is not needed.
///
/// ```
/// use agentgraph::prelude::*;
///
/// #[derive(State, Clone, Debug, Default)]
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
    /// The channels, if they are known only at run time; `()` for a derived state.
    type Schema: Clone + Send + Sync + 'static;

    /// The partial state that a node returns. Empty by default.
    type Update: Default + Clone + Send + Sync + 'static;

    /// Whether the `Debug` output of the engine's types (events, checkpoints) leaves out the values.
    /// `derive(State)` sets it for a struct with a secret field.
    const HIDES: bool = false;

    /// The remedy for a channel that takes one write and got two, as the begin of a sentence.
    #[doc(hidden)]
    const SEVERAL_WRITES: &'static str = "give the field a reducer, such as `#[reduce(last)]`";

    /// The problems of a schema, for `compile()`: an initial value that a reducer cannot begin with, say. A
    /// derived state has none.
    fn problems(schema: &Self::Schema) -> Vec<StateError> {
        let _ = schema;
        Vec::new()
    }

    /// The channels in order of declaration; their positions are the ids below.
    fn channels(schema: &Self::Schema) -> &[Channel];

    /// The state before the first input.
    fn initial(schema: &Self::Schema) -> Self;

    /// Applies an update through the reducers.
    ///
    /// # Errors
    /// [`StateError`] if the update does not fit the schema, which cannot happen to a derived state.
    /// Channels applied before the failing one stay applied.
    fn apply(&mut self, schema: &Self::Schema, update: Self::Update) -> Result<(), StateError>;

    /// Calls `look` with the state as `update` would change it, then restores both.
    ///
    /// # Errors
    /// As [`apply`](State::apply).
    fn peek<R>(
        &mut self,
        schema: &Self::Schema,
        update: &mut Self::Update,
        look: impl FnOnce(&Self) -> R,
    ) -> Result<R, StateError>;

    /// Resets every channel with this lifetime to its initial value.
    fn reset(&mut self, schema: &Self::Schema, lifetime: Lifetime);

    /// Calls `each` for every channel that `update` writes.
    fn writes(schema: &Self::Schema, update: &Self::Update, each: &mut dyn FnMut(usize, WriteKind));

    /// Removes the write to one channel from `update`.
    fn discard(schema: &Self::Schema, update: &mut Self::Update, channel: usize);

    /// Adds `later` to `update`, so that applying the result has the effect of both, one after the other.
    /// The updates of a subgraph become the update of its node in this way.
    ///
    /// # Errors
    /// As [`apply`](State::apply).
    fn compose(
        schema: &Self::Schema,
        update: &mut Self::Update,
        later: Self::Update,
    ) -> Result<(), StateError>;
}

/// A state that a checkpointer can store. `derive(State)` implements it by serde's traits, unless the
/// struct has `#[state(volatile)]`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be stored, so the graph cannot have a checkpointer",
    label = "this state is not stored",
    note = "a state marked `#[state(volatile)]` is never stored: remove the mark and derive `Serialize` and `Deserialize`"
)]
pub trait StoredState: State {
    /// Like [`State::apply`], and records the change in `delta`.
    ///
    /// # Errors
    /// As [`State::apply`], or if a value cannot be encoded.
    fn apply_recorded(
        &mut self,
        schema: &Self::Schema,
        update: Self::Update,
        delta: &mut DeltaWriter,
    ) -> Result<(), StateError>;

    /// Records the whole value of one channel in `delta`.
    ///
    /// # Errors
    /// If the value cannot be encoded.
    fn record_channel(
        &self,
        schema: &Self::Schema,
        channel: usize,
        delta: &mut DeltaWriter,
    ) -> Result<(), StateError>;

    /// Reads one channel back from its MessagePack value.
    ///
    /// # Errors
    /// If the bytes do not have the channel's type.
    fn restore_channel(
        &mut self,
        schema: &Self::Schema,
        channel: usize,
        value: &[u8],
    ) -> Result<(), StateError>;

    /// An update as MessagePack: a map from channel name to write.
    ///
    /// # Errors
    /// If a value cannot be encoded.
    fn encode_update(schema: &Self::Schema, update: &Self::Update) -> Result<Vec<u8>, StateError>;

    /// The reverse of [`encode_update`](StoredState::encode_update).
    ///
    /// # Errors
    /// If the bytes name an unknown channel or do not fit one.
    fn decode_update(schema: &Self::Schema, bytes: &[u8]) -> Result<Self::Update, StateError>;
}

/// One channel of a state: its name and its behaviour.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Channel {
    /// The field's name, also in checkpoints and messages.
    pub name: Cow<'static, str>,
    /// The kind of its reducer, a part of the graph's fingerprint.
    pub reducer: Cow<'static, str>,
    /// Accepts at most one write per superstep.
    pub exclusive: bool,
    /// The lifetime of a value.
    pub lifetime: Lifetime,
    /// Earlier names of the channel in checkpoints.
    pub aliases: Cow<'static, [&'static str]>,
    /// Its values are stored encrypted or not at all, and shown only to nodes and to the program itself.
    pub secret: bool,
}

impl Channel {
    /// A channel with a reducer that accepts any number of writes per superstep.
    pub const fn reduced(name: &'static str, reducer: &'static str) -> Self {
        Channel::aliased(name, reducer, &[])
    }

    /// [`reduced`](Channel::reduced) with earlier names. A separate constructor, since a const function
    /// cannot replace a field that has a destructor.
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

    /// The same channel, accepting one write per superstep or any number.
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

    /// Whether this is its name, or an earlier one.
    pub(crate) fn is_called(&self, name: &str) -> bool {
        self.name == name || self.aliases.contains(&name)
    }

    /// Whether checkpoints store it.
    pub fn is_stored(&self) -> bool {
        self.lifetime != Lifetime::Untracked
    }
}

/// Replaces a secret value wherever values are shown as JSON.
pub const MASK: &str = "[secret]";

/// Shows a state in the `Debug` output of the engine's types.
pub(crate) struct ShownState<'a, S>(pub(crate) &'a S);

impl<S: State + fmt::Debug> fmt::Debug for ShownState<'_, S> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if S::HIDES { HiddenValue::of::<S>().fmt(out) } else { self.0.fmt(out) }
    }
}

/// Replaces a state that hides its values.
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

/// Removes the text about a secret value from an error.
pub(crate) fn without_secrets(channels: &[Channel], error: StateError) -> StateError {
    let is_secret = |name: &str| channels.iter().any(|channel| channel.secret && channel.is_called(name));
    let hidden = || "the problem is not shown, since the value is secret".to_owned();
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

/// The lifetime of a channel's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Lifetime {
    /// The whole thread (the default).
    Thread,
    /// Until the next run of the thread starts.
    Run,
    /// Only the superstep after the one that wrote it.
    Ephemeral,
    /// The run in this process: never stored.
    Untracked,
}

/// How an update writes a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteKind {
    /// Through the reducer.
    Reduce,
    /// Replaces the value, and overrides every other write of the superstep.
    Overwrite,
}

/// The error for an update, or stored bytes, that do not fit the state.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum StateError {
    /// The schema has no channel with this name.
    #[error("there is no channel `{channel}`{}", hint(.nearest.as_ref()))]
    UnknownChannel {
        /// The name in the update or the bytes.
        channel: String,
        /// The channel with the nearest name, if one is similar.
        nearest: Option<String>,
    },
    /// The value does not fit the channel.
    #[error("channel `{channel}`: {problem}")]
    BadValue {
        /// The channel.
        channel: String,
        /// The problem with the value.
        problem: String,
    },
    /// The value cannot be encoded.
    #[error("channel `{channel}` cannot be stored: {problem}")]
    Encode {
        /// The channel.
        channel: String,
        /// The encoder's message.
        problem: String,
    },
}

/// The message, as `fn main() -> Result<()>` prints `Debug`.
impl fmt::Debug for StateError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, out)
    }
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

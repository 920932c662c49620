//! Channels as a file has them: an array of objects.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use super::{JsonChannels, NAMELESS};
use crate::json_state::reducer::JsonReducer;
use crate::state::Lifetime;

/// One channel of a file.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ChannelForm {
    key: String,
    #[serde(default = "once")]
    reducer: JsonReducer,
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "some")]
    initial: Option<Value>,
    #[serde(default, skip_serializing_if = "LifetimeForm::is_thread")]
    lifetime: LifetimeForm,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    secret: bool,
}

#[derive(Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum LifetimeForm {
    #[default]
    Thread,
    Run,
    Ephemeral,
    Untracked,
}

fn once() -> JsonReducer {
    JsonReducer::Once
}

/// Reads `null` as a value, not as none.
fn some<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

impl LifetimeForm {
    fn is_thread(&self) -> bool {
        *self == LifetimeForm::Thread
    }
}

impl From<Lifetime> for LifetimeForm {
    fn from(lifetime: Lifetime) -> Self {
        match lifetime {
            Lifetime::Thread => LifetimeForm::Thread,
            Lifetime::Run => LifetimeForm::Run,
            Lifetime::Ephemeral => LifetimeForm::Ephemeral,
            Lifetime::Untracked => LifetimeForm::Untracked,
        }
    }
}

impl From<LifetimeForm> for Lifetime {
    fn from(form: LifetimeForm) -> Self {
        match form {
            LifetimeForm::Thread => Lifetime::Thread,
            LifetimeForm::Run => Lifetime::Run,
            LifetimeForm::Ephemeral => Lifetime::Ephemeral,
            LifetimeForm::Untracked => Lifetime::Untracked,
        }
    }
}

impl Serialize for JsonChannels {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let table = self.table();
        let parts = table.channels.iter().zip(&table.reducers).zip(&table.initial);
        serializer.collect_seq(parts.map(|((channel, reducer), initial)| ChannelForm {
            key: channel.name.to_string(),
            reducer: reducer.clone(),
            initial: Some(initial.clone()),
            lifetime: channel.lifetime.into(),
            secret: channel.secret,
        }))
    }
}

impl<'de> Deserialize<'de> for JsonChannels {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut channels = JsonChannels::new();
        for form in Vec::<ChannelForm>::deserialize(deserializer)? {
            if form.key.is_empty() {
                return Err(D::Error::custom(NAMELESS));
            }
            if channels.place(&form.key).is_ok() {
                return Err(D::Error::custom(format!("the key `{}` is there twice", form.key)));
            }
            let initial = form.initial.unwrap_or_else(|| form.reducer.usual_value());
            channels = channels.add(form.key, initial, form.reducer, form.lifetime.into(), form.secret);
        }
        Ok(channels)
    }
}

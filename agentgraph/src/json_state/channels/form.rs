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
    #[serde(default = "thread", with = "LifetimeForm", skip_serializing_if = "is_thread")]
    lifetime: Lifetime,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    secret: bool,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Lifetime", rename_all = "snake_case")]
enum LifetimeForm {
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

fn thread() -> Lifetime {
    Lifetime::Thread
}

fn is_thread(lifetime: &Lifetime) -> bool {
    *lifetime == Lifetime::Thread
}

impl Serialize for JsonChannels {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let table = self.table();
        let parts = table.channels.iter().zip(&table.reducers).zip(&table.initial);
        serializer.collect_seq(parts.map(|((channel, reducer), initial)| ChannelForm {
            key: channel.name.to_string(),
            reducer: reducer.clone(),
            initial: Some(initial.clone()),
            lifetime: channel.lifetime,
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
            channels = channels.add(form.key, initial, form.reducer, form.lifetime, form.secret);
        }
        Ok(channels)
    }
}

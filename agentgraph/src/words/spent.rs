//! [`Spent`]: the resources a run has used, as data.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The resources a run has used, as checkpoints store them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Spent {
    #[serde(default)]
    pub(crate) supersteps: u64,
    #[serde(default)]
    pub(crate) micros: u64,
    #[serde(default)]
    pub(crate) units: BTreeMap<Cow<'static, str>, u64>,
}

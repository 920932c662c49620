//! What a run has used up, as data.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What a run has used up, as a checkpoint holds it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Spent {
    #[serde(default)]
    pub(crate) supersteps: u64,
    #[serde(default)]
    pub(crate) micros: u64,
    #[serde(default)]
    pub(crate) units: BTreeMap<Cow<'static, str>, u64>,
}

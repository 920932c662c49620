//! Values that a middleware keeps in the state of its agent.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::{Code, Error, Result};
use crate::json::RawJson;

/// The values of all middleware, by name, as JSON.
pub(crate) type Slots = BTreeMap<String, RawJson>;

/// A value that a middleware keeps in the state of its agent: see [`Turn::slot`](super::Turn::slot).
///
/// ```
/// use agentgraph_llm::middleware::Turn;
///
/// # fn main() -> agentgraph_llm::Result<()> {
/// let mut turn = Turn::detached("counter", []);
/// let mut count = turn.slot::<u32>();
/// assert_eq!(count.get()?, None);
/// count.set(&1)?;
/// assert_eq!(turn.slot::<u32>().get()?, Some(1));
/// # Ok(())
/// # }
/// ```
pub struct Slot<'a, T> {
    pub(super) slots: &'a mut Slots,
    pub(super) name: &'a str,
    pub(super) value: PhantomData<fn() -> T>,
}

impl<T: Serialize + DeserializeOwned> Slot<'_, T> {
    /// The value; `None` before the first [`set`](Slot::set).
    ///
    /// # Errors
    /// `E_LLM_MIDDLEWARE` if the stored value is of another type.
    pub fn get(&self) -> Result<Option<T>> {
        self.slots.get(self.name).map(RawJson::parse).transpose().map_err(|error| self.misfit("read", &error))
    }

    /// Sets the value. It is stored with the hook's node.
    ///
    /// # Errors
    /// `E_LLM_MIDDLEWARE` if the value cannot be written as JSON.
    pub fn set(&mut self, value: &T) -> Result<()> {
        let value = RawJson::from_value(value).map_err(|error| self.misfit("written", &error))?;
        self.slots.insert(self.name.to_owned(), value);
        Ok(())
    }

    fn misfit(&self, done: &str, error: &serde_json::Error) -> Error {
        let message = format!("the slot of middleware `{}` cannot be {done}: {error}", self.name);
        Error::new(Code::Middleware, message)
    }
}

impl<T> fmt::Debug for Slot<'_, T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Slot").field("name", &self.name).field("value", &self.slots.get(self.name)).finish()
    }
}

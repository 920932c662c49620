//! The conversation as a hook sees and changes it.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use agentgraph::Ctx;
use agentgraph::reduce::{ById, KeyedWrite, Reducer};
use agentgraph::run::InterruptKey;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::bill::{Bill, BilledModel, OpenBill};
use super::slot::{Slot, Slots};
use crate::conversation;
use crate::error::{Code, Error, Result};
use crate::message::{Message, Messages, ToolResult, ToolUse};
use crate::model::{ChatModel, StopReason, Usage};

/// The conversation of an agent, as a hook of a middleware sees and changes it. Changes are stored when the
/// hook returns.
pub struct Turn {
    start: TurnStart,
    middleware: String,
    edits: MessageEdits,
    slots_used: bool,
    /// What this hook pays.
    bill: OpenBill,
}

/// What a turn begins with.
#[derive(Default)]
pub(crate) struct TurnStart {
    pub(crate) messages: Messages,
    pub(crate) slots: Slots,
    pub(crate) run_slots: Slots,
    pub(crate) stop: Option<StopReason>,
    pub(crate) last_usage: Usage,
    pub(crate) bill: Bill,
    pub(crate) run_bill: Bill,
    pub(crate) rounds: u64,
    pub(crate) run_rounds: u64,
    pub(crate) ctx: Option<Ctx>,
}

/// The changes of a conversation, for a `by_id` channel.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct MessageEdits {
    pub(crate) put: Vec<Message>,
    pub(crate) removed: Vec<String>,
    /// The whole conversation, in the place of the others.
    pub(crate) replaced: Option<Messages>,
}

impl Turn {
    /// A turn outside of a graph. For tests of middleware.
    pub fn detached(middleware: impl Into<String>, messages: impl IntoIterator<Item = Message>) -> Self {
        let start = TurnStart { messages: messages.into_iter().collect(), ..TurnStart::default() };
        Turn::new(middleware.into(), start)
    }

    pub(crate) fn new(middleware: String, start: TurnStart) -> Self {
        let bill = OpenBill::new(start.ctx.clone());
        Turn { start, middleware, edits: MessageEdits::default(), slots_used: false, bill }
    }

    /// What this hook has paid so far.
    pub(crate) fn own_bill(&self) -> Bill {
        self.bill.read()
    }

    /// The changes, with the slots of both lifetimes if they were used.
    pub(crate) fn into_changes(self) -> (MessageEdits, Option<(Slots, Slots)>) {
        let slots = self.slots_used.then_some((self.start.slots, self.start.run_slots));
        (self.edits, slots)
    }
}

/// # The conversation
impl Turn {
    /// The conversation, with the changes of this hook.
    pub fn messages(&self) -> &[Message] {
        &self.start.messages
    }

    /// Adds a message at the end.
    pub fn push(&mut self, message: Message) {
        self.put(message);
    }

    /// Replaces the message with the same id, or adds it at the end.
    pub fn put(&mut self, message: Message) {
        ById::reduce(&mut self.start.messages, vec![KeyedWrite::Upsert(message.clone())]);
        match &mut self.edits.replaced {
            Some(all) => all.clone_from(&self.start.messages),
            None => {
                self.edits.removed.retain(|id| *id != message.id);
                self.edits.put.retain(|put| put.id != message.id);
                self.edits.put.push(message);
            }
        }
    }

    /// Removes the message with this id.
    pub fn remove(&mut self, id: &str) {
        ById::reduce(&mut self.start.messages, vec![KeyedWrite::Remove(id.to_owned())]);
        match &mut self.edits.replaced {
            Some(all) => all.clone_from(&self.start.messages),
            None => {
                self.edits.put.retain(|put| put.id != id);
                self.edits.removed.push(id.to_owned());
            }
        }
    }

    /// Replaces the whole conversation.
    pub fn set_messages(&mut self, messages: impl IntoIterator<Item = Message>) {
        self.start.messages = messages.into_iter().collect();
        let replaced = Some(self.start.messages.clone());
        self.edits = MessageEdits { replaced, ..MessageEdits::default() };
    }
}

/// # The calls of the last answer
impl Turn {
    /// The calls of the model's last answer that have no result yet, in order.
    pub fn open_calls(&self) -> Vec<&ToolUse> {
        conversation::open_calls(self.messages())
    }

    /// Answers a call in the place of its tool, which is then not run.
    pub fn answer(&mut self, result: ToolResult) {
        self.put(conversation::result_message(self.messages(), result));
    }

    /// Replaces an open call: the tool that is run, and its arguments. The call is found by its id, and the
    /// model's message is changed, so that the model sees what was run.
    pub fn edit_call(&mut self, call: ToolUse) {
        let holds = |message: &&Message| message.tool_uses().any(|known| known.id == call.id);
        let Some(mut message) = self.messages().iter().rev().find(holds).cloned() else { return };
        for block in &mut message.content {
            if block.as_tool_use().is_some_and(|known| known.id == call.id) {
                *block = call.clone().into();
            }
        }
        self.put(message);
    }
}

/// # What was used
impl Turn {
    /// Why the model's last answer ended. `None` before the first answer of a run.
    pub fn stop(&self) -> Option<&StopReason> {
        self.start.stop.as_ref()
    }

    /// The tokens of the model's last answer.
    pub fn last_usage(&self) -> Usage {
        self.start.last_usage
    }

    /// The number of the model's answers in the run.
    pub fn run_rounds(&self) -> u64 {
        self.start.run_rounds
    }

    /// The number of the model's answers in the thread.
    pub fn thread_rounds(&self) -> u64 {
        self.start.rounds
    }
}

/// # What was paid
impl Turn {
    /// A model that this hook asks. Its answers are on the agent's bill, so a [`Budget`](super::Budget)
    /// counts them. A hook that fails stores nothing, and no bill; the engine's own count of the run,
    /// `tokens`, has them.
    pub fn billed(&self, model: &Arc<dyn ChatModel>) -> BilledModel {
        self.bill.model(model)
    }

    /// All answers of the run that were paid: those of the agent's models, and those that middleware asked
    /// for.
    pub fn run_bill(&self) -> Bill {
        let mut bill = self.start.run_bill.clone();
        bill.add_all(&self.own_bill());
        bill
    }

    /// All answers of the thread that were paid.
    pub fn thread_bill(&self) -> Bill {
        let mut bill = self.start.bill.clone();
        bill.add_all(&self.own_bill());
        bill
    }
}

/// # What the middleware keeps
impl Turn {
    /// The value of this middleware that lives as long as the thread.
    pub fn slot<T: Serialize + DeserializeOwned>(&mut self) -> Slot<'_, T> {
        self.slots_used = true;
        Slot { slots: &mut self.start.slots, name: &self.middleware, value: PhantomData }
    }

    /// The value of this middleware that is forgotten when the next run of the thread starts.
    pub fn run_slot<T: Serialize + DeserializeOwned>(&mut self) -> Slot<'_, T> {
        self.slots_used = true;
        Slot { slots: &mut self.start.run_slots, name: &self.middleware, value: PhantomData }
    }
}

/// # The graph
impl Turn {
    /// The context of the hook's node.
    ///
    /// # Errors
    /// `E_LLM_MIDDLEWARE` outside of a graph.
    pub fn ctx(&self) -> Result<&Ctx> {
        self.start.ctx.as_ref().ok_or_else(|| {
            let message =
                format!("middleware `{}` needs the context of a node: run it in an agent", self.middleware);
            Error::new(Code::Middleware, message)
        })
    }

    /// Asks a person, as [`Ctx::interrupt`] does. Only the hook runs again with the answer.
    ///
    /// # Errors
    /// One to be returned by `?` while there is no answer, and `E_LLM_MIDDLEWARE` outside of a graph.
    pub fn interrupt<T: DeserializeOwned>(&self, question: impl Serialize) -> Result<T> {
        Ok(self.ctx()?.interrupt(question)?)
    }

    /// Asks a person under a key, as [`Ctx::interrupt_as`] does: several questions may be open together. An
    /// approval of a call has the call's id as its key.
    ///
    /// # Errors
    /// As [`interrupt`](Turn::interrupt).
    pub fn interrupt_as<T: DeserializeOwned>(
        &self,
        key: impl Into<InterruptKey>,
        question: impl Serialize,
    ) -> Result<T> {
        Ok(self.ctx()?.interrupt_as(key, question)?)
    }
}

impl fmt::Debug for Turn {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = out.debug_struct("Turn");
        parts.field("middleware", &self.middleware).field("messages", &self.messages());
        parts.finish_non_exhaustive()
    }
}

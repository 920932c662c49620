//! `#[reduce(by_id)]` on [`Messages`]: the rule of a `Vec`, with the ids in a table.

use agentgraph::checkpoint::delta::{DeltaWriter, EncodeError};
use agentgraph::reduce::{ById, KeyedWrite, Reducer, StoredReducer};

use super::messages::List;
use super::{Message, Messages};

type OnVec = Vec<Message>;

impl Reducer<Messages> for ById {
    type Write = Vec<KeyedWrite<Message>>;
    const KIND: &'static str = <ById as Reducer<OnVec>>::KIND;

    fn reduce(value: &mut Messages, write: Self::Write) {
        let list = value.own();
        for one in write {
            let at = place(list, &one);
            apply(list, one, at);
        }
    }

    fn combine(write: &mut Self::Write, later: Self::Write) {
        <ById as Reducer<OnVec>>::combine(write, later);
    }

    fn admit(value: Messages) -> Messages {
        <ById as Reducer<OnVec>>::admit(value.into()).into()
    }
}

impl StoredReducer<Messages> for ById {
    fn reduce_recorded(
        value: &mut Messages,
        write: Self::Write,
        delta: &mut DeltaWriter,
    ) -> Result<(), EncodeError> {
        let list = value.own();
        for one in write {
            let at = place(list, &one);
            let known = at.map(|at| &list.items[at]);
            match (&one, known) {
                (KeyedWrite::Upsert(message), known) => delta.upsert(&message.id, message, known)?,
                (KeyedWrite::Remove(id), Some(message)) => delta.remove(id, message)?,
                (KeyedWrite::Remove(_), None) => {}
            }
            apply(list, one, at);
        }
        Ok(())
    }

    fn record(value: &Messages, delta: &mut DeltaWriter) -> Result<(), EncodeError> {
        <ById as StoredReducer<OnVec>>::record(value, delta)
    }
}

fn place(list: &List, write: &KeyedWrite<Message>) -> Option<usize> {
    match write {
        KeyedWrite::Upsert(message) => list.position(&message.id),
        KeyedWrite::Remove(id) => list.position(id),
    }
}

fn apply(list: &mut List, write: KeyedWrite<Message>, at: Option<usize>) {
    match (write, at) {
        (KeyedWrite::Upsert(message), at) => list.put(message, at),
        (KeyedWrite::Remove(_), Some(at)) => list.remove(at),
        (KeyedWrite::Remove(_), None) => {}
    }
}

//! [`Rows`]: what an object has of a thread, as the loop and its readers need it.

use std::collections::BTreeSet;
use std::io::Cursor;

use agentgraph::Code;
use agentgraph::checkpoint::{StoreCode, StoreError};
use agentgraph::host::ThreadRows;
use bytes::Bytes;
use restate_sdk::context::{RequestTarget, RunFuture};
use restate_sdk::errors::{HandlerError, TerminalError};
use serde::Deserialize;

use super::attempt::Runs;
use super::hosted::Hosted;
use super::room::Room;
use super::sdk::{About, Journal, is_cancel};
use super::slots::{Slots, is_slot};
use super::tasks::of_wire;
use crate::wire::{Part, SealKey};

/// Where the rows of a thread are.
#[derive(Clone, Copy)]
pub(super) struct RowsPlace<'a> {
    pub(super) hosted: &'a Hosted,
    pub(super) ctx: &'a Journal,
    pub(super) thread: &'a str,
}

/// The rows of a thread, in order, the slots that they are in, and the room that they leave.
#[derive(Default)]
pub(super) struct Rows {
    /// Those at the beginning.
    pub(super) rows: Vec<(String, Vec<u8>)>,
    slots: Slots,
    pub(super) room: Room,
    /// Whether the object of the steps has them, and this one has none.
    pub(super) have_moved: bool,
}

/// What an object has: a value for each key of a slot.
type Values = Vec<(String, Bytes)>;

/// Marks an object of callers whose rows are in the object of the steps. One that has other keys and no rows
/// counts as marked: its thread is of an earlier release, or its first call was refused before it wrote any.
const MOVED: &str = "moved";

/// The values of the slots, and whether the rows are in the object of the steps.
async fn values(ctx: &Journal, cancelled: &mut bool) -> Result<(Values, bool), HandlerError> {
    let mut keys = loop {
        match ctx.keys().await {
            Err(error) if is_cancel(&error) => *cancelled = true,
            keys => break keys?,
        }
    };
    let is_known = !keys.is_empty();
    let is_marked = keys.iter().any(|key| key == MOVED);
    keys.retain(|key| !is_marked && is_slot(key));
    keys.sort_unstable();
    let mut values = Vec::with_capacity(keys.len());
    for key in keys {
        let value = loop {
            match ctx.get::<Bytes>(&key).await {
                Err(error) if is_cancel(&error) => *cancelled = true,
                found => break found?,
            }
        };
        values.extend(value.map(|value| (key, value)));
    }
    let have_moved = is_known && values.is_empty();
    Ok((values, have_moved))
}

/// Gives the rows of this object to the steps, as they are. Until they have all of them, readers find them
/// here: nothing changes them meanwhile.
pub(super) async fn move_to_steps(
    RowsPlace { hosted, ctx, thread }: RowsPlace<'_>,
    cancelled: &mut bool,
) -> Result<(), HandlerError> {
    let (values, _) = values(ctx, cancelled).await?;
    let payload = packed(&values);
    loop {
        let target = RequestTarget::object(hosted.steps(), thread, "take");
        match ctx.call(target, payload.clone()).await {
            // The call may have been cancelled before it began. Another one takes the same.
            Err(error) if is_cancel(&error) => *cancelled = true,
            taken => {
                taken?;
                break;
            }
        }
    }
    // First: a reader that comes between two of the clears would find some of the rows.
    ctx.set(MOVED, Bytes::new());
    values.iter().for_each(|(key, _)| ctx.clear(key));
    Ok(())
}

/// Takes the rows that a call of the thread had until now.
pub(super) async fn take(
    _: &Hosted,
    ctx: &Journal,
    about: &About,
    input: Bytes,
) -> Result<Bytes, HandlerError> {
    let values = unpacked(&input).ok_or_else(|| {
        TerminalError::new(format!("the rows of thread `{}` come from another release", about.key))
    })?;
    ctx.clear_all();
    values.into_iter().for_each(|(key, value)| ctx.set(&key, value));
    Ok(Bytes::new())
}

/// The keys with the lengths of their values, as MessagePack, and the values.
fn packed(values: &Values) -> Bytes {
    let head: Vec<_> = values.iter().map(|(key, value)| (key, value.len())).collect();
    let mut payload = Vec::with_capacity(values.iter().map(|(_, value)| value.len() + 16).sum());
    // Writing such a value to a `Vec` does not fail.
    let _ = rmp_serde::encode::write(&mut payload, &head);
    values.iter().for_each(|(_, value)| payload.extend_from_slice(value));
    payload.into()
}

fn unpacked(payload: &Bytes) -> Option<Values> {
    let mut from = rmp_serde::Deserializer::new(Cursor::new(&payload[..]));
    let head: Vec<(String, usize)> = Deserialize::deserialize(&mut from).ok()?;
    let mut at = usize::try_from(from.get_ref().position()).ok()?;
    let mut values = Vec::with_capacity(head.len());
    for (key, length) in head {
        let end = at.checked_add(length).filter(|end| *end <= payload.len())?;
        values.push((key, payload.slice(at..end)));
        at = end;
    }
    Some(values)
}

impl Rows {
    /// Reads them. The runtime sends them with the request, unless they are large.
    pub(super) async fn read(
        RowsPlace { hosted, ctx, thread }: RowsPlace<'_>,
        cancelled: &mut bool,
    ) -> Result<Self, HandlerError> {
        let (values, have_moved) = values(ctx, cancelled).await?;
        let (slots, payloads) = Slots::read(values).map_err(of_wire)?;
        let mut rows = Vec::with_capacity(payloads.len());
        let mut room = Room::default();
        for (key, payload) in payloads {
            room.hold(&key, payload.len());
            let label = hosted.label(Part::Row, thread).of_key(&key);
            let (row, _) = hosted.wire.read(label, payload).await.map_err(of_wire)?;
            rows.push((key, row));
        }
        Ok(Rows { rows, slots, room, have_moved })
    }

    /// Takes the rows that the history has of a thread which this server does not know.
    pub(super) async fn restore(
        &mut self,
        place: RowsPlace<'_>,
        key: &SealKey,
        runs: &mut Runs,
        cancelled: &mut bool,
    ) -> Result<(), HandlerError> {
        let RowsPlace { hosted, ctx, thread } = place;
        let Some(saver) = hosted.catalogued_saver() else { return Ok(()) };
        let label = hosted.label(Part::Row, thread);
        // The history may have others when the journal is replayed.
        let payload = loop {
            runs.next();
            let read = move || async move {
                let rows = ThreadRows::read(thread, saver).await.map_err(of_wire)?;
                hosted.wire.send(key, label, &rows).await.map_err(of_wire)
            };
            match ctx.run(read).name("restore").await {
                Err(error) if is_cancel(&error) => *cancelled = true,
                read => break read?,
            }
        };
        let restored = hosted.wire.receive::<ThreadRows>(label, payload).await.map_err(of_wire)?.0;
        self.rows = restored.into_vec();
        let kept: BTreeSet<&String> = self.rows.iter().map(|(key, _)| key).collect();
        let clear: Vec<String> = self.slots.rows().filter(|row| !kept.contains(row)).cloned().collect();
        let set = self.rows.clone();
        self.change(place, key, set, &clear).await?.map_err(agentgraph::Error::from).map_err(of_wire)
    }

    /// Changes them. A change is stored as a whole, or not at all.
    pub(super) async fn change(
        &mut self,
        RowsPlace { hosted, ctx, thread }: RowsPlace<'_>,
        key: &SealKey,
        set: Vec<(String, Vec<u8>)>,
        clear: &[String],
    ) -> Result<Result<(), StoreError>, HandlerError> {
        let mut payloads = Vec::with_capacity(set.len());
        clear.iter().for_each(|row| self.room.clear(row));
        for (row, bytes) in set {
            let label = hosted.label(Part::Row, thread).of_key(&row);
            let wire = hosted.wire.within(self.room.for_row(&row, hosted.saver.is_some()));
            match wire.write(key, label, bytes).await {
                Ok(payload) => {
                    self.room.set(&row, payload.len());
                    payloads.push((row, payload));
                }
                Err(error) if error.code() == Code::Encode => {
                    return Ok(Err(StoreError::new(StoreCode::Encode, error.message())));
                }
                Err(error) => return Err(error.into()),
            }
        }
        for (slot, value) in self.slots.change(payloads, clear) {
            match value {
                Some(value) => ctx.set(&slot, value),
                None => ctx.clear(&slot),
            }
        }
        Ok(Ok(()))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn rows_arrive_as_they_were_and_a_cut_message_is_refused() {
        let value = |key: &str, bytes: &'static [u8]| (key.to_owned(), Bytes::from_static(bytes));
        let values = vec![value("r0", b"a"), value("r1", b""), value("r12", &[0xff; 300])];
        let payload = packed(&values);
        assert_eq!(unpacked(&payload).unwrap(), values);
        for end in 0..payload.len() {
            assert_eq!(unpacked(&payload.slice(..end)), None, "cut at {end}");
        }
    }
}

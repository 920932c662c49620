//! [`Rows`]: what an object has of a thread, as the loop and its readers need it.

use std::collections::BTreeSet;

use agentgraph::Code;
use agentgraph::checkpoint::{StoreCode, StoreError};
use agentgraph::host::ThreadRows;
use bytes::Bytes;
use restate_sdk::context::RunFuture;
use restate_sdk::errors::HandlerError;

use super::attempt::Runs;
use super::hosted::Hosted;
use super::room::Room;
use super::sdk::{Journal, is_cancel};
use super::slots::Slots;
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
}

impl Rows {
    /// Reads them. The runtime sends them with the request, unless they are large.
    pub(super) async fn read(
        RowsPlace { hosted, ctx, thread }: RowsPlace<'_>,
        cancelled: &mut bool,
    ) -> Result<Self, HandlerError> {
        let mut keys = loop {
            match ctx.keys().await {
                Err(error) if is_cancel(&error) => *cancelled = true,
                keys => break keys?,
            }
        };
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
        let (slots, payloads) = Slots::read(values).map_err(of_wire)?;
        let mut rows = Vec::with_capacity(payloads.len());
        let mut room = Room::default();
        for (key, payload) in payloads {
            room.hold(&key, payload.len());
            let label = hosted.label(Part::Row, thread).of_key(&key);
            let (row, _) = hosted.wire.read(label, payload).await.map_err(of_wire)?;
            rows.push((key, row));
        }
        Ok(Rows { rows, slots, room })
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

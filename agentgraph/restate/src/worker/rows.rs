//! [`Rows`]: what an object has of a thread, as the loop and its readers need it.

use bytes::Bytes;
use restate_sdk::errors::HandlerError;

use super::hosted::Hosted;
use super::room::Room;
use super::sdk::{Journal, is_cancel};
use super::slots::Slots;
use super::tasks::of_wire;
use crate::wire::Part;

/// The rows of a thread, in order, the slots that they are in, and the room that they leave.
pub(super) struct Rows {
    pub(super) rows: Vec<(String, Vec<u8>)>,
    pub(super) slots: Slots,
    pub(super) room: Room,
}

impl Rows {
    /// Reads them. The runtime sends them with the request, unless they are large.
    pub(super) async fn read(
        hosted: &Hosted,
        ctx: &Journal,
        thread: &str,
        cancelled: &mut bool,
    ) -> Result<Self, HandlerError> {
        let mut keys = loop {
            match ctx.keys().await {
                Err(error) if is_cancel(&error) => *cancelled = true,
                keys => break keys?,
            }
        };
        keys.retain(|key| !key.starts_with('~'));
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
}

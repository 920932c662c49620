//! [`Rows`]: what an object has of a thread, as the loop and its readers need it.

use bytes::Bytes;
use restate_sdk::endpoint::ContextInternal;
use restate_sdk::errors::HandlerError;

use super::hosted::Hosted;
use super::room::Room;
use super::tasks::of_wire;
use super::waits::is_cancel;
use crate::wire::Part;

/// The rows of a thread, in order, and the room that they leave.
pub(super) struct Rows {
    pub(super) rows: Vec<(String, Vec<u8>)>,
    pub(super) room: Room,
}

impl Rows {
    /// Reads them. The runtime sends them with the request, unless they are large.
    pub(super) async fn read(
        hosted: &Hosted,
        ctx: &ContextInternal,
        thread: &str,
        cancelled: &mut bool,
    ) -> Result<Self, HandlerError> {
        let mut keys = loop {
            match ctx.get_keys().await {
                Err(error) if is_cancel(&error) => *cancelled = true,
                keys => break keys?,
            }
        };
        keys.retain(|key| !key.starts_with('~'));
        keys.sort_unstable();
        let mut rows = Vec::with_capacity(keys.len());
        let mut room = Room::default();
        for key in keys {
            let payload = loop {
                match ctx.get::<Bytes>(&key).await {
                    Err(error) if is_cancel(&error) => *cancelled = true,
                    found => break found?,
                }
            };
            if let Some(payload) = payload {
                room.hold(&key, payload.len());
                let label = hosted.label(Part::Row, thread).of_key(&key);
                let (row, _) = hosted.wire.read(label, payload).await.map_err(of_wire)?;
                rows.push((key, row));
            }
        }
        Ok(Rows { rows, room })
    }
}

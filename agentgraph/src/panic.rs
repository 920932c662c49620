//! A panic as an error.

/// A node panicked; the text is the panic's message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("panicked: {message}")]
pub struct NodePanic {
    /// What it panicked with.
    pub message: String,
}

pub(crate) fn panic_of(payload: &(dyn std::any::Any + Send)) -> NodePanic {
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let message = text.or_else(|| payload.downcast_ref::<String>().cloned());
    NodePanic { message: message.unwrap_or_else(|| "(no message)".into()) }
}

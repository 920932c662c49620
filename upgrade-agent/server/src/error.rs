//! The errors of a start.

use std::path::PathBuf;

/// The reason for which a server could not start.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// The address is taken or not allowed.
    #[error("E_SERVER_BIND: cannot listen on port {port}: {source}; choose another port, or 0 for any")]
    Bind {
        /// The requested port.
        port: u16,
        /// The error of the system.
        source: std::io::Error,
    },
    /// Another server has the data file open.
    #[error("E_SERVER_IN_USE: {} is in use by another server; stop that one or choose another file", path.display())]
    InUse {
        /// The data file.
        path: PathBuf,
    },
    /// The data file cannot be opened, or is not one of this server.
    #[error("E_SERVER_DATA: cannot use the data file {}: {why}; move it away to start afresh", path.display())]
    Data {
        /// The data file.
        path: PathBuf,
        /// The reason.
        why: String,
    },
}

/// The message, as `fn main() -> Result<()>` prints `Debug`.
impl std::fmt::Debug for ServerError {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, out)
    }
}

impl ServerError {
    /// The stable code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Bind { .. } => "E_SERVER_BIND",
            Self::InUse { .. } => "E_SERVER_IN_USE",
            Self::Data { .. } => "E_SERVER_DATA",
        }
    }
}

//! [`Desk`]: what the tools of one question work with. It is passed to each call of the agent, and never
//! stored.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use agentgraph_llm::{ChatModel, SecretString, ToolError};

use super::folders::{FileError, Folders};
use crate::net::{Guard, Http};
use crate::python::{Python, PythonSettings};
use crate::settings::Addresses;

/// The services that the tools of all questions share.
pub struct Services {
    pub(crate) http: Http,
    pub(crate) guard: Guard,
    pub(crate) addresses: Addresses,
    pub(crate) tavily_key: Option<SecretString>,
    /// The model that sees and hears.
    pub(crate) media: Option<Arc<dyn ChatModel>>,
    /// `None` if code may not run.
    pub(crate) python: Option<PythonSettings>,
}

/// The context of the tools for one question.
pub struct Desk {
    pub(crate) services: Arc<Services>,
    folders: Arc<Folders>,
    python: Option<Python>,
}

impl Desk {
    /// A desk for one question, with these folders and a Python of its own.
    ///
    /// # Errors
    /// If a folder cannot be opened.
    pub fn new(services: Arc<Services>, current: Option<&Path>, downloads: &Path) -> std::io::Result<Self> {
        let folders = Arc::new(Folders::open(current, downloads)?);
        let python = services.python.clone().map(Python::new);
        Ok(Desk { services, folders, python })
    }

    pub(crate) fn python(&self) -> Result<&Python, ToolError> {
        self.python.as_ref().ok_or_else(|| ToolError::failed("Python is not allowed here"))
    }

    /// Reads a file and returns its path with it.
    pub(crate) async fn read(&self, name: &str, limit: u64) -> Result<(String, Vec<u8>), ToolError> {
        let name = name.to_owned();
        let read = self.blocking(move |folders| {
            let found = folders.find(&name)?;
            let path = found.path.clone();
            Ok((path, found.read(limit)?))
        });
        read.await?.map_err(|error: FileError| ToolError::failed(error))
    }

    /// Works on the folders in a thread that may wait.
    pub(crate) async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Folders) -> T + Send + 'static,
    ) -> Result<T, ToolError> {
        let folders = Arc::clone(&self.folders);
        let done = tokio::task::spawn_blocking(move || work(&folders)).await;
        done.map_err(|_| ToolError::failed("the file could not be handled: it is broken"))
    }
}

impl fmt::Debug for Desk {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Desk").field("folders", &self.folders).finish_non_exhaustive()
    }
}

impl fmt::Debug for Services {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = out.debug_struct("Services");
        parts.field("guard", &self.guard).field("addresses", &self.addresses);
        parts.field("media", &self.media.as_ref().map(|model| model.info().to_string()));
        parts.field("python", &self.python).finish_non_exhaustive()
    }
}

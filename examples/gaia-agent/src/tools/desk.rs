//! [`Desk`]: what the tools of one question work with. It is passed to each call of the agent, and never
//! stored.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use agentgraph_llm::{ChatModel, SecretString, ToolError};

use super::folders::{FileError, Folders};
use super::readers;
use super::work::Work;
use crate::net::{Guard, Http};
use crate::python::{Files, Python, PythonSettings};
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

impl Services {
    /// Whether the tool of this name is offered: not without its key, and not if it is not allowed.
    pub(crate) fn offers(&self, tool: &str) -> bool {
        match tool {
            "tavily_search" => self.tavily_key.is_some(),
            "understand_video" | "understand_audio" | "analyze_image" => self.media.is_some(),
            "execute_python_file" | "python_repl" => self.python.is_some(),
            _ => true,
        }
    }
}

/// The context of the tools for one question.
pub struct Desk {
    pub(crate) services: Arc<Services>,
    folders: Arc<Folders>,
    python: Option<Python>,
}

impl Desk {
    /// A desk for one question, with these folders and a Python of its own. `own` is the name of its file.
    ///
    /// # Errors
    /// If a folder cannot be opened.
    pub fn new(
        services: Arc<Services>,
        current: Option<&Path>,
        downloads: &Path,
        own: Option<&str>,
    ) -> std::io::Result<Self> {
        let folders = Arc::new(Folders::open(current, downloads)?.own(own));
        let shown = Arc::clone(&folders);
        let files: Files = Arc::new(move |target| shown.copy_into(target));
        let python = services.python.clone().map(|settings| Python::new(settings).files(files));
        Ok(Desk { services, folders, python })
    }

    pub(crate) fn python(&self) -> Result<&Python, ToolError> {
        self.python.as_ref().ok_or_else(|| ToolError::failed("Python is not allowed here"))
    }

    /// Reads a file, also one within an archive, and returns its path with it.
    pub(super) async fn read(&self, name: &str, limit: u64) -> Result<(String, Vec<u8>), ToolError> {
        let name = name.to_owned();
        let read = self.blocking(move |folders, work| {
            let find = |name: &str| -> Result<_, FileError> {
                let found = folders.find(name)?;
                Ok((found.path.clone(), found.read(limit)?))
            };
            match find(&name) {
                Err(error) => readers::member(&name, work, find).unwrap_or(Err(error.to_string())),
                found => found.map_err(|error| error.to_string()),
            }
        });
        read.await?.map_err(ToolError::failed)
    }

    /// Works on the folders in a thread that may wait. The work is over when the call is: see [`Work`].
    pub(super) async fn blocking<T: Send + 'static>(
        &self,
        task: impl FnOnce(&Folders, &Work) -> T + Send + 'static,
    ) -> Result<T, ToolError> {
        let (folders, work) = (Arc::clone(&self.folders), Work::new());
        let _waiting = work.waiting();
        let done = tokio::task::spawn_blocking(move || task(&folders, &work)).await;
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

//! [`Task`]: a question with its file.

use std::path::Path;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::question::Question;

/// A question with its file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Task {
    /// The question.
    pub question: Question,
    /// Its file.
    pub attachment: Attachment,
}

impl Task {
    /// A question without a file, with an id made of its text.
    pub fn ask(question: impl Into<String>) -> Self {
        let question = question.into();
        let task_id = format!("ask-{}", &hash(question.as_bytes())[..12]);
        Task { question: Question { task_id, question, ..Question::default() }, attachment: Attachment::None }
    }

    /// Sets the file.
    #[must_use]
    pub fn with(mut self, attachment: Attachment) -> Self {
        self.attachment = attachment;
        self
    }
}

/// The file of a question.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Attachment {
    /// It has none.
    #[default]
    None,
    /// It is in the downloads of the question.
    File {
        /// The name there.
        name: String,
        /// The SHA-256 of its content, in hexadecimal digits.
        sha256: String,
        /// Its size in bytes.
        size: u64,
    },
    /// It should be there and is not.
    Missing {
        /// The name that the question says.
        name: String,
        /// Why it is not.
        why: String,
    },
}

impl Attachment {
    /// Stores the content of a question's file in the folder of its downloads, under a plain name.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn store(folder: &Path, name: &str, content: &[u8]) -> std::io::Result<Self> {
        std::fs::create_dir_all(folder)?;
        let name = plain_name(name);
        let new = folder.join(format!(".{}.part", uuid::Uuid::new_v4()));
        std::fs::write(&new, content)?;
        std::fs::rename(&new, folder.join(&name))?;
        Ok(Attachment::File { name, sha256: hash(content), size: content.len() as u64 })
    }

    /// Whether the folder of the downloads has what the question needs: its file with the same content.
    pub fn is_in(&self, folder: &Path) -> bool {
        match self {
            Attachment::None | Attachment::Missing { .. } => true,
            Attachment::File { name, sha256, .. } => {
                std::fs::read(folder.join(name)).is_ok_and(|content| hash(&content) == *sha256)
            }
        }
    }
}

/// A name without folders, hidden beginnings and control characters.
fn plain_name(name: &str) -> String {
    let last = name.rsplit(['/', '\\']).next().unwrap_or_default().trim_start_matches('.');
    let plain: String = last.chars().filter(|letter| !letter.is_control()).take(120).collect();
    if plain.trim().is_empty() { "file".to_owned() } else { plain.trim().to_owned() }
}

/// The name of the folder of a question's files: its id, if that is plain. Two ids never share a folder.
///
/// ```
/// use gaia_agent::agent::folder_name;
///
/// assert_eq!(folder_name("99c9cc74-fdc8"), "99c9cc74-fdc8");
/// assert!(!folder_name("../../etc").contains(['/', '.']));
/// assert_ne!(folder_name("a/b"), folder_name("a-b"));
/// ```
pub fn folder_name(task_id: &str) -> String {
    let is_plain = |letter: char| {
        letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-' || letter == '_'
    };
    if !task_id.is_empty() && task_id.len() <= 80 && task_id.chars().all(is_plain) {
        return task_id.to_owned();
    }
    // Some file systems ignore case.
    let plain: String = task_id.chars().filter(char::is_ascii_alphanumeric).take(40).collect();
    format!("{}_{}", plain.to_ascii_lowercase(), &hash(task_id.as_bytes())[..16])
}

pub(crate) fn hash(content: &[u8]) -> String {
    Sha256::digest(content).iter().map(|byte| format!("{byte:02x}")).collect()
}

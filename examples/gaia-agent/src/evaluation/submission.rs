//! A submission that is made once.
//!
//! It is stored before it is sent, with the word `sending`. The result is stored, too. A program that finds
//! `sending` afterwards cannot know whether the server received it, and sends it again only if told to.

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{ApiError, EvaluationClient, Score, Submission};

/// A submission and its state, as its file has it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StoredSubmission {
    /// The server that it is for.
    pub server: String,
    /// The answers, and who submits them.
    pub submission: Submission,
    /// Its state.
    pub state: SubmissionState,
}

/// The state of a submission.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SubmissionState {
    /// It was about to be sent. Whether the server received it is not known.
    Sending,
    /// The server gave no answer that can be read. Whether it received it is not known.
    Unclear(String),
    /// It surely did not reach the server, or was refused.
    NotAccepted(String),
    /// The server took it.
    Accepted(Score),
}

/// Why a submission was not made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SubmitError {
    /// It was accepted before.
    #[error(
        "E_GAIA_SUBMITTED: the answers of this run were submitted before, with a score of {0}; `--again` submits them once more"
    )]
    Accepted(f64),
    /// An earlier attempt may have reached the server.
    #[error(
        "E_GAIA_SUBMITTED: an earlier submission of this run may have been received ({0}); `--again` submits it all the same"
    )]
    MayBeReceived(String),
    /// It was tried, and failed.
    #[error("{0}")]
    Api(#[from] ApiError),
    /// Its file cannot be read or written.
    #[error("E_GAIA_DATA: the file of the submission, {}: {why}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        why: io::Error,
    },
}

/// Submits answers and stores the state of that in a file. With `again`, also answers that may have been
/// received.
///
/// # Errors
/// As [`SubmitError`].
pub async fn submit(
    client: &EvaluationClient,
    submission: Submission,
    file: &Path,
    again: bool,
) -> Result<Score, SubmitError> {
    match read(file)?.map(|stored| stored.state) {
        Some(SubmissionState::Accepted(score)) if !again => return Err(SubmitError::Accepted(score.score)),
        Some(SubmissionState::Sending) if !again => {
            return Err(SubmitError::MayBeReceived("the program ended while it was sent".to_owned()));
        }
        Some(SubmissionState::Unclear(why)) if !again => return Err(SubmitError::MayBeReceived(why)),
        _ => {}
    }
    let server = client.base().to_string();
    let mut stored = StoredSubmission { server, submission, state: SubmissionState::Sending };
    write(file, &stored)?;
    let sent = client.submit(&stored.submission).await;
    stored.state = match &sent {
        Ok(score) => SubmissionState::Accepted(score.clone()),
        Err(ApiError::Unclear(why)) => SubmissionState::Unclear(why.clone()),
        Err(error) => SubmissionState::NotAccepted(error.to_string()),
    };
    write(file, &stored)?;
    Ok(sent?)
}

/// The submission in a file; `None` if there is no file.
///
/// # Errors
/// If the file is there and cannot be read.
pub fn read(file: &Path) -> Result<Option<StoredSubmission>, SubmitError> {
    let wrong = |why: io::Error| SubmitError::File { path: file.to_owned(), why };
    match std::fs::read(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(wrong(error)),
        Ok(bytes) => serde_json::from_slice(&bytes).map(Some).map_err(|error| wrong(error.into())),
    }
}

fn write(file: &Path, stored: &StoredSubmission) -> Result<(), SubmitError> {
    let json = serde_json::to_vec_pretty(stored).map_err(io::Error::from);
    let written = json.and_then(|json| crate::files::replace(file, &json));
    written.map_err(|why| SubmitError::File { path: file.to_owned(), why })
}

//! [`EvaluationClient`]: the evaluation server's API.
//!
//! | | |
//! |---|---|
//! | `GET /questions` | all questions |
//! | `GET /random-question` | one of them |
//! | `GET /files/{task_id}` | the file of a question |
//! | `POST /submit` | `{username, agent_code, answers: [{task_id, submitted_answer}]}`; the score comes back |
//!
//! A submission is made once: [`submission`] stores it before it is sent.

pub mod submission;

use std::fmt;
use std::time::Duration;

use reqwest::{Response, StatusCode, Url};
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};

use crate::log::chain;
use crate::net::{NetError, read_body};
use crate::question::Question;

/// The most bytes of a list of questions, and of a file.
const LIST: usize = 16 << 20;
const FILE: usize = 64 << 20;
const TIMEOUT: Duration = Duration::from_secs(60);
/// The hosts that the token of Hugging Face is for.
const HOSTS_OF_TOKEN: [&str; 2] = ["huggingface.co", "hf.space"];

/// The address of the course's evaluation server.
pub const PUBLIC: &str = "https://agents-course-unit4-scoring.hf.space";

/// A client of an evaluation server. Cheap to clone.
#[derive(Clone)]
pub struct EvaluationClient {
    base: Url,
    client: reqwest::Client,
    token: Option<SecretString>,
}

/// The body of `/submit`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Submission {
    /// The name on the list of results.
    pub username: String,
    /// The address of the agent's code.
    pub agent_code: String,
    /// The answers.
    pub answers: Vec<SubmittedAnswer>,
}

/// One answer of a submission.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubmittedAnswer {
    /// The question.
    pub task_id: String,
    /// The answer.
    pub submitted_answer: String,
}

/// The reply to a submission.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Score {
    /// From 0 to 100.
    pub score: f64,
    /// The right answers.
    #[serde(default)]
    pub correct_count: u64,
    /// The answers that were looked at.
    #[serde(default)]
    pub total_attempted: u64,
    /// A sentence.
    #[serde(default)]
    pub message: String,
}

/// An error of the evaluation server, or on the way to it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ApiError {
    /// No connection was made, so the request was surely not received.
    #[error("E_GAIA_API: no connection to the evaluation server: {0}")]
    NotReceived(String),
    /// The server refused the request.
    #[error("E_GAIA_API: the evaluation server refused the request ({status}): {said}")]
    Refused {
        /// The status.
        status: u16,
        /// The first part of what it said.
        said: String,
    },
    /// The answer did not come, or cannot be read. The request may have been received.
    #[error("E_GAIA_API: the evaluation server gave no answer that can be read: {0}")]
    Unclear(String),
    /// The address is not one.
    #[error("E_GAIA_CONFIG: the address of the evaluation server: {0}")]
    Address(String),
}

impl EvaluationClient {
    /// A client of the server at this address.
    ///
    /// # Errors
    /// [`ApiError::Address`].
    pub fn new(address: &str) -> Result<Self, ApiError> {
        let wrong = |why: String| ApiError::Address(why);
        let base = Url::parse(address.trim()).map_err(|error| wrong(error.to_string()))?;
        if !matches!(base.scheme(), "http" | "https") || base.host_str().is_none() {
            return Err(wrong("it is neither http nor https".to_owned()));
        }
        let builder = agentgraph_llm::http_client_builder().timeout(TIMEOUT);
        let builder = if is_loopback(&base) { builder.no_proxy() } else { builder };
        let client = builder.build().map_err(|error| wrong(error.to_string()))?;
        Ok(EvaluationClient { base, client, token: None })
    }

    /// Sets the token of Hugging Face. It is sent to that company's hosts alone, and encrypted.
    #[must_use]
    pub fn token(mut self, token: SecretString) -> Self {
        let host = self.base.host_str().unwrap_or_default();
        let is_theirs = |of: &str| host == of || host.ends_with(&format!(".{of}"));
        if self.base.scheme() == "https" && HOSTS_OF_TOKEN.iter().any(|of| is_theirs(of)) {
            self.token = Some(token);
        }
        self
    }

    /// The address.
    pub fn base(&self) -> &Url {
        &self.base
    }

    /// All questions.
    ///
    /// # Errors
    /// As [`ApiError`]. An answer with a question twice, or without an id or a text, cannot be read.
    pub async fn questions(&self) -> Result<Vec<Question>, ApiError> {
        let questions: Vec<Question> = self.json("questions").await?;
        crate::question::check(&questions).map_err(ApiError::Unclear)?;
        Ok(questions)
    }

    /// A random question.
    ///
    /// # Errors
    /// As [`ApiError`].
    pub async fn random_question(&self) -> Result<Question, ApiError> {
        self.json("random-question").await
    }

    /// The content of the file of a question, up to 64 MiB.
    ///
    /// # Errors
    /// As [`ApiError`].
    pub async fn file(&self, task_id: &str) -> Result<Vec<u8>, ApiError> {
        let url = self.below(&["files", task_id]);
        let response = self.send(self.client.get(url.clone())).await?;
        read_body(&url, response, FILE).await.map_err(|NetError(why)| ApiError::Unclear(why))
    }

    /// Submits answers. Use [`submission`], which does not submit twice.
    ///
    /// # Errors
    /// As [`ApiError`].
    pub async fn submit(&self, submission: &Submission) -> Result<Score, ApiError> {
        let url = self.below(&["submit"]);
        let response = self.send(self.client.post(url.clone()).json(submission)).await?;
        read_json(&url, response).await
    }

    async fn json<T: for<'de> Deserialize<'de>>(&self, path: &str) -> Result<T, ApiError> {
        let url = self.below(&[path]);
        let response = self.send(self.client.get(url.clone())).await?;
        read_json(&url, response).await
    }

    fn below(&self, path: &[&str]) -> Url {
        let mut url = self.base.clone();
        if let Ok(mut parts) = url.path_segments_mut() {
            parts.pop_if_empty().extend(path);
        }
        url
    }

    async fn send(&self, request: reqwest::RequestBuilder) -> Result<Response, ApiError> {
        let request = match &self.token {
            Some(token) => request.bearer_auth(token.expose_secret()),
            None => request,
        };
        let response = request.send().await.map_err(|error| {
            let is_unsent = error.is_connect() || error.is_builder();
            let said = chain(&error.without_url());
            if is_unsent { ApiError::NotReceived(said) } else { ApiError::Unclear(said) }
        })?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let said = read_body(&self.base, response, LIST).await.unwrap_or_default();
        let said: String = String::from_utf8_lossy(&said).trim().chars().take(300).collect();
        match status.is_client_error() && status != StatusCode::REQUEST_TIMEOUT {
            true => Err(ApiError::Refused { status: status.as_u16(), said }),
            false => Err(ApiError::Unclear(format!("{status}: {said}"))),
        }
    }
}

async fn read_json<T: for<'de> Deserialize<'de>>(url: &Url, response: Response) -> Result<T, ApiError> {
    let body = read_body(url, response, LIST).await.map_err(|NetError(why)| ApiError::Unclear(why))?;
    serde_json::from_slice(&body).map_err(|error| ApiError::Unclear(error.to_string()))
}

fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

impl fmt::Debug for EvaluationClient {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("EvaluationClient").field("base", &self.base.as_str()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;

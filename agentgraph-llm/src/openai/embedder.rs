//! Vectors of texts, for the search in a store.

use std::sync::Arc;

use agentgraph::store::Embedder;
use async_trait::async_trait;
use base64::Engine as _;

use super::connection;
use super::wire::{array, broken, items, number, parse_object, undecodable};
use crate::embed;
use crate::error::{BoxError, Result};
use crate::http::{self, Connection, Endpoint, connection_settings};
use crate::json::{Object, RawJson};

/// The most texts of one request.
const BATCH: usize = 2048;

/// A model that turns texts into vectors, of OpenAI or a compatible server. A store that has it finds values
/// by their meaning.
///
/// ```no_run
/// use agentgraph::checkpoint::{MemoryStore, VectorIndex};
/// use agentgraph_llm::openai::OpenAiEmbedder;
///
/// # fn run() -> agentgraph_llm::Result<()> {
/// let embedder = OpenAiEmbedder::from_env()?.model("text-embedding-3-small").dimensions(1536).build()?;
/// let store = MemoryStore::new().index(VectorIndex::new(embedder).fields(["fact"]));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct OpenAiEmbedder {
    model: String,
    dimensions: usize,
    shortens: bool,
    batch: usize,
    endpoint: Arc<Endpoint>,
}

impl OpenAiEmbedder {
    /// The settings of an embedder.
    pub fn builder() -> OpenAiEmbedderBuilder {
        OpenAiEmbedderBuilder::new(connection::connection())
    }

    /// The settings of an embedder with the key in `OPENAI_API_KEY` and, if set, the address in
    /// `OPENAI_BASE_URL` and the names in `OPENAI_ORG_ID` and `OPENAI_PROJECT_ID`.
    ///
    /// # Errors
    /// `E_LLM_CONFIG` if there is no key.
    pub fn from_env() -> Result<OpenAiEmbedderBuilder> {
        let connection = connection::from_vars(|name| std::env::var(name).ok())?;
        Ok(OpenAiEmbedderBuilder::new(connection))
    }

    fn body(&self, texts: &[String]) -> RawJson {
        let mut body = Object::default()
            .with("model", RawJson::string(&self.model))
            .with("input", array(texts.iter().map(|text| RawJson::string(text))))
            .with("encoding_format", RawJson::string("float"));
        if self.shortens {
            body.set("dimensions", number(self.dimensions));
        }
        body.to_json()
    }
}

#[async_trait]
impl Embedder for OpenAiEmbedder {
    fn dimensions(&self) -> usize {
        self.dimensions
    }

    async fn embed(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, BoxError> {
        let url = self.endpoint.url("embeddings");
        let mut vectors = Vec::with_capacity(texts.len());
        for texts in texts.chunks(self.batch) {
            let read = |body: &[u8]| embed::checked(decode(body, texts.len())?, texts.len(), self.dimensions);
            vectors.extend(self.endpoint.send(&url, self.body(texts).get(), read).await?);
        }
        Ok(vectors)
    }
}

/// The vectors in the order of the texts: each says its place.
fn decode(body: &[u8], count: usize) -> Result<Vec<Vec<f32>>> {
    let fields = parse_object(body)?;
    let Some(data) = fields.get("data").and_then(items) else {
        return Err(undecodable("the answer has no list of `data`", body));
    };
    let mut vectors = vec![None; count];
    for (place, item) in data.into_iter().enumerate() {
        let item = Object::parse(item.get()).map_err(|_| broken("an element of `data` that is no object"))?;
        let place = item.get_as("index").unwrap_or(place);
        let vector = item.get("embedding").and_then(vector);
        let vector = vector.ok_or_else(|| broken("an embedding that is not a list of numbers"))?;
        match vectors.get_mut(place) {
            Some(free @ None) => *free = Some(vector),
            _ => return Err(broken("embeddings that are not those of the texts")),
        }
    }
    let all: Option<Vec<_>> = vectors.into_iter().collect();
    all.ok_or_else(|| broken("fewer embeddings than texts"))
}

/// A list of numbers, or in base64 their bytes, lowest first.
fn vector(raw: &RawJson) -> Option<Vec<f32>> {
    if !raw.is_string() {
        return raw.parse().ok();
    }
    let bytes = base64::engine::general_purpose::STANDARD.decode(raw.parse::<String>().ok()?).ok()?;
    let (numbers, rest) = bytes.as_chunks::<4>();
    rest.is_empty().then(|| numbers.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect())
}

/// The settings of an [`OpenAiEmbedder`]. The model, the dimensions and a key are required.
///
/// ```
/// use agentgraph_llm::openai::OpenAiEmbedder;
///
/// let local = OpenAiEmbedder::builder().base_url("http://localhost:11434").without_key();
/// assert!(local.model("nomic-embed-text").dimensions(768).build().is_ok());
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct OpenAiEmbedderBuilder {
    model: Option<String>,
    dimensions: Option<usize>,
    shortens: bool,
    batch: usize,
    requires_key: bool,
    connection: Connection,
}

connection_settings!(OpenAiEmbedderBuilder, default_url = "https://api.openai.com/v1");

impl OpenAiEmbedderBuilder {
    fn new(connection: Connection) -> Self {
        OpenAiEmbedderBuilder {
            model: None,
            dimensions: None,
            shortens: false,
            batch: BATCH,
            requires_key: true,
            connection,
        }
    }

    /// Sets the length of the model's vectors. Required.
    pub fn dimensions(mut self, dimensions: usize) -> Self {
        self.dimensions = Some(dimensions);
        self
    }

    /// Asks the server for vectors of this length, which some models can shorten.
    pub fn shortened_to(mut self, dimensions: usize) -> Self {
        self.dimensions = Some(dimensions);
        self.shortens = true;
        self
    }

    /// Sets the most texts of one request: 2048 if not set, which is OpenAI's limit.
    pub fn batch(mut self, texts: usize) -> Self {
        self.batch = texts;
        self
    }

    /// Builds an embedder without a key too, for a server that needs none.
    pub fn without_key(mut self) -> Self {
        self.requires_key = false;
        self
    }

    /// Builds the embedder. Nothing is sent.
    ///
    /// # Errors
    /// `E_LLM_CONFIG` if the model, the dimensions or the key is missing or a setting is invalid.
    pub fn build(self) -> Result<OpenAiEmbedder> {
        let model = http::named(self.model, "...")?;
        let dimensions = self.dimensions.filter(|dimensions| *dimensions > 0);
        let dimensions = dimensions.ok_or_else(|| {
            http::config("no dimensions: set the length of the model's vectors with `.dimensions(..)`")
        })?;
        if self.batch == 0 {
            return Err(http::config("a batch of no texts: set at least one with `.batch(..)`"));
        }
        let endpoint = self.connection.endpoint(connection::wire(self.requires_key, "v1".into()))?;
        Ok(OpenAiEmbedder { model, dimensions, shortens: self.shortens, batch: self.batch, endpoint })
    }
}

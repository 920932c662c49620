//! Texts as vectors, by `batchEmbedContents`.

use std::sync::Arc;

use agentgraph::store::Embedder;
use async_trait::async_trait;

use super::builder;
use super::{decode, method, resource};
use crate::embed;
use crate::error::{BoxError, Result};
use crate::http::{self, Connection, Endpoint, config, connection_settings};
use crate::json::{Extra, Object, RawJson, WireValue};

/// The most texts of one request.
const MAX_BATCH: usize = 100;

/// A Gemini model that turns texts into vectors, for a store that finds similar texts. Cheap to clone.
///
/// ```no_run
/// use agentgraph::store::{MemoryStore, VectorIndex};
/// use agentgraph_llm::GeminiEmbedder;
///
/// # fn run() -> agentgraph_llm::Result<()> {
/// let embedder = GeminiEmbedder::from_env()?.model("gemini-embedding-001").dimensions(768).build()?;
/// let store = MemoryStore::new().index(VectorIndex::new(embedder).fields(["fact"]));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct GeminiEmbedder {
    model: String,
    dimensions: usize,
    document: Extra,
    query: Extra,
    endpoint: Arc<Endpoint>,
}

impl GeminiEmbedder {
    /// The settings of an embedder.
    pub fn builder() -> GeminiEmbedderBuilder {
        GeminiEmbedderBuilder::default()
    }

    /// The settings of an embedder with the key in `GOOGLE_API_KEY` or `GEMINI_API_KEY` and, if set, the
    /// address in `GOOGLE_GEMINI_BASE_URL`.
    ///
    /// # Errors
    /// `E_LLM_CONFIG` if there is no key.
    pub fn from_env() -> Result<GeminiEmbedderBuilder> {
        let connection =
            builder::connection_from(|name| std::env::var(name).ok(), "GeminiEmbedder::builder()")?;
        Ok(GeminiEmbedderBuilder { connection, ..GeminiEmbedderBuilder::default() })
    }

    async fn vectors(&self, texts: &[String], extra: &Extra) -> Result<Vec<Vec<f32>>> {
        let url = self.endpoint.url(&method(&self.model, "batchEmbedContents"));
        let mut all = Vec::with_capacity(texts.len());
        for batch in texts.chunks(MAX_BATCH) {
            let body = self.body(batch, extra);
            let vectors = self.endpoint.send(&url, body.get(), vectors).await?;
            all.extend(embed::checked(vectors, batch.len(), self.dimensions)?);
        }
        Ok(all)
    }

    fn body(&self, texts: &[String], extra: &Extra) -> RawJson {
        let request = |text: &String| {
            let part = Object::default().with("text", RawJson::string(text)).to_json();
            let content = Object::default().with("parts", RawJson::array([&part])).to_json();
            Object::default()
                .with("model", RawJson::string(&resource(&self.model)))
                .with("content", content)
                .with("outputDimensionality", serde_json::json!(self.dimensions))
                .with_all(extra)
                .to_json()
        };
        let requests: Vec<_> = texts.iter().map(request).collect();
        Object::default().with("requests", RawJson::array(&requests)).to_json()
    }
}

fn vectors(body: &[u8]) -> Result<Vec<Vec<f32>>> {
    let unreadable = || decode::undecodable("it has no list of `embeddings`", body.len());
    let list: Vec<WireValue> = decode::success(body)?.get_as("embeddings").ok_or_else(unreadable)?;
    list.iter()
        .map(|one| Object::parse(one.0.get()).ok()?.get_as("values"))
        .collect::<Option<_>>()
        .ok_or_else(unreadable)
}

#[async_trait]
impl Embedder for GeminiEmbedder {
    fn dimensions(&self) -> usize {
        self.dimensions
    }

    async fn embed(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, BoxError> {
        Ok(self.vectors(texts, &self.document).await?)
    }

    async fn embed_query(&self, text: &str) -> Result<Vec<f32>, BoxError> {
        let vectors = self.vectors(&[text.to_owned()], &self.query).await?;
        vectors.into_iter().next().ok_or_else(|| "the server sent no vector".into())
    }
}

/// The settings of a [`GeminiEmbedder`]. Key, model and dimensions are required, everything else has a
/// default.
///
/// ```
/// use agentgraph::store::Embedder;
/// use agentgraph_llm::GeminiEmbedder;
///
/// let embedder = GeminiEmbedder::builder()
///     .api_key("not-a-real-key")
///     .model("gemini-embedding-001")
///     .dimensions(768)
///     .task_types("RETRIEVAL_DOCUMENT", "RETRIEVAL_QUERY")
///     .build()?;
/// assert_eq!(embedder.dimensions(), 768);
/// # Ok::<(), agentgraph_llm::Error>(())
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct GeminiEmbedderBuilder {
    model: Option<String>,
    dimensions: usize,
    document: Extra,
    query: Extra,
    connection: Connection,
}

impl Default for GeminiEmbedderBuilder {
    fn default() -> Self {
        GeminiEmbedderBuilder {
            model: None,
            dimensions: 0,
            document: Extra::new(),
            query: Extra::new(),
            connection: builder::connection(),
        }
    }
}

connection_settings!(GeminiEmbedderBuilder, default_url = "https://generativelanguage.googleapis.com");

impl GeminiEmbedderBuilder {
    /// Sets the length of the vectors. Required. It is sent to the model, which can shorten them.
    pub fn dimensions(mut self, dimensions: usize) -> Self {
        self.dimensions = dimensions;
        self
    }

    /// Sets the `taskType` of stored texts and of texts that are searched for. None is sent if not set: not
    /// every model knows them.
    pub fn task_types(mut self, document: &str, query: &str) -> Self {
        self.document.insert("taskType", RawJson::string(document));
        self.query.insert("taskType", RawJson::string(query));
        self
    }

    /// Builds the embedder. Nothing is sent.
    ///
    /// # Errors
    /// `E_LLM_CONFIG` if key, model or dimensions are missing or a setting is invalid.
    pub fn build(self) -> Result<GeminiEmbedder> {
        let model = http::named(self.model, "gemini-embedding-...")?;
        if self.dimensions == 0 {
            return Err(config("no length of the vectors: set it with `.dimensions(..)`"));
        }
        let endpoint = self.connection.endpoint(builder::wire())?;
        Ok(GeminiEmbedder {
            model,
            dimensions: self.dimensions,
            document: self.document,
            query: self.query,
            endpoint,
        })
    }
}

//! [`Embedder`] and [`VectorIndex`]: from values to vectors, and how similar vectors are.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;

use super::change::{Change, Indexing, Write};
use super::filter::FieldPath;
use super::item::name_of;
use crate::error::{StoreCode, StoreError};
use crate::impls::shows;

/// Turns texts into vectors, so that a store can find similar ones. Usually a call of a model.
///
/// ```
/// use agentgraph_checkpoint::{Embedder, MemoryStore, Namespace, StoreExt, VectorIndex};
/// use serde_json::json;
///
/// /// Counts letters: no model, but enough for a test.
/// struct Letters;
///
/// #[async_trait::async_trait]
/// impl Embedder for Letters {
///     fn dimensions(&self) -> usize { 26 }
///
///     async fn embed(
///         &self,
///         texts: &[String],
///     ) -> Result<Vec<Vec<f32>>, Box<dyn std::error::Error + Send + Sync>> {
///         let count = |text: &String, letter: u8| text.bytes().filter(|byte| *byte == letter).count() as f32;
///         Ok(texts.iter().map(|text| (b'a'..=b'z').map(|letter| count(text, letter)).collect()).collect())
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), agentgraph_checkpoint::StoreError> {
/// let store = MemoryStore::new().index(VectorIndex::new(Letters).fields(["fact"]));
/// let facts = Namespace::new(["ada", "facts"])?;
/// store.put(&facts, "1", json!({"fact": "likes tea"})).await?;
/// store.put(&facts, "2", json!({"fact": "born in Rome"})).await?;
/// let found = store.search(&facts).text("tea").limit(1).await?;
/// assert_eq!(found[0].item.key, "1");
/// # Ok(())
/// # }
/// ```
#[async_trait]
pub trait Embedder: Send + Sync + 'static {
    /// The length of its vectors, at least 1.
    fn dimensions(&self) -> usize;

    /// One vector for each text, in their order.
    async fn embed(
        &self,
        texts: &[String],
    ) -> Result<Vec<Vec<f32>>, Box<dyn std::error::Error + Send + Sync>>;

    /// The vector of a text that is searched for. For models that treat it differently.
    async fn embed_query(&self, text: &str) -> Result<Vec<f32>, Box<dyn std::error::Error + Send + Sync>> {
        let vectors = self.embed(&[text.to_owned()]).await?;
        vectors.into_iter().next().ok_or_else(|| "it returned no vector".into())
    }
}

/// An [`Embedder`], and the texts of a value that it gets.
///
/// Each text has a vector of its own, and an item is as similar as its most similar text. An item without
/// a text at these paths is stored without a vector.
#[derive(Clone)]
pub struct VectorIndex {
    embedder: Arc<dyn Embedder>,
    /// The whole value if empty.
    fields: Vec<String>,
}

/// The most texts of one value.
const MAX_TEXTS: usize = 64;

impl VectorIndex {
    /// Compares whole values: a text as it is, everything else as JSON.
    pub fn new(embedder: impl Embedder) -> Self {
        VectorIndex { embedder: Arc::new(embedder), fields: Vec::new() }
    }

    /// Compares the fields at these paths, written as those of a [`Filter`](crate::Filter); a `*` is each
    /// element of a list, as in `"chapters.*.title"`. A path that is not valid makes a put fail.
    #[must_use]
    pub fn fields<T: Into<String>>(mut self, paths: impl IntoIterator<Item = T>) -> Self {
        self.fields = paths.into_iter().map(Into::into).collect();
        self
    }

    async fn vectors(&self, texts: Vec<String>) -> Result<Vec<Vec<f32>>, StoreError> {
        if texts.is_empty() {
            return Ok(Vec::new());
        }
        let vectors = self.embedder.embed(&texts).await.map_err(failed)?;
        if vectors.len() != texts.len() {
            let problem = format!("it returned {} vectors for {} texts", vectors.len(), texts.len());
            return Err(failed(problem.into()));
        }
        vectors.iter().try_for_each(|vector| self.check(vector))?;
        Ok(vectors)
    }

    async fn query(&self, text: &str) -> Result<Vec<f32>, StoreError> {
        let vector = self.embedder.embed_query(text).await.map_err(failed)?;
        self.check(&vector)?;
        Ok(vector)
    }

    fn check(&self, vector: &[f32]) -> Result<(), StoreError> {
        let dimensions = self.embedder.dimensions();
        if vector.len() != dimensions || dimensions == 0 {
            let problem =
                format!("a vector has {} numbers, and its `dimensions` are {dimensions}", vector.len());
            return Err(failed(problem.into()));
        }
        match vector.iter().all(|number| number.is_finite()) {
            true => Ok(()),
            false => Err(failed("a vector has a number that is not finite".into())),
        }
    }
}

shows!(VectorIndex: |it| { dimensions: it.embedder.dimensions(), fields: it.fields });

fn failed(cause: Box<dyn std::error::Error + Send + Sync>) -> StoreError {
    let problem = format!("the embedder failed: {cause}; nothing was stored");
    StoreError::new(StoreCode::Embedder, problem).with_source(cause)
}

/// The vectors of each change. The embedder is called once, with the texts of all of them.
pub(crate) async fn embed_changes(
    index: Option<&VectorIndex>,
    changes: &[Change],
) -> Result<Vec<Vec<Vec<f32>>>, StoreError> {
    let Some(index) = index else { return Ok(vec![Vec::new(); changes.len()]) };
    let texts: Vec<Vec<String>> =
        changes.iter().map(|change| texts_of(index, change)).collect::<Result<_, _>>()?;
    let counts: Vec<usize> = texts.iter().map(Vec::len).collect();
    let mut vectors = index.vectors(texts.into_iter().flatten().collect()).await?.into_iter();
    Ok(counts.into_iter().map(|count| vectors.by_ref().take(count).collect()).collect())
}

/// The vector of the text that is searched for.
pub(crate) async fn embed_query(
    index: Option<&VectorIndex>,
    text: Option<&str>,
) -> Result<Option<Vec<f32>>, StoreError> {
    match (text, index) {
        (None, _) => Ok(None),
        (Some(text), Some(index)) => index.query(text).await.map(Some),
        (Some(_), None) => {
            let problem = "a search by text needs an embedder: give the store a `VectorIndex` by its `index`, or \
                           search by a filter";
            Err(StoreError::new(StoreCode::Embedder, problem))
        }
    }
}

fn texts_of(index: &VectorIndex, change: &Change) -> Result<Vec<String>, StoreError> {
    let Write::Put(new) = &change.write else { return Ok(Vec::new()) };
    let paths = match &new.indexing {
        Indexing::Off => return Ok(Vec::new()),
        Indexing::Default if index.fields.is_empty() => &[String::new()][..],
        Indexing::Default => &index.fields,
        Indexing::Fields(paths) => paths,
    };
    let mut texts = Vec::new();
    for path in paths {
        let path = FieldPath::parse(path).map_err(|problem| {
            StoreError::new(
                StoreCode::ItemValue,
                format!("an index names a path that is not valid: {problem}"),
            )
        })?;
        texts.extend(path.find_all(&new.value, MAX_TEXTS + 1).into_iter().filter_map(text_of));
    }
    if texts.len() > MAX_TEXTS {
        let item = name_of(&change.namespace, &change.key);
        let problem =
            format!("{item} has more than 64 texts to compare: name fewer fields, or divide it into items");
        return Err(StoreError::new(StoreCode::ItemValue, problem));
    }
    Ok(texts)
}

/// Nothing is similar to null or to an empty text.
fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) if text.is_empty() => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

/// The similarity of the most similar vector; `None` if no vector has the length of the query.
pub(crate) fn best_score<'a>(query: &[f32], vectors: impl IntoIterator<Item = &'a [f32]>) -> Option<f64> {
    let same = vectors.into_iter().filter(|vector| vector.len() == query.len());
    same.map(|vector| cosine(query, vector)).max_by(f64::total_cmp)
}

/// The cosine of the angle between two vectors; 0 if one of them has the length 0.
fn cosine(a: &[f32], b: &[f32]) -> f64 {
    let (mut dot, mut square_a, mut square_b) = (0.0, 0.0, 0.0);
    for (a, b) in a.iter().zip(b) {
        let (a, b) = (f64::from(*a), f64::from(*b));
        dot += a * b;
        square_a += a * a;
        square_b += b * b;
    }
    let length = square_a.sqrt() * square_b.sqrt();
    if length > 0.0 { (dot / length).clamp(-1.0, 1.0) } else { 0.0 }
}

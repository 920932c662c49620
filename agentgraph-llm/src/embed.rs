//! Models that turn texts into vectors, for the search in a [store](agentgraph::store).
//!
//! [`OpenAiEmbedder`](crate::OpenAiEmbedder) and [`GeminiEmbedder`](crate::GeminiEmbedder) are
//! [`Embedder`](agentgraph::store::Embedder)s over the connection that the chat models have.

use crate::error::{Code, Error, Result};

/// The vectors of an answer, if there is one of the right length for each text.
pub(crate) fn checked(vectors: Vec<Vec<f32>>, texts: usize, dimensions: usize) -> Result<Vec<Vec<f32>>> {
    if vectors.len() != texts {
        let message = format!(
            "the server sent {} vectors for {texts} texts: check the base URL and the model",
            vectors.len()
        );
        return Err(Error::new(Code::Decode, message));
    }
    match vectors.iter().find(|vector| vector.len() != dimensions) {
        None => Ok(vectors),
        Some(vector) => {
            let message = format!(
                "the model makes vectors of length {}, not {dimensions}: correct `.dimensions(..)`",
                vector.len()
            );
            Err(Error::new(Code::Config, message))
        }
    }
}

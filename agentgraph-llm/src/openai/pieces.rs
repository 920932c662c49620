//! A text that arrives in pieces, each of them a JSON string.

use crate::error::Result;
use crate::json::{RawJson, TextPieces};

use super::wire::broken;

/// A text that arrives in pieces.
#[derive(Debug, Default)]
pub(super) struct Pieces {
    pub(super) text: String,
    pieces: TextPieces,
}

impl Pieces {
    /// Adds a piece, and returns what it completes.
    pub(super) fn push(&mut self, piece: &RawJson) -> Result<String> {
        let text = self.pieces.push(piece).map_err(|problem| broken(&problem.to_string()))?;
        self.text += &text;
        Ok(text)
    }

    /// Adds a piece of the arguments of a call. They are JSON in a string; some servers give them once, as
    /// the object that they are.
    pub(super) fn push_arguments(&mut self, piece: &RawJson) -> Result<String> {
        if self.text.is_empty() && !piece.is_string() {
            return self.push(&RawJson::string(piece.get()));
        }
        self.push(piece)
    }

    /// The whole text.
    pub(super) fn finish(self) -> Result<String> {
        self.pieces.end().map_err(|problem| broken(&problem.to_string()))?;
        Ok(self.text)
    }
}

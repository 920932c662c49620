//! [`World`]: twenty questions of the benchmark's kinds, their files, and all that tools find out about them.
//! And [`WorldServer`], which serves it: an evaluation server, the services that tools search, and a model
//! that sees and hears.
//!
//! All of it is made up here: its people, places and papers exist nowhere else, and no answer of a real
//! service was recorded. The services speak the forms of the real ones, as far as the tools use them.
//!
//! An answer follows from the world: a change of a cell, an article or a picture changes it.

mod evaluation;
mod files;
mod media;
mod questions;
mod search;
mod server;

use std::collections::BTreeMap;

pub use files::{Sheet, Value, morse, picture, recording, report};
use serde::Deserialize;
pub use server::WorldServer;

use crate::question::Question;

/// The questions, and all that can be found out about them.
///
/// ```
/// use gaia_agent::world::World;
///
/// let world = World::new();
/// assert_eq!(world.questions.len(), 20);
/// assert_eq!(world.truths.len(), 20);
/// assert!(world.questions.iter().all(|question| question.truth.is_none()));
/// ```
#[derive(Clone, Debug)]
pub struct World {
    /// The questions, without their answers.
    pub questions: Vec<Question>,
    /// The answers, by task. The evaluation server alone reads them.
    pub truths: BTreeMap<String, String>,
    /// The content of the files, by task.
    pub files: BTreeMap<String, Vec<u8>>,
    /// The files that can be downloaded, by name.
    pub library: BTreeMap<String, Vec<u8>>,
    /// The articles of the encyclopedia, by title.
    pub articles: BTreeMap<String, String>,
    /// The papers.
    pub papers: Vec<Paper>,
    /// The pages of the web.
    pub pages: Vec<Page>,
    /// The videos, by id.
    pub videos: BTreeMap<String, Video>,
}

/// A paper.
#[derive(Clone, Debug, Deserialize)]
pub struct Paper {
    /// The number of the archive.
    pub id: String,
    /// The title.
    pub title: String,
    /// The authors.
    pub authors: Vec<String>,
    /// The day of its submission, such as `2021-03-09`.
    pub submitted: String,
    /// The abstract.
    pub summary: String,
    /// The comment of the authors.
    pub comment: String,
}

/// A page of the web.
#[derive(Clone, Debug, Deserialize)]
pub struct Page {
    /// The title.
    pub title: String,
    /// The address.
    pub url: String,
    /// The text.
    pub text: String,
}

/// A video.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Video {
    /// The spoken lines.
    pub lines: Vec<String>,
    /// The scenes, described.
    pub scenes: Vec<String>,
}

impl World {
    /// The world of the twenty questions.
    pub fn new() -> Self {
        questions::world()
    }
}

impl Default for World {
    fn default() -> Self {
        World::new()
    }
}

#[cfg(test)]
mod tests;

//! Images, recordings, films and documents.

use serde::{Deserialize, Serialize};

use crate::json::{Extra, RawJson};

/// An image, a recording, a film or a document. Which of them it is, says the block around it.
///
/// ```
/// use agentgraph_llm::{Block, Media, Message, Role};
///
/// let photo = Block::Image(Media::bytes("image/png", b"\x89PNG..."));
/// let message = Message::new(Role::User, [photo, Block::text("What is this?")]);
/// assert_eq!(message.text(), "What is this?");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Media {
    /// The data, or where they are.
    pub source: MediaSource,
    /// Further fields, such as the `detail` of an image or the `title` of a document.
    #[serde(default, skip_serializing_if = "Extra::is_empty")]
    pub extra: Extra,
}

impl Media {
    /// Data in base64.
    pub fn base64(media_type: impl Into<String>, data: impl Into<String>) -> Self {
        MediaSource::Base64 { media_type: media_type.into(), data: data.into() }.into()
    }

    /// Data as they are.
    pub fn bytes(media_type: impl Into<String>, data: impl AsRef<[u8]>) -> Self {
        use base64::Engine as _;
        Media::base64(media_type, base64::engine::general_purpose::STANDARD.encode(data))
    }

    /// Data that the provider downloads.
    pub fn url(url: impl Into<String>) -> Self {
        MediaSource::Url { url: url.into() }.into()
    }

    /// A file that was uploaded to the provider.
    pub fn file(id: impl Into<String>) -> Self {
        MediaSource::File { id: id.into() }.into()
    }

    /// Sets a further field.
    pub fn with_extra(mut self, name: impl Into<String>, value: impl Into<RawJson>) -> Self {
        self.extra.insert(name, value);
        self
    }
}

impl From<MediaSource> for Media {
    fn from(source: MediaSource) -> Self {
        Media { source, extra: Extra::new() }
    }
}

/// The data of a medium, or where they are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum MediaSource {
    /// Data in the message.
    Base64 {
        /// The media type, such as `image/png`.
        media_type: String,
        /// The data in base64.
        data: String,
    },
    /// An address.
    Url {
        /// The URL.
        url: String,
    },
    /// A file that was uploaded to the provider.
    File {
        /// The provider's id of the file.
        id: String,
    },
    /// An unknown source, unchanged.
    Other(RawJson),
}

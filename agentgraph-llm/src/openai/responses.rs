//! OpenAI's Responses API: a codec without I/O.
//!
//! [`encode`], [`decode`] and [`StreamDecoder`] are pure. The model on top of them is
//! [`OpenAiModel`](super::OpenAiModel).

mod answer;
mod decode;
mod encode;
mod input;
mod items;
mod slot;
mod stream;

pub use decode::{decode, decode_count};
pub use encode::{encode, encode_count};
pub use stream::StreamDecoder;

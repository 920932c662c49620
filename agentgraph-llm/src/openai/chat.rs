//! Chat Completions: a codec without I/O, for OpenAI and for every compatible server.
//!
//! [`encode`], [`decode`] and [`StreamDecoder`] are pure. The model on top of them is
//! [`OpenAiChatModel`](super::OpenAiChatModel).

mod answer;
mod calls;
mod decode;
mod encode;
mod finish;
mod messages;
mod parts;
mod stream;

pub use decode::decode;
pub use encode::encode;
pub use stream::StreamDecoder;

//! The same compiled graph on more than one machine, on [Restate](https://restate.dev).
mod client;
mod events;
mod headers;
mod http;
mod relay;
mod wire;
mod worker;

pub use client::{
    RemoteAnswer, RemoteCall, RemoteEdit, RemoteEvent, RemoteGraph, RemoteHistory, RemoteStream,
    RestateClient, SentContext, SentEvent,
};
pub use headers::Headers;
pub use relay::{EventRelay, Relaying};
pub use worker::{RestateWorker, ServeError, Serving};

//! The same compiled graph on more than one machine, on [Restate](https://restate.dev).
mod client;
mod headers;
mod http;
mod wire;
mod worker;

pub use client::{
    RemoteAnswer, RemoteCall, RemoteEdit, RemoteGraph, RemoteHistory, RestateClient, SentContext,
};
pub use headers::Headers;
pub use worker::{RestateWorker, ServeError, Serving};

//! A shop assistant on an eager graph, as a library.

pub mod agent;
pub mod consent;
pub mod embedded;
pub mod money;
pub mod offline;
pub mod server;
pub mod session;
pub mod shop;
pub mod telemetry;
pub mod tools;
pub mod widget;
pub mod wire;

pub use agent::ShopAgent;

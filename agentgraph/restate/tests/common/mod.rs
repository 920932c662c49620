//! Shared by the tests that run a server.

#![allow(dead_code, unreachable_pub)]

pub mod server;

//! Random graphs, a plain sequential model of what the engine makes of them, and what runs them on the
//! engine.
//!
//! A graph is data ([`shape`], from [`random`]). What its nodes do is a function of what they see
//! ([`behaviour`]). The model ([`model`], [`rounds`]) works out what every act on a thread comes to; it uses
//! public types only and none of the engine's code. The engine is given the same graph ([`build`]) and the
//! same acts ([`drive`]), or acts that are cut short ([`killed`]).
#![allow(dead_code, missing_docs, unreachable_pub, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

pub mod behaviour;
pub mod build;
pub mod drive;
pub mod events;
pub mod killed;
pub mod model;
pub mod outside;
pub mod random;
pub mod rounds;
pub mod script;
pub mod shape;
pub mod told;
pub mod world;

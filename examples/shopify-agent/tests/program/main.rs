//! The tests of the program: it is started, asked over HTTP and in a browser, and killed.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![cfg(unix)]

#[cfg(feature = "browser")]
#[path = "../../../shared/browser.rs"]
mod browser;
#[cfg(feature = "postgres")]
mod postgres;
mod process;

mod collectors_receive_spans;
mod every_sentence_of_the_document_has_its_test;
mod http_is_that_of_xrx;
mod killed_servers_lose_and_repeat_nothing;
#[cfg(feature = "browser")]
mod pages_are_shops;
mod settings_that_cannot_be_used_are_refused;
#[cfg(feature = "browser")]
mod talk;
#[cfg(feature = "postgres")]
mod two_servers_share_a_store;

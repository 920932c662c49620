//! The tests of the library.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

mod dialogues_go_as_in_the_document;
mod frames_come_in_the_order_of_the_graph;
mod models_may_fail;
mod orders_need_the_customers_consent;
mod prompts_are_made_from_doc_comments;
mod shops_are_called_as_shopify;
mod tasks_end_once;
mod widgets_have_the_fields_that_front_ends_read;

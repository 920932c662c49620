//! What every model can be asked for, and what is known of its messages.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod answers_of_a_type_are_asked_for_until_they_have_its_form;
mod only_its_author_sees_the_private_state_of_a_message;
mod recordings_give_back_what_was_recorded_and_nothing_else;

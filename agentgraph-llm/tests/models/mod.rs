//! What every model can be asked for, and what is known of its messages.

mod answers_of_a_type_are_asked_for_until_they_have_its_form;
mod every_error_code_has_its_page;
#[cfg(feature = "nodes")]
mod json_is_found_where_models_put_it;
mod messages_survive_checkpoints_byte_for_byte;
mod only_its_author_sees_the_private_state_of_a_message;
mod recordings_give_back_what_was_recorded_and_nothing_else;
mod scripted_models_behave_like_other_models;

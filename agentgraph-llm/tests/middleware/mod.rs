//! What the built-in middleware promises, alone and in an agent.

mod answers_of_equal_requests_are_made_once;
mod broken_answers_begin_again_and_leave_no_trace;
mod every_paid_answer_is_on_the_bill;
mod limits_of_calls_and_money_hold;
mod long_conversations_are_shortened_without_splitting_pairs;
mod no_minute_has_more_than_the_limit;
mod people_decide_about_calls;
#[cfg(feature = "pii")]
mod personal_data_does_not_leave_a_stream;
mod requests_are_changed_for_the_provider_only;
mod settings_that_a_model_refuses_are_left_out;
pub(crate) mod support;
mod tools_are_called_again_only_if_that_can_help;
mod tools_are_chosen_from_those_that_exist;

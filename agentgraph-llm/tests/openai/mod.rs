//! The wires of OpenAI and of compatible servers: what is sent, and what is made of what comes back.

pub(crate) mod requests;
pub(crate) mod talk;

mod chat_requests_have_the_form_of_the_wire;
mod chat_servers_may_deviate;
mod embedders_give_one_vector_for_each_text;
mod errors_are_told_apart_by_their_code;
mod llama_cpp_is_understood;
mod provider_state_goes_back_unchanged;
mod requests_are_legal_by_the_types_of_another_client;
mod responses_requests_have_the_form_of_the_wire;
mod responses_servers_may_deviate;
mod streams_come_out_whole_wherever_they_are_cut;
mod tokens_are_counted_where_the_server_can;
mod views_of_one_message_are_joined;

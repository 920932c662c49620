//! Models and tools in the nodes of a graph.

mod durable_loops_repeat_nothing;
#[cfg(feature = "nodes")]
mod llm_nodes_ask_until_an_answer_is_accepted;
mod models_and_tools_work_in_a_graph;
mod output_of_models_in_nodes_is_streamed;
mod tool_loops_end_and_answer_every_call;

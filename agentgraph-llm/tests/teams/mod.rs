//! Supervisors with their workers, and agents that hand a conversation to each other.

mod conversations_are_handed_over_whole;
mod killed_teams_lose_nothing;
mod limits_hold_over_all_agents;
mod supervisors_get_one_result_for_each_call;
pub(crate) mod support;
mod wrong_teams_are_refused;

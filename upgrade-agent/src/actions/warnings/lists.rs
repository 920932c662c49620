//! The lists of an experiment after an update.

use super::Warning;
use crate::actions::{GroupParam, UpdateExperiment};
use crate::client::{Experiment, FilterMode, GroupMember, Members};

/// The lists after the update.
pub(super) struct Lists {
    filter: FilterMode,
    inclusion: (Vec<String>, Vec<GroupParam>),
    exclusion: (Vec<String>, Vec<GroupParam>),
    /// Whether the inclusion list keeps a segment, whose members are unknown here.
    segments: bool,
    pub(super) changed: bool,
}

impl Lists {
    pub(super) fn after(update: &UpdateExperiment, old: &Experiment, moved: bool) -> Self {
        let filter = if moved { &FilterMode::ExcludeAll } else { &old.filter_mode };
        let dropped = Members::default();
        let kept = |list| if moved { &dropped } else { list };
        let list = |users: &Option<Vec<String>>, groups: &Option<Vec<GroupParam>>, old: &Members| {
            let old_groups = || old.groups.iter().map(group).collect();
            (users.clone().unwrap_or_else(|| old.users.clone()), groups.clone().unwrap_or_else(old_groups))
        };
        let given = [update.inclusion_users.is_some(), update.exclusion_users.is_some()];
        let given_groups = [update.inclusion_groups.is_some(), update.exclusion_groups.is_some()];
        let changed = given.contains(&true) || given_groups.contains(&true) || update.filter_mode.is_some();
        Lists {
            filter: update.filter_mode.clone().unwrap_or_else(|| filter.clone()),
            inclusion: list(&update.inclusion_users, &update.inclusion_groups, kept(&old.inclusion)),
            exclusion: list(&update.exclusion_users, &update.exclusion_groups, kept(&old.exclusion)),
            segments: !moved && !old.inclusion_segments.is_empty(),
            changed,
        }
    }

    pub(super) fn listed_on_both(&self) -> Option<Warning> {
        let inclusion = &self.inclusion;
        let exclusion = &self.exclusion;
        listed_twice((&inclusion.0, &inclusion.1), (&exclusion.0, &exclusion.1))
    }

    pub(super) fn take_nobody_in(&self) -> bool {
        let empty = self.inclusion.0.is_empty() && self.inclusion.1.is_empty() && !self.segments;
        self.filter == FilterMode::ExcludeAll && empty
    }
}

fn group(member: &GroupMember) -> GroupParam {
    GroupParam { group_type: member.group_type.clone(), group_id: member.group_id.clone() }
}

type List<'a> = (&'a [String], &'a [GroupParam]);

/// The members of both lists.
pub(super) fn listed_twice(inclusion: List<'_>, exclusion: List<'_>) -> Option<Warning> {
    let users = inclusion.0.iter().filter(|user| exclusion.0.contains(user)).cloned();
    let groups = inclusion.1.iter().filter(|group| exclusion.1.contains(group));
    let groups = groups.map(|group| format!("{} {}", group.group_type, group.group_id));
    let who: Vec<String> = users.chain(groups).collect();
    (!who.is_empty()).then_some(Warning::ListedTwice { who })
}

/// Lists are written in separate calls, which leave other lists alone.
pub(super) fn is_of_lists_alone(update: &UpdateExperiment) -> bool {
    let lists = UpdateExperiment {
        experiment_id: update.experiment_id.clone(),
        force: update.force,
        inclusion_users: update.inclusion_users.clone(),
        inclusion_groups: update.inclusion_groups.clone(),
        exclusion_users: update.exclusion_users.clone(),
        exclusion_groups: update.exclusion_groups.clone(),
        ..UpdateExperiment::default()
    };
    *update == lists
}

//! The parts of an action's description that its types cannot express: the order of the questions, the rules
//! between parameters, and suggested next actions.

use serde::Serialize;

use crate::actions::ActionKind;

/// The guide to one action.
#[derive(Serialize)]
pub(super) struct Guide {
    pub(super) parameter_gathering_flow: &'static [&'static str],
    pub(super) rules: &'static [&'static str],
    pub(super) suggested_next_steps: &'static [&'static str],
}

pub(super) fn of(kind: ActionKind) -> &'static Guide {
    match kind {
        ActionKind::CreateExperiment => &CREATE,
        ActionKind::UpdateExperiment => &UPDATE,
        ActionKind::UpdateExperimentStatus => &STATUS,
        ActionKind::DeleteExperiment => &DELETE,
        ActionKind::InitExperimentUser => &INIT,
        ActionKind::GetDecisionPointAssignments => &ASSIGNMENTS,
        ActionKind::MarkDecisionPoint => &MARK,
        ActionKind::VisitDecisionPoint => &VISIT,
        ActionKind::TestConditionBalance => &BALANCE,
        ActionKind::SimulateUserJourney => &JOURNEY,
    }
}

const CREATE: Guide = Guide {
    parameter_gathering_flow: &[
        "name: as the person says it; see get_experiment_names for those taken",
        "context: from get_available_contexts; everything below depends on it",
        "decision_points: sites and targets from get_decision_points_for_context; ask for at least one pair",
        "conditions: codes from get_conditions_for_context; weights only if the person names any",
        "assignment_unit group only if the person speaks of groups; then group_type from get_group_types_for_context",
        "filter_mode and lists: if the person says who takes part; includeAll for everybody",
        "everything else only if the person brings it up; defaults are left out",
    ],
    rules: &[
        "context, sites, targets, condition codes and group types are those of the context's metadata, spelt alike",
        "weights sum to exactly 100; without any weights they are equal",
        "no two experiments have one name",
        "group_type is given exactly when assignment_unit is group; consistency_rule group needs it too",
        "with filter_mode excludeAll (the default) only listed students and groups take part: with empty lists nobody",
        "post_experiment_rule assign reaches those enrolled only; its condition_code is one of the conditions",
        "simple experiments only: neither factorial nor within-subjects",
        "a new experiment is inactive; starting it is update_experiment_status",
    ],
    suggested_next_steps: &[
        "if the filter mode is excludeAll and the inclusion lists are empty: say that nobody would be enrolled, and \
         offer includeAll or an inclusion list",
        "start it: update_experiment_status enrolling",
        "try it: visit_decision_point with one student, or test_condition_balance (offline leaves nothing behind)",
    ],
};

const UPDATE: Guide = Guide {
    parameter_gathering_flow: &[
        "experiment_id: from get_experiment_names, or that_experiment in the situation",
        "look at it with get_experiment_details",
        "give only what changes; conditions, decision_points, tags and each list are given whole, what stays included",
        "new codes, sites, targets and group types: from the context, as when creating",
        "to add or remove one on a list: the list as get_experiment_details tells it, with the change",
    ],
    rules: &[
        "only what is given changes",
        "a condition that keeps its code keeps its students; a condition or point that is left out loses its enrolments",
        "conditions and decision points of a running or paused experiment change only with force",
        "a new context drops all lists and sets excludeAll",
        "weights sum to 100; the conditions of factorial experiments are changed on UpGrade's own screen",
    ],
    suggested_next_steps: &[
        "if the filter mode is or becomes excludeAll and nobody is included: say that nobody is enrolled, and offer \
         includeAll or an inclusion list",
        "show it again: get_experiment_details",
        "if it is inactive and complete: offer to start it",
    ],
};

const STATUS: Guide = Guide {
    parameter_gathering_flow: &[
        "experiment_id: from get_experiment_names, or that_experiment in the situation",
        "status: start or resume = enrolling; stop or pause = enrollmentComplete; cancel, end or complete = cancelled; \
         archive = archived",
        "force only if the person insists after having been told why not",
    ],
    rules: &[
        "usual moves: inactive to enrolling, preview, scheduled or cancelled; preview and scheduled to inactive or \
         enrolling; enrolling to enrollmentComplete or cancelled; enrollmentComplete to enrolling or cancelled; \
         cancelled to archived; any other only with force",
        "running, paused and completed are today's words for enrolling, enrollmentComplete and cancelled; both do",
        "an experiment starts only with decision points, conditions and weights that sum to 100",
        "stop keeps what the enrolled have (rule continue); cancelled gives everybody the default",
        "scheduled needs a date, which is set on UpGrade's own screen",
    ],
    suggested_next_steps: &[
        "before a start with filter mode excludeAll and no inclusion list: say that nobody would be enrolled",
        "after a start: try it with visit_decision_point, or look at get_enrollment_details later",
        "after a stop: the post-experiment rule holds; offer to resume, or to end it with cancelled",
    ],
};

const DELETE: Guide = Guide {
    parameter_gathering_flow: &[
        "experiment_id: from get_experiment_names, or that_experiment in the situation",
    ],
    rules: &[
        "the person confirms by typing DELETE; it cannot be undone",
        "its enrolments are deleted with it; cancelled and then archived would keep them",
    ],
    suggested_next_steps: &["list what is left: get_experiment_names"],
};

const INIT: Guide = Guide {
    parameter_gathering_flow: &[
        "user_id: as the person says it",
        "group and working_group only if the person names groups; group types from get_group_types_for_context",
    ],
    rules: &[
        "a part that is not given leaves what the server knows of the student",
        "for group experiments the working group is one of the groups of its type",
        "letters, digits and plain signs in user_id: it travels in a header",
    ],
    suggested_next_steps: &[
        "ask what the student gets: get_decision_point_assignments",
        "or do all at once: visit_decision_point",
    ],
};

const ASSIGNMENTS: Guide = Guide {
    parameter_gathering_flow: &[
        "user_id: as the person says it",
        "context: from get_available_contexts, or that of the experiment that is spoken of",
    ],
    rules: &["the student must be initialized first", "asking enrols nobody: only a mark does"],
    suggested_next_steps: &[
        "mark the visit: mark_decision_point",
        "if nothing is assigned: look at the experiment's status, lists and filter mode with get_experiment_details",
    ],
};

const MARK: Guide = Guide {
    parameter_gathering_flow: &[
        "user_id: as the person says it",
        "decision_point: site and target, from the experiment or from get_decision_points_for_context",
        "assigned_condition: what get_decision_point_assignments told, if it was asked; else leave it out",
    ],
    rules: &[
        "the student must be initialized first",
        "the server enrols with the condition of its own draw; the code given is only checked to exist",
        "the first mark of a student at a place counts, and it cannot be taken back",
    ],
    suggested_next_steps: &["look at the enrolment: get_enrollment_details"],
};

const VISIT: Guide = Guide {
    parameter_gathering_flow: &[
        "user_id: as the person says it",
        "context: from get_available_contexts, or that of the experiment spoken of",
        "site and target: from get_decision_points_for_context, or the experiment's decision points",
        "group and working_group only if the person names groups, or the experiment assigns groups",
    ],
    rules: &[
        "the student is made known, assigned and marked: he may be enrolled, and that cannot be taken back",
        "a second visit of the same student at the same place keeps the condition of the first",
    ],
    suggested_next_steps: &[
        "look at the enrolment: get_enrollment_details",
        "try more students: test_condition_balance, or simulate_user_journey for several places",
    ],
};

const BALANCE: Guide = Guide {
    parameter_gathering_flow: &[
        "experiment_id: from get_experiment_names, or that_experiment in the situation",
        "num_users only if the person says how many; 1 to 1000, 100 otherwise",
        "mode only if the person asks for it: offline (computed, nothing written) or live (students on the server)",
        "site and target only if the person names a decision point; the first one otherwise",
        "group and working_group only if the person names groups",
    ],
    rules: &[
        "an experiment that is enrolling is tested offline unless the person asks for live: real students are in it, and \
         simulated ones stay enrolled for good",
        "a live test starts an experiment that is not enrolling, and restores its status at the end",
        "within-subjects experiments have no split",
    ],
    suggested_next_steps: &[
        "too few students to say: test again with more",
        "nobody got a condition: look at the filter mode and the lists",
    ],
};

const JOURNEY: Guide = Guide {
    parameter_gathering_flow: &[
        "context: from get_available_contexts, or that of the experiment spoken of",
        "experiment_id: if the person speaks of an experiment; its decision points are visited if no steps are given",
        "user_ids if the person names students, or num_users if he says how many; one new student otherwise",
        "group and working_group only if the person names groups",
        "steps only if the person describes them, in his order: visit, assign, set_working_group, set_status",
        "force only if the person insists after having been told why not",
    ],
    rules: &[
        "all students take a step before the next one begins; at most 20 steps and 1000 students",
        "set_status needs experiment_id and makes usual moves, any other only with force; the first status is restored at the end",
        "an experiment that students are in and that leaves out early visitors can only become enrollmentComplete",
        "students stay known, and those marked stay enrolled",
    ],
    suggested_next_steps: &["look at the enrolment: get_enrollment_details"],
};

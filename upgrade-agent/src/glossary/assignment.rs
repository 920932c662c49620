//! How students are assigned: by unit and consistency, by status, by what they saw before; and how to try it.

use super::{Entry, Section};

pub(super) const ASSIGNMENT: &[Section] = &[
    Section { name: "assignment_combinations", entries: COMBINATIONS },
    Section { name: "experiment_status_impact", entries: STATUS },
    Section { name: "exclude_if_reached_behavior", entries: REACHED },
    Section { name: "key_behavioral_patterns", entries: PATTERNS },
    Section { name: "testing_verification_patterns", entries: TESTING },
    Section { name: "common_patterns", entries: COMMON },
];

const fn plain(name: &'static str, definition: &'static str) -> Entry {
    Entry { name, definition, options: &[], notes: &[] }
}

const COMBINATIONS: &[Entry] = &[
    Entry {
        name: "individual_assignment_individual_consistency",
        definition: "Each student is drawn for himself by the weights and keeps what he got.",
        options: &[
            ("enrolling", "The same student gets the same condition at every visit."),
            (
                "enrollment_complete",
                "The enrolled follow the post-experiment rule; newcomers get the default.",
            ),
            ("example", "In a class of five, each student may have a condition of his own."),
        ],
        notes: &[],
    },
    Entry {
        name: "group_assignment_individual_consistency",
        definition: "Groups are drawn, and students of an enrolled group get its condition. A student's own past comes \
                     first: one who is excluded stays out though his class takes part, and one who changes groups keeps \
                     what he had.",
        options: &[
            (
                "enrolling",
                "Students of one working group get the same condition, unless one was excluded before.",
            ),
            (
                "enrollment_complete",
                "A student who comes late gets the condition of his enrolled group (rule continue) or the chosen one \
                 (rule assign); without an enrolled group, the default.",
            ),
            (
                "example",
                "A class is drawn for variant; the one who saw the place before the start gets the default.",
            ),
        ],
        notes: &[],
    },
    Entry {
        name: "group_assignment_group_consistency",
        definition: "Groups are drawn, and the group's past comes first: one excluded student takes his whole working \
                     group out, and a student who changes his working group follows the new one.",
        options: &[
            ("enrolling", "All students of a working group share the condition, or all get the default."),
            (
                "enrollment_complete",
                "The enrolled groups follow the post-experiment rule, latecomers in them too.",
            ),
            (
                "example",
                "One student visited before the start with exclude_if_reached: his class gets the default.",
            ),
        ],
        notes: &[],
    },
];

const STATUS: &[Entry] = &[
    plain(
        "inactive",
        "Everybody gets the default. Visits are remembered and exclude later where a point says exclude_if_reached.",
    ),
    plain(
        "enrolling",
        "Called running today. Assignment and consistency rules hold; a marked visit enrols. Whoever was excluded \
         stays out.",
    ),
    Entry {
        name: "enrollment_complete",
        definition: "Called paused today. Nobody new is enrolled; the post-experiment rule decides.",
        options: &[
            ("continue", "The enrolled keep their condition."),
            ("assign", "The enrolled get the chosen condition; the others get the default."),
        ],
        notes: &[
            "A newcomer who visits now is excluded for good, unless the consistency rule is experiment.",
            "Back to enrolling, those enrolled keep their condition.",
        ],
    },
    plain(
        "cancelled",
        "Called completed today. Everybody gets the default; enrolments are kept, and count again if it is ever set \
         back to enrolling. archived, draft and inactive assign nobody either.",
    ),
    plain(
        "preview_and_scheduled",
        "preview assigns preview users only and enrols nobody; scheduled assigns nobody until its date.",
    ),
];

const REACHED: &[Entry] = &[
    Entry {
        name: "enabled",
        definition: "At the start, everybody who ever marked that site and target is excluded, in whatever experiment \
                     or none it was.",
        options: &[],
        notes: &[
            "With group consistency one earlier visitor excludes his whole working group.",
            "Who took part in an earlier run of the same experiment is an earlier visitor, too.",
            "For experiments where having seen the place before would spoil the result.",
        ],
    },
    plain("disabled", "Earlier visitors take part like everybody else. The default."),
];

const PATTERNS: &[Entry] = &[
    plain(
        "consistency",
        "The same student gets the same condition at each visit and at each decision point of the experiment: the \
         draw follows from ids alone, and after enrolment the stored condition counts.",
    ),
    Entry {
        name: "group_and_working_group",
        definition: "group lists all groups of a student, working_group names the one he works in now.",
        options: &[
            ("group", "Inclusion and exclusion lists look at these."),
            (
                "working_group",
                "Group assignment, group consistency and the global group exclusion look at this.",
            ),
        ],
        notes: &["For a group experiment the working group must be one of the groups of its type."],
    },
    plain(
        "late_arrivals",
        "While enrolling, whoever comes is drawn by the weights, or gets the condition of his enrolled group. Once \
         enrolment is complete a newcomer gets the default and is excluded, except in an enrolled group.",
    ),
    plain(
        "assign_and_mark",
        "init makes a student known. assign tells what he gets and stores nothing. mark reports a visit: only that \
         enrols, with the condition that the server drew, whatever code the report names; the first mark of a place \
         counts. It cannot be taken back.",
    ),
    plain(
        "sticky_exclusion",
        "Once a visit has excluded a student, he stays excluded from that experiment, even if he is put on the \
         inclusion list later.",
    ),
    plain(
        "shared_decision_points",
        "Experiments that share a site and target, directly or through others, form a pool: a student takes part in \
         one of them, the one that enrolled him or one drawn by his id.",
    ),
    plain(
        "global_exclusion",
        "A context has a global exclusion list over all its experiments. As soon as it names any group, every student \
         without a working group is excluded as well.",
    ),
];

const TESTING: &[Entry] = &[
    plain(
        "trying_one_student",
        "visit_decision_point introduces a student, asks what he gets and marks the visit; or one by one: \
         init_experiment_user, get_decision_point_assignments, mark_decision_point. Marked students stay in the \
         statistics for good.",
    ),
    plain(
        "condition_balance",
        "test_condition_balance compares the shares of the conditions with their weights, with a chi-square test. \
         offline it computes the draws from ids and weights and leaves nothing on the server; live it enrols made-up \
         students, who stay in the statistics.",
    ),
    Entry {
        name: "what_to_verify",
        definition: "What a try-out should show.",
        options: &[],
        notes: &[
            "Each student gets a condition that the unit of assignment allows.",
            "The same student gets the same condition again.",
            "After enrolment the post-experiment rule holds, for the enrolled only.",
            "Earlier visitors are left out exactly where exclude_if_reached says so.",
            "With group consistency all students of a group fare alike.",
        ],
    },
    Entry {
        name: "test_scenarios",
        definition: "simulate_user_journey plays steps like these.",
        options: &[
            ("basic_flow", "Students visit while the experiment is inactive, enrolling and complete."),
            ("exclusion", "Some visit before the start, at a point with exclude_if_reached."),
            (
                "group_consistency",
                "Students of one class visit one after another; one changes his working group.",
            ),
            ("late_arrivals", "Some come for the first time after enrolment is complete."),
        ],
        notes: &[],
    },
];

const COMMON: &[Entry] = &[
    plain(
        "classroom_experiments",
        "Unit group, consistency group: a class stays together, and its students do not see each other's conditions.",
    ),
    plain(
        "individual_interventions",
        "Unit individual, consistency individual: the most independent draws, hence the most statistical power.",
    ),
    plain(
        "pilot_testing",
        "Unit individual, consistency individual, exclude_if_reached off, an inclusion list of the pilot's students: \
         nobody else is touched, and nobody is lost to an earlier visit.",
    ),
];

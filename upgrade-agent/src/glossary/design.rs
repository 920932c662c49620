//! The words of an experiment's design.

use super::Entry;

pub(super) const DESIGN: &[Entry] = &[
    Entry {
        name: "app_context",
        definition: "The client application that an experiment runs in, such as assign-prog. It fixes which sites, \
                         targets, condition codes and group types there are.",
        options: &[],
        notes: &[
            "An experiment has one context; upper and lower case differ.",
            "The contexts of this server: get_available_contexts.",
            "When an experiment moves to another context, the server drops all its lists and sets the filter mode \
                 excludeAll.",
        ],
    },
    Entry {
        name: "unit_of_assignment",
        definition: "Who is given a condition while the experiment is enrolling.",
        options: &[
            ("individual", "Each student is drawn for himself."),
            (
                "group",
                "A whole group, such as a class, is drawn for, and its students share the condition. Needs a group \
                     type; a student without a valid working group of that type is skipped.",
            ),
            (
                "within-subjects",
                "Each student gets a sequence of conditions, one after another. This agent reads such experiments \
                     and does not make them.",
            ),
        ],
        notes: &[],
    },
    Entry {
        name: "consistency_rule",
        definition: "Whose earlier experience counts when a student comes again.",
        options: &[
            (
                "individual",
                "The student's own exclusion or enrolment comes first, then his group's. Who changes groups keeps \
                     his condition.",
            ),
            (
                "group",
                "The group's exclusion or enrolment comes first, then the student's own. Who changes his working \
                     group follows the new one. Only with the unit group.",
            ),
            (
                "experiment",
                "Only the enrolment of the unit counts: earlier visits and late arrival exclude nobody. The server \
                     knows it; this agent does not set it.",
            ),
        ],
        notes: &["The group that counts is the working group (workingGroup) of the last initialization."],
    },
    Entry {
        name: "post_experiment_rule",
        definition: "What students get once enrolment is complete (enrollmentComplete, also called paused).",
        options: &[
            (
                "continue",
                "Those enrolled keep their condition, and so does who belongs to an enrolled group.",
            ),
            (
                "assign",
                "Those enrolled, and only those enrolled (students or groups), get one chosen condition. A student \
                     never seen before gets the default.",
            ),
            ("assign without a condition", "Everybody gets the default."),
        ],
        notes: &[
            "Servers from 6.3 on set the rule continue when an experiment is created, so that assign takes a second \
                 request; the agent makes it.",
        ],
    },
    Entry {
        name: "design_type",
        definition: "How the conditions are made.",
        options: &[
            ("Simple", "The conditions are listed one by one."),
            (
                "Factorial",
                "The conditions are the combinations of the levels of several factors. This agent reads such \
                     experiments and does not change their conditions.",
            ),
        ],
        notes: &[],
    },
    Entry {
        name: "assignment_algorithm",
        definition: "How a condition is drawn.",
        options: &[
            (
                "random",
                "Each condition is drawn by its weight. The draw follows from the ids of the experiment and of the \
                     student (or his working group) alone, so it is the same each time.",
            ),
            ("stratified random sampling", "The weights are shifted by how often each condition is present."),
            ("ts_configurable", "A bandit that adapts the draw to rewards which the application reports."),
        ],
        notes: &["This agent makes experiments with the algorithm random."],
    },
    Entry {
        name: "decision_point",
        definition: "A place in the application where it asks which condition to show.",
        options: &[
            ("site", "Where: a page, a function or a kind of place."),
            ("target", "What is there: a button, a problem, a piece of content. May be empty."),
        ],
        notes: &[
            "The sites and targets of a context: get_decision_points_for_context. Which pairs of them exist the \
                 server does not say, and it accepts any; this agent insists on known sites and targets.",
            "A student takes part in one of the experiments that share a decision point.",
        ],
    },
    Entry {
        name: "exclude_if_reached",
        definition: "A mark at a decision point: whoever visited that site and target before the experiment started is \
                         left out for good.",
        options: &[
            (
                "true",
                "Earlier visitors are excluded at the start, whichever experiment they visited in; with group \
                     consistency their working groups too.",
            ),
            ("false", "Earlier visitors take part like everybody else. This is the default."),
        ],
        notes: &["It happens at the start only: going on after a pause does not exclude anybody."],
    },
    Entry {
        name: "condition",
        definition: "One of the versions that are compared.",
        options: &[
            ("code", "What the application knows it by, such as control or variant. default is not allowed."),
            ("weight", "Its share of the draw, in percent."),
        ],
        notes: &[
            "The codes of a context: get_conditions_for_context.",
            "The server accepts any weights; if they do not reach 100, whoever is drawn beyond their sum gets the \
                 first condition. This agent insists on a sum of 100.",
            "The server does not insist on unique names of experiments either; this agent does.",
        ],
    },
    Entry {
        name: "payload",
        definition: "Data that the application gets with a condition at a decision point, beside the code.",
        options: &[("string", "Plain text."), ("json", "JSON, as text."), ("csv", "CSV, as text.")],
        notes: &[
            "A new experiment has none unless it is given. The first update through the server's PUT gives each \
                 condition without one its code as payload at each decision point.",
        ],
    },
    Entry {
        name: "segment",
        definition: "A list of students and groups that take part (inclusion) or are left out (exclusion).",
        options: &[
            ("filter mode excludeAll", "Only those included take part: with no inclusion list, nobody does."),
            (
                "filter mode includeAll",
                "Everybody who is not excluded takes part. An included student takes part even if one of his groups \
                     is excluded.",
            ),
        ],
        notes: &[
            "A student excluded by his own id is left out whatever else the lists say.",
            "Lists look at all groups of a student (group), not at the one he works in (workingGroup).",
        ],
    },
    Entry {
        name: "experiment_status",
        definition: "Where an experiment is in its life. Servers from 6.3 on, and UpGrade's screen, say running, paused \
                         and completed where older ones say enrolling, enrollmentComplete and cancelled; both are understood.",
        options: &[
            ("inactive", "Set up; everybody gets the default."),
            ("draft", "Set aside unfinished; assigns nobody."),
            ("preview", "Preview users only get conditions; nobody is enrolled."),
            ("scheduled", "Waits for its date; assigns nobody until then."),
            (
                "enrolling",
                "Called running today: students are assigned, and enrolled when a visit is marked.",
            ),
            (
                "enrollmentComplete",
                "Called paused today: nobody new is enrolled, the post-experiment rule holds. This is what \"stop\" \
                     means to this agent; it can be resumed.",
            ),
            ("cancelled", "Called completed today: over, everybody gets the default, the enrolled too."),
            ("archived", "Over and put away; assigns nobody."),
        ],
        notes: &[
            "The server refuses no change of status. This agent follows the usual ways and takes any other only when \
                 it is asked to force it.",
        ],
    },
];

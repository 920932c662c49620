//! What UpGrade's words mean, as the server really behaves.

use std::collections::BTreeMap;

type Terms = BTreeMap<&'static str, &'static str>;

/// The words of an experiment's design.
pub(super) fn core() -> Terms {
    Terms::from([
        (
            "app_context",
            "The application an experiment runs in. It fixes which sites, targets, conditions and group types \
          there are. An experiment has one.",
        ),
        (
            "unit_of_assignment",
            "Who is given a condition: each student (individual), or a whole group such as a class \
          (group), whose students then share it.",
        ),
        (
            "consistency_rule",
            "Whose earlier condition counts when a student comes again: his own (individual), his \
          group's (group), or only enrolments, exclusions being ignored (experiment).",
        ),
        (
            "post_experiment_rule",
            "What happens once enrolment is complete: continue (the enrolled keep their condition) \
          or assign (the enrolled, and only they, get one chosen condition; a student never seen gets the default).",
        ),
        (
            "design_type",
            "Simple: the conditions are listed. Factorial: they are the combinations of factors' levels.",
        ),
        (
            "assignment_algorithm",
            "How a condition is drawn: random draws by weight; a draw depends on the experiment and \
          the student only, so that it is the same each time.",
        ),
        ("decision_point", "A place in the application where a condition is shown: a site and a target."),
        (
            "exclude_if_reached",
            "A mark at a decision point: whoever was there before the experiment started is left out, \
          with group consistency his group too.",
        ),
        (
            "condition",
            "One of the things compared, known to the application by its code, with a weight in percent. The \
          code default is UpGrade's own.",
        ),
        ("payload", "Data that the application gets with a condition beside the code: text, JSON or CSV."),
        (
            "segment",
            "A list of students and groups, for taking part (inclusion) or being left out (exclusion). With \
          filter mode excludeAll only those included take part; with includeAll everybody who is not excluded does, and \
          an included student even if his group is excluded.",
        ),
        (
            "experiment_status",
            "inactive (set up), enrolling (running: assigns and enrols), enrollmentComplete (paused: \
          nobody new is enrolled), cancelled (completed: everybody gets the default), archived; besides draft, preview \
          and scheduled. UpGrade's newer screens say running, paused and completed.",
        ),
    ])
}

/// The words of assignment and of testing it.
pub(super) fn assignment() -> Terms {
    Terms::from([
        (
            "individual_individual",
            "Unit individual, consistency individual: each student is drawn for himself and keeps \
          what he got, whatever his group does.",
        ),
        (
            "group_individual",
            "Unit group, consistency individual: groups are drawn; a student who saw the place before \
          the start stays out, though his class takes part.",
        ),
        (
            "group_group",
            "Unit group, consistency group: groups are drawn; one student who is out takes his whole group \
          out, and a student who changes groups follows the new one.",
        ),
        (
            "status_inactive",
            "Nobody is assigned. A visit is remembered and may leave the student out later, see \
          exclude_if_reached.",
        ),
        (
            "status_enrolling",
            "Who comes to a decision point is assigned; he is enrolled when the visit is marked, not \
          when the assignment is asked for.",
        ),
        (
            "status_enrollment_complete",
            "The enrolled are treated by the post-experiment rule; newcomers get the default \
          and are excluded.",
        ),
        (
            "exclude_if_reached_on",
            "Earlier visitors of the point, in any experiment, are excluded at the start.",
        ),
        ("exclude_if_reached_off", "Earlier visitors take part like everybody else."),
        (
            "consistency",
            "The same student gets the same condition at each visit, on each point of the experiment.",
        ),
        (
            "group_and_working_group",
            "group lists all groups of a student, working_group the one he works in now; a group \
          experiment looks at the latter, which must be one of the former.",
        ),
        ("late_arrivals", "Who comes after enrolment was completed is not enrolled and stays out."),
        ("shared_points", "Of experiments that share a decision point a student gets one."),
        (
            "testing_verification",
            "To try an experiment: initialize a user, get the assignments for the context, mark the \
          decision point, look at the enrolment. The users stay in the statistics for good.",
        ),
        ("testing_balance", "With many users, the shares of the conditions come near to their weights."),
    ])
}

//! The words of A/B testing and of the platform as a whole.

use super::Term;

pub(super) const GENERAL: &[Term] = &[
    Term {
        title: "A/B testing",
        aliases: &[
            "a/b testing",
            "a/b test",
            "ab testing",
            "ab test",
            "a b testing",
            "split testing",
            "split test",
            "controlled experiment",
            "controlled trial",
            "randomized experiment",
            "randomised experiment",
            "randomized trial",
            "randomised trial",
            "a/b",
        ],
        text: "A/B testing compares two or more versions of something by showing each of them to a randomly chosen part \
               of the people who use it, and then looking at how the parts fare. Because chance alone decides who sees \
               what, a difference between the parts can be put down to the versions. In UpGrade the people are students, \
               the versions are called conditions, and the places in an application where they differ are decision \
               points.",
        entry: None,
    },
    Term {
        title: "UpGrade",
        aliases: &["upgrade", "platform", "carnegie learning"],
        text: "UpGrade is an open-source platform for A/B tests in learning software. An application asks it, for each \
               student and each decision point, which condition to show; UpGrade decides, keeps the decision consistent \
               and counts who is enrolled where.",
        entry: None,
    },
    Term {
        title: "Experiment",
        aliases: &["experiment", "study", "trial"],
        text: "An experiment says what is compared (its conditions with their weights), where (its decision points), for \
               whom (unit of assignment, inclusion and exclusion lists) and in which application (its context). It begins \
               as inactive and assigns nobody until it is started.",
        entry: None,
    },
    Term {
        title: "Control condition",
        aliases: &["control", "control group", "control condition", "baseline"],
        text: "The control is the condition without the change, against which the others are compared. For UpGrade it is \
               a condition like any other, with a code and a weight.",
        entry: None,
    },
    Term {
        title: "Weight",
        aliases: &["weight", "weighting", "assignment weight", "traffic split"],
        text: "A weight is a condition's share in the draw, in percent. The weights of an experiment should add up to 100. \
               UpGrade's server does not insist: if they fall short, everybody beyond their sum gets the first \
               condition. I ask for a sum of 100.",
        entry: None,
    },
    Term {
        title: "Group type",
        aliases: &["group type", "group", "working group", "workinggroup", "classid", "schoolid"],
        text: "A group type is a kind of group that an application reports for its students, such as `schoolId` or \
               `classId`. A student may be in many groups of a type but works in one at a time, the working group: \
               a group experiment draws for the working group, while lists look at all groups.",
        entry: None,
    },
    Term {
        title: "Filter mode",
        aliases: &["filter mode", "filtermode", "includeall", "excludeall", "include all", "exclude all"],
        text: "The filter mode says who takes part when no list names him. `excludeAll`, the default, means nobody: an \
               experiment without an inclusion list then enrols no one, however long it runs. `includeAll` means \
               everybody who is not excluded.",
        entry: None,
    },
    Term {
        title: "Completed or finished",
        aliases: &["complete", "completed", "completion", "finish", "finished"],
        text: "To complete or finish an experiment can mean two things. `enrollmentComplete`, which UpGrade's screen calls \
               paused: nobody new is enrolled, those enrolled fall under the post-experiment rule, and it can be started \
               again. `cancelled`, which the screen calls completed: it is over, and everybody gets the default. If you say \
               complete, finish or stop, I ask whether to do the first; say cancel for the second.",
        entry: None,
    },
    Term {
        title: "Enrolment",
        aliases: &[
            "enrollment",
            "enrolment",
            "enrol",
            "enrolled student",
            "is enrolled",
            "be enrolled",
            "participant",
        ],
        text: "A student is enrolled when he marks a decision point of an experiment that is enrolling, that is, when \
               the application reports that he was there. Being told a condition (assign) enrols nobody.",
        entry: None,
    },
    Term {
        title: "Init, assign and mark",
        aliases: &["init", "assign", "mark", "assignment", "mark decision point", "v6"],
        text: "An application makes three calls for a student: init introduces the student with his groups, assign asks \
               for the conditions at all decision points of a context and stores nothing, and mark reports a visit of a \
               decision point, which enrols the student.",
        entry: None,
    },
    Term {
        title: "Preview user",
        aliases: &["preview user", "test user"],
        text: "Preview users see experiments in the status preview, so that one can try an experiment before students do. \
               They are never enrolled.",
        entry: None,
    },
];

//! The words of UpGrade and of A/B testing that the model explains by itself.

use crate::token::Token;

/// A word that can be explained.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Term {
    title: &'static str,
    /// The words by which people ask for the term, in lower case.
    aliases: &'static [&'static str],
    pub(crate) text: &'static str,
}

/// The term with the longest alias that the tokens begin with, and the number of its tokens.
pub(crate) fn at(tokens: &[Token<'_>]) -> Option<(&'static Term, usize)> {
    let aliases = TERMS.iter().flat_map(|term| term.aliases.iter().map(move |alias| (term, *alias)));
    aliases.filter_map(|(term, alias)| Some((term, fit(tokens, alias)?))).max_by_key(|(_, used)| *used)
}

/// The explanations of a term by one of its names.
pub(crate) fn explained(name: &str) -> Option<&'static Term> {
    let tokens = crate::token::tokens(name);
    at(&tokens).filter(|(_, used)| *used == tokens.len()).map(|(term, _)| term)
}

fn fit(tokens: &[Token<'_>], alias: &str) -> Option<usize> {
    let words = alias.split(' ').count();
    let typed = tokens.get(..words)?.iter().zip(alias.split(' '));
    typed.clone().all(|(token, word)| token.is_word() && is_form(&token.low, word)).then_some(words)
}

/// Whether a word is this one, its plural, or mistyped by one letter.
fn is_form(low: &str, word: &str) -> bool {
    let singular = low.strip_suffix("es").unwrap_or_default();
    low == word
        || low.strip_suffix('s') == Some(word)
        || singular == word
        || (word.len() >= 5 && low.len() >= 4 && strsim::osa_distance(low, word) == 1)
}

/// The words of all aliases.
pub(crate) fn words() -> impl Iterator<Item = &'static str> {
    TERMS.iter().flat_map(|term| term.aliases.iter().flat_map(|alias| alias.split(' ')))
}

const TERMS: &[Term] = &[
    Term {
        title: "App context",
        aliases: &["context", "app context", "application context", "app"],
        text: "A context is the client application an experiment runs in, such as `assign-prog`. Each context comes with \
               its own condition codes, sites and targets for decision points, and group types; an experiment can only \
               work with those its application knows.",
    },
    Term {
        title: "Unit of assignment",
        aliases: &[
            "unit of assignment",
            "assignment unit",
            "individual assignment",
            "group assignment",
            "unit",
        ],
        text: "The unit of assignment says who is drawn for: `individual` draws for each student, `group` draws for \
               whole groups such as classes, so that all students of a class get the same condition. A third unit, \
               `within-subjects`, draws anew for each visit.",
    },
    Term {
        title: "Consistency rule",
        aliases: &["consistency rule", "consistency"],
        text: "The consistency rule says whose earlier experience counts when a student comes again. `individual`: a \
               student keeps the condition he had, even in another group. `group`: a student follows his working \
               group. `experiment`: only enrolments count, earlier visits do not exclude anybody.",
    },
    Term {
        title: "Post-experiment rule",
        aliases: &[
            "post experiment rule",
            "post-experiment rule",
            "post rule",
            "postexperimentrule",
            "post_experiment_rule",
        ],
        text: "The post-experiment rule says what students get once enrolment is complete. `continue`: those enrolled \
               keep their condition. `assign`: all those already enrolled get one chosen condition. In both cases a \
               student who was never enrolled gets the application's default.",
    },
    Term {
        title: "Design type",
        aliases: &["design type", "factorial", "factorial design", "simple design", "experiment type"],
        text: "A simple experiment lists its conditions. A factorial one crosses factors: each of its conditions is a \
               combination of one level per factor.",
    },
    Term {
        title: "Assignment algorithm",
        aliases: &[
            "assignment algorithm",
            "algorithm",
            "random assignment",
            "randomization",
            "randomisation",
            "randomly",
            "decides which condition",
            "picks which condition",
            "chooses which condition",
            "decides on condition",
            "condition is decided",
            "condition is chosen",
            "condition is picked",
            "condition picked",
            "condition chosen",
            "condition decided",
            "conditions picked",
            "conditions chosen",
        ],
        text: "The usual algorithm is `random`: the draw goes by the weights, not by equal chance, and it is a function of \
               the ids of experiment and student, so the same student always draws the same. Stratified sampling and \
               a bandit (`ts_configurable`) are the others.",
    },
    Term {
        title: "Decision point",
        aliases: &["decision point", "site", "target", "partition", "experiment point"],
        text: "A decision point is a place in the application where it asks UpGrade which condition to show. It is made of \
               a site (where, such as `SelectSection`) and a target (what is there). An experiment needs at least \
               one; experiments that share a decision point form a pool, and a student takes part in one of a pool.",
    },
    Term {
        title: "Exclude if reached",
        aliases: &["exclude if reached", "exclude-if-reached", "excludeifreached", "exclude_if_reached"],
        text: "Exclude if reached is a setting of a decision point. When the experiment starts, everybody who has visited \
               that site and target before, in whatever experiment, is left out; with group consistency the groups of \
               these students are left out, too.",
    },
    Term {
        title: "Condition",
        aliases: &["condition", "variant", "arm", "treatment", "experimental condition"],
        text: "A condition is one of the versions that an experiment compares, known to the application by its code, such \
               as `control` or `variant`. Each has a weight, its share of the draw in percent. The code `default` is \
               not allowed: it is what the application shows without an experiment.",
    },
    Term {
        title: "Payload",
        aliases: &["payload"],
        text: "A payload is data (text, JSON or CSV) that the application gets along with a condition at a decision \
               point, for example which text to show. Without one it gets the condition's code only.",
    },
    Term {
        title: "Segment",
        aliases: &[
            "segment",
            "inclusion list",
            "exclusion list",
            "inclusion",
            "exclusion",
            "include list",
            "exclude list",
        ],
        text: "A segment is a named set of students and groups. An experiment has lists made of them: who takes part \
               (inclusion) and who does not (exclusion). A student on the inclusion list takes part even if one of \
               his groups is excluded; a student on the exclusion list never does.",
    },
    Term {
        title: "Experiment status",
        aliases: &[
            "statuses",
            "state",
            "experiment status",
            "lifecycle",
            "life cycle",
            "inactive",
            "enrolling",
            "running",
            "enrollmentcomplete",
            "enrollment complete",
            "paused",
            "cancelled",
            "archived",
            "preview",
            "scheduled",
        ],
        text: "The status says where an experiment is in its life. `inactive`: set up, assigns nobody. `enrolling` \
               (UpGrade's screen says running): students are assigned and enrolled. `enrollmentComplete` (paused): \
               nobody new, those enrolled fall under the post-experiment rule. `cancelled` (completed): over, everybody \
               gets the default. `archived`: put away. `preview` serves preview users only, `scheduled` waits for a \
               date. The usual way is inactive, enrolling, enrollmentComplete, and from there back to enrolling or on to \
               cancelled and archived.",
    },
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
    },
    Term {
        title: "UpGrade",
        aliases: &["upgrade", "platform", "carnegie learning"],
        text: "UpGrade is an open-source platform for A/B tests in learning software. An application asks it, for each \
               student and each decision point, which condition to show; UpGrade decides, keeps the decision consistent \
               and counts who is enrolled where.",
    },
    Term {
        title: "Experiment",
        aliases: &["experiment", "study", "trial"],
        text: "An experiment says what is compared (its conditions with their weights), where (its decision points), for \
               whom (unit of assignment, inclusion and exclusion lists) and in which application (its context). It begins \
               as inactive and assigns nobody until it is started.",
    },
    Term {
        title: "Control condition",
        aliases: &["control", "control group", "control condition", "baseline"],
        text: "The control is the condition without the change, against which the others are compared. For UpGrade it is \
               a condition like any other, with a code and a weight.",
    },
    Term {
        title: "Weight",
        aliases: &["weight", "weighting", "assignment weight", "traffic split"],
        text: "A weight is a condition's share in the draw, in percent. The weights of an experiment should add up to 100. \
               UpGrade's server does not insist: if they fall short, everybody beyond their sum gets the first \
               condition. I ask for a sum of 100.",
    },
    Term {
        title: "Group type",
        aliases: &["group type", "group", "working group", "workinggroup", "classid", "schoolid"],
        text: "A group type is a kind of group that an application reports for its students, such as `schoolId` or \
               `classId`. A student may be in many groups of a type but works in one at a time, the working group: \
               a group experiment draws for the working group, while lists look at all groups.",
    },
    Term {
        title: "Filter mode",
        aliases: &["filter mode", "filtermode", "includeall", "excludeall", "include all", "exclude all"],
        text: "The filter mode says who takes part when no list names him. `excludeAll`, the default, means nobody: an \
               experiment without an inclusion list then enrols no one, however long it runs. `includeAll` means \
               everybody who is not excluded.",
    },
    Term {
        title: "Completed or finished",
        aliases: &["complete", "completed", "completion", "finish", "finished"],
        text: "To complete or finish an experiment can mean two things. `enrollmentComplete`, which UpGrade's screen calls \
               paused: nobody new is enrolled, those enrolled fall under the post-experiment rule, and it can be started \
               again. `cancelled`, which the screen calls completed: it is over, and everybody gets the default. If you say \
               complete, finish or stop, I ask whether to do the first; say cancel for the second.",
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
    },
    Term {
        title: "Init, assign and mark",
        aliases: &["init", "assign", "mark", "assignment", "mark decision point", "v6"],
        text: "An application makes three calls for a student: init introduces the student with his groups, assign asks \
               for the conditions at all decision points of a context and stores nothing, and mark reports a visit of a \
               decision point, which enrols the student.",
    },
    Term {
        title: "Preview user",
        aliases: &["preview user", "test user"],
        text: "Preview users see experiments in the status preview, so that one can try an experiment before students do. \
               They are never enrolled.",
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_term_is_found_by_each_of_its_aliases() {
        for term in TERMS {
            for alias in term.aliases {
                assert_eq!(explained(alias).map(|found| found.title), Some(term.title), "{alias}");
            }
        }
    }

    #[test]
    fn plurals_and_typing_errors_are_found() {
        for (name, title) in [
            ("decision points", "Decision point"),
            ("decison point", "Decision point"),
            ("statuses", "Experiment status"),
        ] {
            assert_eq!(explained(name).map(|found| found.title), Some(title), "{name}");
        }
        assert_eq!(explained("tea"), None);
    }
}

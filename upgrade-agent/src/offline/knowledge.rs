//! What the offline model knows by heart: the words of A/B testing and of UpGrade, as a server of today means
//! them.

use super::lexicon;
use super::text::{Text, Word, is_slip_of, stem};

/// A word that can be explained.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Term {
    /// As it is shown.
    pub(super) title: &'static str,
    /// As it is asked for; words are compared by their stems.
    aliases: &'static [&'static str],
    pub(super) text: &'static str,
}

/// Longer aliases win over shorter ones, so the order here does not matter.
pub(super) const TERMS: &[Term] = &[
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
        title: "App context",
        aliases: &["context", "app context", "application context", "app"],
        text: "A context is the client application an experiment runs in, such as `assign-prog`. Each context comes with \
               its own condition codes, sites and targets for decision points, and group types; an experiment can only \
               work with those its application knows.",
    },
    Term {
        title: "Condition",
        aliases: &["condition", "variant", "arm", "treatment", "experimental condition"],
        text: "A condition is one of the versions that an experiment compares, known to the application by its code, such \
               as `control` or `variant`. Each has a weight, its share of the draw in percent. The code `default` is \
               not allowed: it is what the application shows without an experiment.",
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
        title: "Group type",
        aliases: &["group type", "group", "working group", "workinggroup", "classid", "schoolid"],
        text: "A group type is a kind of group that an application reports for its students, such as `schoolId` or \
               `classId`. A student may be in many groups of a type but works in one at a time, the working group: \
               a group experiment draws for the working group, while lists look at all groups.",
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
        title: "Design type",
        aliases: &["design type", "factorial", "factorial design", "simple design", "experiment type"],
        text: "A simple experiment lists its conditions. A factorial one crosses factors: each of its conditions is a \
               combination of one level per factor.",
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
        title: "Filter mode",
        aliases: &["filter mode", "filtermode", "includeall", "excludeall", "include all", "exclude all"],
        text: "The filter mode says who takes part when no list names him. `excludeAll`, the default, means nobody: an \
               experiment without an inclusion list then enrols no one, however long it runs. `includeAll` means \
               everybody who is not excluded.",
    },
    Term {
        title: "Experiment status",
        aliases: &[
            "status",
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

/// The terms that a message names, in its order; each word counts for one term, the longest that fits.
pub(super) fn terms(text: &Text) -> Vec<Found> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < text.words.len() {
        match longest_at(text, at) {
            Some(hit) => {
                at = hit.end;
                found.push(hit);
            }
            None => at += 1,
        }
    }
    found
}

/// A term in a message, from word to word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) term: &'static Term,
    pub(super) start: usize,
    pub(super) end: usize,
}

fn longest_at(text: &Text, start: usize) -> Option<Found> {
    let all = TERMS
        .iter()
        .enumerate()
        .flat_map(|(at, term)| term.aliases.iter().map(move |alias| (at, term, *alias)));
    let fitting = all.filter_map(|(at, term, alias)| {
        let exactness = fit(text, start, alias)?;
        let end = start + alias.split(' ').count();
        Some(((end, exactness, std::cmp::Reverse(at)), Found { term, start, end }))
    });
    fitting.max_by_key(|(rank, _)| *rank).map(|(_, found)| found)
}

/// How well an alias fits the words from `start` on: as written, by its stems, or by slips.
fn fit(text: &Text, start: usize, alias: &str) -> Option<u8> {
    let mut words = text.words.iter().skip(start);
    alias
        .split(' ')
        .map(|wanted| fit_word(words.next()?, wanted))
        .try_fold(2, |least, fit| Some(fit?.min(least)))
}

fn fit_word(word: &Word, wanted: &str) -> Option<u8> {
    let slip = || {
        let long = wanted.len() > 5 && !lexicon::is_plain(word);
        long && (is_slip_of(&word.low, wanted) || is_slip_of(&word.stem, &stem(wanted)))
    };
    match word {
        word if word.quoted => None,
        word if word.low == wanted => Some(2),
        word if word.stem == stem(wanted) => Some(1),
        _ => slip().then_some(0),
    }
}

/// What a change of status does, in words.
pub(super) fn effect_of(status: &str) -> &'static str {
    match status {
        "enrolling" => "students are assigned and enrolled from then on",
        "enrollmentComplete" => "nobody new is enrolled, and those enrolled keep their condition",
        "cancelled" => "it is over for everybody, and the application shows its default again",
        "archived" => "it is put away for good",
        "preview" => "only preview users see it",
        "scheduled" => "it starts by itself at its date",
        _ => "it assigns nobody",
    }
}

/// What this model is and can do.
pub(super) const ABILITIES: &str = "I am the offline model: I work without any network or language model, by rules, so I \
understand plain requests about UpGrade and little else. I can explain A/B testing and UpGrade's terms; list contexts \
and experiments, and show an experiment, its status and its enrolment; tell which conditions, decision points and group \
types a context offers and what an action needs; create, update, start, stop, pause, resume, cancel, archive and delete \
experiments; try out a student (initialise, assign, mark, or all three as a visit); test the balance of an experiment's \
conditions; play a journey of simulated students; and sum up what we did. Whatever changes something is asked back first. With ANTHROPIC_API_KEY set, a language model answers instead.";

#[cfg(test)]
mod tests {
    use super::*;

    fn titles(message: &str) -> Vec<&'static str> {
        terms(&Text::read(message)).into_iter().map(|found| found.term.title).collect()
    }

    #[test]
    fn the_longest_alias_wins_and_slips_are_forgiven() {
        assert_eq!(titles("what is exclude if reached"), ["Exclude if reached"]);
        assert_eq!(titles("the consistancy rule and the wieghts"), ["Consistency rule", "Weight"]);
        assert_eq!(titles("decision points or conditions?"), ["Decision point", "Condition"]);
        assert_eq!(titles("who invented tea"), Vec::<&str>::new());
    }

    #[test]
    fn every_term_is_found_by_its_own_title_words() {
        for term in TERMS {
            for alias in term.aliases {
                let found = terms(&Text::read(alias));
                assert!(found.iter().any(|found| found.term.title == term.title), "{alias}");
            }
        }
    }
}

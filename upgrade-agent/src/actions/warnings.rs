//! Warnings: settings that are allowed and probably not intended. Each is a value with its text here;
//! [`triggers`] decides which apply.

mod enrolments;
mod lists;
mod points;
mod triggers;

use std::fmt;

use serde::{Deserialize, Serialize};

use super::display::{display, display_list};
use crate::client::ExperimentState;
pub use triggers::warnings;

/// A warning that the person reads before a yes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Warning {
    /// Filter mode `excludeAll` with an empty inclusion list: no student takes part.
    NobodyIncluded {
        /// Whether the experiment does not exist yet, so that the request itself can be changed.
        new: bool,
    },
    /// The rule `assign` applies only to enrolled students.
    AssignReachesNobodyNew {
        /// The assigned code; without one, everybody gets the default.
        code: Option<String>,
        /// Whether the rule takes effect with this action.
        now: bool,
        /// The number of enrolled students, if known.
        enrolled: Option<u64>,
    },
    /// The global exclusion list of the context has groups.
    GlobalGroupExclusion {
        /// The context.
        context: String,
        /// The number of groups.
        groups: usize,
    },
    /// Other experiments have the same decision point.
    SharedPoint {
        /// The site and target.
        point: String,
        /// The other experiments, by name and status.
        experiments: Vec<String>,
    },
    /// The start excludes earlier visitors.
    EarlierVisitors {
        /// The points that exclude them, by site and target.
        points: Vec<String>,
        /// A lower bound for their number.
        known: u64,
    },
    /// Deleting the experiment deletes its enrolments.
    EnrolmentsDeleted {
        /// The number of enrolled students.
        users: u64,
        /// The number of enrolled groups.
        groups: u64,
    },
    /// Students are enrolled while the status changes.
    EnrolledMeanwhile {
        /// The number of enrolled students.
        users: u64,
        /// The number of enrolled groups.
        groups: u64,
        /// The new status.
        to: ExperimentState,
    },
    /// A condition or decision point with enrolled students is removed.
    EnrolmentsDropped {
        /// The removed parts.
        removed: Vec<String>,
        /// The number of students enrolled in them.
        users: u64,
    },
    /// A new context drops every list.
    ListsDropped {
        /// The number of students, groups and segments on the lists.
        entries: usize,
        /// The old context.
        from: String,
        /// Whether no student takes part afterwards.
        closed: bool,
    },
    /// The weights of a running experiment change.
    WeightsOfRunning {
        /// The number of enrolled students, if known.
        enrolled: Option<u64>,
    },
    /// The server adds payloads to conditions without one.
    DefaultPayloads {
        /// The number of pairs of condition and decision point.
        pairs: usize,
    },
    /// Students or groups are on both lists, and exclusion wins.
    ListedTwice {
        /// Their names.
        who: Vec<String>,
    },
    /// The experiment is scheduled without a date.
    NoDate,
    /// The name differs from another one only in its spelling.
    NearName {
        /// The other name.
        name: String,
    },
    /// The working group of a student is not one of the student's groups.
    WorkingGroupElsewhere {
        /// The kind of group.
        kind: String,
        /// The working group.
        group: String,
    },
    /// The kind of group is unknown to all contexts.
    UnknownGroupType {
        /// The kind of group.
        kind: String,
        /// The kind that may be meant.
        near: Option<String>,
    },
    /// The place is unknown to all contexts.
    UnknownPlace {
        /// The site and target.
        point: String,
    },
    /// The visit enrols no student, because of the experiment's status.
    MarkEnrolsNobody {
        /// The status.
        state: ExperimentState,
    },
    /// Students are simulated in an experiment with real students.
    PlayedAmongReal {
        /// Whether only their split is asked for, which could be computed instead.
        split: bool,
    },
    /// The experiment is started for simulated students, and real ones may come.
    RealMeanwhile,
    /// The experiment is adaptive, so the weights do not determine the split.
    SplitAdapts,
    /// A running plan waits for the answer, and its experiment with it.
    PlanWaits {
        /// The status meanwhile.
        now: ExperimentState,
        /// The status that is restored at the end.
        first: ExperimentState,
    },
    /// Data for the warnings could not be read.
    Untold {
        /// The missing data.
        what: Vec<String>,
    },
}

impl fmt::Display for Warning {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.words())
    }
}

impl Warning {
    fn words(&self) -> String {
        match self {
            Warning::NobodyIncluded { new } => nobody_included(*new),
            Warning::AssignReachesNobodyNew { code, now, enrolled } => {
                assign(code.as_deref(), *now, *enrolled)
            }
            Warning::GlobalGroupExclusion { context, groups } => format!(
                "The global exclusion list of {} names {}. UpGrade then leaves out every student without a working \
                 group as well.",
                display(context),
                counted(*groups as u64, "group")
            ),
            Warning::SharedPoint { point, experiments } => format!(
                "The decision point {} is also used by {}. Of running experiments that share a point, a student takes \
                 part in one only.",
                display(point),
                display_list(experiments.iter().map(String::as_str))
            ),
            Warning::EarlierVisitors { points, known } => earlier_visitors(points, *known),
            Warning::EnrolmentsDeleted { users, groups } => format!(
                "{} enrolled in it; their enrolments are deleted with it. Cancelling and archiving it would keep them.",
                count_with_verb(*users, *groups)
            ),
            Warning::EnrolledMeanwhile { users, groups, to } => {
                format!("{} enrolled in it; {}.", count_with_verb(*users, *groups), effect_on_enrolled(to))
            }
            Warning::EnrolmentsDropped { removed, users } => enrolments_dropped(removed, *users),
            Warning::ListsDropped { entries, from, closed } => lists_dropped(*entries, from, *closed),
            Warning::WeightsOfRunning { enrolled } => weights_of_running(*enrolled),
            Warning::DefaultPayloads { pairs } => format!(
                "With this, UpGrade gives {} of a condition and a decision point without a payload the condition's code \
                 as its payload: the application gets a payload where it got none.",
                counted(*pairs as u64, "pair")
            ),
            Warning::ListedTwice { who } => format!(
                "Both included and excluded: {}. Who is excluded by his own id is left out whatever else is said; a group \
                 that is excluded is left out but for its students who are included by their own id.",
                display_list(who.iter().map(String::as_str))
            ),
            Warning::NoDate => {
                "It has no date, so that it never starts by itself. A date is set on UpGrade's own screen."
                    .to_owned()
            }
            Warning::NearName { name } => {
                format!("There is an experiment '{}' already, which differs in spelling only.", display(name))
            }
            Warning::WorkingGroupElsewhere { kind, group } => format!(
                "The working group {} is none of the student's groups of the type {}: group experiments skip him.",
                display(group),
                display(kind)
            ),
            Warning::UnknownGroupType { kind, near } => format!(
                "No context of this server has the group type `{}`{}.",
                display(kind),
                near.as_ref().map_or_else(String::new, |near| format!("; did you mean `{}`?", display(near)))
            ),
            Warning::UnknownPlace { point } => format!(
                "No context of this server has the decision point {}: the visit is written down and enrols nobody.",
                display(point)
            ),
            Warning::MarkEnrolsNobody { state } => {
                format!("The experiment is {state}: the visit is written down and enrols nobody.")
            }
            Warning::PlayedAmongReal { split } => {
                let instead = " A split that is computed offline leaves nothing there.";
                format!(
                    "It is enrolling: the played students are enrolled among the real ones, their enrolments stay on the \
                     server, and its data counts them from then on.{}",
                    if *split { instead } else { "" }
                )
            }
            Warning::RealMeanwhile => {
                "While it is enrolling, real students who come to its decision points are enrolled, too.".to_owned()
            }
            Warning::SplitAdapts => {
                "Its draw adapts to the rewards that the application reports (ts_configurable), so its weights are not the \
                 split to expect: I count who gets what, and judge nothing."
                    .to_owned()
            }
            Warning::PlanWaits { now, first } => format!(
                "Until you answer it stays {now}. Anything but a yes ends what is under way, and the status {first} is restored."
            ),
            Warning::Untold { what } => {
                format!("The server did not tell me {}, so there may be more to know.", what.join(" and "))
            }
        }
    }
}

fn nobody_included(new: bool) -> String {
    let remedy = if new {
        "Say \"modify\" and choose includeAll to take everybody in."
    } else {
        "Set its filter mode to includeAll, or include somebody, to change that."
    };
    format!("With the filter mode excludeAll and nobody on the inclusion list, nobody takes part. {remedy}")
}

fn assign(code: Option<&str>, now: bool, enrolled: Option<u64>) -> String {
    let Some(code) = code.map(display) else {
        return "The post-experiment rule is assign without a condition: once enrolment is complete, everybody gets the \
                default, the enrolled too."
            .to_owned();
    };
    let when = if now { "" } else { "once enrolment is complete, " };
    let who = match enrolled.filter(|_| now) {
        Some(0) => " (nobody is enrolled, so nobody gets it)".to_owned(),
        Some(count) => format!(" ({} now)", counted(count, "student")),
        None => String::new(),
    };
    format!(
        "Its post-experiment rule is assign: {when}those enrolled get {code} instead of what they had{who}; a student who \
         was never enrolled gets the default."
    )
}

fn earlier_visitors(points: &[String], known: u64) -> String {
    let points = display_list(points.iter().map(String::as_str));
    let known = match known {
        0 => "How many that are the server does not say.".to_owned(),
        count => format!("I know of at least {}.", counted(count, "such student")),
    };
    format!("Starting it leaves out, for good, everybody who was at {points} before. {known}")
}

fn enrolments_dropped(removed: &[String], users: u64) -> String {
    let removed = display_list(removed.iter().map(String::as_str));
    let lose = if users == 1 { "loses" } else { "lose" };
    format!(
        "{} enrolled in what is removed ({removed}) and {lose} that enrolment for good.",
        count_with_verb(users, 0)
    )
}

fn weights_of_running(enrolled: Option<u64>) -> String {
    let kept = match enrolled {
        None | Some(0) => String::new(),
        Some(1) => "; 1 student enrolled keeps what he got".to_owned(),
        Some(count) => format!("; {count} students enrolled keep what they got"),
    };
    format!(
        "The new weights count for those who are enrolled from now on{kept}. A student who was told a condition and not \
         marked yet may be told another one."
    )
}

fn lists_dropped(entries: usize, from: &str, closed: bool) -> String {
    let whom = match entries {
        0 => "There is nobody on its lists now".to_owned(),
        count => {
            format!("Its inclusion and exclusion lists are dropped ({})", counted(count as u64, "entry"))
        }
    };
    let then = if closed {
        ", so that nobody takes part until that is changed again"
    } else {
        " before it takes what is given here"
    };
    format!(
        "The experiment leaves the context {}. {whom}, and UpGrade sets the filter mode excludeAll{then}.",
        display(from)
    )
}

/// The effect on the enrolled students.
fn effect_on_enrolled(to: &ExperimentState) -> &'static str {
    match to {
        ExperimentState::EnrollmentComplete => "they keep what they got, and nobody is added",
        ExperimentState::Enrolling => "they keep what they got",
        _ => "they get the default from then on",
    }
}

fn count_with_verb(users: u64, groups: u64) -> String {
    let groups_too = if groups == 0 { String::new() } else { format!(" and {}", counted(groups, "group")) };
    let verb = if users == 1 && groups == 0 { "is" } else { "are" };
    format!("{}{groups_too} {verb}", counted(users, "student"))
}

fn counted(count: u64, noun: &str) -> String {
    match (count, noun.strip_suffix('y')) {
        (1, _) => format!("1 {noun}"),
        (_, Some(stem)) => format!("{count} {stem}ies"),
        (_, None) => format!("{count} {noun}s"),
    }
}

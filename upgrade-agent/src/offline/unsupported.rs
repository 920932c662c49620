//! Requests that UpGrade can fulfil and this agent cannot, by their words. The guide lists them under Limits.

use super::intent::Operation;
use super::lexicon::{self, Concept as C};
use super::text::{Text, Word};

/// Something that the agent cannot do.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Topic {
    /// Words that refer to it.
    words: &'static str,
    /// The agent's explanation.
    says: &'static str,
}

impl Topic {
    pub(super) fn refusal(&self) -> String {
        format!("That is nothing I can do: {}", self.says)
    }
}

const DATES: Topic = Topic {
    words: "date dates minute minutes min mins hour hours hrs day days week weeks month months year years o'clock noon midnight am pm \
        january february march april june july august september october november december jan feb mar apr jun jul aug sept sep \
        oct nov dec tomorrow tonight weekend monday tuesday wednesday thursday friday saturday sunday morning evening \
        later soon until till",
    says: "I change things at once and not at a time; UpGrade's own screen can schedule a start and end enrolment on a date.",
};

const TOPICS: &[Topic] = &[
    Topic { words: "payload payloads", says: "payloads of conditions are set on UpGrade's own screen." },
    Topic {
        words: "segment segments subsegment subsegments",
        says: "segments are made and changed on UpGrade's own screen; I put students and groups on an experiment's own lists only.",
    },
    Topic {
        words: "global globally everywhere",
        says: "students are excluded from all experiments at once on UpGrade's own screen; I exclude them from one experiment.",
    },
    Topic {
        words: "flag flags feature features toggle toggles",
        says: "feature flags are handled on UpGrade's own screen.",
    },
    Topic {
        words: "metric metrics query queries kpi outcome outcomes reward rewards analysis analytics",
        says: "metrics, queries and their results are handled on UpGrade's own screen.",
    },
    Topic {
        words: "import imports importing export exports exporting download downloads csv json xlsx upload uploads spreadsheet backup",
        says: "files are imported and exported on UpGrade's own screen.",
    },
    Topic {
        words: "copy copies duplicate duplicates clone clones",
        says: "an experiment is copied on UpGrade's own screen; I can create a new one.",
    },
    Topic {
        words: "schedule schedules scheduling reschedule postpone delay delayed calendar timer deadline expire expires",
        says: "I change a status at once; UpGrade's own screen can schedule a start and end enrolment on a date.",
    },
    Topic {
        words: "preview previews previewer previewuser previewusers",
        says: "previews and the users for them are handled on UpGrade's own screen.",
    },
    Topic {
        words: "email emails mail mails notify notification notifications remind reminder alert alerts slack",
        says: "I send no messages.",
    },
    Topic {
        words: "role roles permission permissions admin admins administrator account accounts password passwords token tokens login",
        says: "accounts and rights are handled on UpGrade's own screen.",
    },
    Topic {
        words: "stratify stratified stratification factorial within-subjects within-subject factor factors level levels moderator",
        says: "I create simple experiments only; other designs are made on UpGrade's own screen.",
    },
    Topic {
        words: "limit limits cap capped maximum quota threshold",
        says: "enrolment is not limited by a number of students here; UpGrade's own screen can end it at one.",
    },
    Topic {
        words: "conversation conversations chat chats thread threads transcript",
        says: "conversations are deleted with `/delete NAME` in the chat, or `upgrade-agent threads delete NAME`.",
    },
    Topic {
        words: "server servers backend database upgrade's simulator computer machine cluster service",
        says: "the server itself is not mine to run; I change experiments on it.",
    },
];

const CONTEXTS: &str = "contexts come with the application that uses UpGrade; I create experiments in them and cannot make, rename \
    or delete them.";
const STUDENTS: &str = "UpGrade cannot take a student back; I can exclude one from an experiment.";
const CONTEXT: Topic = Topic { words: "context contexts app apps application applications", says: CONTEXTS };
const STUDENT: Topic =
    Topic { words: "user users student students learner learners pupil pupils", says: STUDENTS };

/// The topic of the unused words of an order, if it is known as unsupported.
pub(super) fn topic(text: &Text, action: Option<Operation>, left: &[String]) -> Option<&'static Topic> {
    let runs: Vec<Word> = left.iter().flat_map(|run| Text::read(run).words).collect();
    let speaks = |topic: &Topic| runs.iter().any(|word| is_of(topic, word));
    let deletes = matches!(action, Some(Operation::Delete | Operation::Update | Operation::Status(_)));
    let known = TOPICS.iter().find(|topic| speaks(topic));
    let date = || (speaks(&DATES) || runs.iter().any(is_date)).then_some(&DATES);
    let context = || (deletes && speaks(&CONTEXT)).then_some(&CONTEXT);
    let student =
        || (action == Some(Operation::Delete) && speaks(&STUDENT) && !text.asks).then_some(&STUDENT);
    known.or_else(date).or_else(context).or_else(student)
}

/// The topic of a message without a supported order: "export Foo", "preview Foo".
pub(super) fn wish(text: &Text) -> Option<&'static Topic> {
    let plain = |word: &&Word| !word.quoted && !word.is_capital();
    TOPICS.iter().find(|topic| text.words.iter().filter(plain).any(|word| is_of(topic, word)))
}

/// The first of the things in TOPICS (up to conversations) that a message mentions outside of quotes and
/// names.
pub(super) fn mentioned_topic(
    text: &Text,
    is_name: impl Fn(&str) -> bool,
) -> Option<(&'static Topic, String)> {
    text.words.iter().filter(|word| !word.quoted && !word.is_capital() && !is_name(&word.low)).find_map(
        |word| {
            let topic = TOPICS.iter().take(THINGS).find(|topic| is_of(topic, word))?;
            Some((topic, word.raw.clone()))
        },
    )
}

/// The number of topics that are things of UpGrade with unambiguous words.
const THINGS: usize = 7;

/// Whether the unused words are an order of their own.
pub(super) fn is_another_order(left: &[String]) -> bool {
    let orders = |word: &Word| {
        let concept = lexicon::concepts(word).into_iter().next();
        !word.quoted && concept.is_some_and(|concept| concept <= C::Mark && concept != C::Balance)
    };
    left.iter().flat_map(|run| Text::read(run).words).any(|word| orders(&word))
}

fn is_of(topic: &Topic, word: &Word) -> bool {
    topic.words.split_whitespace().any(|known| known == word.low)
}

/// The time that a question is about, if it is another than now: "tomorrow", "since last week", "3 days ago".
pub(super) fn time_other_than_now(text: &Text) -> Option<String> {
    let words = &text.words;
    let is_period = |word: &Word| PERIODS.split_whitespace().any(|period| period == word.low);
    let tells = |at: usize| {
        let word = &words[at];
        let led = || at > 0 && words[at - 1].is(&LEADS);
        word.is(&["yesterday", "tomorrow", "tonight", "ago"]) || is_date(word) || is_period(word) && led()
    };
    let last = (0..words.len()).find(|at| !words[*at].quoted && tells(*at))?;
    let belongs = |word: &Word| {
        let counts = word.is(&["the", "a", "an", "few", "two", "three"]) || word.raw.parse::<u32>().is_ok();
        word.is(&LEADS) || counts || is_period(word)
    };
    let first = (0..last).rev().take_while(|at| belongs(&words[*at])).last().unwrap_or(last);
    let run: Vec<&str> = words[first..=last].iter().map(|word| word.raw.as_str()).collect();
    Some(run.join(" "))
}

const LEADS: [&str; 11] =
    ["last", "next", "this", "past", "previous", "coming", "on", "since", "until", "before", "after"];
const PERIODS: &str = "minute minutes hour hours day days week weeks weekend month months year years monday tuesday \
    wednesday thursday friday saturday sunday term semester";

/// `2027-01-01`, `1/2/2027`, `10:30`, `5pm`.
fn is_date(word: &Word) -> bool {
    let parts: Vec<&str> = word.low.split(['-', '/', '.', ':']).collect();
    let digits = |part: &&str| !part.is_empty() && part.chars().all(|sign| sign.is_ascii_digit());
    let date = parts.len() == 3 && parts.iter().all(digits) && parts.iter().any(|part| part.len() == 4);
    let clock = parts.len() == 2 && word.low.contains(':') && parts.iter().all(digits);
    let hour = ["pm", "am"]
        .iter()
        .any(|half| word.low.strip_suffix(half).is_some_and(|hour| hour.parse::<u8>().is_ok()));
    date || clock || hour
}

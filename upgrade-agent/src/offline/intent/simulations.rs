//! Messages about simulated students: a visit, a journey, a balance test.
//!
//! The verbs of such requests ("run", "send", "check") mean other things elsewhere, so the findings here
//! replace other hits.

use super::super::lexicon::{self, Concept as C};
use super::super::slots::{self, students};
use super::super::text::{Text, Word};
use super::hits::Hits;

/// The kind of simulation, and the position of its word.
pub(super) fn find(text: &Text, hits: &Hits) -> Option<(usize, C)> {
    let helps = |at: usize| {
        // "Make bob visit it", "put 50 students through".
        let verb = text.words.get(at).is_some_and(|word| word.is(&["make", "put", "move"]));
        let people = |next: &Word| students::is_person(next) || next.raw.parse::<u32>().is_ok();
        let led = || students::after_a_lead(text).is_some_and(|(id, _)| id == at + 1);
        verb && (text.words.get(at + 1).is_some_and(people) || led())
    };
    let acts = |concept| hits.of_concept(concept).any(|hit| !hit.masked && !hit.describes && !helps(hit.at));
    if [C::Create, C::Delete, C::Change, C::Archive].into_iter().any(acts) {
        return None;
    }
    balance(text, hits).or_else(|| journey(text, hits))
}

fn balance(text: &Text, hits: &Hits) -> Option<(usize, C)> {
    if let Some(at) = doubt(text) {
        return Some((at, C::Balance));
    }
    if acts_on_an_experiment(text, hits) {
        return None;
    }
    let fair = place(text, |at, word| {
        word.is(&[
            "balanced",
            "unbalanced",
            "imbalanced",
            "balancing",
            "fair",
            "fairly",
            "unfair",
            "skewed",
            "biased",
            "lopsided",
            "uneven",
            "chi-square",
            "chi-squared",
        ]) || is_at(hits, at, C::Balance)
    });
    if let Some(at) = fair {
        return Some((at, C::Balance));
    }
    // "Split testing" is a method.
    let is_method = |at: usize| {
        text.words.get(at + 1).is_some_and(|next| next.low.starts_with("test") || next.is(&["experiments"]))
    };
    if let Some(at) = text.find_phrase("live test|check") {
        return Some((at, C::Balance));
    }
    if let Some(at) = foretelling(text, hits) {
        return Some((at, C::Balance));
    }
    let spread = place(text, |at, word| {
        !is_method(at)
            && word.is(&[
                "split",
                "splits",
                "spread",
                "distribution",
                "distributed",
                "distribute",
                "divided",
                "allocation",
                "allocated",
                "randomization",
                "randomisation",
                "randomizes",
                "evenly",
                "equally",
                "respected",
                "honoured",
                "honored",
            ])
    })?;
    let tests = text.has(&["test", "testing", "verify", "validate", "try", "evaluate", "assess"])
        || is_anywhere(hits, C::Simulate)
        || text.words.iter().any(|word| super::super::text::is_slip_of(&word.low, "verify"));
    let foretells =
        students::count(text).is_some() && (text.has(&["how", "would", "will", "check", "see"]) || text.asks);
    (tests || foretells).then_some((spread, C::Balance))
}

/// "Does it really give 50/50?", "does it split them evenly?": a question about the shares.
fn doubt(text: &Text) -> Option<usize> {
    let opens = ["does", "do", "did", "is", "are", "will", "would"];
    let asked = text.words.iter().any(|word| (word.leads || word.new_clause) && word.is(&opens));
    let unsure =
        ["sure", "certain", "verify", "check", "know", "whether", "confirm", "prove", "wonder", "doubt"];
    let asks = asked || text.has(&unsure);
    let doubts = text.has(&[
        "really",
        "actually",
        "truly",
        "indeed",
        "true",
        "correct",
        "accurate",
        "give",
        "gives",
        "treat",
        "treats",
        "yield",
        "yields",
        "produce",
        "produces",
        "deliver",
        "come",
        "comes",
        "end",
        "work",
        "works",
        "hold",
        "holds",
        "divide",
        "divides",
        "split",
        "splits",
        "assign",
        "assigns",
        "distribute",
        "distributes",
        "get",
        "gets",
    ]);
    let shares = |word: &Word| {
        slots::conditions::ratio(&word.raw).is_some()
            || word.is(&["alike", "evenly", "equally", "half-and-half", "fifty-fifty", "proportionally"])
    };
    let same = || text.find_phrase("the same").filter(|_| text.has(&["treat", "treats"]));
    place(text, |_, word| shares(word)).or_else(same).filter(|_| asks && doubts && !text.has(&["should"]))
}

/// "What happens when 15 students use it?", "which conditions would 40 learners get?".
fn foretelling(text: &Text, hits: &Hits) -> Option<usize> {
    let many = students::count(text).is_some_and(|count| count > 1);
    let elsewhere = visit(text, hits).is_some() || goes_through(text).is_some();
    let used = text.has(&[
        "use",
        "uses",
        "using",
        "join",
        "joined",
        "take",
        "try",
        "enter",
        "play",
        "participate",
        "get",
        "receive",
        "see",
    ]);
    let happens = text
        .find_phrase("what happens|happened|comes")
        .or_else(|| text.find_phrase("what would|will happen|come"));
    let gets = || text.find_phrase("what|which conditions|condition|variants|variant|arms|would|will|do");
    let fares = || {
        text.find_phrase("how would|will|do")
            .filter(|_| text.has(&["fare", "fall", "land", "divide", "spread"]))
    };
    let asked = happens.or_else(gets).filter(|_| used).or_else(fares);
    asked.filter(|_| many && !elsewhere)
}

/// "Stop the balance test", but not "run a balance test" or "start one".
fn acts_on_an_experiment(text: &Text, hits: &Hits) -> bool {
    let orders = |hit: &super::hits::Hit| {
        !hit.masked && !hit.describes && matches!(hit.concept, C::Stop | C::Pause | C::Resume | C::Cancel)
    };
    let starts = hits.of_concept(C::Start).any(|hit| {
        let noun = text.words.iter().skip(hit.at + 1).take(4).any(|word| word.is(&["a", "the", "another"]));
        !hit.masked && !hit.describes && hit.low == "start" && !noun
    });
    starts || hits.all().any(orders)
}

fn journey(text: &Text, hits: &Hits) -> Option<(usize, C)> {
    let visit = visit(text, hits);
    let people = students::count(text).is_some()
        || hits.of_concept(C::User).any(|hit| !hit.masked)
        || students::after_a_lead(text).is_some();
    let marks = |at: usize| hits.of_concept(C::Mark).any(|hit| !hit.masked && hit.at < at);
    if let Some(at) = visit.filter(|at| !marks(*at)) {
        let many = students::users(text).len() > 1 || students::count(text).is_some_and(|count| count > 1);
        let steps = text.has(&["then", "afterwards"]) || is_anywhere(hits, C::Journey);
        let one = !many && !steps;
        return Some((at, if one { C::Visit } else { C::Journey }));
    }
    let noun = place(text, |at, _| is_at(hits, at, C::Journey));
    let simulates =
        place(text, |at, word| is_at(hits, at, C::Simulate) || (word.is(&["pretend", "play"]) && people));
    let lives_it = || place(text, |_, word| word.is(&["experience", "experiences"])).filter(|_| people);
    noun.or(simulates)
        .or_else(|| trial(text, hits))
        .or_else(lives_it)
        .or_else(|| goes_through(text).filter(|_| people))
        .map(|at| (at, C::Journey))
}

/// "Try out Hints as student kim", "see it through the eyes of kim".
fn trial(text: &Text, hits: &Hits) -> Option<usize> {
    let other = [C::Init, C::Mark, C::Include, C::Exclude];
    if other.into_iter().any(|concept| is_anywhere(hits, concept)) {
        return None;
    }
    let is = |at: usize, any: &[&str]| text.words.get(at).is_some_and(|word| word.is(any));
    let somebody = |at: usize| {
        let article = usize::from(is(at + 1, &["a", "an", "the"]));
        let noun = text.words.get(at + 1 + article).is_some_and(students::is_person);
        noun || article == 0 && !students::listed(text, at + 1).is_empty()
    };
    let tries = [
        "try",
        "test",
        "experience",
        "walk",
        "preview",
        "use",
        "view",
        "see",
        "check",
        "run",
        "log",
        "go",
        "act",
        "behave",
        "be",
        "look",
        "explore",
        "work",
        "enter",
        "pose",
        "trying",
        "acting",
    ];
    let role = (1..text.words.len()).find(|at| is(*at, &["as"]) && somebody(*at));
    let tried = role.and_then(|role| (0..role).find(|at| is(*at, &tries)));
    let eyes =
        || (1..text.words.len()).find(|at| is(*at, &["of"]) && is(at - 1, &students::VIEWS) && somebody(*at));
    tried.or_else(eyes).or_else(|| place(text, |_, word| word.is(&["impersonate", "impersonating"])))
}

/// "Let bob visit X", "have ann go to X", "bob arrives at X".
fn visit(text: &Text, hits: &Hits) -> Option<usize> {
    let verb = place(text, |at, _| is_at(hits, at, C::Visit));
    let led = students::after_a_lead(text).is_some() || !students::users(text).is_empty();
    let goes = || {
        let pairs =
            ["go|goes|come|comes|get|gets|walk|walks to", "arrive|arrives|land|lands|turn|be at|on|up"];
        pairs.into_iter().find_map(|phrase| text.find_phrase(phrase))
    };
    let reaches = || {
        place(text, |_, word| {
            word.is(&["reach", "reaches", "enter", "enters", "open", "opens", "see", "use"])
        })
        .filter(|_| students::after_a_lead(text).is_some())
    };
    let sent = || {
        text.find_phrase("send|bring|take|walk|guide|lead|direct")
            .filter(|_| text.has(&["to"]) && !is_walk(text))
    };
    verb.or_else(|| goes().or_else(reaches).or_else(sent).filter(|_| led && !text.asks))
}

fn is_walk(text: &Text) -> bool {
    goes_through(text).is_some()
}

/// "Run 50 students through Hints", "students who go through it".
fn goes_through(text: &Text) -> Option<usize> {
    let through = text.words.iter().position(|word| word.is(&["through", "thru"]))?;
    let verb = |at: &usize| {
        text.words[*at].is(&[
            "run", "send", "put", "take", "walk", "play", "move", "push", "guide", "lead", "go", "going",
            "goes", "pass", "passing", "walking", "running", "work", "working", "get", "drive", "pull",
        ])
    };
    (through.saturating_sub(8)..through).find(verb)
}

fn place(text: &Text, fits: impl Fn(usize, &Word) -> bool) -> Option<usize> {
    let mut words = text.words.iter().enumerate();
    let plain = |word: &Word| !word.quoted && !word.is_capital();
    words.find(|(at, word)| plain(word) && fits(*at, word)).map(|(at, _)| at)
}

fn is_at(hits: &Hits, at: usize, concept: C) -> bool {
    hits.of_concept(concept).any(|hit| hit.at == at && !hit.masked)
}

fn is_anywhere(hits: &Hits, concept: C) -> bool {
    hits.of_concept(concept).any(|hit| !hit.masked)
}

/// Whether a test should answer a question about the balance: the message names an experiment or a number.
pub(super) fn is_concrete(text: &Text) -> bool {
    let general = text.has_phrase("how do|can|could|would|to i|we|one|you|test|check|simulate")
        || text.words.iter().any(|word| lexicon::concepts(word).contains(&C::Parameter))
        || text.has(&["explain", "mean", "means", "define", "definition", "example"]);
    let known = students::count(text).is_some() || slots::refers_back(text) || slots::mention(text).is_some();
    known && !general
}

//! The kinds of slots: which tokens a name, an id, a number or a list may consist of.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use crate::token::{Kind, Token};
use crate::values;

/// The most words of a name without quotes.
const LONGEST_NAME: usize = 12;

/// What is known beside the message: names that are read whole, whatever words they consist of.
#[derive(Clone, Debug, Default)]
pub(crate) struct Known {
    /// The names of the experiments, in lower case, with their words.
    experiments: HashMap<String, Vec<String>>,
    pub(crate) contexts: Vec<String>,
}

impl Known {
    pub(crate) fn new(experiments: impl IntoIterator<Item = String>, contexts: Vec<String>) -> Self {
        let mut by_start: HashMap<String, Vec<String>> = HashMap::new();
        for name in experiments {
            let name = name.trim().to_lowercase();
            if let Some(first) = crate::token::tokens(&name).first() {
                by_start.entry(first.low.clone()).or_default().push(name);
            }
        }
        for names in by_start.values_mut() {
            names.sort_by_key(|name| std::cmp::Reverse(name.len()));
            names.dedup();
        }
        Known { experiments: by_start, contexts }
    }

    pub(crate) fn is_experiment(&self, name: &str) -> bool {
        let low = name.to_lowercase();
        self.experiments.values().any(|names| names.contains(&low))
    }
}

/// The message and its surroundings.
pub(crate) struct Scene<'m> {
    pub(crate) message: &'m str,
    pub(crate) tokens: &'m [Token<'m>],
    pub(crate) known: &'m Known,
    /// For each token the end of its sentence, and of its clause.
    sentence_ends: Vec<usize>,
    clause_ends: Vec<usize>,
}

impl<'m> Scene<'m> {
    pub(crate) fn new(message: &'m str, tokens: &'m [Token<'m>], known: &'m Known) -> Self {
        let mut sentence_ends = vec![tokens.len(); tokens.len()];
        let mut clause_ends = sentence_ends.clone();
        let (mut sentence, mut clause) = (tokens.len(), tokens.len());
        for (at, token) in tokens.iter().enumerate().rev() {
            if ends_sentence(token) {
                sentence = at;
            }
            if ends_sentence(token) || token.is_sign(&[",", ";"]) || is_joiner(&token.low) {
                clause = at;
            }
            (sentence_ends[at], clause_ends[at]) = (sentence, clause);
        }
        Scene { message, tokens, known, sentence_ends, clause_ends }
    }

    /// The end of the clause that goes on here; at least one token further.
    pub(crate) fn clause_end(&self, at: usize) -> usize {
        self.clause_ends.get(at + 1).copied().unwrap_or(self.tokens.len())
    }
    /// The text of tokens, as typed. A single quoted text is what its quotes hold.
    pub(crate) fn text(&self, from: usize, to: usize) -> &str {
        match self.tokens.get(from..to) {
            Some([one]) => one.text,
            Some([first, .., last]) => self.message.get(first.span.start..last.span.end).unwrap_or_default(),
            _ => "",
        }
    }

    /// The text of tokens, as typed and with their quotes.
    pub(crate) fn source(&self, from: usize, to: usize) -> &str {
        match self.tokens.get(from..to) {
            Some([first, .., last]) => self.message.get(first.span.start..last.span.end).unwrap_or_default(),
            Some([one]) => self.message.get(one.span.clone()).unwrap_or_default(),
            _ => "",
        }
    }

    /// The ends of the texts of this kind that begin here, the preferred one first.
    pub(crate) fn ends(&self, kind: &str, at: usize) -> Vec<usize> {
        let Some(token) = self.tokens.get(at) else { return Vec::new() };
        if kind == "json" {
            return if token.kind == Kind::Json { vec![at + 1] } else { Vec::new() };
        }
        let quoted = token.kind == Kind::Quoted;
        match kind {
            "experiment" => self.experiment(at),
            "name" | "value" if quoted => vec![at + 1],
            "name" => self.known_names(at).into_iter().chain(self.words(at)).take(3).collect(),
            "value" => self.rest(at, &self.sentence_ends),
            "rest" => self.rest(at, &self.clause_ends),
            "id" | "code" if quoted => vec![at + 1],
            "id" => {
                if is_id(token) {
                    vec![at + 1]
                } else {
                    Vec::new()
                }
            }
            "code" => {
                if is_code(token) {
                    vec![at + 1]
                } else {
                    Vec::new()
                }
            }
            "context" => self.context(at),
            "ids" => self.list(at, is_id),
            "codes" => self.list(at, is_code),
            "number" => values::number(&self.tokens[at..]).map(|(_, used)| at + used).into_iter().collect(),
            "weights" => values::weights(&self.tokens[at..]).map(|(_, used)| at + used).into_iter().collect(),
            "date" => values::date(&self.tokens[at..]).map(|used| at + used).into_iter().collect(),
            "term" => crate::terms::at(&self.tokens[at..]).map(|(_, used)| at + used).into_iter().collect(),
            "status" => {
                values::status_at(&self.tokens[at..]).map(|(_, used)| at + used).into_iter().collect()
            }
            "group_type" => {
                if token.is_word() && values::is_group_type(&token.low) {
                    vec![at + 1]
                } else {
                    Vec::new()
                }
            }
            _ => Vec::new(),
        }
    }

    /// An experiment: a quoted name, a known name, or words up to the next keyword.
    fn experiment(&self, at: usize) -> Vec<usize> {
        if self.tokens[at].kind == Kind::Quoted {
            return vec![at + 1];
        }
        let mut ends: Vec<usize> = self.shown_with_id(at).into_iter().chain(self.known_names(at)).collect();
        let words = self.words(at).filter(|_| !VERBS.contains(self.tokens[at].low.as_str()));
        if let Some(end) = words {
            let noun = |at: usize| ["experiment", "study", "trial"].contains(&self.tokens[at].low.as_str());
            let end = if end > at + 1 && noun(end - 1) { end - 1 } else { end };
            // The whole is preferred; a part of it is a name if the production goes on with its other words.
            for end in (at + 1..=end).rev() {
                if !ends.contains(&end) {
                    ends.push(end);
                }
            }
        }
        ends
    }

    /// An experiment as a list shows it: "Foo (id 0123abcd, assign-prog, created 2026-01-31)".
    fn shown_with_id(&self, at: usize) -> Option<usize> {
        let near = &self.tokens[at..self.tokens.len().min(at + 2 * LONGEST_NAME)];
        let id = near.windows(2).position(|pair| pair[0].is_sign(&["("]) && pair[1].low == "id")?;
        let close = near[id..].iter().position(|token| token.is_sign(&[")"]))?;
        (id > 0).then_some(at + id + close + 1)
    }

    fn known_names(&self, at: usize) -> Vec<usize> {
        let token = &self.tokens[at];
        let Some(names) = self.known.experiments.get(&token.low) else { return Vec::new() };
        let fitting = names.iter().filter_map(|name| {
            let start = token.span.start;
            let words = crate::token::tokens(name).len();
            let end = at + words;
            let typed = self.source(at, end.min(self.tokens.len()));
            (token.kind != Kind::Quoted
                && self.message.is_char_boundary(start)
                && typed.to_lowercase() == *name)
                .then_some(end)
        });
        fitting.collect()
    }

    /// Words up to the next keyword.
    fn words(&self, at: usize) -> Option<usize> {
        let first = &self.tokens[at];
        if !is_name_start(first) {
            return None;
        }
        let tokens = self.tokens[at..].iter();
        let length = tokens.take(LONGEST_NAME + 1).take_while(|token| is_name_part(token)).count();
        (1..=LONGEST_NAME).contains(&length).then_some(at + length)
    }

    fn rest(&self, at: usize, ends: &[usize]) -> Vec<usize> {
        ends.get(at).filter(|end| **end > at).copied().into_iter().collect()
    }

    fn context(&self, at: usize) -> Vec<usize> {
        let token = &self.tokens[at];
        if token.kind == Kind::Quoted {
            return vec![at + 1];
        }
        let known = self.known.contexts.iter().filter_map(|name| {
            let spaced = name.replace(['-', '_'], " ").to_lowercase();
            let words = spaced.split(' ').count();
            let typed = self.source(at, (at + words).min(self.tokens.len())).to_lowercase();
            (words > 1 && typed == spaced).then_some(at + words)
        });
        let plain = (is_code(token) && !ORDINALS.contains(token.low.as_str())).then_some(at + 1);
        known.chain(plain).collect()
    }

    /// A list of single tokens; each of its beginnings is a list, too.
    fn list(&self, at: usize, is_item: fn(&Token<'_>) -> bool) -> Vec<usize> {
        let fits =
            |at: usize| self.tokens.get(at).is_some_and(|token| token.kind == Kind::Quoted || is_item(token));
        let mut ends = Vec::new();
        let mut next = at;
        while fits(next) {
            ends.push(next + 1);
            let comma = self.tokens.get(next + 1).is_some_and(|token| token.is_sign(&[","]));
            let and = self.tokens.get(next + 1 + usize::from(comma)).is_some_and(|token| token.low == "and");
            if !comma && !and {
                break;
            }
            next += 1 + usize::from(comma) + usize::from(and);
        }
        ends.reverse();
        ends
    }
}

/// A set of words.
type Words = LazyLock<HashSet<&'static str>>;

static ORDINALS: Words = Words::new(|| {
    "first second third fourth fifth sixth seventh eighth ninth tenth last other".split_whitespace().collect()
});

/// Words that no unquoted name contains.
static STOPS: Words = Words::new(|| {
    "in at of with to from for and or then as on by but not because if unless until till when whenever \
    while after before once since which who than like into onto off is are was were has have had do does \
    did be been should shall must can could will would shouldn't never so also instead now please pls plz \
    thanks thx thank today tomorrow tonight yesterday asap anyway through within without during under \
    about using via called named starting ending twice again every each 's per running offline live only \
    out take takes described assigned get gets compares comparing split evenly whether that"
        .split_whitespace()
        .collect()
});

/// Words that no unquoted name begins with.
static STARTS: Words = Words::new(|| {
    "the a an my our your it its this these those them they he she him her i we you me us all everything \
    everyone everybody anything something nothing nobody any some none one ones both another new \
    experiment experiments study studies what how why where there no user users student students context \
    contexts segment segments flag flags feature metric metrics conversation chat thread server simulator \
    database payload preview"
        .split_whitespace()
        .collect()
});

/// Words that no unquoted and unknown experiment begins with, since a clause does.
static VERBS: Words = Words::new(|| {
    "start stop pause resume launch cancel archive delete remove create make rename set change update \
    exclude include copy compare list show tell test simulate initialize mark visit let put call force add \
    tag describe explain keep"
        .split_whitespace()
        .collect()
});

/// Words that are no student's id and no code.
static NO_IDS: Words = Words::new(|| {
    "in at of with to from for and or but then as on by the a an user users student students learner \
    learners pupil pupils class classes school schools it this that everyone everybody is are if not \
    should must who all nobody no only group groups people experiment experiments does do did would be i \
    we you my equally evenly equal him her them he she me us"
        .split_whitespace()
        .collect()
});

/// Words that join clauses.
static JOINERS: Words = Words::new(|| "and but then also or".split_whitespace().collect());

/// Whether a sentence ends at this sign.
pub(crate) fn ends_sentence(token: &Token<'_>) -> bool {
    token.is_sign(&[".", "!", "?", "…"])
}

pub(crate) fn is_joiner(low: &str) -> bool {
    JOINERS.contains(low)
}

fn is_name_start(token: &Token<'_>) -> bool {
    let low = token.low.as_str();
    token.is_word() && !STOPS.contains(low) && !STARTS.contains(low) && !ORDINALS.contains(low)
        || token.kind == Kind::Word && token.low == "running" && token.text.starts_with('R')
}

fn is_name_part(token: &Token<'_>) -> bool {
    match token.kind {
        Kind::Word => {
            (!STOPS.contains(token.low.as_str()) || token.text == "Running") && !is_ratio(&token.low)
        }
        Kind::Sign => matches!(token.text, "(" | ")" | "=" | "-" | "–" | "—"),
        Kind::Quoted | Kind::Json => false,
    }
}

/// "70/30" is a weight, and no part of a name.
fn is_ratio(low: &str) -> bool {
    low.contains('/') && low.chars().all(|c| c.is_ascii_digit() || c == '/' || c == '%')
}

fn is_id(token: &Token<'_>) -> bool {
    token.is_word() && !NO_IDS.contains(token.low.as_str())
}

fn is_code(token: &Token<'_>) -> bool {
    is_id(token) && token.low.starts_with(|c: char| c.is_alphabetic()) && !STOPS.contains(token.low.as_str())
}

/// Words that the slots know.
pub(crate) fn words() -> impl Iterator<Item = &'static str> {
    STOPS.iter().chain(STARTS.iter()).chain(ORDINALS.iter()).copied()
}

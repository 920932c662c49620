//! Matches productions with tokens: all ways in which a production can begin at a token, with their
//! bindings.
//!
//! The lookahead is bounded (a name has at most twelve words, a repetition at most [`MOST`] rounds), so the
//! work grows linearly with the message.

use std::cell::Cell;
use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::rc::Rc;

use crate::notation::Node;
use crate::slots::Scene;
use crate::token::{Kind, Token};

/// The most rounds of a repetition.
const MOST: usize = 24;

/// The fewest letters of a keyword that may have a typing error.
const TYPO: usize = 5;

/// What a slot holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Filler {
    Tokens(usize, usize),
    Value(&'static str),
}

/// The bindings of one way to read, shared by the ways that go on from it.
#[derive(Debug)]
struct Binding {
    slot: &'static str,
    filler: Filler,
    before: Bindings,
    /// Of this binding and all before it.
    hash: u64,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Bindings(Option<Rc<Binding>>);

impl Bindings {
    fn with(&self, slot: &'static str, filler: Filler) -> Self {
        let mut hasher = DefaultHasher::new();
        (self.hash(), slot, filler).hash(&mut hasher);
        let hash = hasher.finish();
        Bindings(Some(Rc::new(Binding { slot, filler, before: self.clone(), hash })))
    }

    pub(crate) fn hash(&self) -> u64 {
        self.0.as_ref().map_or(0, |last| last.hash)
    }

    /// The bindings, in the order of the message.
    pub(crate) fn all(&self) -> Vec<(&'static str, Filler)> {
        let mut all = Vec::new();
        let mut next = &self.0;
        while let Some(one) = next {
            all.push((one.slot, one.filler));
            next = &one.before.0;
        }
        all.reverse();
        all
    }
}

/// A way to read: the end, and the bindings.
pub(crate) type Way = (usize, Bindings);

/// The words of the grammar, and its classes.
pub(crate) struct Lexicon {
    pub(crate) classes: HashMap<&'static str, Node>,
    words: HashSet<&'static str>,
    /// The words that may have a typing error, by length.
    long: HashMap<usize, Vec<&'static str>>,
}

impl Lexicon {
    pub(crate) fn new(
        classes: HashMap<&'static str, Node>,
        forms: &[&Node],
        more: impl Iterator<Item = &'static str>,
    ) -> Self {
        let mut words: HashSet<&'static str> = more.collect();
        classes.values().chain(forms.iter().copied()).for_each(|node| collect(node, &mut words));
        let mut long: HashMap<usize, Vec<&'static str>> = HashMap::new();
        for word in &words {
            let length = word.chars().count();
            if length >= TYPO {
                long.entry(length).or_default().push(word);
            }
        }
        Lexicon { classes, words, long }
    }

    /// The keywords that a token may be. Only a word that is no keyword may be a mistyped one.
    pub(crate) fn keywords(&self, token: &Token<'_>) -> Vec<&'static str> {
        if matches!(token.kind, Kind::Quoted | Kind::Json) {
            return Vec::new();
        }
        if let Some(word) = self.words.get(token.low.as_str()) {
            return vec![word];
        }
        let length = token.low.chars().count();
        if !token.is_word() || length + 1 < TYPO {
            return Vec::new();
        }
        let near = (length - 1..=length + 1).filter_map(|length| self.long.get(&length)).flatten();
        near.filter(|word| strsim::osa_distance(word, &token.low) == 1).copied().collect()
    }
}

fn collect(node: &Node, words: &mut HashSet<&'static str>) {
    match node {
        Node::Word(word) => {
            words.insert(word);
        }
        Node::Seq(all) | Node::Alt(all) => all.iter().for_each(|node| collect(node, words)),
        Node::Opt(node) | Node::Star(node) => collect(node, words),
        Node::Slot { .. } | Node::Set { .. } | Node::Class(_) => {}
    }
}

/// A message and the grammar.
pub(crate) struct Matcher<'m> {
    pub(crate) scene: Scene<'m>,
    lexicon: &'m Lexicon,
    keywords: Vec<Vec<&'static str>>,
    /// Steps taken, as a measure of the work.
    work: Cell<u64>,
}

impl<'m> Matcher<'m> {
    pub(crate) fn new(scene: Scene<'m>, lexicon: &'m Lexicon) -> Self {
        let mut known: HashMap<&str, Vec<&'static str>> = HashMap::new();
        let mut keywords = Vec::with_capacity(scene.tokens.len());
        for token in scene.tokens {
            let is_plain = matches!(token.kind, Kind::Word | Kind::Sign);
            let own = if is_plain {
                known.entry(&token.low).or_insert_with(|| lexicon.keywords(token)).clone()
            } else {
                Vec::new()
            };
            keywords.push(own);
        }
        Matcher { scene, lexicon, keywords, work: Cell::new(0) }
    }

    pub(crate) fn len(&self) -> usize {
        self.keywords.len()
    }

    pub(crate) fn work(&self) -> u64 {
        self.work.get()
    }

    /// All ways in which this production can begin at `at`, the preferred one first.
    pub(crate) fn ways(&self, node: &Node, at: usize) -> Vec<Way> {
        self.step(node, vec![(at, Bindings::default())])
    }

    fn step(&self, node: &Node, from: Vec<Way>) -> Vec<Way> {
        self.work.set(self.work.get() + 1 + from.len() as u64);
        if from.is_empty() {
            return from;
        }
        match node {
            Node::Word(word) => {
                let fits = |at: usize| self.keywords.get(at).is_some_and(|words| words.contains(word));
                from.into_iter().filter(|(at, _)| fits(*at)).map(|(at, bound)| (at + 1, bound)).collect()
            }
            Node::Slot { name, kind } => {
                let ends = |(at, bound): Way| {
                    let ends = self.scene.ends(kind, at).into_iter();
                    ends.map(move |end| (end, bound.with(name, Filler::Tokens(at, end)))).collect::<Vec<_>>()
                };
                from.into_iter().flat_map(ends).collect()
            }
            Node::Set { name, value } => {
                from.into_iter().map(|(at, bound)| (at, bound.with(name, Filler::Value(value)))).collect()
            }
            Node::Class(name) => match self.lexicon.classes.get(name) {
                Some(node) => self.step(node, from),
                None => Vec::new(),
            },
            Node::Seq(all) => all.iter().fold(from, |ways, node| self.step(node, ways)),
            Node::Alt(all) => unique(all.iter().flat_map(|node| self.step(node, from.clone())).collect()),
            Node::Opt(inner) => {
                let with = self.step(inner, from.clone());
                unique(with.into_iter().chain(from).collect())
            }
            Node::Star(inner) => {
                let mut rounds = vec![from];
                while rounds.len() <= MOST {
                    let last = rounds.last().cloned().unwrap_or_default();
                    let next = self.step(inner, last);
                    if next.is_empty() {
                        break;
                    }
                    rounds.push(next);
                }
                unique(rounds.into_iter().rev().flatten().collect())
            }
        }
    }
}

fn unique(ways: Vec<Way>) -> Vec<Way> {
    if ways.len() < 2 {
        return ways;
    }
    let mut seen = HashSet::new();
    ways.into_iter().filter(|(at, bound)| seen.insert((*at, bound.hash()))).collect()
}

//! The reading of a message: `(courtesy)* clause (joiner clause)*`, and the parts that no production
//! consumes.
//!
//! All positions are visited once, from left to right. Of all ways to a position those are kept that leave
//! the fewest tokens over, then those with the fewest clauses.

use std::cmp::Reverse;

use crate::grammar::{self, Form, Group};
use crate::matcher::{Bindings, Filler, Matcher};
use crate::slots::{Known, Scene, ends_sentence, is_joiner};
use crate::token::{LONGEST, Token, tokens};

/// A clause that was understood.
#[derive(Clone, Debug)]
pub(crate) struct Clause {
    pub(crate) form: &'static Form,
    pub(crate) slots: Vec<Slot>,
    /// The text of the clause.
    pub(crate) source: String,
}

/// A slot and what it holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Slot {
    pub(crate) name: &'static str,
    pub(crate) value: String,
    /// Whether the value is said in the message, and not part of the production.
    pub(crate) said: bool,
}

impl Clause {
    pub(crate) fn act(&self) -> &'static str {
        self.form.act
    }

    pub(crate) fn slot(&self, name: &str) -> Option<&str> {
        self.slots.iter().find(|slot| slot.name == name).map(|slot| slot.value.as_str())
    }

    pub(crate) fn all<'c>(&'c self, name: &'c str) -> impl Iterator<Item = &'c str> {
        self.slots.iter().filter(move |slot| slot.name == name).map(|slot| slot.value.as_str())
    }

    fn shown(&self) -> String {
        let slot = |slot: &Slot| match slot.said {
            true => format!(" {}='{}'", slot.name, slot.value),
            false if slot.name == slot.value => format!(" {}", slot.name),
            false => format!(" {}={}", slot.name, slot.value),
        };
        std::iter::once(self.act().to_owned()).chain(self.slots.iter().map(slot)).collect()
    }
}

/// What was understood of a message, and what was not.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reading {
    pub(crate) clauses: Vec<Clause>,
    pub(crate) left: Vec<String>,
    /// Other readings that leave nothing over.
    pub(crate) others: Vec<Vec<Clause>>,
    /// The number of characters, if the message is too long to be read.
    pub(crate) too_long: Option<usize>,
    /// A measure of the work.
    pub(crate) work: u64,
}

impl Reading {
    /// The reading as a line: the acts with their slots, and the rest in quotes.
    pub(crate) fn shown(&self) -> String {
        let mut line = shown(&self.clauses);
        if self.clauses.is_empty() && self.left.is_empty() {
            line = "greeting".to_owned();
        }
        if !self.left.is_empty() {
            let left: Vec<String> = self.left.iter().map(|part| format!("'{part}'")).collect();
            line = format!("{line} ? {}", left.join(" "));
        }
        let others: Vec<String> = self.others.iter().map(|other| format!(" // {}", shown(other))).collect();
        format!("{line}{}", others.concat()).trim().to_owned()
    }

    /// The clause to meet first, and the words of the others. Talk between them is heard and not kept.
    pub(crate) fn first(&self) -> Option<(&Clause, Vec<String>)> {
        let is_talk =
            |clause: &&Clause| matches!(clause.act(), "greeting" | "thanks" | "farewell" | "yes" | "no");
        let first = self.clauses.iter().find(|clause| !is_talk(clause)).or(self.clauses.first())?;
        let others = self.clauses.iter().filter(|clause| !is_talk(clause) && !std::ptr::eq(*clause, first));
        Some((first, others.map(|clause| clause.source.clone()).collect()))
    }

    pub(crate) fn is_whole(&self) -> bool {
        self.left.is_empty() && self.too_long.is_none()
    }
}

fn shown(clauses: &[Clause]) -> String {
    clauses.iter().map(Clause::shown).collect::<Vec<_>>().join(" + ")
}

/// A piece of a message.
#[derive(Clone, Debug)]
enum Piece {
    Clause(&'static Form, Bindings),
    Filler,
    Skipped,
}

/// A way to a position: its last piece, and the way before it.
#[derive(Clone, Debug)]
struct Step {
    piece: Piece,
    /// The place of the way before in its cell.
    before: (usize, usize),
    hash: u64,
}

/// The best ways to a position. Even cells are those at which a clause may begin.
#[derive(Clone, Debug)]
struct Cell {
    rank: (usize, usize),
    steps: Vec<Step>,
}

/// Where ways go on: the cell, the ways to it by their hashes, and their rank.
struct Origin {
    cell: usize,
    hashes: Vec<u64>,
    rank: (usize, usize),
}

/// The tokens of a message without a clause among which its sense is looked for.
const LONGEST_COURTESY: usize = 50;

/// The most readings that are compared.
const READINGS: usize = 4;

/// Reads a message, perhaps as the answer to the question for a parameter.
pub(crate) fn read(message: &str, known: &Known, asked: &'static str) -> Reading {
    let length = message.chars().count();
    if length > LONGEST {
        return Reading { too_long: Some(length), ..Reading::default() };
    }
    let tokens = tokens(message);
    let grammar = grammar::grammar();
    let matcher = Matcher::new(Scene::new(message, &tokens, known), &grammar.lexicon);
    let mut chart = Chart { matcher: &matcher, asked, cells: vec![None; 2 * (tokens.len() + 1)] };
    chart.fill();
    let mut readings = preferred(chart.readings(), known).into_iter();
    let mut reading = readings.next().unwrap_or_default();
    if reading.left.is_empty() {
        reading.others = readings.map(|other| other.clauses).collect();
        reading.clauses.extend(chart.courtesy().filter(|_| reading.clauses.is_empty()));
    }
    reading.work = matcher.work() + message.len() as u64;
    reading
}

/// Of several readings those with the fewest names that do not exist, then with the most names. If none
/// exists, no reading can do anything, and the first of an act stands for the others.
fn preferred(all: Vec<Reading>, known: &Known) -> Vec<Reading> {
    let unknown = |reading: &Reading| {
        let slots = reading.clauses.iter().flat_map(|clause| &clause.slots).filter(|slot| slot.said);
        let is_unknown = |slot: &&Slot| match slot.name {
            "experiment" => !known.is_experiment(&slot.value),
            "context" => !known.contexts.contains(&slot.value),
            _ => false,
        };
        let named = slots.clone().filter(|slot| slot.name == "experiment").count();
        (slots.filter(is_unknown).count(), Reverse(named))
    };
    let all = prefer_answers(all);
    let Some(fewest) = all.iter().map(unknown).min() else { return all };
    let mut kept: Vec<Reading> = Vec::new();
    for reading in all.into_iter().filter(|reading| unknown(reading) == fewest) {
        let acts = |reading: &Reading| reading.clauses.iter().map(Clause::act).collect::<Vec<_>>();
        if fewest.0 == 0 || kept.iter().all(|other| acts(other) != acts(&reading)) {
            kept.push(reading);
        }
    }
    kept
}

/// An answer is what was asked for, unless any text would answer.
fn prefer_answers(all: Vec<Reading>) -> Vec<Reading> {
    let answers = |reading: &Reading| reading.clauses.iter().any(|clause| clause.act() == "answer");
    let free = |reading: &Reading| reading.clauses.iter().any(|clause| clause.form.takes_any_text());
    if !all.iter().any(answers) {
        return all;
    }
    let wanted = all.iter().any(|reading| answers(reading) && !free(reading));
    let is_kept =
        |reading: &Reading| if wanted { answers(reading) && !free(reading) } else { !answers(reading) };
    let (kept, rest): (Vec<_>, Vec<_>) = all.into_iter().partition(is_kept);
    if kept.is_empty() { rest } else { kept }
}

/// Whether each slot of which this form takes one value has no other one beside it, which would go unheard.
pub(crate) fn one_value_each(form: &Form, slots: &[Slot]) -> bool {
    const SEVERAL: &[&str] = &[
        "add_tags",
        "remove_tags",
        "include",
        "include_group_type",
        "include_group",
        "uninclude",
        "exclude",
        "exclude_group_type",
        "exclude_group",
        "unexclude",
    ];
    if form.group == Group::Questions {
        return true;
    }
    let takes_one = |slot: &Slot| !slot.name.starts_with("step") && !SEVERAL.contains(&slot.name);
    slots.iter().enumerate().filter(|(_, slot)| takes_one(slot)).all(|(at, slot)| {
        slots[..at].iter().all(|earlier| earlier.name != slot.name || earlier.value == slot.value)
    })
}

struct Chart<'m> {
    matcher: &'m Matcher<'m>,
    asked: &'static str,
    cells: Vec<Option<Cell>>,
}

impl Chart<'_> {
    fn fill(&mut self) {
        self.cells[0] = Some(Cell { rank: (0, 0), steps: Vec::new() });
        for at in 0..self.matcher.len() {
            for cell in [2 * at + 1, 2 * at] {
                let Some(ways) = &self.cells[cell] else { continue };
                // The start of the message has no way to it.
                let hashes =
                    if cell == 0 { vec![0] } else { ways.steps.iter().map(|step| step.hash).collect() };
                let origin = Origin { cell, hashes, rank: ways.rank };
                self.go_on(at, &origin);
            }
        }
    }

    /// Adds the ways that go on from a position. Behind a clause a joiner must come first.
    fn go_on(&mut self, at: usize, origin: &Origin) {
        let grammar = grammar::grammar();
        let (left, clauses) = origin.rank;
        for (end, _) in self.matcher.ways(&grammar.filler, at) {
            self.add(2 * end, origin, Piece::Filler, origin.rank);
        }
        let may_begin = origin.cell.is_multiple_of(2);
        let is_first = origin.rank == (0, 0);
        let stands = |form: &Form| may_begin && form.may_stand(is_first, self.asked);
        for (form, node) in grammar.forms.iter().filter(|(form, _)| stands(form)) {
            for (end, bound) in self.matcher.ways(node, at) {
                // A shorter way leaves the second value over, so that it is named.
                if !one_value_each(form, &self.slots(&bound)) {
                    continue;
                }
                self.add(2 * end + 1, origin, Piece::Clause(form, bound), (left, clauses + 1));
            }
        }
        let end = self.matcher.scene.clause_end(at);
        self.add(2 * end + 1, origin, Piece::Skipped, (left + end - at, clauses));
    }

    fn add(&mut self, to: usize, origin: &Origin, piece: Piece, rank: (usize, usize)) {
        let cell = self.cells[to].get_or_insert_with(|| Cell { rank, steps: Vec::new() });
        if cell.rank < rank {
            return;
        }
        if cell.rank > rank {
            *cell = Cell { rank, steps: Vec::new() };
        }
        let own = match &piece {
            Piece::Clause(form, bound) => {
                (bound.hash() ^ (std::ptr::from_ref(*form) as u64).rotate_left(17)) | 1
            }
            Piece::Filler | Piece::Skipped => 0,
        };
        for (index, earlier) in origin.hashes.iter().enumerate() {
            let hash = earlier.rotate_left(7) ^ own;
            if cell.steps.len() < READINGS && cell.steps.iter().all(|step| step.hash != hash) {
                cell.steps.push(Step { piece: piece.clone(), before: (origin.cell, index), hash });
            }
        }
    }

    /// The readings of the whole message.
    fn readings(&self) -> Vec<Reading> {
        let end = 2 * self.matcher.len();
        let cells: Vec<(usize, &Cell)> =
            [end + 1, end].into_iter().filter_map(|at| Some((at, self.cells[at].as_ref()?))).collect();
        // A clause is better than courtesy alone.
        let rank = |cell: &Cell| (cell.rank.0, if cell.rank.1 == 0 { usize::MAX } else { cell.rank.1 });
        let Some(best) = cells.iter().map(|(_, cell)| rank(cell)).min() else { return Vec::new() };
        let mut readings: Vec<Reading> = Vec::new();
        for (at, cell) in cells.into_iter().filter(|(_, cell)| rank(cell) == best) {
            for index in 0..cell.steps.len() {
                let reading = self.reading(at, index);
                if readings.iter().all(|other| shown(&other.clauses) != shown(&reading.clauses)) {
                    readings.push(reading);
                }
            }
        }
        readings
    }

    /// The sense of a message that is courtesy alone.
    fn courtesy(&self) -> Option<Clause> {
        const ACTS: &[&str] = &["no", "thanks", "farewell", "yes", "greeting"];
        let forms =
            ACTS.iter().flat_map(|act| grammar::grammar().forms.iter().filter(|(form, _)| form.act == *act));
        let mut found = forms.flat_map(|(form, node)| {
            (0..self.matcher.len().min(LONGEST_COURTESY)).map(move |at| (form, node, at))
        });
        found.find_map(|(form, node, at)| {
            let (end, bound) = self.matcher.ways(node, at).into_iter().next()?;
            Some(self.clause(form, &bound, at, end))
        })
    }

    /// The reading along one way, from its end.
    fn reading(&self, mut cell: usize, mut index: usize) -> Reading {
        let scene = &self.matcher.scene;
        let mut pieces: Vec<(Piece, usize, usize)> = Vec::new();
        while let Some(step) = self.cells[cell].as_ref().and_then(|cell| cell.steps.get(index)) {
            pieces.push((step.piece.clone(), step.before.0 / 2, cell / 2));
            (cell, index) = step.before;
        }
        let mut reading = Reading::default();
        let mut left: Vec<(usize, usize)> = Vec::new();
        for (piece, start, end) in pieces.into_iter().rev() {
            match piece {
                Piece::Filler => {}
                Piece::Clause(form, bound) => reading.clauses.push(self.clause(form, &bound, start, end)),
                Piece::Skipped => {
                    match left.last_mut().filter(|last| last.1 == start || self.joined(last.1, start)) {
                        Some(last) => last.1 = end,
                        None => left.push((self.with_joiner(start), end)),
                    }
                }
            }
        }
        let signs = |token: &Token<'_>| ends_sentence(token) || token.is_sign(&[",", ";"]);
        let trimmed = |(mut start, mut end): (usize, usize)| {
            while end > start + 1 && signs(&scene.tokens[end - 1]) {
                end -= 1;
            }
            while end > start + 1 && signs(&scene.tokens[start]) {
                start += 1;
            }
            scene.source(start, end).to_owned()
        };
        reading.left = left.into_iter().map(trimmed).collect();
        reading
    }

    /// Whether only joiners are between two parts, which are one then.
    fn joined(&self, from: usize, to: usize) -> bool {
        self.matcher.scene.tokens[from..to].iter().all(|token| is_joiner(&token.low))
    }

    /// The start of a part with the joiner before it.
    fn with_joiner(&self, mut start: usize) -> usize {
        while start > 0 && is_joiner(&self.matcher.scene.tokens[start - 1].low) {
            start -= 1;
        }
        start
    }

    fn clause(&self, form: &'static Form, bound: &Bindings, start: usize, end: usize) -> Clause {
        Clause { form, slots: self.slots(bound), source: self.matcher.scene.source(start, end).to_owned() }
    }

    fn slots(&self, bound: &Bindings) -> Vec<Slot> {
        let slot = |(name, filler)| match filler {
            Filler::Tokens(from, to) => {
                Slot { name, value: self.matcher.scene.text(from, to).to_owned(), said: true }
            }
            Filler::Value(value) => Slot { name, value: value.to_owned(), said: false },
        };
        bound.all().into_iter().map(slot).collect()
    }
}

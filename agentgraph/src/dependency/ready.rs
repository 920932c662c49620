//! The nodes that may start, by their places in the queue: the first one is found at once.
//!
//! Places are numbers assigned once, so this is a set of small numbers from which the least is taken. A tree
//! of 64-way bit words limits every operation to a few words, whatever the number of nodes. A heap would move
//! entries in memory, and a search through the queue would cost its length. One place is stored beside the
//! tree: a graph that is a chain never touches the tree.

/// The absence of a place.
const NONE: u32 = u32::MAX;

/// A set of places in a queue.
#[derive(Debug)]
pub(super) struct ReadySet {
    /// Less than every place in the tree.
    front: u32,
    /// The levels of the tree, from the words of the places up to a single word. A bit of an upper level is
    /// set if the word below is not empty.
    levels: Vec<Vec<u64>>,
    /// The number of places in the tree.
    held: usize,
}

impl Default for ReadySet {
    fn default() -> Self {
        ReadySet { front: NONE, levels: Vec::new(), held: 0 }
    }
}

impl ReadySet {
    /// Adds a place that is not in the set.
    #[inline]
    pub(super) fn insert(&mut self, place: u32) {
        if self.front == NONE && self.held == 0 {
            self.front = place;
        } else if self.front != NONE && place < self.front {
            let later = std::mem::replace(&mut self.front, place);
            self.set(later);
        } else {
            self.set(place);
        }
    }

    /// Removes a place, if it is in the set.
    pub(super) fn remove(&mut self, place: u32) {
        if self.front == place {
            self.front = NONE;
        } else if self.contains(place) {
            self.clear(place);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.front == NONE && self.held == 0
    }

    pub(super) fn contains(&self, place: u32) -> bool {
        if self.front == place {
            return true;
        }
        let word = self.levels.first().and_then(|words| words.get(place as usize / 64));
        word.is_some_and(|word| word >> (place % 64) & 1 == 1)
    }

    /// Takes the least place out of the set.
    #[inline]
    pub(super) fn pop(&mut self) -> Option<u32> {
        if self.front != NONE {
            return Some(std::mem::replace(&mut self.front, NONE));
        }
        if self.held == 0 {
            return None;
        }
        let mut at = 0;
        for level in self.levels.iter().rev() {
            at = at * 64 + level[at].trailing_zeros() as usize;
        }
        let place = at as u32;
        self.clear(place);
        Some(place)
    }

    fn set(&mut self, place: u32) {
        self.held += 1;
        self.grow(place as usize);
        let mut at = place as usize;
        for level in &mut self.levels {
            let word = &mut level[at / 64];
            let known = *word != 0;
            *word |= 1 << (at % 64);
            if known {
                return;
            }
            at /= 64;
        }
    }

    fn clear(&mut self, place: u32) {
        self.held -= 1;
        let mut at = place as usize;
        for level in &mut self.levels {
            let word = &mut level[at / 64];
            *word &= !(1 << (at % 64));
            if *word != 0 {
                return;
            }
            at /= 64;
        }
    }

    /// Makes room for a place. A level that receives its second word receives a level above it.
    fn grow(&mut self, place: usize) {
        if self.levels.first().is_some_and(|words| place / 64 < words.len()) {
            return;
        }
        let mut needed = place / 64 + 1;
        let mut level = 0;
        loop {
            if self.levels.len() == level {
                self.levels.push(Vec::new());
                if let Some(below) = level.checked_sub(1).map(|below| &self.levels[below]) {
                    let bits = below.iter().take(64).enumerate();
                    let word = bits.fold(0, |word, (at, below)| word | u64::from(*below != 0) << at);
                    self.levels[level].push(word);
                }
            }
            let words = &mut self.levels[level];
            if words.len() < needed {
                let room = needed.max(words.len() * 2).min(needed.next_multiple_of(64));
                words.resize(room, 0);
            }
            if self.levels[level].len() == 1 && self.levels.len() == level + 1 {
                return;
            }
            needed = self.levels[level].len().div_ceil(64);
            level += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::ReadySet;

    proptest! {
        #[test]
        fn is_a_set_of_which_the_least_is_taken(
            steps in prop::collection::vec((0_u8..3, prop_oneof![0_u32..70, 0_u32..5000, 0_u32..300_000]), 0..400)
        ) {
            let mut set = ReadySet::default();
            let mut model = BTreeSet::new();
            for (step, place) in steps {
                match step {
                    0 if model.insert(place) => set.insert(place),
                    1 => {
                        model.remove(&place);
                        set.remove(place);
                    }
                    2 => prop_assert_eq!(set.pop(), model.pop_first()),
                    _ => {}
                }
                prop_assert_eq!(set.contains(place), model.contains(&place));
            }
            while let Some(place) = model.pop_first() {
                prop_assert_eq!(set.pop(), Some(place));
            }
            prop_assert_eq!(set.pop(), None);
        }
    }
}

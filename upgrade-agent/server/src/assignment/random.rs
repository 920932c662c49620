//! UpGrade's random numbers: ARC4, seeded with the UTF-16 units of a text, without its first 256 outputs, 52
//! bits per number. Bit for bit the JavaScript package `seedrandom` 3.0.5; otherwise students would have
//! other conditions on the two servers.

const WIDTH: f64 = 256.0;
const DROPPED: usize = 256;
/// The number of bytes in the first 48 bits of a number.
const CHUNKS: usize = 6;

/// A stream of numbers from a seed text.
pub(super) struct SeedRandom {
    table: [u8; 256],
    i: u8,
    j: u8,
}

impl SeedRandom {
    pub(super) fn new(seed: &str) -> Self {
        let key = key_of(seed);
        let mut table: [u8; 256] = std::array::from_fn(|at| at as u8);
        let mut j = 0u8;
        for i in 0..table.len() {
            j = j.wrapping_add(key[i % key.len()]).wrapping_add(table[i]);
            table.swap(i, usize::from(j));
        }
        let mut stream = Self { table, i: 0, j: 0 };
        (0..DROPPED).for_each(|_| _ = stream.byte());
        stream
    }

    /// The next number, at least 0 and below 1.
    pub(super) fn next(&mut self) -> f64 {
        let significance = 2f64.powi(52);
        let overflow = 2f64.powi(53);
        let mut n = (0..CHUNKS).fold(0.0, |n, _| n * WIDTH + f64::from(self.byte()));
        let mut d = WIDTH.powi(CHUNKS as i32);
        let mut x = 0u8;
        while n < significance {
            n = (n + f64::from(x)) * WIDTH;
            d *= WIDTH;
            x = self.byte();
        }
        while n >= overflow {
            n /= 2.0;
            d /= 2.0;
            x >>= 1;
        }
        (n + f64::from(x)) / d
    }

    fn byte(&mut self) -> u8 {
        self.i = self.i.wrapping_add(1);
        let (i, t) = (usize::from(self.i), self.table[usize::from(self.i)]);
        self.j = self.j.wrapping_add(t);
        let j = usize::from(self.j);
        self.table.swap(i, j);
        self.table[usize::from(self.table[i].wrapping_add(self.table[j]))]
    }
}

/// The first number of a seed text.
pub(crate) fn first(seed: &str) -> f64 {
    SeedRandom::new(seed).next()
}

/// Folds a text of any length into at most 256 bytes.
fn key_of(seed: &str) -> Vec<u8> {
    let mut key: Vec<u8> = Vec::new();
    let mut smear = 0u32;
    for (at, unit) in seed.encode_utf16().enumerate() {
        let place = at % 256;
        smear ^= u32::from(key.get(place).copied().unwrap_or(0)) * 19;
        let byte = ((smear + u32::from(unit)) & 255) as u8;
        match key.get_mut(place) {
            Some(old) => *old = byte,
            None => key.push(byte),
        }
    }
    if key.is_empty() {
        key.push(0);
    }
    key
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recorded_numbers_of_seedrandom_are_reproduced_exactly() {
        let recorded = include_str!("../../tests/fixtures/seedrandom_vectors.json");
        let vectors: Vec<(String, f64, f64, f64)> = serde_json::from_str(recorded).unwrap();
        assert_eq!(vectors.len(), 57);
        for (seed, one, two, three) in vectors {
            let mut stream = SeedRandom::new(&seed);
            assert_eq!([stream.next(), stream.next(), stream.next()], [one, two, three], "{seed:?}");
        }
    }
}

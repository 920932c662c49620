//! Decimal numbers with the sum and quotient of the original's database: exact sums, and quotients of at
//! least sixteen digits. Pure.

use std::cmp::Ordering;
use std::fmt;

/// The least number of digits of a quotient.
const SIGNIFICANT: i32 = 16;

/// A number as a mantissa and a number of decimal places.
#[derive(Clone, Copy, Debug)]
pub(super) struct Decimal {
    mantissa: i128,
    scale: u32,
}

impl Decimal {
    pub(super) const fn of(number: usize) -> Self {
        Self { mantissa: number as i128, scale: 0 }
    }

    /// Parses digits with a sign, a point and an exponent; none if the text is not a number, or too long.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (digits, exponent) = text.trim().split_once(['e', 'E']).unwrap_or((text.trim(), "0"));
        let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
        let is_plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        let unsigned = whole.strip_prefix(['-', '+']).unwrap_or(whole);
        if !is_plain(unsigned) || !is_plain(part) || (unsigned.is_empty() && part.is_empty()) {
            return None;
        }
        let mantissa: i128 = format!("{whole}{part}").parse().ok()?;
        let scale = i32::try_from(part.len()).ok()?.checked_sub(exponent.parse().ok()?)?;
        if scale >= 0 {
            return Some(Self { mantissa, scale: scale as u32 });
        }
        Some(Self { mantissa: mantissa.checked_mul(power_of_ten(scale.unsigned_abs())?)?, scale: 0 })
    }

    pub(super) fn plus(self, other: Self) -> Option<Self> {
        let scale = self.scale.max(other.scale);
        let mantissa = self.at(scale)?.checked_add(other.at(scale)?)?;
        Some(Self { mantissa, scale })
    }

    pub(super) fn times(self, number: i128) -> Option<Self> {
        Some(Self { mantissa: self.mantissa.checked_mul(number)?, ..self })
    }

    /// The quotient, with halves rounded away from zero.
    pub(super) fn over(self, number: usize) -> Option<Self> {
        let divisor = i128::try_from(number).ok().filter(|divisor| *divisor > 0)?;
        let scale = self.quotient_scale(Self::of(number));
        let wide = self.at(scale)?;
        let half = if wide < 0 { -(divisor / 2) } else { divisor / 2 };
        Some(Self { mantissa: wide.checked_add(half)? / divisor, scale })
    }

    /// The decimal places of a quotient: enough for sixteen significant digits, counted in the database's
    /// groups of four digits.
    fn quotient_scale(self, divisor: Self) -> u32 {
        let ((weight, first), (other_weight, other_first)) = (self.leading_group(), divisor.leading_group());
        let weight = weight - other_weight - i32::from(first <= other_first);
        let scale = (SIGNIFICANT - weight * 4).max(0) as u32;
        scale.max(self.scale)
    }

    /// The position of the first non-zero group of four digits, counted from the point, and the group.
    fn leading_group(self) -> (i32, u128) {
        let mut weight = -(self.scale.div_ceil(4) as i32);
        let mut number = self.mantissa.unsigned_abs();
        let missing = (4 - self.scale % 4) % 4;
        number = number.saturating_mul(10u128.pow(missing));
        if number == 0 {
            return (0, 0);
        }
        while number >= 10_000 {
            number /= 10_000;
            weight += 1;
        }
        (weight, number)
    }

    fn at(self, scale: u32) -> Option<i128> {
        self.mantissa.checked_mul(power_of_ten(scale.checked_sub(self.scale)?)?)
    }

    pub(super) fn float(self) -> f64 {
        self.to_string().parse().unwrap_or(f64::NAN)
    }

    pub(super) fn compare(&self, other: &Self) -> Ordering {
        let scale = self.scale.max(other.scale);
        match (self.at(scale), other.at(scale)) {
            (Some(one), Some(two)) => one.cmp(&two),
            _ => self.float().total_cmp(&other.float()),
        }
    }
}

fn power_of_ten(power: u32) -> Option<i128> {
    10i128.checked_pow(power)
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scale = self.scale as usize;
        let digits = format!("{:0>width$}", self.mantissa.unsigned_abs(), width = scale + 1);
        let (whole, part) = digits.split_at(digits.len() - scale);
        let sign = if self.mantissa < 0 { "-" } else { "" };
        if part.is_empty() { write!(f, "{sign}{whole}") } else { write!(f, "{sign}{whole}.{part}") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The expected texts are results of `select sum::numeric / count::numeric` in PostgreSQL.
    #[test]
    fn quotients_have_as_many_digits_as_in_postgresql() {
        let cases = [
            ("12", 1, "12.0000000000000000"),
            ("3", 2, "1.5000000000000000"),
            ("1", 2, "0.50000000000000000000"),
            ("10", 3, "3.3333333333333333"),
            ("2", 3, "0.66666666666666666667"),
            ("0", 4, "0.00000000000000000000"),
            ("-7", 2, "-3.5000000000000000"),
            ("100000", 7, "14285.714285714286"),
            ("12.5", 5, "2.5000000000000000"),
        ];
        for (sum, count, quotient) in cases {
            assert_eq!(
                Decimal::parse(sum).unwrap().over(count).unwrap().to_string(),
                quotient,
                "{sum}/{count}"
            );
        }
    }

    #[test]
    fn decimals_are_parsed_and_added_exactly() {
        let sum = Decimal::parse("0.1").unwrap().plus(Decimal::parse("0.20").unwrap()).unwrap();
        assert_eq!(sum.to_string(), "0.30");
        assert_eq!(Decimal::parse("1.5e3").unwrap().to_string(), "1500");
        for wrong in ["", "-", "a", "1.2.3", "0x1", "1e", "9e999"] {
            assert!(Decimal::parse(wrong).is_none(), "{wrong}");
        }
    }
}

//! [`Number`]: whole numbers that are exact as long as they fit, and fractions. Pure.

/// A number of the calculator.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Number {
    Whole(i128),
    Fraction(f64),
}

use Number::{Fraction, Whole};

/// A larger factorial fits no number.
const LARGEST_FACTORIAL: i128 = 170;

impl Number {
    pub(super) fn parse(digits: &str) -> Option<Self> {
        match digits.parse() {
            Ok(whole) => Some(Whole(whole)),
            Err(_) => digits.parse().ok().filter(|number: &f64| number.is_finite()).map(Fraction),
        }
    }

    fn as_f64(self) -> f64 {
        match self {
            Whole(number) => number as f64,
            Fraction(number) => number,
        }
    }

    /// The number as a text of at most twelve digits, or all digits of a whole number.
    pub(super) fn shown(self) -> Result<String, String> {
        let number = match self {
            Whole(number) => return Ok(number.to_string()),
            Fraction(number) if !number.is_finite() => {
                return Err("the result is too large, or it is no number".to_owned());
            }
            // Binary fractions differ from decimal ones in the last digits.
            Fraction(number) => format!("{number:.11e}").parse::<f64>().unwrap_or(number),
        };
        let is_readable = number == 0.0 || (1e-6..1e15).contains(&number.abs());
        let text = if is_readable { number.to_string() } else { format!("{number:e}") };
        Ok(if text == "-0" { "0".to_owned() } else { text })
    }

    fn both(
        self,
        other: Number,
        whole: fn(i128, i128) -> Option<i128>,
        fraction: fn(f64, f64) -> f64,
    ) -> Self {
        if let (Whole(one), Whole(other)) = (self, other)
            && let Some(value) = whole(one, other)
        {
            return Whole(value);
        }
        Fraction(fraction(self.as_f64(), other.as_f64()))
    }

    pub(super) fn plus(self, other: Number) -> Self {
        self.both(other, i128::checked_add, |one, other| one + other)
    }

    pub(super) fn times(self, other: Number) -> Self {
        self.both(other, i128::checked_mul, |one, other| one * other)
    }

    pub(super) fn negated(self) -> Self {
        Whole(-1).times(self)
    }

    fn is_zero(self) -> bool {
        self.as_f64() == 0.0
    }

    fn divisor(self) -> Result<Self, String> {
        if self.is_zero() { Err("a division by zero".to_owned()) } else { Ok(self) }
    }

    pub(super) fn divided_by(self, other: Number) -> Result<Self, String> {
        let exact = |one: i128, other: i128| match one.checked_rem(other) {
            Some(0) => one.checked_div(other),
            _ => None,
        };
        Ok(self.both(other.divisor()?, exact, |one, other| one / other))
    }

    pub(super) fn floor_divided_by(self, other: Number) -> Result<Self, String> {
        let floor = |one: i128, other: i128| {
            let quotient = one.checked_div(other)?;
            let is_above = one.checked_rem(other)? != 0 && (one < 0) != (other < 0);
            Some(quotient - i128::from(is_above))
        };
        Ok(self.both(other.divisor()?, floor, |one, other| (one / other).floor()).tidied())
    }

    /// As in Python, with the sign of the divisor.
    pub(super) fn modulo(self, other: Number) -> Result<Self, String> {
        let whole = |one: i128, other: i128| {
            let rest = one.checked_rem(other)?;
            Some(if rest != 0 && (rest < 0) != (other < 0) { rest + other } else { rest })
        };
        Ok(self.both(other.divisor()?, whole, |one, other| one - other * (one / other).floor()))
    }

    pub(super) fn to_the(self, power: Number) -> Result<Self, String> {
        if let (Whole(base), Whole(power @ 0..)) = (self, power)
            && let Some(value) = u32::try_from(power).ok().and_then(|power| base.checked_pow(power))
        {
            return Ok(Whole(value));
        }
        if self.is_zero() && power.as_f64() < 0.0 {
            return Err("a division by zero".to_owned());
        }
        Fraction(self.as_f64().powf(power.as_f64())).real("a power")
    }

    pub(super) fn factorial(self) -> Result<Self, String> {
        let Whole(number @ 0..=LARGEST_FACTORIAL) = self.tidied() else {
            return Err(format!("a factorial takes a whole number from 0 to {LARGEST_FACTORIAL}"));
        };
        Ok((1..=number).map(Whole).fold(Whole(1), Number::times))
    }

    /// A fraction without digits after the point, as a whole number.
    fn tidied(self) -> Self {
        match self {
            Fraction(number) if number.trunc() == number && number.abs() < 1e15 => Whole(number as i128),
            other => other,
        }
    }

    fn real(self, what: &str) -> Result<Self, String> {
        match self {
            Fraction(number) if number.is_nan() => Err(format!("{what} of these numbers is not real")),
            Fraction(number) if number.is_infinite() => Err(format!("{what} of these numbers is not finite")),
            number => Ok(number),
        }
    }
}

/// Calls a function by its name.
pub(super) fn call(name: &str, arguments: &[Number]) -> Result<Number, String> {
    let real = |function: fn(f64) -> f64, of: &Number| Fraction(function(of.as_f64())).real(name);
    match (name, arguments) {
        ("sqrt", [of]) => real(f64::sqrt, of).map(Number::tidied),
        ("cbrt", [of]) => real(f64::cbrt, of).map(Number::tidied),
        ("abs", [of]) => Ok(if of.as_f64() < 0.0 { of.negated() } else { *of }),
        ("floor", [of]) => real(f64::floor, of).map(Number::tidied),
        ("ceil", [of]) => real(f64::ceil, of).map(Number::tidied),
        ("trunc" | "int", [of]) => real(f64::trunc, of).map(Number::tidied),
        ("round", [of]) => real(f64::round, of).map(Number::tidied),
        ("round", [of, Whole(places @ 0..=15)]) => {
            let factor = 10_f64.powi(i32::try_from(*places).unwrap_or_default());
            Ok(Fraction((of.as_f64() * factor).round() / factor))
        }
        ("exp", [of]) => real(f64::exp, of),
        ("ln" | "log", [of]) => real(f64::ln, of),
        ("log", [of, base]) => Fraction(of.as_f64().ln() / base.as_f64().ln()).real(name),
        ("log10", [of]) => real(f64::log10, of),
        ("log2", [of]) => real(f64::log2, of),
        ("sin", [of]) => real(f64::sin, of),
        ("cos", [of]) => real(f64::cos, of),
        ("tan", [of]) => real(f64::tan, of),
        ("asin", [of]) => real(f64::asin, of),
        ("acos", [of]) => real(f64::acos, of),
        ("atan", [of]) => real(f64::atan, of),
        ("radians", [of]) => real(f64::to_radians, of),
        ("degrees", [of]) => real(f64::to_degrees, of),
        ("factorial", [of]) => of.factorial(),
        ("pow", [base, power]) => base.to_the(*power),
        ("gcd", [Whole(one), Whole(other)]) => Ok(Whole(gcd(*one, *other))),
        ("lcm", [Whole(one), Whole(other)]) => match gcd(*one, *other) {
            0 => Ok(Whole(0)),
            common => Ok(Whole(one / common).times(Whole(*other))),
        },
        ("sum", [first, rest @ ..]) => Ok(rest.iter().fold(*first, |sum, next| sum.plus(*next))),
        ("max", [first, rest @ ..]) => {
            Ok(rest.iter().fold(*first, |max, next| if next.as_f64() > max.as_f64() { *next } else { max }))
        }
        ("min", [first, rest @ ..]) => {
            Ok(rest.iter().fold(*first, |min, next| if next.as_f64() < min.as_f64() { *next } else { min }))
        }
        _ => Err(format!("`{name}` with {} arguments is unknown", arguments.len())),
    }
}

fn gcd(one: i128, other: i128) -> i128 {
    let (mut one, mut other) = (one.saturating_abs(), other.saturating_abs());
    while other != 0 {
        (one, other) = (other, one % other);
    }
    one
}

//! [`evaluate`]: arithmetic for the tool `calculator`. Pure.
//!
//! Whole numbers stay exact up to 38 digits; a result that is none is a binary fraction, shown with twelve
//! digits. Operators are those of Python, and `^` is a power as well.

use super::numbers::{Number, call};

/// A longer expression is no arithmetic by hand any more.
const LONGEST: usize = 2_000;
/// Deeper brackets would take the stack.
const DEEPEST: usize = 64;

/// The value of an expression, or what is wrong with it.
pub(crate) fn evaluate(expression: &str) -> Result<String, String> {
    if expression.len() > LONGEST {
        return Err(format!("the expression is longer than {LONGEST} characters: divide it"));
    }
    let text = expression.replace(['×', '·'], "*").replace('÷', "/").replace('−', "-");
    let mut parser = Parser { rest: text.trim_start(), depth: 0 };
    let value = parser.value(SUM)?;
    match parser.rest {
        "" => value.shown(),
        rest => Err(format!("unexpected `{rest}` after the end of the expression")),
    }
}

/// How strongly operators bind. A sign binds weaker than a power: `-2^2` is -4.
const SUM: u8 = 1;
const PRODUCT: u8 = 2;
const SIGN: u8 = 3;
const POWER: u8 = 4;

/// The longer of two that begin alike is first.
const OPERATORS: [(&str, u8); 9] = [
    ("**", POWER),
    ("//", PRODUCT),
    ("+", SUM),
    ("-", SUM),
    ("*", PRODUCT),
    ("/", PRODUCT),
    ("%", PRODUCT),
    ("^", POWER),
    ("!", POWER),
];

/// A parser of operator precedence. Its rest begins with no white space.
struct Parser<'t> {
    rest: &'t str,
    depth: usize,
}

impl<'t> Parser<'t> {
    /// The value of the operators that bind at least as strongly.
    fn value(&mut self, least: u8) -> Result<Number, String> {
        let mut value = self.operand()?;
        while let Some((sign, _)) = OPERATORS
            .iter()
            .find(|(sign, _)| self.rest.starts_with(sign))
            .filter(|(_, binds)| *binds >= least)
        {
            self.skip(sign.len());
            value = match *sign {
                "!" => value.factorial()?,
                "+" => value.plus(self.value(PRODUCT)?),
                "-" => value.plus(self.value(PRODUCT)?.negated()),
                "*" => value.times(self.value(SIGN)?),
                "/" => value.divided_by(self.value(SIGN)?)?,
                "//" => value.floor_divided_by(self.value(SIGN)?)?,
                "%" => value.modulo(self.value(SIGN)?)?,
                // From the right, and with a sign of its own: `2^-3^2`.
                _ => value.to_the(self.deeper(SIGN)?)?,
            };
        }
        Ok(value)
    }

    /// A number, a name, a call or what is in brackets, with the signs before it.
    fn operand(&mut self) -> Result<Number, String> {
        let rest = self.rest;
        match rest.chars().next() {
            None => Err("a number is missing at the end".to_owned()),
            Some('0'..='9' | '.') => {
                let text = self.skip(number_length(rest));
                Number::parse(&text.replace('_', "")).ok_or_else(|| format!("`{text}` is no number"))
            }
            Some(sign @ ('+' | '-')) => {
                self.skip(1);
                let value = self.deeper(SIGN)?;
                Ok(if sign == '-' { value.negated() } else { value })
            }
            Some('(') => {
                self.skip(1);
                let value = self.deeper(SUM)?;
                if self.take(")") { Ok(value) } else { Err("a `)` is missing".to_owned()) }
            }
            Some(first) if first.is_alphabetic() => {
                let is_part = |letter: char| letter.is_alphanumeric() || letter == '_' || letter == '.';
                let name = self.skip(rest.find(|letter| !is_part(letter)).unwrap_or(rest.len()));
                let name = name.to_lowercase();
                self.named(name.strip_prefix("math.").unwrap_or(&name))
            }
            Some(first) => Err(format!("a number is missing before `{first}`")),
        }
    }

    fn named(&mut self, name: &str) -> Result<Number, String> {
        match name {
            "pi" | "π" => return Ok(Number::Fraction(std::f64::consts::PI)),
            "e" => return Ok(Number::Fraction(std::f64::consts::E)),
            "tau" => return Ok(Number::Fraction(std::f64::consts::TAU)),
            _ if !self.take("(") => return Err(format!("`{name}` is unknown")),
            _ => {}
        }
        let mut arguments = Vec::new();
        while !self.take(")") {
            if !arguments.is_empty() && !self.take(",") {
                return Err("a `)` is missing".to_owned());
            }
            arguments.push(self.deeper(SUM)?);
        }
        call(name, &arguments)
    }

    fn deeper(&mut self, least: u8) -> Result<Number, String> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(format!("the expression is nested deeper than {DEEPEST} levels"));
        }
        let value = self.value(least);
        self.depth -= 1;
        value
    }

    fn take(&mut self, sign: &str) -> bool {
        let is_next = self.rest.starts_with(sign);
        self.skip(if is_next { sign.len() } else { 0 });
        is_next
    }

    /// Skips what is this long and the white space behind it, and returns it.
    fn skip(&mut self, length: usize) -> &'t str {
        let (skipped, rest) = self.rest.split_at(length);
        self.rest = rest.trim_start();
        skipped
    }
}

/// The length of a number at the start of a text, with its exponent.
fn number_length(text: &str) -> usize {
    let digits =
        |text: &str| text.trim_start_matches(|sign: char| sign.is_ascii_digit() || "._".contains(sign)).len();
    let rest = digits(text);
    let exponent = &text[text.len() - rest..];
    let exponent =
        exponent.strip_prefix(['e', 'E']).map(|power| power.strip_prefix(['+', '-']).unwrap_or(power));
    let rest = exponent
        .map(|power| (power.len(), digits(power)))
        .filter(|(all, rest)| rest < all)
        .map_or(rest, |(_, rest)| rest);
    text.len() - rest
}

//! [`evaluate`]: arithmetic for the tool `calculator`. Pure.
//!
//! Whole numbers stay exact up to 38 digits; a result that is none is a binary fraction, shown with twelve
//! digits. Operators are those of Python, and `^` is a power as well.

use super::numbers::Number;

/// A longer expression is no arithmetic by hand any more.
const LONGEST: usize = 2_000;
/// Deeper brackets would take the stack.
const DEEPEST: usize = 64;

/// The value of an expression, or what is wrong with it.
pub(crate) fn evaluate(expression: &str) -> Result<String, String> {
    if expression.len() > LONGEST {
        return Err(format!("the expression is longer than {LONGEST} characters: divide it"));
    }
    let tokens = tokens(expression)?;
    let mut parser = Parser { tokens: &tokens, at: 0, depth: 0 };
    let value = parser.sum()?;
    match parser.peek() {
        None => value.shown(),
        Some(token) => Err(format!("unexpected {} after the end of the expression", token.text())),
    }
}

#[derive(Clone, Debug, PartialEq)]
enum Token {
    Number(Number),
    Name(String),
    /// An operator, a bracket or a comma.
    Sign(&'static str),
}

impl Token {
    fn text(&self) -> String {
        match self {
            Token::Number(number) => format!("`{}`", number.shown().unwrap_or_default()),
            Token::Name(name) => format!("`{name}`"),
            Token::Sign(sign) => format!("`{sign}`"),
        }
    }
}

/// The longer sign of two that begin alike is first.
const SIGNS: [&str; 13] = ["**", "//", "+", "-", "*", "/", "%", "^", "(", ")", ",", "!", "="];

fn tokens(text: &str) -> Result<Vec<Token>, String> {
    let text = text.replace(['×', '·'], "*").replace('÷', "/").replace('−', "-");
    let mut tokens = Vec::new();
    let mut rest = text.as_str();
    while let Some(first) = rest.chars().next() {
        let length = if first.is_whitespace() {
            first.len_utf8()
        } else if first.is_ascii_digit() || first == '.' {
            let length = number_length(rest);
            let digits = rest[..length].replace('_', "");
            let number =
                Number::parse(&digits).ok_or_else(|| format!("`{}` is no number", &rest[..length]))?;
            tokens.push(Token::Number(number));
            length
        } else if first.is_alphabetic() {
            let is_part = |letter: char| letter.is_alphanumeric() || letter == '_' || letter == '.';
            let length = rest.find(|letter| !is_part(letter)).unwrap_or(rest.len());
            let name = rest[..length].to_lowercase();
            tokens.push(Token::Name(name.strip_prefix("math.").unwrap_or(&name).to_owned()));
            length
        } else {
            let sign = SIGNS.iter().find(|sign| rest.starts_with(**sign));
            let sign = sign.ok_or_else(|| format!("`{first}` is no part of arithmetic"))?;
            tokens.push(Token::Sign(sign));
            sign.len()
        };
        rest = &rest[length..];
    }
    Ok(tokens)
}

/// The length of a number at the start of a text, with its exponent.
fn number_length(text: &str) -> usize {
    let bytes = text.as_bytes();
    let digits = |mut at: usize| {
        while bytes.get(at).is_some_and(|byte| byte.is_ascii_digit() || *byte == b'_') {
            at += 1;
        }
        at
    };
    let mut end = digits(0);
    if bytes.get(end) == Some(&b'.') {
        end = digits(end + 1);
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let sign = end + 1 + usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        let exponent = digits(sign);
        if exponent > sign {
            end = exponent;
        }
    }
    end
}

struct Parser<'t> {
    tokens: &'t [Token],
    at: usize,
    depth: usize,
}

impl Parser<'_> {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at)
    }

    /// Takes one of these signs, if it is next.
    fn take(&mut self, signs: &[&'static str]) -> Option<&'static str> {
        match self.peek() {
            Some(Token::Sign(sign)) if signs.contains(sign) => {
                let sign = *sign;
                self.at += 1;
                Some(sign)
            }
            _ => None,
        }
    }

    fn expect(&mut self, sign: &'static str) -> Result<(), String> {
        match self.take(&[sign]) {
            Some(_) => Ok(()),
            None => Err(format!("a `{sign}` is missing")),
        }
    }

    fn sum(&mut self) -> Result<Number, String> {
        let mut value = self.product()?;
        while let Some(sign) = self.take(&["+", "-"]) {
            let other = self.product()?;
            value = if sign == "+" { value.plus(other) } else { value.plus(other.negated()) };
        }
        Ok(value)
    }

    fn product(&mut self) -> Result<Number, String> {
        let mut value = self.signed()?;
        while let Some(sign) = self.take(&["*", "/", "//", "%"]) {
            let other = self.signed()?;
            value = match sign {
                "*" => value.times(other),
                "/" => value.divided_by(other)?,
                "//" => value.floor_divided_by(other)?,
                _ => value.modulo(other)?,
            };
        }
        Ok(value)
    }

    /// A sign binds weaker than a power: `-2^2` is -4.
    fn signed(&mut self) -> Result<Number, String> {
        match self.take(&["+", "-"]) {
            Some(sign) => {
                let value = self.deeper(Self::signed)?;
                Ok(if sign == "-" { value.negated() } else { value })
            }
            None => self.power(),
        }
    }

    fn power(&mut self) -> Result<Number, String> {
        let base = self.factorial()?;
        match self.take(&["^", "**"]) {
            // From the right, and with a sign of its own: `2^-3^2`.
            Some(_) => base.to_the(self.deeper(Self::signed)?),
            None => Ok(base),
        }
    }

    fn factorial(&mut self) -> Result<Number, String> {
        let mut value = self.atom()?;
        while self.take(&["!"]).is_some() {
            value = value.factorial()?;
        }
        Ok(value)
    }

    fn atom(&mut self) -> Result<Number, String> {
        let token = self.peek().cloned();
        self.at += 1;
        match token {
            Some(Token::Number(number)) => Ok(number),
            Some(Token::Sign("(")) => {
                let value = self.deeper(Self::sum)?;
                self.expect(")")?;
                Ok(value)
            }
            Some(Token::Name(name)) => self.named(&name),
            Some(token) => Err(format!("a number is missing before {}", token.text())),
            None => Err("a number is missing at the end".to_owned()),
        }
    }

    fn named(&mut self, name: &str) -> Result<Number, String> {
        match name {
            "pi" | "π" => return Ok(Number::Fraction(std::f64::consts::PI)),
            "e" => return Ok(Number::Fraction(std::f64::consts::E)),
            "tau" => return Ok(Number::Fraction(std::f64::consts::TAU)),
            _ => {}
        }
        if self.take(&["("]).is_none() {
            return Err(format!("`{name}` is unknown"));
        }
        let mut arguments = Vec::new();
        if self.take(&[")"]).is_none() {
            arguments.push(self.deeper(Self::sum)?);
            while self.take(&[","]).is_some() {
                arguments.push(self.deeper(Self::sum)?);
            }
            self.expect(")")?;
        }
        super::numbers::call(name, &arguments)
    }

    fn deeper(&mut self, parse: fn(&mut Self) -> Result<Number, String>) -> Result<Number, String> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(format!("the expression is nested deeper than {DEEPEST} levels"));
        }
        let value = parse(self);
        self.depth -= 1;
        value
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn expressions_have_the_value_that_python_gives_them() {
        let cases = [
            ("2 + 3 * 4", "14"),
            ("(2 + 3) * 4", "20"),
            ("2 ** 3 ** 2", "512"),
            ("-2 ^ 2", "-4"),
            ("2 ^ -1", "0.5"),
            ("7 // 2", "3"),
            ("-7 // 2", "-4"),
            ("-7 % 3", "2"),
            ("7 % -3", "-2"),
            ("7.5 % 2", "1.5"),
            ("10 / 4", "2.5"),
            ("10 / 5", "2"),
            ("0.1 + 0.2", "0.3"),
            ("1 / 3", "0.333333333333"),
            ("2 ** 100", "1267650600228229401496703205376"),
            ("20!", "2432902008176640000"),
            ("factorial(5) + gcd(12, 18) + lcm(4, 6)", "138"),
            ("sqrt(16) + abs(-3)", "7"),
            ("math.sqrt(2)", "1.41421356237"),
            ("round(2.675, 1)", "2.7"),
            ("round(-2.5)", "-3"),
            ("floor(-2.5) + ceil(2.1)", "0"),
            ("max(3, 9, 2) - min(3, 9, 2)", "7"),
            ("sum(1, 2, 3) / 3", "2"),
            ("log10(1000) + log(e) + log2(8) + log(81, 3)", "11"),
            ("sin(pi / 2) + cos(0)", "2"),
            ("1e3 + 1_000", "2000"),
            (".5 + 5.", "5.5"),
            ("3 × 4 ÷ 6 − 1", "1"),
            ("1e300 * 10", "1e301"),
            ("2 ** 0.5", "1.41421356237"),
            ("(-8) ** 3", "-512"),
            ("99999999999999999999 + 1", "100000000000000000000"),
        ];
        for (expression, value) in cases {
            assert_eq!(evaluate(expression).as_deref(), Ok(value), "{expression}");
        }
    }

    #[test]
    fn hostile_expressions_are_errors_and_end_at_once() {
        let deep = "(".repeat(1_000) + "1";
        let signs = "-".repeat(1_500) + "1";
        let powers = "2^".repeat(900) + "2";
        let long = "1+".repeat(2_000) + "1";
        let calls = "sqrt(".repeat(300);
        for expression in [
            "",
            " ",
            "2 +",
            "* 2",
            "(2",
            "2)",
            "2 3",
            "1 / 0",
            "1 // 0",
            "1 % 0",
            "0 ** -1",
            "9 ** 9 ** 9 ** 9",
            "999999999!",
            "2.5!",
            "(-1)!",
            "sqrt(-1)",
            "(-8) ** 0.5",
            "log(0)",
            "log(-1)",
            "foo(1)",
            "foo",
            "1,000",
            "__import__('os').system('ls')",
            "1; 2",
            "x = 1",
            "1.2.3",
            "sqrt()",
            "sqrt(1, 2)",
            "max()",
            "\u{0}",
            "٣ + 1",
            "1e999",
            "10 ** 400",
            deep.as_str(),
            signs.as_str(),
            powers.as_str(),
            long.as_str(),
            calls.as_str(),
        ] {
            assert!(evaluate(expression).is_err(), "{expression}: {:?}", evaluate(expression));
        }
    }

    /// An expression, with its value by the obvious recursion over fractions of whole numbers.
    #[derive(Clone, Debug)]
    enum Tree {
        Leaf(i64),
        Node(Box<Tree>, char, Box<Tree>),
    }

    impl Tree {
        fn text(&self) -> String {
            match self {
                Tree::Leaf(number) if *number < 0 => format!("({number})"),
                Tree::Leaf(number) => number.to_string(),
                Tree::Node(left, sign, right) => format!("({} {sign} {})", left.text(), right.text()),
            }
        }

        fn value(&self) -> Option<i128> {
            match self {
                Tree::Leaf(number) => Some((*number).into()),
                Tree::Node(left, sign, right) => {
                    let (left, right) = (left.value()?, right.value()?);
                    match sign {
                        '+' => left.checked_add(right),
                        '-' => left.checked_sub(right),
                        '*' => left.checked_mul(right),
                        _ => (right != 0).then(|| {
                            left.rem_euclid(right.abs())
                                + if right < 0 && left.rem_euclid(right.abs()) != 0 { right } else { 0 }
                        }),
                    }
                }
            }
        }
    }

    fn trees() -> impl Strategy<Value = Tree> {
        (-50_i64..50).prop_map(Tree::Leaf).prop_recursive(5, 40, 2, |inner| {
            let sign = prop_oneof![Just('+'), Just('-'), Just('*'), Just('%')];
            (inner.clone(), sign, inner)
                .prop_map(|(left, sign, right)| Tree::Node(left.into(), sign, right.into()))
        })
    }

    proptest! {
        #[test]
        fn whole_numbers_are_exact(tree in trees()) {
            let found = evaluate(&tree.text());
            match tree.value() {
                Some(value) => prop_assert_eq!(found, Ok(value.to_string())),
                // An overflow is a rounded number, a division by nothing an error.
                None => prop_assert!(found.map_or(true, |found| found.parse::<f64>().is_ok())),
            }
        }

        #[test]
        fn no_text_makes_it_panic(text in "[-+*/%^()!,.0-9a-z ]{0,60}") {
            let _ = evaluate(&text);
        }
    }
}

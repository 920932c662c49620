//! The error messages of a JavaScript engine for a text that is not JSON, which the original passes on.

/// The number of characters shown on either side of an unexpected one.
const SHOWN: usize = 10;

/// The error message for a body; `None` if the engine accepts it. A body must be an object or an array.
pub(crate) fn complaint(text: &str) -> Option<String> {
    let units: Vec<u16> = text.encode_utf16().collect();
    let mut reader = Reader { units: &units, at: 0 };
    reader.skip_space();
    match reader.peek() {
        None => Some(END.to_owned()),
        Some('{' | '[') => reader.whole().err(),
        Some(_) => Some(reader.unexpected()),
    }
}

const END: &str = "Unexpected end of JSON input";

struct Reader<'t> {
    units: &'t [u16],
    at: usize,
}

type ReadResult = Result<(), String>;

impl Reader<'_> {
    fn whole(&mut self) -> ReadResult {
        self.value()?;
        self.skip_space();
        if self.at == self.units.len() {
            return Ok(());
        }
        Err(self.here("Unexpected non-whitespace character after JSON"))
    }

    /// Reads a value with all of its content, without recursion, since texts may be nested deeply.
    fn value(&mut self) -> ReadResult {
        let mut around = Vec::new();
        loop {
            self.skip_space();
            let opened = match self.peek() {
                Some('{') => self.opens('}', Self::first_name)?.then_some('}'),
                Some('[') => self.opens(']', |_| Ok(()))?.then_some(']'),
                _ => self.scalar().map(|()| None)?,
            };
            around.extend(opened);
            if opened.is_none() && self.ends_all(&mut around)? {
                return Ok(());
            }
        }
    }

    /// Enters an object or array, unless it is empty.
    fn opens(&mut self, end: char, begin: fn(&mut Self) -> ReadResult) -> Result<bool, String> {
        self.at += 1;
        self.skip_space();
        if self.takes(end) {
            return Ok(false);
        }
        begin(self).map(|()| true)
    }

    /// Leaves the containers that end after a value. Returns whether the whole text has ended.
    fn ends_all(&mut self, around: &mut Vec<char>) -> Result<bool, String> {
        while let Some(&end) = around.last() {
            self.skip_space();
            if self.takes(end) {
                around.pop();
            } else if self.takes(',') {
                if end == '}' {
                    self.next_name()?;
                }
                return Ok(false);
            } else if end == '}' {
                return Err(self.here("Expected ',' or '}' after property value in JSON"));
            } else {
                return Err(self.here("Expected ',' or ']' after array element in JSON"));
            }
        }
        Ok(true)
    }

    fn first_name(&mut self) -> ReadResult {
        self.name("Expected property name or '}' in JSON")
    }

    fn next_name(&mut self) -> ReadResult {
        self.skip_space();
        self.name("Expected double-quoted property name in JSON")
    }

    fn name(&mut self, wanted: &str) -> ReadResult {
        if self.peek() != Some('"') {
            return Err(self.here(wanted));
        }
        self.string()?;
        self.skip_space();
        if self.takes(':') { Ok(()) } else { Err(self.here("Expected ':' after property name in JSON")) }
    }

    fn scalar(&mut self) -> ReadResult {
        match self.peek() {
            Some('"') => self.string(),
            Some('t') => self.literal("true"),
            Some('f') => self.literal("false"),
            Some('n') => self.literal("null"),
            Some('-' | '0'..='9') => self.number(),
            _ => Err(self.unexpected()),
        }
    }

    fn string(&mut self) -> ReadResult {
        self.at += 1;
        loop {
            match self.peek() {
                None => return Err(self.here("Unterminated string in JSON")),
                Some('"') => {
                    self.at += 1;
                    return Ok(());
                }
                Some('\\') => self.escape()?,
                Some(c) if c < ' ' => {
                    return Err(self.here("Bad control character in string literal in JSON"));
                }
                Some(_) => self.at += 1,
            }
        }
    }

    fn escape(&mut self) -> ReadResult {
        self.at += 1;
        match self.peek() {
            None => Err(self.here("Unterminated string in JSON")),
            Some('"' | '\\' | '/' | 'b' | 'f' | 'n' | 'r' | 't') => {
                self.at += 1;
                Ok(())
            }
            Some('u') => {
                self.at += 1;
                (0..4).try_for_each(|_| {
                    if !self.peek().is_some_and(|c| c.is_ascii_hexdigit()) {
                        return Err(self.here("Bad Unicode escape in JSON"));
                    }
                    self.at += 1;
                    Ok(())
                })
            }
            Some(_) => Err(self.here("Bad escaped character in JSON")),
        }
    }

    fn literal(&mut self, word: &str) -> ReadResult {
        word.chars().try_for_each(|c| if self.takes(c) { Ok(()) } else { Err(self.unexpected()) })
    }

    fn number(&mut self) -> ReadResult {
        if self.takes('-') && !self.is_digit() {
            return Err(self.here("No number after minus sign in JSON"));
        }
        if self.takes('0') {
            if self.is_digit() {
                return Err(self.here("Unexpected number in JSON"));
            }
        } else {
            self.digits();
        }
        if self.takes('.') {
            if !self.is_digit() {
                return Err(self.here("Unterminated fractional number in JSON"));
            }
            self.digits();
        }
        if self.takes('e') || self.takes('E') {
            let _ = self.takes('+') || self.takes('-');
            if !self.is_digit() {
                return Err(self.here("Exponent part is missing a number in JSON"));
            }
            self.digits();
        }
        Ok(())
    }

    fn digits(&mut self) {
        while self.is_digit() {
            self.at += 1;
        }
    }

    fn is_digit(&self) -> bool {
        self.peek().is_some_and(|c| c.is_ascii_digit())
    }

    fn peek(&self) -> Option<char> {
        // A lone surrogate behaves like any character without a meaning in JSON.
        self.units.get(self.at).map(|&unit| char::from_u32(unit.into()).unwrap_or('\u{fffd}'))
    }

    fn takes(&mut self, wanted: char) -> bool {
        let takes = self.peek() == Some(wanted);
        self.at += usize::from(takes);
        takes
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(' ' | '\t' | '\n' | '\r')) {
            self.at += 1;
        }
    }

    fn here(&self, what: &str) -> String {
        format!("{what} at position {}", self.at)
    }

    /// The unexpected character with its surroundings, shortened in a long text.
    fn unexpected(&self) -> String {
        match self.peek() {
            None => return END.to_owned(),
            Some('0'..='9') if self.is_inside() => return self.here("Unexpected number in JSON"),
            Some('"') if self.is_inside() => return self.here("Unexpected string in JSON"),
            Some(_) => {}
        }
        let end = self.units.len();
        let at = self.at;
        let is_long = end > 2 * SHOWN;
        let from = if is_long { at.saturating_sub(SHOWN) } else { 0 };
        let to = if is_long && at + SHOWN < end { at + SHOWN } else { end };
        let (before, after) =
            (if is_long && at >= SHOWN { "..." } else { "" }, if to < end { "..." } else { "" });
        let text = |range: std::ops::Range<usize>| String::from_utf16_lossy(&self.units[range]);
        let token = text(at..at + 1);
        let shown = text(from..to);
        format!("Unexpected token '{token}', {before}\"{shown}\"{after} is not valid JSON")
    }

    /// A body that is a bare number or string is rejected at its first character.
    fn is_inside(&self) -> bool {
        let first = self.units.iter().find(|&&unit| !matches!(unit, 0x20 | 0x09 | 0x0a | 0x0d));
        first.is_some_and(|&unit| unit == u16::from(b'{') || unit == u16::from(b'['))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_json_gets_the_error_message_of_the_javascript_engine() {
        let cases = [
            ("{bad", "Expected property name or '}' in JSON at position 1"),
            ("{", "Expected property name or '}' in JSON at position 1"),
            ("[", "Unexpected end of JSON input"),
            ("  ", "Unexpected end of JSON input"),
            ("{\"a\"", "Expected ':' after property name in JSON at position 4"),
            ("{\"a\":", "Unexpected end of JSON input"),
            ("{\"a\":1", "Expected ',' or '}' after property value in JSON at position 6"),
            ("{\"a\":1,}", "Expected double-quoted property name in JSON at position 7"),
            ("{\"a\":1 \"b\":2}", "Expected ',' or '}' after property value in JSON at position 7"),
            ("[1 2]", "Expected ',' or ']' after array element in JSON at position 3"),
            ("[1,]", "Unexpected token ']', \"[1,]\" is not valid JSON"),
            ("{} x", "Unexpected non-whitespace character after JSON at position 3"),
            ("{\"a", "Unterminated string in JSON at position 3"),
            ("{\"a\\x\":1}", "Bad escaped character in JSON at position 4"),
            ("{\"a\": tru}", "Unexpected token '}', \"{\"a\": tru}\" is not valid JSON"),
            ("{\"a\": -x}", "No number after minus sign in JSON at position 7"),
            ("{\"a\": 1.}", "Unterminated fractional number in JSON at position 8"),
            ("hello", "Unexpected token 'h', \"hello\" is not valid JSON"),
            ("5", "Unexpected token '5', \"5\" is not valid JSON"),
            ("name=a&other=thing&more=1", "Unexpected token 'n', \"name=a&oth\"... is not valid JSON"),
            (
                "{\"name\": undefined, \"more\": 1}",
                "Unexpected token 'u', \"{\"name\": undefined,\"... is not valid JSON",
            ),
            (
                "{\"first\": 1, \"second\": undefined, \"more\": 1}",
                "Unexpected token 'u', ...\"\"second\": undefined,\"... is not valid JSON",
            ),
        ];
        for (text, told) in cases {
            assert_eq!(complaint(text).as_deref(), Some(told), "{text}");
        }
    }

    #[test]
    fn valid_json_is_accepted_and_deep_nesting_does_not_overflow() {
        let whole = "{\"a\": [1, -2.5e+3, true, null, \"\\u00e9\\n\"], \"b\": {}}";
        assert_eq!(complaint(whole), None);
        assert_eq!(complaint(&"[".repeat(1 << 20)).as_deref(), Some(END));
    }
}

//! Arithmetic in values: `(16*4k)`, `8*$pagesize`.
//!
//! Numbers with suffixes, `+ - * / % ^` and parentheses, evaluated in floating point. fio does this with bison if it
//! was built with it, and with `bc` after `$pagesize` and similar keywords.

/// Evaluates an expression. `None` if it is invalid, divides by zero, or is negative or not finite. `unit` returns
/// the factor of a suffix.
pub(super) fn evaluate(text: &str, unit: &dyn Fn(&str) -> Option<f64>) -> Option<f64> {
    let mut rest = Rest {
        text,
        unit,
        depth: 0,
    };
    let value = rest.sum()?;
    rest.skip_blanks();
    (rest.text.is_empty() && value.is_finite() && value >= 0.0).then_some(value)
}

struct Rest<'a> {
    text: &'a str,
    unit: &'a dyn Fn(&str) -> Option<f64>,
    depth: u32,
}

impl Rest<'_> {
    fn skip_blanks(&mut self) {
        self.text = self.text.trim_start();
    }

    fn take(&mut self, operators: &[char]) -> Option<char> {
        self.skip_blanks();
        let first = self
            .text
            .chars()
            .next()
            .filter(|first| operators.contains(first))?;
        self.text = &self.text[first.len_utf8()..];
        Some(first)
    }

    fn sum(&mut self) -> Option<f64> {
        let mut value = self.product()?;
        while let Some(operator) = self.take(&['+', '-']) {
            let other = self.product()?;
            value += if operator == '+' { other } else { -other };
        }
        Some(value)
    }

    fn product(&mut self) -> Option<f64> {
        let mut value = self.power()?;
        while let Some(operator) = self.take(&['*', '/', '%']) {
            let other = self.power()?;
            value = match operator {
                '*' => value * other,
                _ if other == 0.0 => return None,
                '/' => libm::trunc(value / other),
                _ => libm::fmod(value, other),
            };
        }
        Some(value)
    }

    fn power(&mut self) -> Option<f64> {
        let value = self.suffixed()?;
        if self.take(&['^']).is_some() {
            self.deeper()?;
            let exponent = self.power()?;
            self.depth -= 1;
            return Some(libm::pow(value, exponent));
        }
        Some(value)
    }

    fn suffixed(&mut self) -> Option<f64> {
        let value = self.atom()?;
        let end = self
            .text
            .find(|letter: char| !letter.is_ascii_alphabetic())
            .unwrap_or(self.text.len());
        let (suffix, rest) = self.text.split_at(end);
        self.text = rest;
        if suffix.is_empty() {
            Some(value)
        } else {
            Some(value * (self.unit)(suffix)?)
        }
    }

    fn atom(&mut self) -> Option<f64> {
        if self.take(&['(']).is_some() {
            self.deeper()?;
            let value = self.sum()?;
            self.depth -= 1;
            self.take(&[')'])?;
            return Some(value);
        }
        if self.take(&['-']).is_some() {
            self.deeper()?;
            let value = self.atom()?;
            self.depth -= 1;
            return Some(-value);
        }
        self.skip_blanks();
        let end = self
            .text
            .find(|letter: char| !letter.is_ascii_digit() && letter != '.')
            .unwrap_or(self.text.len());
        let (digits, rest) = self.text.split_at(end);
        self.text = rest;
        digits.parse().ok()
    }

    /// Limits the nesting, so that no input overflows the stack.
    fn deeper(&mut self) -> Option<()> {
        self.depth += 1;
        (self.depth < 64).then_some(())
    }
}

//! The expression language of metrics: arithmetic over figures of runs and of the catalogue.
//!
//! Examples: `optane.read.iops / flash.read.iops`, `knee(sweep.read.iops)`, `crossing(a.read.mb_s, b.read.mb_s)`. A
//! figure of a measurement with a sweep is a series with one value for each point. Arithmetic of two series combines
//! them point by point; arithmetic of a series and a number applies the number to each point. There are intentionally
//! no variables, loops or user functions.

use std::fmt;

/// A parsed metric.
#[derive(Clone, Debug, PartialEq)]
pub enum Expression {
    /// A number as written.
    Number(f64),
    /// A figure: the name of a measurement or a drive, and, after the first dot, the name of the figure.
    Figure {
        /// Name of the measurement or drive.
        owner: String,
        /// Name of the figure, such as `read.p99_us`.
        name: String,
    },
    /// A call of one of the fixed functions.
    Call(Function, Vec<Expression>),
    /// An operator with its two operands.
    Binary(Operator, Box<Expression>, Box<Expression>),
}

/// An arithmetic operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `*`
    Multiply,
    /// `/`
    Divide,
}

/// A function that a metric can call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Function {
    /// The least of all arguments and of all their points.
    Min,
    /// The greatest of all arguments and of all their points.
    Max,
    /// The mean of all arguments and of all their points.
    Mean,
    /// `at(series, x)`: the value at one point of the sweep.
    At,
    /// `from(series, x)`: the points at and above `x`.
    From,
    /// `upto(series, x)`: the points up to `x`.
    UpTo,
    /// `crossing(a, b)`: the first point at and after which `a` is above `b`.
    Crossing,
    /// `first_above(a, b)`: the first point at which `a` is above `b`.
    FirstAbove,
    /// `knee(series)` or `knee(series, 0.95)`: the first point that reaches this share of the greatest value.
    Knee,
    /// `abs(x)`.
    Abs,
    /// `round(x)`, halves away from zero.
    Round,
    /// `floor(x)`.
    Floor,
}

/// Name, function, minimum and maximum number of arguments.
const FUNCTIONS: &[(&str, Function, usize, usize)] = &[
    ("min", Function::Min, 1, 99),
    ("max", Function::Max, 1, 99),
    ("mean", Function::Mean, 1, 99),
    ("at", Function::At, 2, 2),
    ("from", Function::From, 2, 2),
    ("upto", Function::UpTo, 2, 2),
    ("crossing", Function::Crossing, 2, 2),
    ("first_above", Function::FirstAbove, 2, 2),
    ("knee", Function::Knee, 1, 2),
    ("abs", Function::Abs, 1, 1),
    ("round", Function::Round, 1, 1),
    ("floor", Function::Floor, 1, 1),
];

/// An error in an expression, as a message for the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpressionError(pub String);

impl fmt::Display for ExpressionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn expression_error<T>(what: impl Into<String>) -> Result<T, ExpressionError> {
    Err(ExpressionError(what.into()))
}

#[derive(Clone, Debug, PartialEq)]
enum Token {
    Number(f64),
    Name(String),
    Sign(char),
}

fn tokens(text: &str) -> Result<Vec<Token>, ExpressionError> {
    let mut found = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let part = |keep: fn(char) -> bool| {
            let end = rest.find(|c: char| !keep(c)).unwrap_or(rest.len());
            rest.split_at(end)
        };
        let after;
        if first.is_ascii_digit() {
            let (word, tail) = part(|c| c.is_ascii_digit() || c == '.' || c == '_');
            let Ok(number) = word.replace('_', "").parse() else {
                return expression_error(format!("`{word}` is not a number"));
            };
            found.push(Token::Number(number));
            after = tail;
        } else if first.is_ascii_alphabetic() {
            let (word, tail) = part(|c| c.is_ascii_alphanumeric() || c == '_' || c == '.');
            found.push(Token::Name(word.to_owned()));
            after = tail;
        } else if "+-*/(),".contains(first) {
            found.push(Token::Sign(first));
            after = &rest[1..];
        } else {
            return expression_error(format!("`{first}` is not valid in a metric"));
        }
        rest = after.trim_start();
    }
    Ok(found)
}

/// Maximum nesting: people must be able to read a metric.
const DEEPEST: u32 = 40;

struct Parser {
    tokens: Vec<Token>,
    next: usize,
    depth: u32,
}

impl Parser {
    fn sign(&mut self, choices: &str) -> Option<char> {
        match self.tokens.get(self.next) {
            Some(&Token::Sign(sign)) if choices.contains(sign) => {
                self.next += 1;
                Some(sign)
            }
            _ => None,
        }
    }

    fn sum(&mut self) -> Result<Expression, ExpressionError> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return expression_error("the metric is nested too deeply");
        }
        let mut left = self.product()?;
        while let Some(sign) = self.sign("+-") {
            let operator = if sign == '+' {
                Operator::Add
            } else {
                Operator::Subtract
            };
            left = Expression::Binary(operator, Box::new(left), Box::new(self.product()?));
        }
        self.depth -= 1;
        Ok(left)
    }

    fn product(&mut self) -> Result<Expression, ExpressionError> {
        let mut left = self.atom()?;
        while let Some(sign) = self.sign("*/") {
            let operator = if sign == '*' {
                Operator::Multiply
            } else {
                Operator::Divide
            };
            left = Expression::Binary(operator, Box::new(left), Box::new(self.atom()?));
        }
        Ok(left)
    }

    fn atom(&mut self) -> Result<Expression, ExpressionError> {
        let Some(token) = self.tokens.get(self.next).cloned() else {
            return expression_error("the metric ends too early");
        };
        self.next += 1;
        match token {
            Token::Number(number) => Ok(Expression::Number(number)),
            Token::Sign('(') => {
                let inner = self.sum()?;
                match self.sign(")") {
                    Some(_) => Ok(inner),
                    None => expression_error("a `(` is not closed"),
                }
            }
            Token::Sign(sign) => {
                expression_error(format!("`{sign}` where a figure or a number is expected"))
            }
            Token::Name(name) if self.sign("(").is_some() => self.call(&name),
            Token::Name(name) => match name.split_once('.') {
                Some((owner, figure)) if !figure.is_empty() => Ok(Expression::Figure {
                    owner: owner.to_owned(),
                    name: figure.to_owned(),
                }),
                _ => expression_error(format!(
                    "`{name}` is not a figure: write the measurement, a dot and its figure, such as `{name}.read.iops`"
                )),
            },
        }
    }

    fn call(&mut self, name: &str) -> Result<Expression, ExpressionError> {
        let Some(&(_, function, fewest, most)) = FUNCTIONS.iter().find(|known| known.0 == name)
        else {
            let names: Vec<&str> = FUNCTIONS.iter().map(|known| known.0).collect();
            return expression_error(format!(
                "there is no function `{name}`; there are {}",
                names.join(", ")
            ));
        };
        let mut arguments = Vec::new();
        loop {
            arguments.push(self.sum()?);
            if self.sign(",").is_none() {
                break;
            }
        }
        if self.sign(")").is_none() {
            return expression_error(format!("the arguments of `{name}` are not closed by `)`"));
        }
        if !(fewest..=most).contains(&arguments.len()) {
            return expression_error(format!(
                "`{name}` does not take {} arguments",
                arguments.len()
            ));
        }
        Ok(Expression::Call(function, arguments))
    }
}

impl Expression {
    /// Parses a metric.
    ///
    /// # Errors
    /// The first error in the text.
    pub fn parse(text: &str) -> Result<Expression, ExpressionError> {
        let mut parser = Parser {
            tokens: tokens(text)?,
            next: 0,
            depth: 0,
        };
        let expression = parser.sum()?;
        match parser.tokens.get(parser.next) {
            None => Ok(expression),
            Some(token) => expression_error(format!("the metric should end before {token:?}")),
        }
    }

    /// Calls `visit` with owner and name of every figure in the expression.
    pub fn figures<'a>(&'a self, visit: &mut dyn FnMut(&'a str, &'a str)) {
        match self {
            Expression::Number(_) => {}
            Expression::Figure { owner, name } => visit(owner, name),
            Expression::Call(_, arguments) => {
                arguments
                    .iter()
                    .for_each(|argument| argument.figures(visit));
            }
            Expression::Binary(_, left, right) => {
                left.figures(visit);
                right.figures(visit);
            }
        }
    }

    /// Calls `visit` with the owner of every figure in the expression, and with the least and the greatest point of
    /// the sweep that the value depends on.
    pub fn points<'a>(&'a self, visit: &mut dyn FnMut(&'a str, (f64, f64))) {
        self.points_within((f64::NEG_INFINITY, f64::INFINITY), visit);
    }

    fn points_within<'a>(&'a self, all: (f64, f64), visit: &mut dyn FnMut(&'a str, (f64, f64))) {
        match self {
            Expression::Number(_) => {}
            Expression::Figure { owner, .. } => visit(owner, all),
            Expression::Binary(_, left, right) => {
                left.points_within(all, visit);
                right.points_within(all, visit);
            }
            Expression::Call(function, arguments) => {
                let (least, greatest) = match (function, &arguments[..]) {
                    (Function::At, [_, Expression::Number(x)]) => (*x, *x),
                    (Function::From, [_, Expression::Number(x)]) => (x.max(all.0), all.1),
                    (Function::UpTo, [_, Expression::Number(x)]) => (all.0, x.min(all.1)),
                    // Every other function uses all points of its arguments.
                    _ => (f64::NEG_INFINITY, f64::INFINITY),
                };
                for argument in arguments {
                    argument.points_within((least, greatest), visit);
                }
            }
        }
    }

    /// Returns the value of the expression, with figures from `look_up`.
    ///
    /// # Errors
    /// An error of `look_up`, or series with different points.
    pub fn value(
        &self,
        look_up: &dyn Fn(&str, &str) -> Result<Value, ExpressionError>,
    ) -> Result<Value, ExpressionError> {
        match self {
            Expression::Number(number) => Ok(Value::Number(*number)),
            Expression::Figure { owner, name } => look_up(owner, name),
            Expression::Binary(operator, left, right) => {
                let (left, right) = (left.value(look_up)?, right.value(look_up)?);
                left.combine(&right, |a, b| match operator {
                    Operator::Add => a + b,
                    Operator::Subtract => a - b,
                    Operator::Multiply => a * b,
                    Operator::Divide => a / b,
                })
            }
            Expression::Call(function, arguments) => {
                let values: Result<Vec<Value>, ExpressionError> = arguments
                    .iter()
                    .map(|argument| argument.value(look_up))
                    .collect();
                call(*function, &values?)
            }
        }
    }
}

/// Value of an expression.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A single number.
    Number(f64),
    /// One number for each point of a sweep, as (point, value), by ascending point.
    Series(Vec<(f64, f64)>),
}

impl Value {
    /// Returns the number.
    ///
    /// # Errors
    /// The value is a series.
    pub fn number(&self) -> Result<f64, ExpressionError> {
        match self {
            Value::Number(number) => Ok(*number),
            Value::Series(_) => expression_error(
                "a series where one number is expected: take at(), min(), max() of it",
            ),
        }
    }

    fn series(&self) -> Result<&[(f64, f64)], ExpressionError> {
        match self {
            Value::Series(points) => Ok(points),
            Value::Number(_) => expression_error(
                "one number where a series is expected: the measurement has no sweep",
            ),
        }
    }

    fn numbers(&self) -> Vec<f64> {
        match self {
            Value::Number(number) => vec![*number],
            Value::Series(points) => points.iter().map(|&(_, y)| y).collect(),
        }
    }

    fn combine(
        &self,
        other: &Value,
        combine: impl Fn(f64, f64) -> f64,
    ) -> Result<Value, ExpressionError> {
        Ok(match (self, other) {
            (Value::Number(a), Value::Number(b)) => Value::Number(combine(*a, *b)),
            (Value::Series(a), Value::Number(b)) => {
                Value::Series(a.iter().map(|&(x, y)| (x, combine(y, *b))).collect())
            }
            (Value::Number(a), Value::Series(b)) => {
                Value::Series(b.iter().map(|&(x, y)| (x, combine(*a, y))).collect())
            }
            (Value::Series(a), Value::Series(b)) => {
                let pairs: Vec<(f64, f64)> = a
                    .iter()
                    .filter_map(|&(x, y)| {
                        let &(_, other) = b.iter().find(|&&(at, _)| at == x)?;
                        Some((x, combine(y, other)))
                    })
                    .collect();
                if pairs.is_empty() {
                    return expression_error("two sweeps without a point in common");
                }
                Value::Series(pairs)
            }
        })
    }
}

fn call(function: Function, values: &[Value]) -> Result<Value, ExpressionError> {
    let all = || values.iter().flat_map(Value::numbers);
    let first = || values[0].number();
    Ok(match function {
        Function::Min => Value::Number(all().fold(f64::INFINITY, f64::min)),
        Function::Max => Value::Number(all().fold(f64::NEG_INFINITY, f64::max)),
        Function::Mean => Value::Number(all().sum::<f64>() / all().count() as f64),
        Function::Abs => Value::Number(first()?.abs()),
        Function::Round => Value::Number(libm::round(first()?)),
        Function::Floor => Value::Number(libm::floor(first()?)),
        Function::At => {
            let x = values[1].number()?;
            match values[0].series()?.iter().find(|&&(at, _)| at == x) {
                Some(&(_, y)) => Value::Number(y),
                None => return expression_error(format!("the sweep has no point {x}")),
            }
        }
        Function::From | Function::UpTo => {
            let x = values[1].number()?;
            let keeps = |at: f64| {
                if function == Function::From {
                    at >= x
                } else {
                    at <= x
                }
            };
            let points = values[0].series()?.iter().copied();
            let kept: Vec<(f64, f64)> = points.filter(|&(at, _)| keeps(at)).collect();
            if kept.is_empty() {
                return expression_error(format!("the sweep has no point on that side of {x}"));
            }
            Value::Series(kept)
        }
        Function::Crossing | Function::FirstAbove => {
            let over = values[0].combine(&values[1], |a, b| a - b)?;
            let points = over.series()?;
            let from = match function {
                Function::FirstAbove => points.iter().position(|&(_, over)| over > 0.0),
                _ => {
                    let last_below = points.iter().rposition(|&(_, over)| over <= 0.0);
                    Some(last_below.map_or(0, |index| index + 1))
                }
            };
            match from.and_then(|index| points.get(index)) {
                Some(&(x, _)) => Value::Number(x),
                None => return expression_error("it never crosses"),
            }
        }
        Function::Knee => {
            let share = values.get(1).map_or(Ok(KNEE), Value::number)?;
            let points = values[0].series()?;
            let most = points
                .iter()
                .fold(f64::NEG_INFINITY, |most, &(_, y)| most.max(y));
            match points.iter().find(|&&(_, y)| y >= share * most) {
                Some(&(x, _)) => Value::Number(x),
                None => return expression_error("the sweep has no knee"),
            }
        }
    })
}

/// Share of the greatest value at which a sweep counts as saturated. The missing rest is too small to see on a chart,
/// and S1 and S4 state that a greater depth brings no improvement at that point.
pub const KNEE: f64 = 0.995;

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> Result<Value, ExpressionError> {
        Expression::parse(text)?.value(&|owner, name| match (owner, name) {
            ("a", "read.iops") => Ok(Value::Series(vec![
                (1.0, 10.0),
                (2.0, 19.0),
                (4.0, 30.0),
                (8.0, 30.5),
            ])),
            ("b", "read.iops") => Ok(Value::Series(vec![
                (1.0, 5.0),
                (2.0, 20.0),
                (4.0, 29.0),
                (8.0, 30.0),
            ])),
            ("c", "read.p99.99_us") => Ok(Value::Number(7.0)),
            _ => Err(ExpressionError(format!("no {owner}.{name}"))),
        })
    }

    fn number(text: &str) -> f64 {
        value(text)
            .and_then(|value| value.number())
            .unwrap_or_else(|wrong| panic!("{text}: {wrong}"))
    }

    #[test]
    fn arithmetic_binds_as_usual() {
        assert_eq!(number("1 + 2 * 3 - 4 / 2"), 5.0);
        assert_eq!(number("(1 + 2) * 3"), 9.0);
        assert_eq!(number("10 - 3 - 2"), 5.0);
        assert_eq!(number("8 / 2 / 2"), 2.0);
        assert_eq!(number("c.read.p99.99_us * 1_000"), 7000.0);
    }

    #[test]
    fn points_that_matter_are_told() {
        let points = |text: &str| {
            let mut found = Vec::new();
            let expression = Expression::parse(text).expect("it is one");
            expression.points(&mut |owner, range| found.push((owner.to_owned(), range)));
            found
        };
        let (no, any) = (f64::NEG_INFINITY, f64::INFINITY);
        assert_eq!(
            points("at(a.x, 4) / c.y"),
            [("a".into(), (4.0, 4.0)), ("c".into(), (no, any))]
        );
        assert_eq!(
            points("mean(from(upto(a.x / b.x, 90), 10))"),
            [("a".into(), (10.0, 90.0)), ("b".into(), (10.0, 90.0))]
        );
        assert_eq!(points("knee(a.x)"), [("a".into(), (no, any))]);
    }

    #[test]
    fn series_have_knees_and_cross() {
        assert_eq!(number("knee(a.read.iops)"), 8.0);
        assert_eq!(number("knee(a.read.iops, 0.97)"), 4.0);
        assert_eq!(number("knee(a.read.iops, 0.3)"), 1.0);
        assert_eq!(number("crossing(a.read.iops, b.read.iops)"), 4.0);
        assert_eq!(number("first_above(a.read.iops, b.read.iops)"), 1.0);
        assert_eq!(number("crossing(a.read.iops, max(b.read.iops))"), 8.0);
        assert_eq!(number("at(a.read.iops, 2) / at(b.read.iops, 2)"), 0.95);
        assert_eq!(
            number("min(from(a.read.iops / b.read.iops, 4))"),
            30.5 / 30.0
        );
        assert_eq!(number("max(upto(a.read.iops, 2), 3)"), 19.0);
    }

    #[test]
    fn what_makes_no_sense_is_said() {
        for (text, part) in [
            ("a.read.iops", "a series where one number"),
            ("at(a.read.iops, 3)", "no point 3"),
            ("knee(c.read.p99.99_us)", "has no sweep"),
            ("crossing(b.read.iops, max(a.read.iops))", "never crosses"),
            ("a", "is not a figure"),
            ("1 +", "ends too early"),
            ("(1", "not closed"),
            ("1 2", "should end"),
            ("best(1)", "no function `best`"),
            ("at(1)", "does not take 1"),
            ("1 ^ 2", "is not valid in a metric"),
            ("1.2.3", "not a number"),
        ] {
            let said = value(text).and_then(|value| value.number());
            let said = said.expect_err(text).0;
            assert!(said.contains(part), "{text}: {said}");
        }
        let deep = format!("{}1{}", "(".repeat(100), ")".repeat(100));
        assert!(Expression::parse(&deep).is_err());
    }
}

//! The text of a query: its tokens, its syntax tree, and places in it.

use sqlparser::ast::{Query, Statement};
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Location, Span, Token, TokenWithSpan, Tokenizer};

use veil_relation::{At, RangeError, TypeError};

use crate::error::{Place, Problem, SqlError};

/// Longest text of a query: tenfold what people write.
const MOST_BYTES: usize = 1 << 18;

/// Most tokens of a query: long lists of values fit.
const MOST_TOKENS: usize = 4000;

/// Most operators of a query. They bound how deep the parser's tree can be where its own limit does not count, in chains such as `a + b + c`.
const MOST_OPERATORS: usize = 500;

/// Words that stand between or after operands.
const OPERATORS: [&str; 17] = [
    "AND",
    "OR",
    "NOT",
    "IS",
    "IN",
    "BETWEEN",
    "LIKE",
    "ILIKE",
    "SIMILAR",
    "ISNULL",
    "NOTNULL",
    "AT",
    "COLLATE",
    "OVERLAPS",
    "UNION",
    "EXCEPT",
    "INTERSECT",
];

/// Deepest nesting that the parser follows.
const MOST_NESTING: usize = 50;

const DIALECT: PostgreSqlDialect = PostgreSqlDialect {};

/// The beginning of a text.
const START: Span = Span {
    start: Location { line: 1, column: 1 },
    end: Location { line: 1, column: 1 },
};

/// What a text is that is put into a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// An expression.
    Expression,
    /// What stands behind FROM: a table, or tables that are joined.
    From,
}

impl Part {
    const fn what(self) -> &'static str {
        match self {
            Part::Expression => "an expression",
            Part::From => "tables and their joins",
        }
    }
}

/// Checks that a text is a part of a query and nothing more: what puts queries together of parts checks each of them first. What its names mean is not looked at.
///
/// # Errors
/// [`SqlError`], at a place of the text; `name` is in it as the name of the query.
pub fn check_part(name: &str, text: &str, part: Part) -> Result<(), SqlError> {
    Source::check_part(name, text, part)
}

/// A refusal of a plan that was made of a query, at a place of its text that the plan has kept.
#[must_use]
pub fn refused_at(
    query: &crate::Query,
    place: veil_relation::Place,
    what: String,
    instead: Option<&'static str>,
) -> SqlError {
    error_in(query, place, Problem::Refused { what, instead })
}

/// A refusal of a range in a plan that was made of a query, at a place of its text that the plan has kept.
#[must_use]
pub fn range_at(
    query: &crate::Query,
    place: veil_relation::Place,
    range: Box<RangeError>,
) -> SqlError {
    error_in(query, place, Problem::Type(TypeError::Range(range)))
}

/// An error at a place that a plan has kept.
pub(crate) fn error_in(
    query: &crate::Query,
    place: veil_relation::Place,
    problem: Problem,
) -> SqlError {
    let at = (place.line.into(), place.column.into());
    error_at((&query.name, &query.sql), at, problem)
}

/// An error at a line and column of a text, whose first ones are 1; line 0 is the beginning.
fn error_at((name, sql): (&str, &str), (line, column): (u64, u64), problem: Problem) -> SqlError {
    let lines = sql.lines().count().max(1) as u64;
    let excerpt = |line: u64| sql.lines().nth(line as usize - 1).unwrap_or_default();
    let column = if line == 0 { 1 } else { column };
    let line = line.clamp(1, lines);
    let excerpt = excerpt(line);
    let longest = excerpt.chars().count() as u64 + 1;
    SqlError {
        query: name.to_owned(),
        place: Place {
            line,
            column: column.clamp(1, longest),
        },
        excerpt: excerpt.to_owned(),
        problem: Box::new(problem),
    }
}

/// From which places on which query or subquery is the innermost one that is open.
fn scopes(tokens: &[TokenWithSpan]) -> Vec<(Location, u32)> {
    let (mut all, mut open) = (Vec::new(), vec![0]);
    for (number, token) in tokens.iter().enumerate() {
        match token.token {
            Token::LParen => {
                let next = tokens.get(number + 1).map(|next| &next.token);
                let begins = |word: &str| matches!(next, Some(Token::Word(found)) if found.value.eq_ignore_ascii_case(word));
                let outer = open.last().copied().unwrap_or(0);
                let query = begins("SELECT") || begins("WITH");
                open.push(if query { number as u32 + 1 } else { outer });
            }
            // One too many is refused by the parser.
            Token::RParen if open.len() > 1 => {
                open.pop();
            }
            _ => continue,
        }
        all.push((token.span.start, open.last().copied().unwrap_or(0)));
    }
    all
}

/// A query's text with its name.
pub(crate) struct Source<'a> {
    name: &'a str,
    sql: &'a str,
    tokens: Vec<TokenWithSpan>,
    /// Where queries and subqueries begin and end, in the order of the text: which one it is from there on.
    scopes: Vec<(Location, u32)>,
    /// Its number in the job.
    number: u32,
}

impl<'a> Source<'a> {
    /// Reads a text: its tokens, within the limits of a query, and a parser of them.
    fn read(name: &'a str, sql: &'a str) -> Result<(Self, Parser<'static>), SqlError> {
        let mut source = Self {
            name,
            sql,
            tokens: Vec::new(),
            scopes: Vec::new(),
            number: 0,
        };
        if sql.len() > MOST_BYTES {
            let (most, of) = (MOST_BYTES, "bytes");
            return Err(source.error(START, Problem::TooLarge { most, of }));
        }
        let tokens = Tokenizer::new(&DIALECT, sql).tokenize_with_location();
        let tokens = tokens.map_err(|error| {
            let at = Span::new(error.location, error.location);
            let message = error.message;
            source.error(at, Problem::Syntax { message })
        })?;
        let counted = tokens
            .iter()
            .filter(|token| !matches!(token.token, Token::Whitespace(_)));
        if let Some(excess) = counted.clone().nth(MOST_TOKENS) {
            let (most, of) = (MOST_TOKENS, "words and signs");
            return Err(source.error(excess.span, Problem::TooLarge { most, of }));
        }
        if let Some(excess) = counted
            .clone()
            .filter(|token| is_operator(&token.token))
            .nth(MOST_OPERATORS)
        {
            let (most, of) = (MOST_OPERATORS, "operators");
            return Err(source.error(excess.span, Problem::TooLarge { most, of }));
        }
        source.tokens = counted.cloned().collect();
        source.scopes = scopes(&source.tokens);
        let parser = Parser::new(&DIALECT)
            .with_recursion_limit(MOST_NESTING)
            .with_tokens_with_locations(tokens);
        Ok((source, parser))
    }

    /// Reads a text and parses it as one query.
    pub(crate) fn parse(name: &'a str, sql: &'a str) -> Result<(Self, Box<Query>), SqlError> {
        let (source, mut parser) = Self::read(name, sql)?;
        let statements = parser
            .parse_statements()
            .map_err(|error| source.syntax(error, START))?;
        match <[Statement; 1]>::try_from(statements) {
            Ok([Statement::Query(query)]) => Ok((source, query)),
            Ok([_]) => Err(source.refused(
                START,
                "only queries are in the dialect",
                Some("begin with SELECT or WITH"),
            )),
            Err(_) => Err(source.refused(
                START,
                "a query is one statement",
                Some("give each query its own name"),
            )),
        }
    }

    /// Checks that a text is a part of a query and nothing more, so that a query which is put together of parts is what they say.
    pub(crate) fn check_part(name: &'a str, sql: &'a str, part: Part) -> Result<(), SqlError> {
        let (source, mut parser) = Self::read(name, sql)?;
        let parsed = match part {
            Part::Expression => parser.parse_expr().map(drop),
            Part::From => parser.parse_table_and_joins().map(drop),
        };
        parsed.map_err(|error| source.syntax(error, START))?;
        let next = parser.peek_token();
        if next.token == Token::EOF {
            return Ok(());
        }
        let what = format!("`{}` stands behind {}", next.token, part.what());
        Err(source.refused(next.span, what, None))
    }

    /// The same text, of the query of this number in its job.
    pub(crate) fn numbered(self, number: u32) -> Self {
        Self { number, ..self }
    }

    /// What a plan keeps of a place.
    pub(crate) fn at(&self, at: Span) -> At {
        let place = |start: Location| veil_relation::Place {
            query: self.number,
            scope: self.scope(start),
            line: start.line as u32,
            column: start.column as u32,
        };
        At((at.start.line > 0).then(|| place(at.start)))
    }

    /// The query or subquery in which a place is: the number of the token that begins it, 0 for the outermost one.
    fn scope(&self, at: Location) -> u32 {
        let before = self.scopes.partition_point(|(from, _)| *from <= at);
        before.checked_sub(1).map_or(0, |last| self.scopes[last].1)
    }

    /// An error at a place; an empty place is the beginning.
    pub(crate) fn error(&self, at: Span, problem: Problem) -> SqlError {
        error_at(
            (self.name, self.sql),
            (at.start.line, at.start.column),
            problem,
        )
    }

    /// An error at a place that a plan has kept, if it is one of this text, else at another one.
    pub(crate) fn error_near(
        &self,
        place: veil_relation::Place,
        at: Span,
        problem: Problem,
    ) -> SqlError {
        if place.query != self.number {
            return self.error(at, problem);
        }
        let place = (place.line.into(), place.column.into());
        error_at((self.name, self.sql), place, problem)
    }

    /// A refusal at a place, with the way to say it.
    pub(crate) fn refused(
        &self,
        at: Span,
        what: impl Into<String>,
        instead: Option<&'static str>,
    ) -> SqlError {
        let what = what.into();
        self.error(at, Problem::Refused { what, instead })
    }

    /// Where a word occurs first; the beginning if it does not.
    pub(crate) fn word(&self, word: &str) -> Span {
        let is_word = |token: &&TokenWithSpan| matches!(&token.token, Token::Word(found) if found.value.eq_ignore_ascii_case(word));
        self.tokens
            .iter()
            .find(is_word)
            .map_or(Span::empty(), |token| token.span)
    }

    fn syntax(&self, error: ParserError, start: Span) -> SqlError {
        let message = match error {
            ParserError::RecursionLimitExceeded => {
                let (most, of) = (MOST_NESTING, "levels of nesting");
                return self.error(start, Problem::TooLarge { most, of });
            }
            ParserError::TokenizerError(message) | ParserError::ParserError(message) => message,
        };
        // The parser appends the place to its message.
        let (text, place) = match message.rsplit_once(" at Line: ") {
            Some((text, place)) => (text, place.split_once(", Column: ")),
            None => (message.as_str(), None),
        };
        let place = place.and_then(|(line, column)| {
            Some(Location::new(line.parse().ok()?, column.parse().ok()?))
        });
        let at = place.map_or(self.tokens.last().map_or(start, |token| token.span), |at| {
            Span::new(at, at)
        });
        let message = text.to_owned();
        self.error(at, Problem::Syntax { message })
    }
}

/// Whether a token can make the parser's tree deeper without nesting: every sign but those of lists, and the words among operators.
fn is_operator(token: &Token) -> bool {
    match token {
        Token::Word(word) => OPERATORS
            .iter()
            .any(|operator| word.value.eq_ignore_ascii_case(operator)),
        Token::Number(..)
        | Token::SingleQuotedString(_)
        | Token::Comma
        | Token::Period
        | Token::SemiColon
        | Token::LParen
        | Token::RParen
        | Token::EOF => false,
        _ => true,
    }
}

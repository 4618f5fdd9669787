//! Random expressions over random columns.

use veil_circuit::generate::Aim;
use veil_math::Ring;
use veil_relation::{
    Arithmetic, ColumnId, Comparison, DatePart, Expr, Function, Kind, Literal, Type, Value,
    calendar,
};

use super::{Random, categories, check, check_bits, decimals, integers};
use crate::exprs::{Form, Want, needs};

/// What an expression is made to be.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Class {
    Number,
    Ratio,
    Date,
    Bool,
    Category,
    Key,
}

struct Generator<'a> {
    random: &'a mut Random,
    types: &'a [Type],
}

fn class(kind: &Kind) -> Class {
    match kind {
        Kind::Integer(_) | Kind::Decimal { .. } => Class::Number,
        Kind::Ratio { .. } => Class::Ratio,
        Kind::Date(_) => Class::Date,
        Kind::Category(_) => Class::Category,
        Kind::Bool => Class::Bool,
        Kind::Key { .. } => Class::Key,
    }
}

fn boxed(expr: Expr) -> Box<Expr> {
    Box::new(expr)
}

impl Generator<'_> {
    /// An expression of a class that has a type; deep ones often have none, and are tried again.
    fn of(&mut self, class: Class, depth: u32) -> Expr {
        for _ in 0..8 {
            let expr = self.any(class, depth);
            if let Ok(ty) = expr.ty(self.types)
                && self::class(&ty.kind) == class
            {
                return expr;
            }
        }
        self.leaf(class)
    }

    fn leaf(&mut self, class: Class) -> Expr {
        let columns = self.types.iter().enumerate();
        let columns = columns.filter(|(_, ty)| self::class(&ty.kind) == class);
        let columns: Vec<u32> = columns.map(|(at, _)| at as u32).collect();
        if !columns.is_empty() && self.random.below(4) > 0 {
            return Expr::column(*self.random.of(&columns));
        }
        match class {
            Class::Number => self.number_literal(),
            Class::Ratio => {
                let above = self.leaf(Class::Number);
                Expr::Divide(boxed(above), boxed(Expr::integer(7)))
            }
            Class::Date => Expr::Literal(Literal::Date(self.random.below(30_000) as i32 - 9000)),
            Class::Bool if self.random.below(4) == 0 => Expr::Literal(Literal::Null(Kind::Bool)),
            Class::Bool => Expr::bool(self.random.below(2) == 1),
            Class::Category => match columns.first() {
                Some(&at) => self.category_literal(at),
                None => self.number_literal(),
            },
            Class::Key => columns
                .first()
                .map_or(Expr::bool(true), |at| Expr::column(*at)),
        }
    }

    fn category_literal(&mut self, column: u32) -> Expr {
        let Kind::Category(values) = &self.types[column as usize].kind else {
            return Expr::column(column);
        };
        let index = self.random.below(values.texts().len() as u64) as u16;
        let values = values.clone();
        Expr::Literal(Literal::Category { index, values })
    }

    fn number_literal(&mut self) -> Expr {
        let value = match self.random.below(4) {
            0 => i128::from(self.random.below(3)) - 1,
            1 => i128::from(self.random.below(2000)) - 1000,
            _ => i128::from(self.random.below(20)) - 5,
        };
        match self.random.below(4) {
            0 => Expr::Literal(Literal::Decimal {
                units: value,
                places: self.random.below(4) as u32,
            }),
            1 if self.random.below(3) == 0 => Expr::Literal(Literal::Null(integers(-3, 9).kind)),
            _ => Expr::integer(value),
        }
    }

    /// Two numbers with the same places.
    fn alike(&mut self, class: Class, depth: u32) -> (Expr, Expr) {
        let (a, b) = (self.of(class, depth), self.of(class, depth));
        let places = |of: &Expr| of.ty(self.types).ok().and_then(|ty| ty.kind.number());
        match (places(&a), places(&b)) {
            (Some((x, _)), Some((y, _))) if class == Class::Number => {
                let most = x.max(y) + u32::from(self.random.below(4) == 0);
                (Expr::Rescale(boxed(a), most), Expr::Rescale(boxed(b), most))
            }
            _ => (a, b),
        }
    }

    fn any(&mut self, class: Class, depth: u32) -> Expr {
        if depth == 0 {
            return self.leaf(class);
        }
        let less = depth - 1;
        // Forms of every class but quotients.
        if class != Class::Ratio && self.random.below(4) == 0 {
            return match self.random.below(3) {
                0 => {
                    let (then, otherwise) = self.alike(class, less);
                    let mut branches = vec![(self.of(Class::Bool, less), then)];
                    if self.random.below(2) == 0 {
                        let more = match &branches[0].1 {
                            Expr::Rescale(_, places) => {
                                Expr::Rescale(boxed(self.of(class, less)), *places)
                            }
                            _ => self.of(class, less),
                        };
                        branches.push((self.of(Class::Bool, less), more));
                    }
                    Expr::Case {
                        branches,
                        otherwise: boxed(otherwise),
                    }
                }
                1 => {
                    let (a, b) = self.alike(class, less);
                    Expr::Coalesce(vec![a, b])
                }
                _ => Expr::NullIf(boxed(self.of(class, less)), boxed(self.of(class, less))),
            };
        }
        match class {
            Class::Number => self.number(less),
            Class::Ratio => self.ratio(less),
            Class::Bool => self.bool(less),
            Class::Date => {
                let date = self.of(Class::Date, less);
                let days = Expr::Modulo(boxed(self.of(Class::Number, less)), 50);
                match self.random.below(2) {
                    0 => Expr::AddDays(boxed(date), boxed(days)),
                    _ => date,
                }
            }
            Class::Category => {
                let of = self.of(Class::Category, less);
                let Ok(Kind::Category(values)) = of.ty(self.types).map(|ty| ty.kind) else {
                    return of;
                };
                let count = values.texts().len();
                let kind = categories(5);
                let ty = Type::of(kind.clone()).or_null(self.random.below(2) == 0);
                let table = (0..count).map(|_| self.random.cell(&ty)).collect();
                let of = boxed(of);
                Expr::Lookup {
                    of,
                    first: 0,
                    kind,
                    table,
                }
            }
            Class::Key => self.leaf(Class::Key),
        }
    }

    fn number(&mut self, depth: u32) -> Expr {
        let mut one = |class| boxed(self.of(class, depth));
        let (a, b) = (one(Class::Number), one(Class::Number));
        match self.random.below(14) {
            12 => super::forest::over(self.random, self.types, vec![*a, *b]),
            11 => {
                let function = *self.random.of(&Function::ALL);
                // Ranges from 1 on, so that more functions have values.
                let (one, ten) = (Expr::integer(1), Expr::integer(10));
                let small = Expr::Modulo(a, 40);
                let small = match self.random.below(2) {
                    0 => small,
                    _ => Expr::Case {
                        branches: vec![(
                            Expr::compare(Comparison::Ge, small.clone(), one.clone()),
                            Expr::arithmetic(Arithmetic::Mul, one, ten),
                        )],
                        otherwise: boxed(Expr::integer(3)),
                    },
                };
                Expr::Real(function, boxed(small), self.random.below(5) as u32)
            }
            0 => Expr::Arithmetic(Arithmetic::Add, a, b),
            1 | 2 => Expr::Arithmetic(Arithmetic::Sub, a, b),
            3 | 4 => Expr::Arithmetic(Arithmetic::Mul, a, b),
            5 => Expr::Modulo(a, 1 + i128::from(self.random.below(40))),
            6 => Expr::Round(a, self.random.below(4) as u32),
            7 | 8 => Expr::Round(
                boxed(self.of(Class::Ratio, depth)),
                self.random.below(4) as u32,
            ),
            9 => {
                let part = *self.random.of(&[DatePart::Year, DatePart::Month]);
                Expr::Extract(part, boxed(self.of(Class::Date, depth)))
            }
            10 => Expr::DaysBetween(
                boxed(self.of(Class::Date, depth)),
                boxed(self.of(Class::Date, depth)),
            ),
            _ => {
                let (of, behind) = if self.random.below(2) == 0 {
                    (self.of(Class::Category, depth), 0)
                } else {
                    let of = Expr::Modulo(boxed(self.of(Class::Number, depth)), 12);
                    (of, self.random.below(4) as i128)
                };
                let found = of.ty(self.types).ok().and_then(|ty| ty.kind.range());
                let Some(range) = found else {
                    return of;
                };
                let (first, end) = (range.min() - behind, range.max() + 1 + behind);
                let ty = decimals(1, -40, 900).or_null(self.random.below(2) == 0);
                let cell = |_| self.random.cell(&ty);
                let table = (first..end).map(cell).collect();
                Expr::Lookup {
                    of: boxed(of),
                    first,
                    kind: ty.kind,
                    table,
                }
            }
        }
    }

    fn ratio(&mut self, depth: u32) -> Expr {
        let a = boxed(self.of(Class::Number, depth));
        let b = boxed(self.of(Class::Number, depth));
        let divisor = boxed(Expr::NullIf(b.clone(), boxed(Expr::integer(0))));
        match self.random.below(6) {
            0 => Expr::Divide(a, boxed(self.number_literal())),
            1 | 2 => Expr::Divide(a, divisor),
            3 => {
                let sign = *self
                    .random
                    .of(&[Arithmetic::Add, Arithmetic::Sub, Arithmetic::Mul]);
                Expr::Arithmetic(sign, boxed(self.of(Class::Ratio, depth)), a)
            }
            4 => Expr::Divide(boxed(self.of(Class::Ratio, depth)), divisor),
            _ => Expr::NullIf(boxed(self.of(Class::Ratio, depth)), a),
        }
    }

    fn bool(&mut self, depth: u32) -> Expr {
        let sign = *self.random.of(&Comparison::ALL);
        match self.random.below(9) {
            0 => Expr::Not(boxed(self.of(Class::Bool, depth))),
            1 => Expr::And(
                (0..self.random.below(4))
                    .map(|_| self.of(Class::Bool, depth))
                    .collect(),
            ),
            2 => Expr::Or(
                (0..self.random.below(4))
                    .map(|_| self.of(Class::Bool, depth))
                    .collect(),
            ),
            3 => {
                let class = *self.random.of(&[
                    Class::Number,
                    Class::Ratio,
                    Class::Date,
                    Class::Bool,
                    Class::Category,
                    Class::Key,
                ]);
                Expr::IsNull(boxed(self.of(class, depth)))
            }
            4 => {
                let of = self.of(Class::Category, depth);
                let Ok(Kind::Category(values)) = of.ty(self.types).map(|ty| ty.kind) else {
                    return of;
                };
                let table =
                    (0..values.texts().len()).map(|_| Value::Bool(self.random.below(2) == 0));
                Expr::Lookup {
                    table: table.collect(),
                    of: boxed(of),
                    first: 0,
                    kind: Kind::Bool,
                }
            }
            5 => {
                let class = *self.random.of(&[Class::Ratio, Class::Number]);
                Expr::compare(sign, self.of(Class::Ratio, depth), self.of(class, depth))
            }
            _ => {
                let class = *self.random.of(&[
                    Class::Number,
                    Class::Number,
                    Class::Date,
                    Class::Bool,
                    Class::Category,
                ]);
                Expr::compare(sign, self.of(class, depth), self.of(class, depth))
            }
        }
    }
}

/// Columns of all kinds; numbers of few and of many bits, of one value, below 0.
fn schema(random: &mut Random, most: u32) -> Vec<Type> {
    let mut types = Vec::new();
    for at in 0..8 {
        let bits = match random.below(6) {
            0 => 0,
            1 => most,
            2 => 1,
            _ => 1 + random.below(9) as u32,
        };
        let span = (1_i128 << bits.min(126)) - 1 - i128::from(bits > 2 && random.below(2) == 0);
        let least = match random.below(4) {
            0 => 0,
            1 => -(span / 2) - i128::from(random.below(3)),
            2 => -span - i128::from(random.below(4)),
            _ => i128::from(random.below(30)),
        };
        let ty = match at {
            0 | 1 => integers(least, least + span),
            2 | 3 => decimals(random.below(4) as u32, least, least + span),
            4 => {
                let first = random.below(30_000) as i32 - 12_000;
                let days = *random.of(&[0, 3, 40, 800, 12_000]);
                Type::of(Kind::date(first, first + days).unwrap())
            }
            5 => Type::of(categories(1 + random.below(20) as usize)),
            6 => Type::of(Kind::Bool),
            _ => Type::of(Kind::Key {
                bits: *random.of(&[64, 80, 128]),
            }),
        };
        types.push(ty.or_null(random.below(2) == 0));
    }
    types
}

const CLASSES: [Class; 6] = [
    Class::Number,
    Class::Number,
    Class::Date,
    Class::Bool,
    Class::Category,
    Class::Key,
];

/// Columns, rows and expressions of a seed.
fn case(seed: u64, most: u32, depth: u32) -> (Vec<Type>, Vec<Vec<Value>>, Vec<Expr>) {
    let mut random = Random(seed);
    let types = schema(&mut random, most);
    let rows = (0..70).map(|_| types.iter().map(|ty| random.cell(ty)).collect());
    let rows = rows.collect();
    let mut generator = Generator {
        random: &mut random,
        types: &types,
    };
    let exprs = CLASSES.map(|class| generator.of(class, depth)).to_vec();
    (types, rows, exprs)
}

fn aim(seed: u64) -> Aim {
    if seed.is_multiple_of(2) {
        Aim::Size
    } else {
        Aim::Depth
    }
}

#[test]
fn expressions_on_bits_are_those_in_the_clear() {
    for seed in 0..400 {
        println!("seed {seed}");
        let (types, rows, exprs) = case(seed, 24, 1 + (seed % 4) as u32);
        check_bits(&types, &rows, &exprs, aim(seed));
    }
}

#[test]
fn expressions_of_wide_numbers_are_those_in_the_clear() {
    for seed in 1000..1100 {
        println!("seed {seed}");
        let (types, rows, exprs) = case(seed, 126, 1 + (seed % 3) as u32);
        check_bits(&types, &rows, &exprs, aim(seed));
    }
}

#[test]
fn expressions_on_integers_are_those_in_the_clear() {
    for seed in 2000..2200 {
        println!("seed {seed}");
        let (types, rows, exprs) = case(seed, 20, 1 + (seed % 3) as u32);
        let mut random = Random(seed);
        // Numbers and dates as integers, as bits, or both; others as bits.
        let mut forms = Vec::new();
        for (at, ty) in types.iter().enumerate() {
            let column = ColumnId(at as u32);
            let number = matches!(class(&ty.kind), Class::Number | Class::Date);
            let choice = if number { random.below(3) } else { 1 };
            if choice != 1 {
                forms.push((column, Form::Integer));
            }
            if choice != 0 {
                forms.push((column, Form::Bits));
            }
        }
        let ring = if seed.is_multiple_of(3) {
            Ring::Z128
        } else {
            Ring::Z64
        };
        check(ring, &types, &forms, &rows, &exprs, aim(seed));
    }
}

#[test]
fn what_is_needed_is_enough() {
    for seed in 3000..3150 {
        println!("seed {seed}");
        let (types, rows, exprs) = case(seed, 20, 1 + (seed % 3) as u32);
        let mut random = Random(seed);
        for expr in exprs {
            let range = expr.ty(&types).unwrap().kind.range();
            let all = needs(&expr, Want::Bits, &types);
            let mut forms: Vec<_> = all.into_iter().collect();
            let ring = if range.is_some() && random.below(2) == 0 {
                forms.extend(needs(&expr, Want::Integer, &types));
                Ring::Z128
            } else {
                Ring::Bits
            };
            forms.sort_unstable();
            forms.dedup();
            if forms.is_empty() {
                continue;
            }
            check(ring, &types, &forms, &rows, &[expr], aim(seed));
        }
    }
}

#[test]
fn dates_of_the_whole_calendar() {
    let ty = Type::of(Kind::date(calendar::FIRST_DAY, calendar::LAST_DAY).unwrap());
    let mut random = Random(5);
    let mut rows: Vec<Vec<Value>> = (0..4000).map(|_| vec![random.cell(&ty)]).collect();
    for year in [
        1, 2, 4, 100, 1600, 1899, 1900, 1901, 1999, 2000, 2001, 2100, 9999,
    ] {
        for (month, day) in [(1, 1), (2, 28), (2, 29), (3, 1), (12, 31)] {
            let day = calendar::day(year, month, day);
            rows.extend(day.map(|day| vec![Value::Number(day.into())]));
        }
    }
    let part = |part| Expr::Extract(part, Box::new(Expr::column(0)));
    let exprs = [part(DatePart::Year), part(DatePart::Month)];
    for aim in [Aim::Size, Aim::Depth] {
        check_bits(std::slice::from_ref(&ty), &rows, &exprs, aim);
    }
}

/// That random expressions are of every form, often: a generator that falls back to columns would test nothing.
#[test]
fn all_forms_are_made() {
    fn count(expr: &Expr, into: &mut std::collections::BTreeMap<&'static str, u32>) {
        let form = match expr {
            Expr::Column(..) => "column",
            Expr::Literal(Literal::Null(_)) => "null",
            Expr::Literal(_) => "literal",
            Expr::Not(_) => "not",
            Expr::And(_) => "and",
            Expr::Or(_) => "or",
            Expr::Compare(..) => "compare",
            Expr::IsNull(_) => "is null",
            Expr::Arithmetic(Arithmetic::Add, ..) => "add",
            Expr::Arithmetic(Arithmetic::Sub, ..) => "sub",
            Expr::Arithmetic(Arithmetic::Mul, ..) => "mul",
            Expr::Divide(..) => "divide",
            Expr::Modulo(..) => "modulo",
            Expr::Round(..) => "round",
            Expr::Real(..) => "real",
            Expr::Rescale(..) => "rescale",
            Expr::AddDays(..) => "add days",
            Expr::DaysBetween(..) => "days between",
            Expr::Extract(DatePart::Year, _) => "year",
            Expr::Extract(DatePart::Month, _) => "month",
            Expr::Lookup { .. } => "lookup",
            Expr::Case { .. } => "case",
            Expr::Coalesce(_) => "coalesce",
            Expr::NullIf(..) => "nullif",
            Expr::Predict { .. } => "predict",
        };
        *into.entry(form).or_default() += 1;
        for operand in expr.operands() {
            count(operand, into);
        }
    }
    let mut counts = std::collections::BTreeMap::new();
    for seed in 0..480 {
        let (_, _, exprs) = case(seed, 24, 1 + (seed % 4) as u32);
        for expr in &exprs {
            count(expr, &mut counts);
        }
    }
    println!("{counts:?}");
    assert_eq!(counts.len(), 25);
    assert!(counts.values().all(|count| *count >= 60), "{counts:?}");
}

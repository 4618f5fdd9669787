//! `veil-lab bench tpch`: questions of TPC-H among parties, on tables of its generator.

mod tables;

use std::sync::Arc;

use miette::{Result, WrapErr, miette};
use veil_cli::devices::Registry;
use veil_job::ProtocolKind;
use veil_program::Words;
use veil_protocol::Options;
use veil_query::Job;

use super::asked::{Asked, Asking, OWNER, READER, Ready};
use super::{BenchArgs, print_json};

/// A question: its name, and its text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Question {
    name: &'static str,
    sql: &'static str,
}

macro_rules! questions {
    ($($name:literal)*) => {
        [$(Question {
            name: $name,
            sql: include_str!(concat!("../../../../../bench/tpch/", $name, ".sql")),
        }),*]
    };
}

static QUESTIONS: [Question; 22] = questions!(
    "q01" "q02" "q03" "q04" "q05" "q06" "q07" "q08" "q09" "q10" "q11" "q12" "q13" "q14" "q15" "q16" "q17" "q18" "q19" "q20" "q21" "q22"
);

/// The question of a name, such as q03 or 3.
pub(super) fn question(text: &str) -> Result<Question, String> {
    let number = |name: &str| name.trim_start_matches('q').parse::<u8>().ok();
    let asked = number(text);
    let mut all = QUESTIONS.iter();
    let found = all.find(|of| asked.is_some() && number(of.name) == asked);
    found.copied().ok_or_else(|| {
        let names = QUESTIONS.map(|of| of.name).join(", ");
        format!("there is no question `{text}` here; there are {names}")
    })
}

/// The largest scale whose tables fit memory in the clear.
const LARGEST: f64 = 100.0;

/// A scale factor.
pub(super) fn scale(text: &str) -> Result<f64, String> {
    let scale = text.parse::<f64>().ok();
    let scale = scale.filter(|scale| (0.001..=LARGEST).contains(scale));
    scale.ok_or_else(|| format!("`{text}` is no scale factor from 0.001 to {LARGEST}"))
}

/// The scale, where none is said.
const SCALE: f64 = 0.01;

/// Up to this scale, what is opened is compared with what the question means.
const COMPARED: f64 = 0.1;

/// A row of results.
#[derive(serde::Serialize)]
struct Answer {
    query: &'static str,
    /// The scale factor.
    sf: f64,
    #[serde(flatten)]
    asked: Asked,
}

/// The question, ready to be asked.
fn ready(
    question: Question,
    sf: f64,
    security: veil_job::Security,
    options: Options,
) -> Result<Ready> {
    let owned = tables::tables(sf, OWNER)?;
    let job = Job {
        tables: owned.iter().map(|of| of.table.clone()).collect(),
        queries: vec![veil_query::Query {
            keep: None,
            name: question.name.to_owned(),
            sql: question.sql.to_owned(),
            to: Some(READER.to_owned()),
            min_count: 0,
            fit: None,
            apply: None,
        }],
        bounds: vec![],
        models: vec![],
        functions: vec![],
    };
    Ready::new(&job, &owned, (security, options), sf <= COMPARED)
}

/// Runs the command.
pub(super) fn run(args: &BenchArgs, registry: &Arc<dyn Registry>) -> Result<()> {
    if args.batch.is_some() || args.svg.is_some() {
        return Err(miette!(
            help = "the tables follow from the scale: `veil-lab bench tpch --sf 0.01 --query q03`",
            "--batch and --svg have no meaning for tpch"
        ));
    }
    let sharing = args.protocol.unwrap_or(ProtocolKind::Rep3);
    let security = args.security(sharing, Words::default())?;
    let device = args.devices(registry)?;
    let sf = args.sf.unwrap_or(SCALE);
    let all = QUESTIONS.to_vec();
    let asked = if args.query.is_empty() {
        &all
    } else {
        &args.query
    };
    if !args.json {
        println!("{HEADER}");
    }
    let asking = Asking {
        args,
        device,
        security,
        name: "tpch",
        ops: 1.0,
        blocks: 0.0,
    };
    for question in asked {
        let ready = |(security, options)| {
            let ready = ready(*question, sf, security, options);
            ready.wrap_err_with(|| format!("{} cannot be asked", question.name))
        };
        let each = asking.each(ready, |asked| {
            let answer = Answer {
                query: question.name,
                sf,
                asked,
            };
            if args.json {
                return print_json(&answer);
            }
            print(&answer);
            Ok(())
        });
        each.wrap_err_with(|| question.name.to_owned())?;
    }
    Ok(())
}

const HEADER: &str =
    "query   sf      link    cores   passes   rounds   CPU-s    online s   MB sent   MB   rows";

fn print(answer: &Answer) {
    let Answer { query, sf, asked } = answer;
    let Asked {
        passes,
        rounds,
        opened,
        held_mb,
        row,
    } = asked;
    println!(
        "{query:<7} {sf:<7} {:<7} {:>5} {passes:>8} {rounds:>8} {:>7.2} {:>11.2} {:>9.1} {:>4.0} {:>6}",
        row.link,
        row.cores,
        row.cpu_s,
        row.online_ms / 1e3,
        row.bytes_sent as f64 / 1e6,
        (row.peak_rss_mb - held_mb).max(0.0),
        opened.unwrap_or(0),
    );
}

#[cfg(test)]
mod tests {
    use veil_job::Security;
    use veil_relation::Value;

    use super::*;

    /// The published answer to question 6 at this scale, in ten-thousandths.
    const REVENUE: i128 = 11_930_532_253;

    #[test]
    fn questions_mean_what_is_published() {
        let of = question("6").expect("a question");
        let ready = ready(of, 0.01, Security::among(3), Options::default());
        let wanted = ready.expect("a plan").wanted.expect("rows");
        assert_eq!(wanted, [[Value::Number(REVENUE)]]);
    }

    #[test]
    fn questions_have_short_names() {
        let name = |text: &str| question(text).map(|of| of.name);
        for (text, wanted) in [("q03", "q03"), ("q3", "q03"), ("3", "q03"), ("18", "q18")] {
            assert_eq!(name(text), Ok(wanted));
        }
        for text in ["", "q", "0", "q23", "303", "all"] {
            assert!(name(text).is_err(), "{text}");
        }
        assert!(scale("0.1").is_ok());
        for text in ["0", "-1", "nan", "inf", "1e9", "one"] {
            assert!(scale(text).is_err(), "{text}");
        }
    }
}

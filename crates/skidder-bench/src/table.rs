//! The table of goals: what must be, what would be splendid, what was measured.

use anyhow::{Context, Result};
use skidder_os::{Clock, SystemClock};
use std::process::Command;

use skidder_workload::civil;

/// The goal of a row that has none: it is there to be compared with others.
pub const NO_GOAL: f64 = f64::INFINITY;

/// One goal. Smaller is better for all of them.
#[derive(Clone, Debug)]
pub struct Row {
    /// Its letter in the list of goals.
    pub letter: &'static str,
    /// The measured quantity.
    pub what: String,
    /// Not to be exceeded.
    pub must: f64,
    /// The ambition.
    pub moonshot: f64,
    /// Behind the numbers; empty for a ratio.
    pub unit: &'static str,
    /// The median, or why there is none.
    pub measured: std::result::Result<f64, String>,
    /// The numbers behind the measured one.
    pub detail: String,
}

impl Row {
    /// Whether the goal that must be reached is.
    pub fn is_reached(&self) -> bool {
        self.measured.as_ref().is_ok_and(|&measured| measured <= self.must)
    }

    fn render(&self) -> String {
        let unit = if self.unit.is_empty() { String::new() } else { format!(" {}", self.unit) };
        let goal = |limit: f64| match limit {
            NO_GOAL => "–".to_owned(),
            limit => format!("{}{unit}", number(limit)),
        };
        let yes = |limit: f64| match &self.measured {
            Ok(_) if limit == NO_GOAL => "–",
            Ok(measured) if *measured <= limit => "yes",
            Ok(_) => "**no**",
            Err(_) => "not measured",
        };
        let measured = match &self.measured {
            Ok(value) => format!("{}{unit}", number(*value)),
            Err(why) => why.replace('|', "/").replace('\n', " "),
        };
        format!(
            "| {} | {} | {} | {} | {measured} | {} | {} | {} |",
            self.letter,
            self.what,
            goal(self.must),
            goal(self.moonshot),
            yes(self.must),
            yes(self.moonshot),
            self.detail,
        )
    }
}

/// Three significant digits, without an exponent.
pub(crate) fn number(value: f64) -> String {
    let digits = if value == 0.0 { 0 } else { 2 - value.abs().log10().floor() as i32 };
    let text = format!("{value:.*}", usize::try_from(digits).unwrap_or(0));
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

/// The table in Markdown, with what one needs to repeat it.
pub fn render(rows: &[Row], lines: u64, runs: u32) -> Result<String> {
    let mut text = String::from(
        "| | goal | must | moonshot | measured | must reached | moonshot reached | from |\n\
         |---|---|---|---|---|---|---|---|\n",
    );
    for row in rows {
        text.push_str(&row.render());
        text.push('\n');
    }
    let command: Vec<String> = std::env::args().skip(1).collect();
    text.push_str(&format!(
        "\n{}. {lines} lines, medians of {runs} runs; CPU is user and system time of the whole process. \
         Command: `skidder-bench {}`.\n",
        provenance()?,
        command.join(" "),
    ));
    Ok(text)
}

/// Today, the commit and this machine.
pub(crate) fn provenance() -> Result<String> {
    let days = u64::try_from(SystemClock::new().wall().seconds() / 86_400)
        .context("the clock of this machine is before 1970")?;
    let (year, month, day) = civil(days);
    Ok(format!("{year}-{month:02}-{day:02}, commit {}, {}", commit(), machine()))
}

/// The commit of the working tree, with a mark if files differ from it.
fn commit() -> String {
    let output =
        Command::new("git").args(["describe", "--always", "--dirty", "--exclude=*"]).output();
    match output {
        Ok(output) if output.status.success() => {
            String::from_utf8_lossy(&output.stdout).trim().to_owned()
        }
        _ => "unknown".to_owned(),
    }
}

fn machine() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = text.lines().find_map(|line| line.strip_prefix("model name"));
    let model = model.map_or("unknown CPU", |rest| rest.trim_start_matches([' ', '\t', ':']));
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    format!("{model}, {cores} cores")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_significant_digits() {
        for (value, expected) in [
            (0.0, "0"),
            (0.012_34, "0.0123"),
            (0.8, "0.8"),
            (1.306, "1.31"),
            (39.96, "40"),
            (1_234.5, "1234"),
        ] {
            assert_eq!(number(value), expected);
        }
    }

    #[test]
    fn a_row_says_whether_each_goal_is_reached() {
        let row = Row {
            letter: "a",
            what: "cpu".to_owned(),
            must: 0.8,
            moonshot: 0.5,
            unit: "",
            measured: Ok(0.6),
            detail: "x".to_owned(),
        };
        assert!(row.is_reached());
        assert_eq!(row.render(), "| a | cpu | 0.8 | 0.5 | 0.6 | yes | **no** | x |");
        let failed = Row { measured: Err("no program".to_owned()), ..row };
        assert!(!failed.is_reached());
        assert!(failed.render().contains("| no program | not measured | not measured |"));
    }
}

//! The lines of `skidder test output`.

use std::fmt::Display;

/// Reports the steps of a check in Filebeat's words: `dns lookup... OK`.
pub struct Steps<'a> {
    report: &'a mut (dyn FnMut(&str) + Send),
}

impl<'a> Steps<'a> {
    /// `report` gets each line without a line feed.
    pub fn new(report: &'a mut (dyn FnMut(&str) + Send)) -> Self {
        Self { report }
    }

    /// A line, indented by two spaces a level.
    pub fn line(&mut self, level: usize, text: &str) {
        (self.report)(&format!("{:1$}{text}", "", 2 * level));
    }

    /// A step that is good.
    pub fn ok(&mut self, level: usize, name: &str, remark: &str) {
        let space = if remark.is_empty() { "" } else { " " };
        self.line(level, &format!("{name}... OK{space}{remark}"));
    }

    /// A step that is good, but not as it should be.
    pub fn warn(&mut self, level: usize, name: &str, remark: &str) {
        self.line(level, &format!("{name}... WARN {remark}"));
    }

    /// A step with its result; `None` if it failed.
    pub fn step<T>(
        &mut self,
        level: usize,
        name: &str,
        result: Result<T, impl Display>,
    ) -> Option<T> {
        match result {
            Ok(value) => {
                self.ok(level, name, "");
                Some(value)
            }
            Err(error) => {
                self.line(level, &format!("{name}... ERROR {error}"));
                None
            }
        }
    }
}

//! Templates as text, so that they survive a restart: exporters send them only every few minutes.
//!
//! ```text
//! skidder-netflow 1
//! 9 192.0.2.1:2055 7 256 - 0.8:4,0.12:4
//! 10 - 0 300 2 9.12235:65535,0.1:8
//! end 2
//! ```
//!
//! A line has the version of the protocol, the address of the exporter or `-` if exporters share their templates, the
//! source, the template, the number of fields of its scope or `-` if its records are flows, and the fields as
//! `ENTERPRISE.NUMBER:LENGTH`. The last line has the number of templates.

use crate::decoder::Decoder;
use crate::protocol::Protocol;
use crate::sessions::SessionKey;
use crate::template::{Column, FIRST_ID, Template};
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

const FIRST: &str = "skidder-netflow 1";

/// Why saved templates cannot be read. The exporters will send them again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RestoreError {
    /// They were written by a later version, or by something else.
    #[error("the first line is not `{FIRST}`")]
    Version,
    /// The file was cut.
    #[error("there is no last line `end` with the number of templates")]
    Cut,
    /// The file is damaged.
    #[error("line {0} is no template")]
    Line(usize),
}

impl Decoder {
    /// The templates as text.
    pub fn save(&self) -> String {
        let mut all: Vec<_> = self.sessions.iter().collect();
        all.sort_by_key(|(key, template)| (**key, template.id));
        let mut text = format!("{FIRST}\n");
        for (key, template) in &all {
            write(&mut text, key, template);
        }
        text.push_str(&format!("end {}\n", all.len()));
        text
    }

    /// Adds saved templates, as used at `now`. Their exporters may have counted on meanwhile, or begun anew.
    ///
    /// # Errors
    /// The text is damaged; no template was added.
    pub fn restore(&mut self, text: &str, now: Duration) -> Result<usize, RestoreError> {
        let lines: Vec<&str> = text.lines().collect();
        let (first, rest) = lines.split_first().ok_or(RestoreError::Version)?;
        if *first != FIRST {
            return Err(RestoreError::Version);
        }
        let (last, lines) = rest.split_last().ok_or(RestoreError::Cut)?;
        if *last != format!("end {}", lines.len()) || !text.ends_with('\n') {
            return Err(RestoreError::Cut);
        }
        let mut templates = Vec::with_capacity(lines.len());
        for (at, line) in lines.iter().enumerate() {
            let (key, id, scope, columns) = parse(line).ok_or(RestoreError::Line(at + 2))?;
            let template = Template::new(id, scope, columns, &self.settings.fields);
            templates.push((key, template));
        }
        let shares = self.settings.share_templates;
        let mut added = 0;
        for (key, template) in templates {
            if key.from.is_none() == shares && self.sessions.put(key, Arc::new(template), None, now)
            {
                added += 1;
            }
        }
        self.sessions.take_changed();
        Ok(added)
    }
}

fn write(text: &mut String, key: &SessionKey, template: &Template) {
    let from = key.from.map_or_else(|| "-".to_owned(), |from| from.to_string());
    let scope = template.scope.map_or_else(|| "-".to_owned(), |scope| scope.to_string());
    let SessionKey { protocol, source, .. } = key;
    text.push_str(&format!("{} {from} {source} {} {scope} ", *protocol as u16, template.id));
    for (at, (column, _)) in template.columns().enumerate() {
        let comma = if at == 0 { "" } else { "," };
        let Column { enterprise, id, length } = column;
        write!(text, "{comma}{enterprise}.{id}:{length}").expect("a `String` takes everything");
    }
    text.push('\n');
}

type Line = (SessionKey, u16, Option<usize>, Box<[Column]>);

fn parse(line: &str) -> Option<Line> {
    let mut words = line.split(' ');
    let protocol = Protocol::of(words.next()?.parse().ok()?);
    let protocol = protocol.filter(|it| matches!(it, Protocol::V9 | Protocol::Ipfix))?;
    let from = match words.next()? {
        "-" => None,
        from => Some(from.parse().ok()?),
    };
    let source = words.next()?.parse().ok()?;
    let id = words.next()?.parse().ok().filter(|id| *id >= FIRST_ID)?;
    let scope = match words.next()? {
        "-" => None,
        scope => Some(scope.parse().ok()?),
    };
    let columns: Box<[Column]> = words.next()?.split(',').map(column).collect::<Option<_>>()?;
    let is_right = words.next().is_none() && scope.is_none_or(|scope| scope <= columns.len());
    is_right.then_some((SessionKey { protocol, from, source }, id, scope, columns))
}

fn column(text: &str) -> Option<Column> {
    let (enterprise, rest) = text.split_once('.')?;
    let (id, length) = rest.split_once(':')?;
    let (enterprise, id) = (enterprise.parse().ok()?, id.parse().ok()?);
    Some(Column { enterprise, id, length: length.parse().ok()? })
}

//! Which entries are read: `units`, `syslog_identifiers`, `include_matches`, `transports` and `facilities`, joined as
//! journalctl joins what Filebeat passes to it.
//!
//! An entry must match the units (one of them), the identifiers (one of them), and the rest, which is a disjunction: of
//! what stands between two `+`, each field must match, with one of its values. Transports and facilities belong to what
//! stands behind the last `+`.

use super::fields::journal_name;
use regex::bytes::Regex;

/// The id of messages that report a core dump.
const COREDUMP: &str = "MESSAGE_ID=fc2e22bc6ee647b6b90729ab34a250b1";

/// The kind of a unit that has others in it.
const SLICE: &str = ".slice";

/// Kinds of units.
const SUFFIXES: [&str; 11] = [
    ".service",
    ".socket",
    ".device",
    ".mount",
    ".automount",
    ".swap",
    ".target",
    ".timer",
    ".path",
    ".slice",
    ".scope",
];

/// What one field must be.
#[derive(Clone, Debug)]
enum Term {
    /// `NAME=value`.
    Is(Vec<u8>),
    /// `NAME=`, and an expression of the value.
    Like(Vec<u8>, Regex),
}

/// Numbers of terms: one of each inner list must be met.
type Conjunction = Vec<Vec<u16>>;

/// Which entries are read.
#[derive(Clone, Debug, Default)]
pub(super) struct Matches {
    terms: Vec<Term>,
    /// Of each, one conjunction must be met.
    all: Vec<Vec<Conjunction>>,
}

impl Matches {
    /// The number of a term.
    fn term(&mut self, field: &str) -> u16 {
        self.add(Term::Is(field.as_bytes().to_vec()))
    }

    fn add(&mut self, term: Term) -> u16 {
        self.terms.push(term);
        self.terms.len() as u16 - 1
    }

    /// Only entries of these units, and about them.
    ///
    /// # Errors
    /// If a name cannot be one of a unit.
    pub(super) fn units(&mut self, units: &[String]) -> Result<(), String> {
        let mut any = Vec::new();
        for unit in units {
            let unit = unit_name(unit)?;
            let about = |matches: &mut Self, field: &str| {
                let term = match &unit {
                    UnitName::Is(name) => return matches.term(&format!("{field}={name}")),
                    UnitName::Like(regex) => {
                        Term::Like(format!("{field}=").into_bytes(), regex.clone())
                    }
                };
                matches.add(term)
            };
            any.push(vec![vec![about(self, "_SYSTEMD_UNIT")]]);
            let dump = [self.term(COREDUMP), self.term("_UID=0"), about(self, "COREDUMP_UNIT")];
            any.push(dump.map(|term| vec![term]).to_vec());
            any.push(vec![vec![self.term("_PID=1")], vec![about(self, "UNIT")]]);
            any.push(vec![vec![self.term("_UID=0")], vec![about(self, "OBJECT_SYSTEMD_UNIT")]]);
            if matches!(&unit, UnitName::Is(name) if name.ends_with(SLICE)) {
                any.push(vec![vec![about(self, "_SYSTEMD_SLICE")]]);
            }
        }
        if !any.is_empty() {
            self.all.push(any);
        }
        Ok(())
    }

    /// Only entries with one of these identifiers.
    pub(super) fn identifiers(&mut self, identifiers: &[String]) {
        let any = identifiers.iter().map(|name| self.term(&format!("SYSLOG_IDENTIFIER={name}")));
        let any: Vec<u16> = any.collect();
        if !any.is_empty() {
            self.all.push(vec![vec![any]]);
        }
    }

    /// Only entries that match these expressions, which [`expression`] made.
    pub(super) fn expressions(&mut self, expressions: &[String]) {
        let mut any: Vec<Conjunction> = Vec::new();
        for part in expressions.split(|expression| expression == "+") {
            let mut names: Vec<&str> = Vec::new();
            let mut conjunction: Conjunction = Vec::new();
            for expression in part {
                let name = expression.split('=').next().unwrap_or_default();
                let term = self.term(expression);
                match names.iter().position(|known| *known == name) {
                    Some(at) => conjunction[at].push(term),
                    None => {
                        names.push(name);
                        conjunction.push(vec![term]);
                    }
                }
            }
            // Nothing between two `+` is no condition at all.
            if !conjunction.is_empty() {
                any.push(conjunction);
            }
        }
        if !any.is_empty() {
            self.all.push(any);
        }
    }

    /// Whether every entry is read.
    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Which terms `NAME=value` meets.
    pub(super) fn met_by(&self, payload: &[u8]) -> Box<[u16]> {
        let is_met = |term: &Term| match term {
            Term::Is(field) => payload == &field[..],
            Term::Like(name, value) => {
                payload.strip_prefix(&name[..]).is_some_and(|payload| value.is_match(payload))
            }
        };
        (0_u16..).zip(&self.terms).filter(|(_, term)| is_met(term)).map(|(at, _)| at).collect()
    }

    /// Whether an entry is read, of whose fields one or another meets a term.
    pub(super) fn accept(&self, is_met: impl Fn(u16) -> bool) -> bool {
        let holds = |conjunction: &Conjunction| {
            conjunction.iter().all(|any| any.iter().any(|term| is_met(*term)))
        };
        self.all.iter().all(|any| any.iter().any(holds))
    }
}

/// The name of a unit, or of many.
enum UnitName {
    Is(String),
    Like(Regex),
}

fn unit_name(text: &str) -> Result<UnitName, String> {
    if text.is_empty() || text.contains(['/', ' ']) {
        return Err("no name of a unit".to_owned());
    }
    if text.contains(['*', '?', '[']) {
        let pattern = glob(text);
        return Regex::new(&pattern).map(UnitName::Like).map_err(|error| error.to_string());
    }
    let has_kind = SUFFIXES.iter().any(|suffix| text.ends_with(suffix));
    Ok(UnitName::Is(if has_kind { text.to_owned() } else { format!("{text}.service") }))
}

/// The expression of a pattern with wildcards.
fn glob(text: &str) -> String {
    let mut pattern = "(?s)^".to_owned();
    let mut is_in_class = false;
    for character in text.chars() {
        match character {
            '*' if !is_in_class => pattern.push_str(".*"),
            '?' if !is_in_class => pattern.push('.'),
            '[' if !is_in_class => {
                is_in_class = true;
                pattern.push('[');
            }
            ']' if is_in_class => {
                is_in_class = false;
                pattern.push(']');
            }
            '!' if pattern.ends_with('[') => pattern.push('^'),
            '-' if is_in_class => pattern.push('-'),
            other => pattern.push_str(&regex::escape(other.encode_utf8(&mut [0; 4]))),
        }
    }
    pattern.push('$');
    pattern
}

/// An expression of `include_matches` with the name that the field has in the journal.
///
/// # Errors
/// If it is none.
pub(super) fn expression(text: &str) -> Result<String, String> {
    if text == "+" {
        return Ok(text.to_owned());
    }
    let wrong = || "neither `+` nor `FIELD=value`".to_owned();
    let (name, value) = text.split_once('=').ok_or_else(wrong)?;
    if value.contains('=') {
        return Err("`=` in the value, which Filebeat refuses, too".to_owned());
    }
    let name = journal_name(name).unwrap_or(name);
    let is_allowed = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
    if name.is_empty() || name.len() > 64 || !name.bytes().all(is_allowed) {
        return Err(format!("`{name}` is no field of the journal, and none of Filebeat's names"));
    }
    Ok(format!("{name}={value}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accepts(matches: &Matches, entry: &[&str]) -> bool {
        let met: Vec<u16> =
            entry.iter().flat_map(|field| matches.met_by(field.as_bytes())).collect();
        matches.accept(|term| met.contains(&term))
    }

    fn of(expressions: &[&str]) -> Matches {
        let mut matches = Matches::default();
        let all: Vec<_> = expressions.iter().map(|text| expression(text).unwrap()).collect();
        matches.expressions(&all);
        matches
    }

    #[test]
    fn fields_are_joined_as_journalctl_joins_them() {
        let two = of(&["A=1", "A=2", "B=1"]);
        assert!(accepts(&two, &["A=2", "B=1", "C=1"]) && accepts(&two, &["A=1", "B=1"]));
        assert!(
            !accepts(&two, &["A=1"]) && !accepts(&two, &["B=1"]) && !accepts(&two, &["A=3", "B=1"])
        );
        let either = of(&["A=1", "B=1", "+", "C=1"]);
        assert!(accepts(&either, &["C=1"]) && accepts(&either, &["A=1", "B=1"]));
        assert!(!accepts(&either, &["A=1"]));
        assert!(of(&[]).is_empty() && of(&["+"]).is_empty());
    }

    #[test]
    fn names_of_fields_are_translated() {
        assert_eq!(expression("systemd.unit=a.service").unwrap(), "_SYSTEMD_UNIT=a.service");
        assert_eq!(expression("OTHER=1").unwrap(), "OTHER=1");
        for wrong in ["", "A", "a=b", "A=b=c", "=x", "++"] {
            assert!(expression(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_unit_is_found_where_it_or_systemd_or_another_daemon_logs() {
        let mut matches = Matches::default();
        matches.units(&["a".to_owned(), "b@*.service".to_owned(), "c.slice".to_owned()]).unwrap();
        for entry in [
            &["_SYSTEMD_UNIT=a.service"][..],
            &["_SYSTEMD_UNIT=b@1.service"],
            &["_PID=1", "UNIT=a.service"],
            &["_UID=0", "OBJECT_SYSTEMD_UNIT=b@x.service"],
            &["_UID=0", COREDUMP, "COREDUMP_UNIT=a.service"],
            &["_SYSTEMD_SLICE=c.slice"],
        ] {
            assert!(accepts(&matches, entry), "{entry:?}");
        }
        for entry in [
            &["_SYSTEMD_UNIT=ab.service"][..],
            &["_SYSTEMD_UNIT=b.service"],
            &["_PID=2", "UNIT=a.service"],
            &["OBJECT_SYSTEMD_UNIT=a.service"],
            &["_UID=0", "COREDUMP_UNIT=a.service"],
        ] {
            assert!(!accepts(&matches, entry), "{entry:?}");
        }
        matches.identifiers(&["x".to_owned(), "y".to_owned()]);
        assert!(accepts(&matches, &["_SYSTEMD_UNIT=a.service", "SYSLOG_IDENTIFIER=y"]));
        assert!(!accepts(&matches, &["_SYSTEMD_UNIT=a.service", "SYSLOG_IDENTIFIER=z"]));
        assert!(Matches::default().units(&["/a".to_owned()]).is_err());
        assert!(Regex::new(&glob("x[!a-c]?.service")).unwrap().is_match(b"xdd.service"));
        assert!(!Regex::new(&glob("x[!a-c]?.service")).unwrap().is_match(b"xad.service"));
    }
}

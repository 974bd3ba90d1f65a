//! Names of files that Filebeat rotates: `NAME-YYYYMMDD.ndjson`, then `-1`, `-2`, …. See elastic-agent-libs'
//! `file/rotator.go`.

/// End of all names.
pub const DATED_EXTENSION: &str = ".ndjson";

/// What a name says: files are in the order of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DatedName {
    /// The date as a number: 20260131.
    pub date: u32,
    /// 0 for the first file of a day, whose name has no number.
    pub index: u32,
}

impl DatedName {
    /// Of the file behind `newest`; also when the clock was set back names stay in order.
    pub fn behind(newest: Option<Self>, today: u32) -> Self {
        match newest {
            Some(newest) if newest.date >= today => Self { index: newest.index + 1, ..newest },
            _ => Self { date: today, index: 0 },
        }
    }

    /// What a file name says, if it is one of those that begin with `ours`.
    pub fn parse(ours: &str, name: &str) -> Option<Self> {
        let rest = name.strip_prefix(ours)?.strip_prefix('-')?.strip_suffix(DATED_EXTENSION)?;
        let (date, index) = match rest.split_once('-') {
            Some((date, index)) => (date, Some(index)),
            None => (rest, None),
        };
        let number = |text: &str| {
            text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse::<u32>().ok())?
        };
        let date = number(date).filter(|_| date.len() == 8)?;
        let index = match index {
            None => 0,
            Some(text) if text.starts_with('0') => return None,
            Some(text) => number(text)?,
        };
        Some(Self { date, index })
    }

    /// The name of the file that begins with `ours`.
    pub fn of(self, ours: &str) -> String {
        let number = match self.index {
            0 => String::new(),
            index => format!("-{index}"),
        };
        format!("{ours}-{:08}{number}{DATED_EXTENSION}", self.date)
    }
}

/// Permissions of a directory of such files: `rwx` for the owner, and `r-x` for users with any
/// permission on the files.
pub fn directory_permissions(file: u32) -> u32 {
    let mut bits = 0o700;
    if file & 0o070 != 0 {
        bits |= 0o050;
    }
    if file & 0o007 != 0 {
        bits |= 0o005;
    }
    bits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_own_names_are_ours() {
        let stamp =
            |name: &str| DatedName::parse("filebeat", name).map(|stamp| (stamp.date, stamp.index));
        assert_eq!(stamp("filebeat-20260102.ndjson"), Some((20_260_102, 0)));
        assert_eq!(stamp("filebeat-20260102-12.ndjson"), Some((20_260_102, 12)));
        for name in [
            "filebeat.ndjson",
            "filebeat-2026.ndjson",
            "filebeat-20260102",
            "filebeat-20260102-0.ndjson",
            "filebeat-20260102-x.ndjson",
            "filebeat-20260102-.ndjson",
            "otherbeat-20260102.ndjson",
            "filebeat-20260102.ndjson.gz",
        ] {
            assert_eq!(stamp(name), None, "{name}");
        }
    }

    #[test]
    fn directories_are_open_to_those_who_may_read_the_files() {
        assert_eq!(directory_permissions(0o600), 0o700);
        assert_eq!(directory_permissions(0o640), 0o750);
        assert_eq!(directory_permissions(0o644), 0o755);
    }
}

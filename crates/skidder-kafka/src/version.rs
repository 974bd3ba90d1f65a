//! `version`: the protocol version that Filebeat uses. Here the brokers report their versions, so it decides only
//! what may be used: headers, timestamps, codecs.

/// A version of Kafka.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version([u16; 4]);

/// The first part of the newest version.
const NEWEST: u16 = 4;

impl Version {
    /// Default of `version`.
    pub const DEFAULT: Self = Self([2, 1, 0, 0]);
    /// Records have timestamps, and there is LZ4.
    pub const TIMESTAMPS: Self = Self([0, 10, 0, 0]);
    /// Records have headers.
    pub const HEADERS: Self = Self([0, 11, 0, 0]);
    /// There is Zstandard.
    pub const ZSTD: Self = Self([2, 1, 0, 0]);

    /// Members of groups can have ids of their own.
    pub const STATIC_MEMBERS: Self = Self([2, 3, 0, 0]);

    /// Reads `2.1.0`, `0.10.2.1`, or the beginning of one, as in `2`: omitted parts mean the newest.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = || "no version of Kafka; expected for example `2.1.0`".to_owned();
        let parts: Vec<u16> =
            text.split('.').map(str::parse).collect::<Result<_, _>>().map_err(|_| wrong())?;
        if parts.first().is_some_and(|first| *first > NEWEST) {
            return Err(format!(
                "no version of Kafka that is known; the newest is {NEWEST}, for example `{NEWEST}.0.0`"
            ));
        }
        let is_old = parts.first() == Some(&0);
        if parts.is_empty() || parts.len() > if is_old { 4 } else { 3 } || text.contains('+') {
            return Err(wrong());
        }
        let mut version = if is_old { [0, 10, 2, 1] } else { [parts[0], 99, 99, 0] };
        for (place, part) in parts.iter().enumerate() {
            version[place] = *part;
        }
        if is_old && parts.len() < 4 {
            // Only the differences that matter here.
            version[3] = 9;
            if parts.len() == 2 {
                version[2] = 9;
            }
        }
        let version = Self(version);
        let oldest = Self([0, 8, 2, 0]);
        if version < oldest {
            return Err("too old; expected `0.8.2.0` or later".to_owned());
        }
        Ok(version)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_filebeat_are_understood() {
        for (text, timestamps, headers, zstd) in [
            ("0.8.2.0", false, false, false),
            ("0.9", false, false, false),
            ("0.10.2.1", true, false, false),
            ("0.11", true, true, false),
            ("1", true, true, false),
            ("1.1.0", true, true, false),
            ("2.0.0", true, true, false),
            ("2.1.0", true, true, true),
            ("2", true, true, true),
            ("4.1.0", true, true, true),
        ] {
            let version = Version::parse(text).expect(text);
            assert_eq!(version >= Version::TIMESTAMPS, timestamps, "{text}");
            assert_eq!(version >= Version::HEADERS, headers, "{text}");
            assert_eq!(version >= Version::ZSTD, zstd, "{text}");
        }
        for text in ["", "x", "2.", "1.2.3.4", "0.8.1", "0.8.2.0.1", "+2", "-1", "5", "9", "40.1"] {
            Version::parse(text).expect_err(text);
        }
    }
}

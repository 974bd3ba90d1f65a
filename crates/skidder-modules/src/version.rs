//! Versions of servers, as they report them: `8.17.1-SNAPSHOT`.

use std::fmt;

/// A version of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    major: u32,
    minor: u32,
    patch: u32,
}

impl Version {
    /// A version by its numbers.
    pub const fn new(major: u32, minor: u32, patch: u32) -> Self {
        Self { major, minor, patch }
    }

    /// `major.minor.patch`, perhaps with more behind a `-`.
    pub fn parse(text: &str) -> Option<Self> {
        let numbers = text.split_once('-').map_or(text, |(numbers, _)| numbers);
        let numbers: Vec<u32> =
            numbers.split('.').map(|number| number.parse().ok()).collect::<Option<_>>()?;
        match numbers[..] {
            [major, minor, patch] => Some(Self { major, minor, patch }),
            _ => None,
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_by_their_numbers() {
        let version = |text| Version::parse(text).unwrap();
        assert!(version("7.9.0") < version("7.10.0"));
        assert!(version("9.0.0-SNAPSHOT") > version("8.19.9"));
        assert_eq!(version("8.1.2-rc1"), Version::new(8, 1, 2));
        for wrong in ["", "8", "8.1", "8.1.x", "8.1.2.3"] {
            assert_eq!(Version::parse(wrong), None, "{wrong}");
        }
    }
}

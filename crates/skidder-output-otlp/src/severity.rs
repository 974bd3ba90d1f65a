//! `log.level` to the number of a severity.

/// Longest name of a level.
const NAME_BYTES_MAX: usize = 16;

/// The `SeverityNumber` of a level, in any case; 0 if it is unknown.
///
/// <https://opentelemetry.io/docs/specs/otel/logs/data-model-appendix/>, Appendix B: those of Syslog where the tables
/// differ, which are Filebeat's names of levels.
pub(crate) fn number(level: &[u8]) -> u8 {
    let mut name = [0; NAME_BYTES_MAX];
    let Some(name) = name.get_mut(..level.len()) else { return 0 };
    name.copy_from_slice(level);
    name.make_ascii_lowercase();
    match &*name {
        b"trace" | b"finest" | b"verbose" => 1,
        b"finer" | b"fine" | b"debug" | b"dbg" => 5,
        b"info" | b"informational" | b"information" | b"inf" => 9,
        b"notice" => 10,
        b"warn" | b"warning" | b"wrn" => 13,
        b"error" | b"err" | b"severe" => 17,
        b"critical" | b"crit" | b"dpanic" => 18,
        b"alert" | b"panic" => 19,
        b"fatal" | b"emergency" | b"emerg" => 21,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_have_the_numbers_of_the_specification() {
        let table = [
            ("trace", 1),
            ("DEBUG", 5),
            ("Informational", 9),
            ("info", 9),
            ("notice", 10),
            ("Warning", 13),
            ("warn", 13),
            ("err", 17),
            ("ERROR", 17),
            ("critical", 18),
            ("alert", 19),
            ("emerg", 21),
            ("fatal", 21),
            ("", 0),
            ("17", 0),
            ("a level that nobody has ever heard of", 0),
        ];
        for (level, expected) in table {
            assert_eq!(number(level.as_bytes()), expected, "{level}");
        }
    }
}

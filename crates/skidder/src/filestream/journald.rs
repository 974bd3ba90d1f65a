//! Reading the settings of a `journald` input: its own, and the parsers of `filestream`.

use super::parsers;
use skidder_config::{Group, Section};
use skidder_input::Input;
use skidder_inputs::{Context, journald};

/// Settings of `journald`.
pub(crate) static JOURNALD: Group = Group::new("input.journald", "Entries of systemd's journal.")
    .include(&[&journald::JOURNAL, &parsers::PARSING]);

/// Reads one input; the section reports mistakes.
pub(crate) fn read(section: &Section<'_>, context: &Context) -> Option<Box<dyn Input>> {
    section.declared_by(&JOURNALD);
    let (parsers, max_bytes) = parsers::read_of_messages(section);
    journald::read(section, context, parsers, max_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filestream::testing;

    fn read_text(text: &str) -> (bool, String) {
        let (input, problems) = testing::read_text(text, read);
        (input.is_some_and(|input| input.has_cursors()), problems)
    }

    #[test]
    fn all_settings_are_read() {
        let (is_read, problems) = read_text(
            "{paths: [/var/log/journal, LOCAL_SYSTEM_JOURNAL, '/j/*.journal'], merge: true, seek: since, since: -24h, \
             units: [a, 'b@*.service'], syslog_identifiers: [x], include_matches.match: ['systemd.unit=a', '+', A=1], \
             transports: [kernel, stdout], facilities: [3, 127], save_remote_hostname: true, chroot: /, \
             max_bytes: 1MiB, keep_null: true, parsers: [{multiline: {pattern: '^ ', match: after}}]}",
        );
        assert_eq!((is_read, &*problems), (true, ""));
        let (is_read, problems) = read_text("{journalctl_path: /bin/journalctl}");
        assert!(is_read && problems.contains("journalctl is not run"), "{problems}");
    }

    #[test]
    fn what_makes_no_sense_is_reported() {
        for (text, expected) in [
            ("{seek: middle}", "`since`"),
            ("{since: yesterday}", "since"),
            ("{paths: [journal]}", "absolute"),
            ("{units: [/dev/sda]}", "no name of a unit"),
            ("{facilities: [128]}", "0 to 127"),
            ("{include_matches.match: [a]}", "neither `+` nor `FIELD=value`"),
            ("{include_matches.match: [a.b=1]}", "no field of the journal"),
            ("{include_matches: [a]}", "neither `+` nor `FIELD=value`"),
            (
                "{include_matches.mach: [A=1]}",
                "unknown setting `include_matches.mach`\nhint: did you mean `match`?",
            ),
            (
                "{include_matches: {match: [A=1], or: [B=1]}}",
                "unknown setting `include_matches.or`",
            ),
            ("{include_matches.foo: 1}", "unknown setting `include_matches.foo`"),
            ("{max_backoff: 20s}", "Filebeat 9 does not have it any more"),
            ("{chroot: /none}", "no directory"),
            ("{encoding: utf-8}", "encoding"),
            ("{parsers: [{multiline: {pattern: '(', match: after}}]}", "unclosed group"),
        ] {
            let (_, problems) = read_text(text);
            assert!(problems.contains(expected), "{text}: {problems}");
        }
    }

    #[test]
    fn what_does_nothing_is_a_warning() {
        for (text, expected) in [
            (
                "{transports: [kernel, xx]}",
                "1:14: `transports` has `xx`, which is no transport of journald: no entry has it\n\
                 hint: there is `audit`, `driver`, `syslog`, `journal`, `stdout`, `kernel`",
            ),
            ("{transports: [sdtout]}", "hint: did you mean `stdout`?"),
            (
                "{seek: since}",
                "1:8: `seek` is `since`, and `since` is not set: it begins now, as with `tail`\n\
                 hint: as in `since: -24h`",
            ),
            (
                "{since: -24h}",
                "1:9: `since` has no effect without `seek: since`\n\
                 hint: set `seek: since`, or remove it",
            ),
            (
                "{seek: since, since: 24h}",
                "1:22: `since` is `24h`, which is in the future: nothing is read until then\n\
                 hint: for the past, write `since: -24h`",
            ),
            ("{seek: tail, since: -24h}", "`since` has no effect without `seek: since`"),
        ] {
            let (is_read, problems) = read_text(text);
            assert!(is_read && problems.starts_with("warning: "), "{text}: {problems}");
            assert!(problems.contains(expected), "{text}: {problems}");
            assert!(!problems.contains("error: "), "{text}: {problems}");
        }
        for text in ["{seek: since, since: 0}", "{seek: since, since: -1ns}"] {
            assert_eq!(read_text(text).1, "", "{text}");
        }
        // The values that are wrong are errors, and nothing is said about what belongs to them.
        let (_, problems) = read_text("{seek: middle, since: -24h}");
        assert!(!problems.contains("warning: "), "{problems}");
    }

    #[test]
    fn all_mistakes_are_reported_at_once() {
        let (_, problems) = read_text(
            "{chroot: /none, paths: [a, b], merge: 7, units: [/dev/sda], facilities: [128], seek: middle, \
             save_remote_hostname: x}",
        );
        for expected in [
            "`chroot` is `/none`",
            "has `a`: a path must be absolute",
            "has `b`: a path must be absolute",
            "`merge` is `7`",
            "no name of a unit",
            "0 to 127",
            "`seek` is `middle`",
            "`save_remote_hostname` is `x`",
        ] {
            assert!(problems.contains(expected), "{expected}: {problems}");
        }
    }
}

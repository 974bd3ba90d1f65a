//! Every option: what it reads, its default, and the message about a bad value.

use super::*;
use skidder_config::{Problems, Settings};
use skidder_os::Fs;
use skidder_read::{Codec, Compression, FileIdentity, FingerprintSettings, InputKind, TakeOver};
use skidder_testkit::{SimClock, SimFs};

const STARTED: Timestamp = Timestamp(2_000);
const FIRST_START: Timestamp = Timestamp(1_000);
const FIRST_USE: Timestamp = Timestamp(300);

fn world() -> SimFs {
    let fs = SimFs::new(&SimClock::new());
    fs.create_dir_as_other("/etc");
    fs.write_as_other("/etc/marker", b"host-7");
    fs
}

/// Reads an input of a kind; the problems as they are shown.
pub(super) fn input(kind: &str, options: &str) -> (FilestreamSettings, String) {
    let text = format!("filebeat.inputs:\n- type: {kind}\n  {}\n", options.replace('\n', "\n  "));
    let settings = Settings::parse("filebeat.yml", &text).unwrap();
    let problems = Problems::new();
    let fs: &dyn Fs = &world();
    let context = InputContext {
        fs,
        directory: Path::new("/"),
        started: STARTED,
        first_start: FIRST_START,
        first_use: FIRST_USE,
    };
    let section = settings.root(&problems).section("filebeat").sections("inputs").remove(0);
    section.declared_by(&crate::input_settings::EVERY_INPUT);
    section.accept("type");
    let read = match kind {
        "filestream" => read(&section, &context),
        "container" => log::read(&section, &context, InputKind::Container),
        _ => log::read(&section, &context, InputKind::Log),
    };
    section.finish();
    (read, problems.to_string())
}

/// Reads a filestream input without a problem.
pub(super) fn good(options: &str) -> FilestreamSettings {
    let (read, problems) = input("filestream", &format!("id: a\npaths: [/x]\n{options}"));
    assert_eq!(problems, "", "{options}");
    read
}

/// The message about the last line of the options, which is line 5 of the file.
pub(super) fn bad(option: &str) -> String {
    let (_, problems) = input("filestream", &format!("id: a\npaths: [/x]\n{option}"));
    assert!(problems.starts_with("error: filebeat.yml:5:"), "{option}: {problems}");
    let key = option.split(':').next().unwrap();
    // The last part may be missing: then it is what must be in it that is named.
    let named = key.rsplit('.').take(2).any(|part| problems.contains(part));
    assert!(named, "{option}: the key is not named in {problems}");
    problems
}

pub(super) fn warned(option: &str) -> String {
    let (_, problems) = input("filestream", &format!("id: a\npaths: [/x]\n{option}"));
    assert!(problems.starts_with("warning: filebeat.yml:5:"), "{option}: {problems}");
    problems
}

fn seconds(count: u64) -> Option<Duration> {
    Some(Duration::from_secs(count))
}

#[test]
fn the_defaults_are_those_of_filebeat() {
    let read = good("");
    assert_eq!((&*read.id, read.kind, read.shares_keys), ("a", InputKind::Filestream, false));
    assert_eq!(read.check_interval, Duration::from_secs(10));
    assert_eq!(read.identity, FileIdentity::Fingerprint);
    let fingerprint = FingerprintSettings { enabled: true, offset: 0, length: 1024, growing: true };
    assert_eq!(read.fingerprint, fingerprint);
    assert_eq!(read.compression, Compression::None);
    assert_eq!((read.buffer_size, read.message_max_bytes), (16384, 10_485_760));
    assert_eq!(read.close.inactive, seconds(300));
    assert_eq!((read.close.removed, read.close.renamed, read.close.on_eof), (false, false, false));
    assert_eq!(read.close.check_interval, Duration::from_secs(5));
    assert_eq!(read.close.after_interval, None);
    assert_eq!(read.close.backoff_init, Duration::from_secs(2));
    assert_eq!((read.close.backoff_max, read.close.backoff_factor), (Duration::from_secs(10), 2));
    assert_eq!((read.ignore_older, read.ignore_before, read.start_at_end), (None, None, false));
    assert_eq!(
        (read.clean_inactive, read.forget_at_start, read.clean_removed),
        (None, false, true)
    );
    assert_eq!((read.delete, read.read_until_eof), (None, None));
    assert_eq!((read.harvester_limit, &read.take_over), (None, &TakeOver::Off));
    assert!(read.include_file_fingerprint && !read.include_owner && !read.include_group);
    assert!(!read.resend_on_touch && !read.scan.symlinks && !read.keep_null);
}

#[test]
fn an_id_is_asked_for_and_paths_are_required() {
    let (_, problems) = input("filestream", "paths: [/x]");
    assert!(problems.starts_with("warning: filebeat.yml:2:"), "{problems}");
    assert!(problems.contains("no `id`"), "{problems}");
    let (_, problems) = input("filestream", "id: a");
    assert!(problems.starts_with("error: filebeat.yml:2:"), "{problems}");
    assert!(problems.contains("names no path"), "{problems}");
    assert!(input("filestream", "id: a\npaths: ['/x/[']").1.contains("is not closed"));
    assert!(good("allow_deprecated_id_duplication: true").shares_keys);
    bad("allow_deprecated_id_duplication: perhaps");
}

#[test]
fn the_scanner_is_read() {
    assert_eq!(good("prospector.scanner.check_interval: 1m").check_interval.as_secs(), 60);
    bad("prospector.scanner.check_interval: 0");
    let rotated = |value: &str, more: &str| {
        good(&format!("prospector.scanner.rotated_logs: {value}\n{more}")).rotated_since
    };
    let container = "parsers: [{container: {}}]";
    assert_eq!((good("").rotated_since, good(container).rotated_since), (None, Some(FIRST_USE)));
    assert_eq!(rotated("since_first_start", container), Some(FIRST_USE));
    // Names alone show nothing: other logs have a first look only with `all`.
    assert_eq!(rotated("since_first_start", ""), None);
    assert_eq!(rotated("all", ""), Some(Timestamp(i64::MIN)));
    assert_eq!(
        (rotated("all", container), rotated("off", container)),
        (Some(Timestamp(i64::MIN)), None)
    );
    assert!(bad("prospector.scanner.rotated_logs: none").contains("since_first_start"));
    assert!(good("prospector.scanner.notify: auto").notify);
    assert!(!good("prospector.scanner.notify: off").notify);
    bad("prospector.scanner.notify: sometimes");
    bad("prospector.scanner.check_interval: soon");
    assert!(good("prospector.scanner.symlinks: true").scan.symlinks);
    bad("prospector.scanner.symlinks: [a]");
    assert!(good("prospector.scanner.resend_on_touch: true").resend_on_touch);
    bad("prospector.scanner.resend_on_touch: 7");
    assert_eq!(good("prospector.scanner.include_files: [a, b]").scan.include_files.len(), 2);
    bad("prospector.scanner.include_files: ['(']");
    assert_eq!(good("prospector.scanner.exclude_files: ['\\.gz$']").scan.exclude_files.len(), 1);
    bad("prospector.scanner.exclude_files: ['[']");
    let covers = |recursive: bool| {
        let text = format!(
            "id: a\npaths: ['/x/**/*.log']\nprospector.scanner.recursive_glob: {recursive}"
        );
        input("filestream", &text).0.scan.patterns[0].covers(Path::new("/x/a/b/c.log"))
    };
    assert!(covers(true) && !covers(false));
    bad("prospector.scanner.recursive_glob: 3");
}

#[test]
fn identities_are_read_with_what_they_need() {
    assert_eq!(good("file_identity.native: ~").identity, FileIdentity::Native);
    assert_eq!(good("file_identity.path: ~").identity, FileIdentity::Path);
    let marker = FileIdentity::InodeMarker("/etc/marker".into());
    assert_eq!(good("file_identity.inode_marker.path: etc/marker").identity, marker);
    assert!(bad("file_identity.inode_marker.path: /nowhere").contains("cannot be read"));
    assert!(bad("file_identity.inode_marker: {}").contains("path"));
    assert!(!good("file_identity.fingerprint.growing: false").fingerprint.growing);
    bad("file_identity.fingerprint.growing: a");
    assert!(bad("file_identity.inode: ~").contains("`native`"));
    assert!(bad("file_identity: {native: ~, path: ~}").contains("2 names"));
    assert!(!good("file_identity.native: ~").fingerprint.enabled);
    let both = "file_identity.native: ~\nprospector.scanner.fingerprint.enabled: true";
    assert!(good(both).fingerprint.enabled);
    assert!(bad("prospector.scanner.fingerprint.enabled: false").contains("needs fingerprints"));
}

#[test]
fn fingerprints_have_a_least_and_a_most() {
    let fingerprint = |option| good(option).fingerprint;
    assert_eq!(fingerprint("prospector.scanner.fingerprint.length: 64").length, 64);
    assert!(bad("prospector.scanner.fingerprint.length: 63").contains("64"));
    assert!(warned("prospector.scanner.fingerprint.length: 2000000").contains("reduced"));
    assert_eq!(fingerprint("prospector.scanner.fingerprint.offset: 100").offset, 100);
    bad("prospector.scanner.fingerprint.offset: -1");
    bad("prospector.scanner.fingerprint.offset: 100000000");
}

#[test]
fn compression_needs_content() {
    assert_eq!(good("compression: auto").compression, Compression::Auto);
    for codec in Codec::ALL {
        let text = format!("compression: {codec}");
        assert_eq!(good(&text).compression, Compression::Only(codec));
    }
    assert_eq!(good("compression: ''").compression, Compression::None);
    assert!(bad("compression: zip").contains("`auto`"));
    let (_, problems) =
        input("filestream", "id: a\npaths: [/x]\nfile_identity.path: ~\ncompression: auto");
    assert!(problems.contains("`file_identity` is `path`"), "{problems}");
}

#[test]
fn what_is_ignored_is_read() {
    assert_eq!(good("ignore_older: 24h").ignore_older, seconds(86_400));
    assert_eq!(good("ignore_older: 0").ignore_older, None);
    bad("ignore_older: old");
    assert_eq!(good("ignore_inactive: since_first_start").ignore_before, Some(FIRST_START));
    assert_eq!(good("ignore_inactive: since_last_start").ignore_before, Some(STARTED));
    assert!(bad("ignore_inactive: always").contains("since_first_start"));
    assert_eq!(good("harvester_limit: 5").harvester_limit, Some(5));
    assert_eq!(good("harvester_limit: 0").harvester_limit, None);
    bad("harvester_limit: -1");
}

#[test]
fn closing_is_read() {
    assert_eq!(good("close.on_state_change.inactive: 1m").close.inactive, seconds(60));
    assert_eq!(good("close.on_state_change.inactive: 0").close.inactive, None);
    bad("close.on_state_change.inactive: x");
    assert!(good("close.on_state_change.removed: true").close.removed);
    bad("close.on_state_change.removed: x");
    assert!(good("close.on_state_change.renamed: true").close.renamed);
    bad("close.on_state_change.renamed: x");
    assert_eq!(good("close.on_state_change.check_interval: 1s").close.check_interval.as_secs(), 1);
    bad("close.on_state_change.check_interval: 0");
    assert!(good("close.reader.on_eof: true").close.on_eof);
    bad("close.reader.on_eof: x");
    assert_eq!(good("close.reader.after_interval: 1h").close.after_interval, seconds(3600));
    bad("close.reader.after_interval: -1s");
    let backoff = good("backoff.init: 1s\nbackoff.max: 3s").close;
    assert_eq!((backoff.backoff_init.as_secs(), backoff.backoff_max.as_secs()), (1, 3));
    bad("backoff.init: 0");
    bad("backoff.max: 0");
    let (read, said) = input("filestream", "id: a\npaths: [/x]\nbackoff.init: 11s");
    let expected = "`filebeat.inputs[0].backoff.init`, 11s, is longer than `filebeat.inputs[0].backoff.max`, 10s";
    assert!(said.starts_with("warning: ") && said.contains(expected), "{said}");
    assert_eq!(read.close.backoff_max.as_secs(), 11);
    let (_, said) = input("log", "paths: [/x]\nallow_deprecated_use: true\nmax_backoff: 500ms");
    assert!(said.contains(".backoff`, 1s, is longer than"), "{said}");
}

#[test]
fn cleaning_has_filebeats_rules() {
    assert!(!good("clean_removed: false").clean_removed);
    bad("clean_removed: x");
    assert_eq!(good("clean_inactive: -1").clean_inactive, None);
    assert_eq!(good("clean_inactive: 0").clean_inactive, None);
    assert_eq!(good("ignore_older: 1h\nclean_inactive: 61m").clean_inactive, seconds(3660));
    assert!(bad("clean_inactive: 42h").contains("needs `ignore_older`"));
    assert!(bad("clean_inactive: 3610s\nignore_older: 1h").contains("3610s"));
    bad("clean_inactive: never");
    let legacy = good("clean_inactive: 42h\nlegacy_clean_inactive: true");
    assert_eq!((legacy.clean_inactive, legacy.forget_at_start), (seconds(151_200), false));
    let legacy = good("clean_inactive: 0\nlegacy_clean_inactive: true");
    assert_eq!((legacy.clean_inactive, legacy.forget_at_start), (None, true));
    bad("legacy_clean_inactive: x");
}

#[test]
fn pinning_is_off_and_bounded() {
    assert_eq!(good("").pin.max_bytes, None);
    assert_eq!(good("pin.enabled: true").pin.max_bytes, Some(1 << 30));
    assert_eq!(good("pin: {enabled: true, max_bytes: 5MiB}").pin.max_bytes, Some(5 << 20));
    assert_eq!(good("pin.max_bytes: 1").pin.max_bytes, None);
    bad("pin.enabled: x");
    bad("pin.max_bytes: much");
    bad("pin.enabled: true\nfile_identity.native: ~");
}

#[test]
fn deleting_and_the_last_reading_are_read() {
    assert_eq!(good("delete.enabled: true").delete, seconds(1800));
    assert_eq!(good("delete: {enabled: true, grace_period: 0s}").delete, Some(Duration::ZERO));
    assert_eq!(good("delete: {enabled: false, grace_period: 1s}").delete, None);
    bad("delete.enabled: x");
    bad("delete.grace_period: -1s");
    let never = "delete.enabled: true\nclose.on_state_change.inactive: 0";
    assert!(warned(never).contains("none ever is"));
    assert_eq!(good("read_until_eof.enabled: true").read_until_eof, seconds(60));
    assert_eq!(good("read_until_eof: {enabled: true, timeout: 5s}").read_until_eof, seconds(5));
    bad("read_until_eof.enabled: x");
    bad("read_until_eof.timeout: 0");
}

#[test]
fn taking_over_has_filebeats_rules() {
    assert_eq!(good("take_over: true").take_over, TakeOver::Logs);
    assert_eq!(good("take_over: false").take_over, TakeOver::Off);
    assert_eq!(good("take_over.enabled: true").take_over, TakeOver::Logs);
    let ids = TakeOver::Inputs(vec!["b".to_owned(), "c".to_owned()]);
    assert_eq!(good("take_over: {enabled: true, from_ids: [b, c]}").take_over, ids);
    assert_eq!(good("take_over: {from_ids: [b]}").take_over, TakeOver::Off);
    bad("take_over.enabled: x");
    assert!(bad("take_over: {enabled: true, from_ids: [a]}").contains("own id"));
    let (_, problems) = input("filestream", "paths: [/x]\ntake_over: true");
    assert!(problems.contains("needs the input to have an `id`"), "{problems}");
    let both = "take_over: true\nallow_deprecated_id_duplication: true";
    assert!(bad(both).contains("exclude each other"));
}

#[test]
fn a_rotation_strategy_is_checked_and_needs_content() {
    let strategy = "rotation.external.strategy.copytruncate";
    good(&format!("{strategy}: {{suffix_regex: '\\.\\d$', dateformat: '-20060102'}}"));
    assert!(bad(&format!("{strategy}.dateformat: '-20060102'")).contains("suffix_regex"));
    assert!(bad(&format!("{strategy}.suffix_regex: '('")).contains("suffix_regex"));
    assert!(bad("rotation.external.strategy.rename: {}").contains("`copytruncate`"));
    assert!(bad("rotation.internal: {}").contains("copytruncate"));
    assert!(bad("rotation.external: {}").contains("names no strategy"));
    let (_, problems) = input(
        "filestream",
        &format!("id: a\npaths: [/x]\nfile_identity.native: ~\n{strategy}.suffix_regex: a"),
    );
    assert!(problems.contains("recognised by their content"), "{problems}");
}

#[test]
fn reading_and_fields_are_read() {
    assert_eq!(good("buffer_size: 100").buffer_size, 100);
    bad("buffer_size: 0");
    assert_eq!(good("message_max_bytes: 100").message_max_bytes, 100);
    bad("message_max_bytes: 0");
    bad("message_max_bytes: 1000000000");
    assert_eq!(good("include_lines: ['^a']").include_lines.len(), 1);
    bad("include_lines: ['(']");
    assert_eq!(good("exclude_lines: ['^a', b]").exclude_lines.len(), 2);
    bad("exclude_lines: ['(']");
    assert!(!good("include_file_fingerprint: false").include_file_fingerprint);
    bad("include_file_fingerprint: x");
    assert!(good("include_file_owner_name: true").include_owner);
    bad("include_file_owner_name: x");
    assert!(good("include_file_owner_group_name: true").include_group);
    bad("include_file_owner_group_name: x");
    assert!(good("keep_null: true").keep_null);
    bad("keep_null: x");
    assert!(warned("gzip_experimental: true").contains("compression"));
    warned("seek_to_tail: true");
}

/// Reads a `log` input without a problem.
fn log_input(options: &str) -> FilestreamSettings {
    let text = format!("allow_deprecated_use: true\npaths: [/x]\n{options}");
    let (read, problems) = input("log", &text);
    assert_eq!(problems, "", "{options}");
    read
}

fn bad_log(option: &str) {
    let text = format!("allow_deprecated_use: true\npaths: [/x]\n{option}");
    let (_, problems) = input("log", &text);
    assert!(problems.starts_with("error: filebeat.yml:5:"), "{option}: {problems}");
}

#[test]
fn a_deprecated_input_runs_with_a_notice_unless_it_is_asked_for() {
    for option in ["", "allow_deprecated_use: false\n"] {
        let (_, problems) = input("log", &format!("{option}paths: [/x]"));
        assert!(problems.starts_with("warning"), "{problems}");
        assert!(problems.contains("allow_deprecated_use: true"), "{problems}");
    }
    let (_, problems) = input("log", "allow_deprecated_use: true\npaths: [/x]");
    assert_eq!(problems, "");
}

#[test]
fn the_defaults_of_log_inputs_are_those_of_filebeat() {
    let read = log_input("");
    assert_eq!((read.kind, read.shares_keys), (InputKind::Log, true));
    assert_eq!(read.identity, FileIdentity::Native);
    assert_eq!(read.key("1-2"), "filebeat::logs::native::1-2");
    assert_eq!(read.check_interval, Duration::from_secs(10));
    assert_eq!((read.buffer_size, read.message_max_bytes), (16384, 10_485_760));
    assert_eq!(read.close.inactive, seconds(300));
    assert_eq!((read.close.removed, read.close.renamed, read.close.on_eof), (true, false, false));
    assert_eq!(read.close.after_interval, None);
    let waits = (read.close.backoff_init.as_secs(), read.close.backoff_max.as_secs());
    assert_eq!((waits, read.close.backoff_factor), ((1, 10), 2));
    assert_eq!((read.ignore_older, read.clean_inactive, read.clean_removed), (None, None, true));
    assert!(!read.start_at_end && !read.scan.symlinks);
}

#[test]
fn the_options_of_log_inputs_become_those_of_filestream() {
    let read = log_input(
        "recursive_glob.enabled: false\nexclude_lines: ['^DBG']\ninclude_lines: ['^ERR', '^WARN']\n\
         harvester_buffer_size: 42000\nmax_bytes: 44000\nexclude_files: ['\\.gz$']\n\
         ignore_older: 10h\nclean_inactive: 20h\nclean_removed: false\nclose_eof: true\n\
         close_inactive: 3h\nclose_removed: false\nclose_renamed: true\nclose_timeout: 42s\n\
         scan_frequency: 50s\ntail_files: true\nsymlinks: true\nbackoff: 20s\nmax_backoff: 200s\n\
         backoff_factor: 3\nharvester_limit: 10000\nfile_identity.path: ~",
    );
    assert_eq!((read.include_lines.len(), read.exclude_lines.len()), (2, 1));
    assert_eq!((read.buffer_size, read.message_max_bytes), (42000, 44000));
    assert_eq!(read.scan.exclude_files.len(), 1);
    assert_eq!(read.ignore_older, seconds(36_000));
    assert_eq!((read.clean_inactive, read.clean_removed), (seconds(72_000), false));
    assert_eq!((read.close.on_eof, read.close.inactive), (true, seconds(10_800)));
    assert_eq!((read.close.removed, read.close.renamed), (false, true));
    assert_eq!(read.close.after_interval, seconds(42));
    assert_eq!(read.check_interval.as_secs(), 50);
    assert!(read.start_at_end && read.scan.symlinks);
    let waits = (read.close.backoff_init.as_secs(), read.close.backoff_max.as_secs());
    assert_eq!((waits, read.close.backoff_factor), ((20, 200), 3));
    assert_eq!(read.harvester_limit, Some(10_000));
    assert_eq!(read.identity, FileIdentity::Path);
}

#[test]
fn bad_options_of_log_inputs_are_told() {
    for option in [
        "scan_frequency: 0",
        "max_bytes: 0",
        "harvester_buffer_size: 0",
        "exclude_files: ['(']",
        "exclude_lines: ['(']",
        "include_lines: ['(']",
        "ignore_older: x",
        "clean_inactive: 1h",
        "clean_removed: x",
        "close_eof: x",
        "close_inactive: x",
        "close_removed: x",
        "close_renamed: x",
        "close_timeout: x",
        "tail_files: x",
        "symlinks: x",
        "backoff: 0",
        "max_backoff: 0",
        "backoff_factor: 0",
        "harvester_limit: x",
        "recursive_glob.enabled: x",
        "file_identity.nothing: ~",
        "scan.sort: modtime",
        "containers.ids: ['*']",
        "close.reader.on_eof: true",
    ] {
        bad_log(option);
    }
    let (_, said) =
        input("container", "paths: [/x]\nallow_deprecated_use: true\ncontainers.ids: [a]");
    assert_eq!(said.matches("error").count(), 1, "{said}");
    assert!(said.contains("`filebeat.inputs[0].containers` is beside `paths`"), "{said}");
}

#[test]
fn inputs_of_containers_follow_links() {
    for (kind, follows) in [("container", true), ("log", false)] {
        let (read, problems) = input(kind, "paths: [/var/log/containers/*.log]");
        assert_eq!(read.scan.symlinks, follows, "{kind}: {problems}");
    }
}

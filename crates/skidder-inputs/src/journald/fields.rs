//! Fields of an entry as Filebeat names them.

use regex::Regex;
use skidder_event::{Map, Value};
use skidder_os::capability_name;
use std::sync::{Arc, LazyLock};

/// Where a field of the journal goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum To {
    /// A field with its text.
    Text(&'static str),
    /// A field with its number.
    Number(&'static str),
    /// Nowhere.
    Nowhere,
}

use To::{Nowhere, Number, Text};

/// The boot of an entry.
const BOOT: &str = "journald.host.boot_id";

/// Fields that have a name of their own, by their names in the journal; all others are below `journald.custom`.
const NAMES: [(&str, To); 60] = [
    ("CODE_FILE", Text("journald.code.file")),
    ("CODE_FUNC", Text("journald.code.func")),
    ("CODE_LINE", Number("journald.code.line")),
    ("CONTAINER_ID", Nowhere),
    ("CONTAINER_ID_FULL", Text("container.id")),
    ("CONTAINER_NAME", Text("container.name")),
    ("CONTAINER_PARTIAL_MESSAGE", Text("container.partial")),
    ("CONTAINER_TAG", Nowhere),
    ("COREDUMP_UNIT", Text("journald.coredump.unit")),
    ("COREDUMP_USER_UNIT", Text("journald.coredump.user_unit")),
    ("IMAGE_NAME", Text("container.image.name")),
    ("MESSAGE", Text("message")),
    ("MESSAGE_ID", Text("message_id")),
    ("OBJECT_AUDIT_LOGINUID", Number("journald.object.audit.login_uid")),
    ("OBJECT_AUDIT_SESSION", Number("journald.object.audit.session")),
    ("OBJECT_CMDLINE", Text("journald.object.process.command_line")),
    ("OBJECT_COMM", Text("journald.object.process.name")),
    ("OBJECT_EXE", Text("journald.object.process.executable")),
    ("OBJECT_GID", Number("journald.object.gid")),
    ("OBJECT_PID", Number("journald.object.pid")),
    ("OBJECT_SYSTEMD_OWNER_UID", Number("journald.object.systemd.owner_uid")),
    ("OBJECT_SYSTEMD_SESSION", Text("journald.object.systemd.session")),
    ("OBJECT_SYSTEMD_UNIT", Text("journald.object.systemd.unit")),
    ("OBJECT_SYSTEMD_USER_UNIT", Text("journald.object.systemd.user_unit")),
    ("OBJECT_UID", Number("journald.object.uid")),
    ("PRIORITY", Number("log.syslog.priority")),
    ("SYSLOG_FACILITY", Number("log.syslog.facility.code")),
    ("SYSLOG_IDENTIFIER", Text("log.syslog.appname")),
    ("SYSLOG_PID", Number("log.syslog.procid")),
    ("UNIT", Text("journald.unit")),
    ("_AUDIT_LOGINUID", Number("journald.audit.login_uid")),
    ("_AUDIT_SESSION", Text("journald.audit.session")),
    ("_BOOT_ID", Text(BOOT)),
    ("_CAP_EFFECTIVE", Text("journald.process.capabilities")),
    ("_CMDLINE", Text("journald.process.command_line")),
    ("_COMM", Text("journald.process.name")),
    ("_EXE", Text("journald.process.executable")),
    ("_GID", Number("journald.gid")),
    ("_HOSTNAME", Text("host.hostname")),
    ("_KERNEL_DEVICE", Text("journald.kernel.device")),
    ("_KERNEL_SUBSYSTEM", Text("journald.kernel.subsystem")),
    ("_MACHINE_ID", Text("host.id")),
    ("_PID", Number("journald.pid")),
    ("_SOURCE_MONOTONIC_TIMESTAMP", Nowhere),
    ("_SOURCE_REALTIME_TIMESTAMP", Nowhere),
    ("_SYSTEMD_CGROUP", Text("systemd.cgroup")),
    ("_SYSTEMD_INVOCATION_ID", Text("systemd.invocation_id")),
    ("_SYSTEMD_OWNER_UID", Number("systemd.owner_uid")),
    ("_SYSTEMD_SESSION", Text("systemd.session")),
    ("_SYSTEMD_SLICE", Text("systemd.slice")),
    ("_SYSTEMD_UNIT", Text("systemd.unit")),
    ("_SYSTEMD_USER_SLICE", Text("systemd.user_slice")),
    ("_SYSTEMD_USER_UNIT", Text("systemd.user_unit")),
    ("_TRANSPORT", Text("systemd.transport")),
    ("_UDEV_DEVLINK", Text("journald.kernel.device_symlinks")),
    ("_UDEV_DEVNODE", Text("journald.kernel.device_node_path")),
    ("_UDEV_SYSNAME", Text("journald.kernel.device_name")),
    ("_UID", Number("journald.uid")),
    ("__CURSOR", Nowhere),
    ("__REALTIME_TIMESTAMP", Nowhere),
];

/// The name of the field of the journal that becomes `name`, if there is one.
pub(super) fn journal_name(name: &str) -> Option<&'static str> {
    let is = |to: &To| matches!(to, Text(path) | Number(path) if *path == name);
    NAMES.iter().find(|(_, to)| is(to)).map(|(name, _)| *name)
}

/// Which field an item is of.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Field {
    Message,
    Known(&'static str),
    Custom(Box<str>),
    Nowhere,
}

/// The value of an item.
#[derive(Clone, Debug, PartialEq)]
enum Datum {
    Text(Box<str>),
    /// A number, and its text.
    Number(i64, Box<str>),
    /// Not UTF-8, or with characters that control terminals.
    Bytes(Box<[u8]>),
}

/// A field of an entry; entries share those with the same value.
#[derive(Debug)]
pub(super) struct Item {
    field: Field,
    value: Datum,
    /// Which conditions of `matches.rs` it meets.
    pub(super) terms: Box<[u16]>,
}

impl Item {
    /// An item of `NAME=value`.
    pub(super) fn new(payload: &[u8], terms: Box<[u16]>) -> Self {
        let split = memchr::memchr(b'=', payload).unwrap_or(payload.len());
        let (name, value) = (&payload[..split], payload.get(split + 1..).unwrap_or_default());
        let text = String::from_utf8_lossy(name);
        let known = NAMES.binary_search_by(|(known, _)| (*known).cmp(&*text));
        let to = known.ok().map(|at| NAMES[at].1);
        let field = match to {
            _ if name == b"MESSAGE" => Field::Message,
            Some(Text(path) | Number(path)) => Field::Known(path),
            Some(Nowhere) => Field::Nowhere,
            None => Field::Custom(text.trim_start_matches('_').to_lowercase().into()),
        };
        let value = match printable(value) {
            None => Datum::Bytes(value.into()),
            Some(text) => match number(text) {
                Some(number) if matches!(to, Some(Number(_))) => Datum::Number(number, text.into()),
                _ => Datum::Text(text.into()),
            },
        };
        Self { field, value, terms }
    }

    /// Whether others have the same value often.
    pub(super) fn is_common(&self) -> bool {
        !matches!(self.field, Field::Message | Field::Nowhere)
    }

    /// Whether it is `_BOOT_ID`.
    pub(super) fn is_boot(&self) -> bool {
        matches!(self.field, Field::Known(BOOT))
    }

    /// Whether it is part of the fields of an event.
    pub(super) fn is_field(&self) -> bool {
        self.is_common()
    }

    fn value(&self) -> Value {
        match &self.value {
            Datum::Number(number, _) => Value::Int(*number),
            _ => self.raw_value(),
        }
    }

    /// As journalctl writes it as JSON.
    fn raw_value(&self) -> Value {
        match &self.value {
            Datum::Text(text) | Datum::Number(_, text) => Value::Str(text.clone()),
            Datum::Bytes(bytes) => {
                Value::List(bytes.iter().map(|byte| Value::Int(i64::from(*byte))).collect())
            }
        }
    }

    fn bytes(&self) -> &[u8] {
        match &self.value {
            Datum::Text(text) | Datum::Number(_, text) => text.as_bytes(),
            Datum::Bytes(bytes) => bytes,
        }
    }
}

/// The value as text, if journalctl takes it for printable: UTF-8 without control characters but tabs and line feeds.
fn printable(value: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(value).ok()?;
    let is_shown = |character: char| {
        let code = character as u32;
        let is_control = (code < 0x20 && code != 9 && code != 10) || (0x7f..=0x9f).contains(&code);
        let is_character = !(0xfdd0..=0xfdef).contains(&code) && code & 0xfffe != 0xfffe;
        !is_control && is_character
    };
    let is_plain = value.iter().all(|byte| (0x20..0x7f).contains(byte));
    (is_plain || text.chars().all(is_shown)).then_some(text)
}

/// The number in front of a comma: some systems write a name behind it.
fn number(text: &str) -> Option<i64> {
    text.parse().ok().or_else(|| text.split(',').next()?.parse().ok())
}

/// Adds the message of an entry to `out`.
pub(super) fn put_message(items: &[Arc<Item>], out: &mut Vec<u8>) {
    let mut messages = items.iter().filter(|item| item.field == Field::Message);
    match (messages.next(), messages.next()) {
        (Some(message), None) => out.extend_from_slice(message.bytes()),
        // Filebeat writes values that are no text as Go shows them.
        (None, _) => out.extend_from_slice(b"<nil>"),
        (Some(first), Some(second)) => {
            out.push(b'[');
            out.extend_from_slice(first.bytes());
            for item in [second].into_iter().chain(messages) {
                out.push(b' ');
                out.extend_from_slice(item.bytes());
            }
            out.push(b']');
        }
    }
}

/// The fields of an entry.
pub(super) fn fields(items: &[Arc<Item>], save_remote_hostname: bool) -> Map {
    let (mut fields, mut custom) = (Map::new(), Map::new());
    for (at, item) in items.iter().enumerate() {
        let is_same = |other: &&Arc<Item>| other.field == item.field;
        let (map, path) = match &item.field {
            Field::Known(path) => (&mut fields, *path),
            Field::Custom(name) => (&mut custom, &**name),
            Field::Message | Field::Nowhere => continue,
        };
        if items[..at].iter().any(|other| is_same(&other)) {
            continue;
        }
        let mut same = items[at + 1..].iter().filter(is_same).peekable();
        let value = match same.peek() {
            None => item.value(),
            Some(_) => {
                let all = [item].into_iter().chain(same);
                Value::List(all.map(|item| item.raw_value()).collect())
            }
        };
        if matches!(item.field, Field::Known(_)) {
            map.insert_path(path, value);
        } else {
            map.insert(path, value);
        }
    }
    if !custom.is_empty() {
        fields.insert_path("journald.custom", custom);
    }
    enrich(&mut fields);
    fields.insert_path("event.kind", "event");
    if let Some(partial) = fields.get_path("container.partial") {
        if matches!(partial, Value::Str(text) if is_true(text)) {
            fields.insert("tags", Value::List(vec!["partial_message".into()]));
        }
        fields.remove_path("container.partial");
    }
    if save_remote_hostname && let Some(name) = fields.get_path("host.hostname").cloned() {
        fields.insert_path("log.source.address", name);
    }
    fields
}

/// What Go takes for true.
fn is_true(text: &str) -> bool {
    matches!(text, "1" | "t" | "T" | "true" | "TRUE" | "True")
}

/// Fields of the common schema; those of the process on whose behalf systemd logs replace those of systemd.
fn enrich(fields: &mut Map) {
    for prefix in ["journald", "journald.object"] {
        put_user(prefix, fields);
    }
    for prefix in ["journald", "journald.object"] {
        put_process(prefix, fields);
    }
    if let Some(Value::Str(mask)) = fields.get_path("journald.process.capabilities")
        && let Ok(mask) = u64::from_str_radix(mask, 16)
        && mask != 0
    {
        let is_set = |at: &usize| mask >> at & 1 == 1;
        let name =
            |at: usize| capability_name(at).map_or_else(|| format!("CAP_{at}"), str::to_owned);
        let names = (0..64).filter(is_set).map(|at| Value::from(name(at))).collect();
        fields.insert_path("process.thread.capabilities.effective", Value::List(names));
    }
}

fn put_user(prefix: &str, fields: &mut Map) {
    let number = |fields: &Map, name: &str| match fields.get_path(&format!("{prefix}.{name}")) {
        Some(Value::Int(number)) => Some(number.to_string()),
        // Filebeat takes what is no number for 0.
        Some(_) => Some("0".to_owned()),
        None => None,
    };
    let login = number(fields, "audit.login_uid");
    if let Some(login) = &login {
        fields.insert_path("user.id", login.clone());
    }
    let Some(uid) = number(fields, "uid") else { return };
    let gid = number(fields, "gid").unwrap_or_else(|| "0".to_owned());
    let user = if login.is_some_and(|login| login != uid) { "user.effective" } else { "user" };
    fields.insert_path(&format!("{user}.id"), uid);
    fields.insert_path(&format!("{user}.group.id"), gid);
}

fn put_process(prefix: &str, fields: &mut Map) {
    match fields.get_path(&format!("{prefix}.pid")) {
        Some(Value::Int(pid)) => {
            let pid = *pid;
            fields.insert_path("process.pid", pid);
        }
        Some(_) => fields.insert_path("process.pid", 0),
        None => {}
    }
    let text = |fields: &Map, name: &str| match fields.get_path(&format!("{prefix}.{name}")) {
        Some(Value::Str(text)) if !text.is_empty() => Some(text.to_string()),
        _ => None,
    };
    for (from, to) in [("name", "process.name"), ("executable", "process.executable")] {
        if let Some(text) = text(fields, from) {
            fields.insert_path(to, text);
        }
    }
    let Some(line) = text(fields, "process.command_line") else { return };
    let words: Vec<Value> = ARGUMENT.find_iter(&line).map(|word| word.as_str().into()).collect();
    if !words.is_empty() {
        fields.insert_path("process.args_count", words.len() as i64);
        fields.insert_path("process.args", Value::List(words));
    }
    fields.insert_path("process.command_line", line);
}

/// A word of a command line, or a text in quotes.
static ARGUMENT: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r#""(\\"|[^"])*?"|[^\t\n\f\r ]+"#).expect("the expression is a constant")
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_sorted_and_lead_back() {
        assert!(NAMES.is_sorted_by_key(|(name, _)| *name));
        assert_eq!(journal_name("systemd.unit"), Some("_SYSTEMD_UNIT"));
        assert_eq!(journal_name("log.syslog.facility.code"), Some("SYSLOG_FACILITY"));
        assert_eq!(journal_name("other"), None);
    }

    fn items(all: &[&[u8]]) -> Vec<Arc<Item>> {
        all.iter().map(|payload| Arc::new(Item::new(payload, Box::default()))).collect()
    }

    fn message(all: &[&[u8]]) -> String {
        let mut out = Vec::new();
        put_message(&items(all), &mut out);
        String::from_utf8_lossy(&out).into_owned()
    }

    #[test]
    fn a_message_is_one_text_whatever_is_in_it() {
        assert_eq!(message(&[b"MESSAGE=a\nb", b"_PID=1"]), "a\nb");
        assert_eq!(message(&[b"MESSAGE=\x1b[0m"]), "\x1b[0m");
        assert_eq!(message(&[b"MESSAGE=a", b"MESSAGE=b"]), "[a b]");
        assert_eq!(message(&[b"_PID=1"]), "<nil>");
    }

    #[test]
    fn values_are_texts_numbers_or_lists() {
        let all = items(&[
            b"_PID=12,root",
            b"PRIORITY=high",
            b"_UDEV_DEVLINK=a",
            b"_UDEV_DEVLINK=b",
            b"__OWN=\x01",
            b"OTHER_ONE=1",
            b"_AUDIT_LOGINUID=1000",
            b"_UID=0",
        ]);
        let fields = fields(&all, false);
        let at = |path: &str| fields.get_path(path).cloned();
        assert_eq!(at("journald.pid"), Some(Value::Int(12)));
        assert_eq!(at("process.pid"), Some(Value::Int(12)));
        assert_eq!(at("log.syslog.priority"), Some("high".into()));
        assert_eq!(
            at("journald.kernel.device_symlinks"),
            Some(Value::List(vec!["a".into(), "b".into()]))
        );
        assert_eq!(at("journald.custom.own"), Some(Value::List(vec![Value::Int(1)])));
        assert_eq!(at("journald.custom.other_one"), Some("1".into()));
        assert_eq!(at("user.id"), Some("1000".into()));
        assert_eq!(at("user.effective.id"), Some("0".into()));
        assert_eq!(at("user.effective.group.id"), Some("0".into()));
    }

    #[test]
    fn a_piece_of_a_message_gets_a_tag_and_a_remote_host_its_address() {
        let all =
            items(&[b"CONTAINER_PARTIAL_MESSAGE=true", b"CONTAINER_NAME=web", b"_HOSTNAME=h"]);
        let fields = fields(&all, true);
        assert_eq!(fields.get("tags"), Some(&Value::List(vec!["partial_message".into()])));
        assert_eq!(fields.get_path("container.partial"), None);
        assert_eq!(fields.get_path("container.name"), Some(&"web".into()));
        assert_eq!(fields.get_path("log.source.address"), Some(&"h".into()));
    }

    #[test]
    fn a_command_line_is_cut_into_its_words() {
        let all = items(&[br#"_CMDLINE=run "a b" --c="d e" f"#, b"_CAP_EFFECTIVE=20000000003"]);
        let fields = fields(&all, false);
        let words = ["run", "\"a b\"", "--c=\"d", "e\"", "f"].map(Value::from).to_vec();
        assert_eq!(fields.get_path("process.args"), Some(&Value::List(words)));
        assert_eq!(fields.get_path("process.args_count"), Some(&Value::Int(5)));
        let names = ["CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_41"].map(Value::from).to_vec();
        let path = "process.thread.capabilities.effective";
        assert_eq!(fields.get_path(path), Some(&Value::List(names)));
    }
}

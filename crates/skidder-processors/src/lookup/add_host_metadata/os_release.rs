//! The operating system's names out of `/etc/os-release` and `/etc/lsb-release`.
//!
//! Format: <https://www.freedesktop.org/software/systemd/man/latest/os-release.html>. The choice of
//! keys is go-sysinfo's, as it ends up in Filebeat's `host.os`.

use super::gather::read_text;
use skidder_event::Map;
use skidder_os::Fs;
use std::collections::BTreeMap;

/// Which family a distribution belongs to; also for names that begin so.
const FAMILIES: [(&str, &[&str]); 4] = [
    ("arch", &["arch", "antergos", "manjaro"]),
    (
        "redhat",
        &[
            "redhat",
            "fedora",
            "centos",
            "scientific",
            "oraclelinux",
            "ol",
            "amzn",
            "rhel",
            "almalinux",
            "openeuler",
            "rocky",
        ],
    ),
    ("debian", &["debian", "ubuntu", "raspbian", "linuxmint"]),
    ("suse", &["suse", "sles", "opensuse"]),
];

/// `host.os` without the kernel. `os-release` goes over `lsb-release`.
pub(super) fn os_fields(fs: &dyn Fs) -> Map {
    let mut keys = BTreeMap::new();
    let places = ["/etc/lsb-release", "/usr/lib/os-release", "/etc/os-release"];
    for text in places.iter().filter_map(|file| read_text(fs, file)) {
        parse(&text, &mut keys);
    }
    let first = |names: &[&str]| {
        let found = names.iter().filter_map(|name| keys.get(*name)).find(|text| !text.is_empty());
        found.cloned().unwrap_or_default()
    };
    let name = first(&["NAME", "PRETTY_NAME"]);
    let version = first(&["VERSION", "VERSION_ID", "DISTRIB_RELEASE"]);
    let platform = match first(&["ID", "DISTRIB_ID"]) {
        id if id.is_empty() => name.split(' ').next().unwrap_or_default().to_owned(),
        id => id,
    };
    let codename = match first(&["VERSION_CODENAME", "DISTRIB_CODENAME"]) {
        found if !found.is_empty() => Some(found),
        _ => {
            let other = keys.iter().find(|(key, _)| key.contains("CODENAME"));
            other.map(|(_, text)| text.clone()).or_else(|| in_brackets(&version))
        }
    };
    let like = first(&["ID_LIKE"]);
    let family = std::iter::once(platform.as_str()).chain(like.split(' ')).find_map(family_of);

    let mut os = Map::new();
    os.insert("type", "linux");
    os.insert("platform", platform.as_str());
    os.insert("name", name);
    os.insert("version", version);
    os.insert("family", family.unwrap_or_default());
    if let Some(codename) = codename.filter(|text| !text.is_empty()) {
        os.insert("codename", codename);
    }
    if let Some(build) = keys.get("BUILD_ID").filter(|text| !text.is_empty()) {
        os.insert("build", build.as_str());
    }
    os
}

/// Lines `KEY=value`, the value perhaps in quotes; later lines win.
fn parse(text: &str, keys: &mut BTreeMap<String, String>) {
    for line in text.lines().map(str::trim).filter(|line| !line.starts_with('#')) {
        let Some((key, value)) = line.split_once('=') else { continue };
        let value = value.trim();
        let quoted = ['"', '\'']
            .iter()
            .find_map(|&quote| value.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote)));
        let value = quoted.map_or_else(|| value.to_owned(), |inner| inner.trim().replace('\\', ""));
        keys.insert(key.trim().to_owned(), value);
    }
}

/// `bookworm` of `12 (bookworm)`.
fn in_brackets(version: &str) -> Option<String> {
    let (number, rest) = version.split_once(" (")?;
    let (name, _) = rest.split_once(')')?;
    number.starts_with(|first: char| first.is_ascii_digit()).then(|| name.to_owned())
}

fn family_of(platform: &str) -> Option<&'static str> {
    let platform = platform.to_lowercase();
    let by = |fits: &dyn Fn(&str) -> bool| {
        let found = FAMILIES.iter().find(|(_, members)| members.iter().any(|member| fits(member)));
        found.map(|(family, _)| *family)
    };
    if platform.is_empty() {
        return None;
    }
    by(&|member| member == platform).or_else(|| by(&|member| platform.starts_with(member)))
}

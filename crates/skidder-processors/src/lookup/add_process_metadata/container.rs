//! The container that a process is in, by its control groups: `/proc/PID/cgroup`
//! (<https://man7.org/linux/man-pages/man7/cgroups.7.html>).

use crate::lookup::add_host_metadata::read_text;
use regex::bytes::Regex;
use skidder_os::Fs;
use std::path::Path;
use std::sync::Arc;

/// How the id of a container is found in the path of a control group.
#[derive(Debug)]
pub(super) enum Groups {
    /// It is the first group of the expression.
    Pattern(Regex),
    /// It is the last part of a path that begins so; in version 2 of control groups 64 letters or digits.
    Prefixes(Vec<String>, Regex),
}

impl Groups {
    /// By an expression if there is one, else by prefixes. With neither: 64 hexadecimal digits at the end.
    pub(super) fn new(pattern: Option<Regex>, prefixes: Option<Vec<String>>) -> Self {
        let constant = |text| Regex::new(text).expect("a constant expression");
        match (pattern, prefixes) {
            (Some(pattern), _) => Self::Pattern(pattern),
            (None, Some(prefixes)) => Self::Prefixes(prefixes, constant("[0-9A-Za-z_]{64}")),
            (None, None) => Self::Pattern(constant(r"[-/]([0-9a-f]{64})(?:\.scope)?$")),
        }
    }

    /// The id of the container, if the process is in one.
    pub(super) fn container_of(&self, fs: &dyn Fs, host: &Path, pid: i64) -> Option<Arc<str>> {
        let file = host.join("proc").join(pid.to_string()).join("cgroup");
        let text = read_text(fs, file.to_str()?)?;
        text.lines().find_map(|line| self.id_in(line)).map(Arc::from)
    }

    /// The id in a line: `hierarchy:controllers:path`, and version 2 is hierarchy 0 without controllers.
    fn id_in<'a>(&self, line: &'a str) -> Option<&'a str> {
        let mut parts = line.splitn(3, ':');
        let (hierarchy, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
        let text = |found: regex::bytes::Match<'a>| std::str::from_utf8(found.as_bytes()).ok();
        match self {
            Self::Pattern(pattern) => pattern.captures(path.as_bytes())?.get(1).and_then(text),
            Self::Prefixes(_, id) if hierarchy == "0" && controllers.is_empty() => {
                id.find(path.as_bytes()).and_then(text)
            }
            Self::Prefixes(prefixes, _) => prefixes
                .iter()
                .any(|prefix| path.starts_with(&**prefix))
                .then(|| path.rsplit('/').find(|part| !part.is_empty()))?,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "f5fdc1c1bd5e0ee1d9a3bd1e4c4a0f8cf5fdc1c1bd5e0ee1d9a3bd1e4c4a0f8c";

    #[test]
    fn containers_are_found_in_the_paths_of_their_runtimes() {
        let default = Groups::new(None, None);
        for path in ["/docker/ID", "/system.slice/docker-ID.scope", "/kubepods/besteffort/pod1/ID"]
        {
            let line = format!("12:cpu,cpuacct:{}", path.replace("ID", ID));
            assert_eq!(default.id_in(&line), Some(ID), "{line}");
            let line = format!("0::{}", path.replace("ID", ID));
            assert_eq!(default.id_in(&line), Some(ID), "{line}");
        }
        for line in ["0::/", "0::/init.scope", "nonsense", "", "1:a:/docker/1234"] {
            assert_eq!(default.id_in(line), None, "{line}");
        }
    }

    #[test]
    fn prefixes_and_expressions_say_otherwise() {
        let prefixes = Groups::new(None, Some(vec!["/docker".to_owned()]));
        assert_eq!(prefixes.id_in("4:cpu:/docker/abc"), Some("abc"));
        assert_eq!(prefixes.id_in("4:cpu:/kubepods/abc"), None);
        assert_eq!(prefixes.id_in(&format!("0::/kubepods/x-{ID}.scope")), Some(ID));
        let pattern = Regex::new("/my-([a-z]+)").ok();
        let pattern = Groups::new(pattern, Some(vec!["/docker".to_owned()]));
        assert_eq!(pattern.id_in("4:cpu:/docker/my-box-1"), Some("box"));
        assert_eq!(pattern.id_in("4:cpu:/docker/abc"), None);
    }
}

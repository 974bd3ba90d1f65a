//! Matchers: from the fields of an event to the keys under which its pod is known.

use super::path::{CONTAINER_ID_LEN, CONTAINERS, Named, PODS, VOLUMES};
use regex::bytes::Regex;
use skidder_event::{Format, Path};

/// Default of `logs_path` of the matcher of that name.
pub(super) const LOGS_PATH: &str = "/var/lib/docker/containers/";

/// Gives the text of a field, if it is there and is text.
pub(super) type Look<'a> = &'a dyn Fn(&Path) -> Option<String>;

/// One matcher.
#[derive(Clone, Debug)]
pub(super) enum Matcher {
    /// The value of the first of these fields that has one, or the group `key` of a match in the first that has that.
    Fields { fields: Vec<Path>, pattern: Option<Regex> },
    /// A text with fields in it.
    FieldFormat { format: Format, fields: Vec<Path> },
    /// The path of a log file. Without a folder: all that the kubelet has.
    LogsPath { below: Option<String>, pod: bool },
}

impl Matcher {
    /// The fields that it looks at.
    pub(super) fn fields(&self) -> Vec<Path> {
        match self {
            Self::Fields { fields, .. } | Self::FieldFormat { fields, .. } => fields.clone(),
            Self::LogsPath { .. } => vec![log_file_path()],
        }
    }

    /// The keys, best first.
    pub(super) fn keys(&self, look: Look<'_>) -> Vec<String> {
        match self {
            Self::Fields { fields, pattern } => {
                let key_of = |value: String| match pattern {
                    None => Some(value),
                    Some(pattern) => {
                        let captures = pattern.captures(value.as_bytes())?;
                        let key = captures.name("key")?;
                        Some(String::from_utf8_lossy(key.as_bytes()).into_owned())
                    }
                };
                let keys = fields.iter().filter_map(look).filter_map(key_of);
                keys.filter(|key| !key.is_empty()).take(1).collect()
            }
            Self::FieldFormat { format, .. } => {
                let mut format = format.clone();
                format.bind(|name| look(&Path::parse(name).ok()?));
                format.constant().map(str::to_owned).into_iter().collect()
            }
            Self::LogsPath { below, pod } => match look(&log_file_path()) {
                Some(path) => keys_of_path(&path, below.as_deref(), *pod),
                None => Vec::new(),
            },
        }
    }
}

/// `log.file.path`.
pub(super) fn log_file_path() -> Path {
    Path::parse("log.file.path").expect("a constant that is a path")
}

fn keys_of_path(path: &str, below: Option<&str>, pod: bool) -> Vec<String> {
    let Some(below) = below else {
        return Named::read(path).map(|named| keys_of(&named)).unwrap_or_default();
    };
    let Some(rest) = path.strip_prefix(below) else { return Vec::new() };
    let of_kubelet = [PODS, CONTAINERS, VOLUMES].iter().any(|known| below.starts_with(known));
    if of_kubelet || pod {
        return Named::read(path).map(|named| keys_of(&named)).unwrap_or_default();
    }
    // The id of the container follows.
    rest.get(..CONTAINER_ID_LEN).map(str::to_owned).into_iter().collect()
}

/// The keys that the indexers give to the pod or the container of a path.
fn keys_of(named: &Named<'_>) -> Vec<String> {
    let mut keys = Vec::new();
    keys.extend(named.container_id.map(str::to_owned));
    if let (Some(uid), Some(container)) = (named.uid, named.container) {
        if let Some(restarts) = named.restarts {
            keys.push(format!("{uid}/{container}/{restarts}"));
        }
        keys.push(format!("{uid}/{container}"));
    }
    keys.extend(named.uid.map(str::to_owned));
    keys
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(matcher: &Matcher, name: &str, value: &str) -> Vec<String> {
        let name = Path::parse(name).unwrap();
        matcher.keys(&|path| (*path == name).then(|| value.to_owned()))
    }

    #[test]
    fn a_path_gives_the_ids_in_it_best_first() {
        let id = "ab".repeat(32);
        let matcher =
            |below: Option<&str>, pod| Matcher::LogsPath { below: below.map(str::to_owned), pod };
        let path = format!("/var/lib/docker/containers/{id}/{id}-json.log");
        let found = keys(&matcher(Some(LOGS_PATH), false), "log.file.path", &path);
        assert_eq!(found, std::slice::from_ref(&id));
        let link = format!("/var/log/containers/p_n_c-{id}.log");
        for below in [None, Some(CONTAINERS)] {
            assert_eq!(
                keys(&matcher(below, false), "log.file.path", &link),
                std::slice::from_ref(&id)
            );
        }
        let pod = "/var/log/pods/n_p_uid/c/2.log";
        let found = keys(&matcher(Some(PODS), true), "log.file.path", pod);
        assert_eq!(found, ["uid/c/2", "uid/c", "uid"]);
        for (below, path) in
            [(Some("/other/"), pod), (Some(LOGS_PATH), "/var/lib/docker/containers/x")]
        {
            assert!(keys(&matcher(below, false), "log.file.path", path).is_empty());
        }
    }

    #[test]
    fn fields_and_formats_give_what_they_hold() {
        let fields = vec![Path::parse("a").unwrap(), Path::parse("b").unwrap()];
        let plain = Matcher::Fields { fields: fields.clone(), pattern: None };
        assert_eq!(keys(&plain, "b", "x/y"), ["x/y"]);
        assert!(keys(&plain, "c", "x").is_empty());
        let pattern = Some(Regex::new("/(?P<key>[a-z]+)").unwrap());
        let with_pattern = Matcher::Fields { fields, pattern };
        assert_eq!(keys(&with_pattern, "a", "x/y"), ["y"]);
        assert!(keys(&with_pattern, "a", "x").is_empty());
        // The first field gives nothing.
        let both = |path: &Path| Some(if path.as_str() == "a" { "x" } else { "x/z" }.to_owned());
        assert_eq!(with_pattern.keys(&both), ["z"]);
        let second = |path: &Path| Some(if path.as_str() == "a" { "" } else { "z" }.to_owned());
        assert_eq!(plain.keys(&second), ["z"]);
        let format = Matcher::FieldFormat {
            format: Format::parse("%{[ip]}:80").unwrap(),
            fields: vec![Path::parse("ip").unwrap()],
        };
        assert_eq!(keys(&format, "ip", "10.0.0.1"), ["10.0.0.1:80"]);
        assert!(keys(&format, "other", "x").is_empty());
    }
}

//! `cloud.id` and `cloud.auth`: address and credentials of a deployment of Elastic Cloud.
//!
//! As in libbeat's `cloudid`: they stand for `hosts`, `username` and `password` of `output.elasticsearch`, and win
//! over them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use skidder_config::{Group, Key, Part, Problems, Secret, Section, Settings, settings};

settings! {
    /// `cloud`.
    static CLOUD = Group::new("cloud", "A deployment of Elastic Cloud, for `output.elasticsearch`.");

    ID: String = Key::new("id").about("from the console of Elastic Cloud: stands for `hosts`, and wins over it");
    AUTH: Secret = Key::new("auth").about(
        "`user:password`: stands for `username` and `password`, and wins over them; needs `cloud.id`",
    );
}

mod at_root {
    use super::*;

    settings! {
        /// Settings at the root.
        pub(crate) static AT_ROOT = Group::new("root.cloud", "A deployment of Elastic Cloud.");

        pub(super) IN_ROOT: Part = Key::part("cloud", &CLOUD).about("a deployment of Elastic Cloud");
    }
}

pub(crate) use at_root::AT_ROOT;
use at_root::IN_ROOT;

/// The values of the two settings.
#[derive(Debug, PartialEq)]
pub(crate) struct Cloud {
    /// URL of Elasticsearch.
    url: String,
    user: Option<(String, Secret)>,
}

impl Cloud {
    /// Reads the section `cloud`; it reports mistakes.
    pub(crate) fn read(root: &Section<'_>) -> Option<Self> {
        let section = root.part(&IN_ROOT);
        section.declared_by(&CLOUD);
        // Elastic's manifest for Kubernetes has both with variables that are empty; Filebeat takes them for not set.
        let is_unset =
            |key: &str| section.item(key).is_some_and(|item| item.node().is_unresolved());
        if is_unset(ID.name()) {
            section.skip();
            return None;
        }
        let url = section.get(&ID).try_map(|id| parse(&id)).optional();
        let auth = section.get(&AUTH).try_map(|auth| match auth.reveal().split_once(':') {
            Some((user, password)) if !user.is_empty() => {
                Ok((user.to_owned(), Secret::new(password)))
            }
            _ => Err("expected `user:password`".to_owned()),
        });
        let user = auth.optional();
        if section.has_text("auth") && !section.has_text("id") {
            section.problem("auth", "`cloud.auth` has no meaning without `cloud.id`", "");
        }
        if section.has_text("id") && root.has("outputs") {
            let hint = "write `hosts` into the output that is meant";
            section.problem("id", "`cloud.id` is for `output`, not for `outputs`", hint);
        }
        section.finish();
        Some(Self { url: url?, user })
    }

    /// What the settings stand for, as on the command line.
    fn overrides(&self) -> Vec<String> {
        let text = |text: &str| serde_json::Value::from(text).to_string();
        let mut overrides = vec![format!("output.elasticsearch.hosts=[{}]", text(&self.url))];
        if let Some((user, password)) = &self.user {
            overrides.push(format!("output.elasticsearch.username={}", text(user)));
            overrides.push(format!("output.elasticsearch.password={}", text(password.reveal())));
        }
        overrides
    }
}

/// Overrides of the settings because of `cloud.id`; empty if it is missing or invalid, which is reported when all
/// settings are read.
pub(crate) fn overrides(settings: &Settings) -> Vec<String> {
    let problems = Problems::new();
    let root = settings.root(&problems);
    let cloud = Cloud::read(&root);
    root.skip();
    cloud.map(|cloud| cloud.overrides()).unwrap_or_default()
}

/// `name:base64(host[:port]$elasticsearch[:port]$kibana[:port])`; the error ends the sentence "`cloud.id` is …; ".
fn parse(id: &str) -> Result<String, String> {
    let wrong = |what: &str| format!("{what}; copy it from the console of Elastic Cloud");
    let encoded = id.rsplit_once(':').map_or(id, |(_, encoded)| encoded);
    let text = BASE64.decode(encoded).ok().and_then(|text| String::from_utf8(text).ok());
    let text = text.ok_or_else(|| wrong("it has no base64 behind its last colon"))?;
    let mut words = text.split('$');
    let (Some(host), Some(own)) = (words.next(), words.next()) else {
        return Err(wrong("it does not name Elasticsearch"));
    };
    let (host, port) = with_port(host, "443");
    let (own, port) = with_port(own, port);
    let is_name = |name: &str| {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
        !name.is_empty() && name.bytes().all(plain)
    };
    if !is_name(host) || !is_name(own) {
        return Err(wrong("it does not name Elasticsearch"));
    }
    if !port.parse().is_ok_and(|port: u16| port > 0) {
        return Err(wrong("the port in it is no number from 1 to 65535"));
    }
    Ok(format!("https://{own}.{host}:{port}"))
}

/// `name[:port]`.
fn with_port<'a>(text: &'a str, usual: &'a str) -> (&'a str, &'a str) {
    text.rsplit_once(':').unwrap_or((text, usual))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &str) -> String {
        format!("my:cluster:{}", BASE64.encode(text))
    }

    #[test]
    fn a_cloud_id_names_elasticsearch() {
        let table = [
            ("cloud.es.io$abc$def", "https://abc.cloud.es.io:443"),
            ("cloud.es.io:9243$abc$def", "https://abc.cloud.es.io:9243"),
            ("cloud.es.io:9243$abc:9244$", "https://abc.cloud.es.io:9244"),
            ("cloud.es.io$abc", "https://abc.cloud.es.io:443"),
        ];
        for (text, url) in table {
            assert_eq!(parse(&id(text)).unwrap(), url, "{text}");
        }
        let wrong =
            ["host", "host$$x", "$e$k", ":443$e$k", "h$:1$k", "h$e f$k", "h:x$e$k", "h$e:0$k"];
        for wrong in wrong {
            parse(&id(wrong)).expect_err(wrong);
        }
        for wrong in ["name:%%%", ""] {
            parse(wrong).expect_err(wrong);
        }
    }

    #[test]
    fn a_cloud_id_stands_over_the_output() {
        let settings = |text: &str| Settings::parse("x", text).unwrap();
        let problems_of = |text: &str| {
            let settings = settings(text);
            let problems = Problems::new();
            let root = settings.root(&problems);
            Cloud::read(&root);
            root.skip();
            problems.to_string()
        };
        let good = format!("cloud: {{id: '{}', auth: 'elastic:a:\"b'}}", id("h$e$k"));
        assert_eq!(problems_of(&good), "");
        assert_eq!(
            overrides(&settings(&good)),
            [
                "output.elasticsearch.hosts=[\"https://e.h:443\"]",
                "output.elasticsearch.username=\"elastic\"",
                "output.elasticsearch.password=\"a:\\\"b\"",
            ]
        );
        assert_eq!(overrides(&settings("{}")), Vec::<String>::new());
        assert!(problems_of("cloud.id: x").contains("console of Elastic Cloud"));
        let unset = "cloud.id: ${NO_SUCH_CLOUD}\ncloud.auth: ${NO_SUCH_CLOUD}";
        assert_eq!(problems_of(unset), "", "as in Elastic's manifest for Kubernetes");
        assert!(problems_of("cloud.auth: secret").contains("expected `user:password`"));
        assert!(!problems_of("cloud.auth: secret").contains("secret"));
        assert!(
            problems_of(&format!("{{cloud.id: '{}', outputs: []}}", id("h$e$k")))
                .contains("`outputs`")
        );
    }
}

//! Settings of the input `aws-cloudwatch`, as Filebeat has them (`x-pack/filebeat/input/awscloudwatch/config.go`).

use super::AwsCloudwatch;
use crate::servers::{Endpoint, Servers, check_region};
use crate::settings::TLS_OFF;
use skidder_amazon::{CREDENTIALS, Provider, STREAMS_MAX, Source};
use skidder_config::{Group, Key, OneOf, Section, settings};
use skidder_net::{HTTPS, PROXY, ProxyChoice, read_client, read_https};
use skidder_os::Fs;
use std::sync::Arc;
use std::time::Duration;

const MILLISECOND: Duration = Duration::from_millis(1);
const DAY: Duration = Duration::from_hours(24);
/// Most workers.
const WORKERS_MAX: usize = 512;
/// Digits of the hash that stands for a long list of streams.
const HASH_DIGITS: usize = 16;
/// The longest list of streams that stands in the name of a source.
const LIST_BYTES_MAX: usize = 200;

/// Why there is no `use_cloud_connectors`.
const NO_CONNECTORS: &str = "it is for Elastic's own cloud; name the role in `role_arn`";

settings! {
    /// Settings of `aws-cloudwatch`.
    pub static AWS_CLOUDWATCH_INPUT = Group::new("input.aws-cloudwatch.reader", "Groups of CloudWatch Logs.")
        .include(&[&CREDENTIALS, &PROXY, &HTTPS])
        .unsupported(&[("use_cloud_connectors", NO_CONNECTORS)])
        .called_elsewhere(&[
            ("log_group", "log_group_name", ""),
            ("log_stream", "log_streams", "it is a list"),
            ("region", "region_name", ""),
        ]);

    LOG_GROUP_ARN: String = Key::new("log_group_arn")
        .noun("the ARN of a log group")
        .about("the group to read, also of a linked account: `arn:aws:logs:REGION:ACCOUNT:log-group:NAME`, with or without `:*`");
    LOG_GROUP_NAME: String = Key::new("log_group_name")
        .noun("the name of a log group")
        .about("the group to read, in place of `log_group_arn`; needs `region_name`");
    LOG_GROUP_NAME_PREFIX: String = Key::new("log_group_name_prefix")
        .noun("the beginning of names of log groups")
        .about(
            "all groups whose names begin so; needs `region_name`. *Differs*: new groups are found with each scan, in \
             Filebeat with a restart",
        );
    INCLUDE_LINKED: bool = Key::new("include_linked_accounts_for_prefix_mode")
        .default(false)
        .about("with `log_group_name_prefix`: also groups of linked accounts");
    REGION_NAME: String = Key::new("region_name")
        .default_words("that of `log_group_arn`")
        .noun("the name of a region")
        .about("where the groups are");
    LOG_STREAMS: Vec<String> = Key::<Vec<String>>::new("log_streams")
        .default(&[])
        .noun("a list of names of log streams")
        .about("only these streams of each group, at most 100");
    LOG_STREAM_PREFIX: String = Key::new("log_stream_prefix")
        .default("")
        .about("only streams whose names begin so; not together with `log_streams`");
    START_POSITION: OneOf<bool> = Key::one_of(
        "start_position",
        &[("beginning", false), ("end", true), ("lastSync", false)],
    )
    .default("beginning")
    .about(
        "where a group begins that was not read before; `end`: `scan_frequency` before the start. *Differs*: a group that \
         was read goes on where it was settled, which Filebeat does only with `lastSync`",
    );
    SCAN_FREQUENCY: Duration = Key::new("scan_frequency")
        .default(Duration::from_mins(1))
        .range(MILLISECOND, Duration::from_hours(24 * 365))
        .about("pause between two scans");
    API_TIMEOUT: Duration = Key::new("api_timeout")
        .default(Duration::from_mins(2))
        .range(MILLISECOND, DAY)
        .about("of a connection, and of an answer");
    API_SLEEP: Duration = Key::new("api_sleep")
        .default(Duration::from_millis(200))
        .range(MILLISECOND, DAY)
        .about(
            "time between two requests, for Amazon's quota of 5 a second in an account and region. *Differs*: of all workers \
             together",
        );
    LATENCY: Duration = Key::new("latency")
        .default(Duration::ZERO)
        .range(Duration::ZERO, Duration::from_hours(24 * 14))
        .about(
            "scans end so long before now, for services whose events appear late. *Differs*: each scan also looks again at \
             the five minutes before the end of the one before",
        );
    NUMBER_OF_WORKERS: usize = Key::new("number_of_workers")
        .default(1)
        .range(1, WORKERS_MAX)
        .noun("a number of workers")
        .about("groups of `log_group_name_prefix` that are read at once");
    ENDPOINT: String = Key::new("endpoint").default_words("Amazon's").noun("a URL or a domain").about(
        "`http[s]://host[:port][/path]` of another server; or the domain of a partition, as `amazonaws.com.cn`. *Differs*: \
         no effect in Filebeat",
    );
    FIPS_ENABLED: bool =
        Key::new("fips_enabled").default(false).about("Amazon's servers for FIPS 140, as `logs-fips`");
    DEFAULT_REGION: String = Key::new("default_region")
        .default_words("that of the groups")
        .about("of the token service that `role_arn` needs");
}

/// Which groups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Groups {
    /// One, by an ARN without `:*`.
    Arn(String),
    /// One of the own account.
    Name(String),
    /// All that begin so.
    Prefix { prefix: String, linked: bool },
}

/// Which streams of each group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Streams {
    All,
    /// At most [`STREAMS_MAX`].
    Named(Vec<String>),
    Prefix(String),
}

/// What the input is run with.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) groups: Groups,
    pub(crate) streams: Streams,
    /// Groups that were not read before begin near the end.
    pub(crate) from_end: bool,
    pub(crate) scan_frequency: Duration,
    pub(crate) api_sleep: Duration,
    pub(crate) latency: Duration,
    pub(crate) workers: usize,
    pub(crate) servers: Servers,
}

impl Groups {
    /// The name of the setting that has them.
    pub(crate) fn setting(&self) -> &'static str {
        match self {
            Self::Arn(_) => LOG_GROUP_ARN.name(),
            Self::Name(_) => LOG_GROUP_NAME.name(),
            Self::Prefix { .. } => LOG_GROUP_NAME_PREFIX.name(),
        }
    }
}

impl Settings {
    /// The name of the source of a group, in the registry and for people: other streams of it are another source.
    pub(crate) fn source_name(&self, group: &str) -> String {
        let mut name = if group.starts_with("arn:") {
            group.to_owned()
        } else {
            format!("{}:{group}", self.servers.region)
        };
        match &self.streams {
            Streams::All => {}
            Streams::Prefix(prefix) => name += &format!(" [{prefix}*]"),
            Streams::Named(names) => {
                let mut names = names.clone();
                names.sort_unstable();
                let mut list = names.join(",");
                if list.len() > LIST_BYTES_MAX {
                    let hash = skidder_aws::digest([list.as_bytes()]);
                    hash.get(..HASH_DIGITS).unwrap_or_default().clone_into(&mut list);
                }
                name += &format!(" [{list}]");
            }
        }
        name
    }

    /// What distinguishes this input from others without ids.
    pub(crate) fn address(&self) -> String {
        match &self.groups {
            Groups::Arn(group) | Groups::Name(group) => self.source_name(group),
            Groups::Prefix { prefix, .. } => format!("{}*", self.source_name(prefix)),
        }
    }
}

/// Reads the settings of [`AWS_CLOUDWATCH_INPUT`]; `variable` gives the value of one of the environment. `None`, and the
/// problems are reported, if something is wrong.
pub fn read(
    section: &Section<'_>,
    fs: &Arc<dyn Fs>,
    variable: impl Fn(&str) -> Option<String>,
) -> Option<AwsCloudwatch> {
    let endpoint = section.get(&ENDPOINT).try_map(Endpoint::parse);
    let is_wrong = endpoint.is_wrong();
    let endpoint = endpoint.optional();
    let has_url = endpoint.as_ref().is_some_and(Endpoint::is_url);
    let fips = section.get(&FIPS_ENABLED).value();
    if fips && has_url {
        let message = "`fips_enabled` is about Amazon's servers, and `endpoint` is another one";
        section.problem(FIPS_ENABLED.name(), message, "leave one of them out");
    }
    let timeout = section.get(&API_TIMEOUT).value();
    let groups = read_groups(section);
    let streams = read_streams(section);
    let from_end = section.get(&START_POSITION).value();
    let scan_frequency = section.get(&SCAN_FREQUENCY).value();
    let api_sleep = section.get(&API_SLEEP).value();
    let latency = section.get(&LATENCY).value();
    let workers = section.get(&NUMBER_OF_WORKERS).value();
    let proxy = ProxyChoice::read(section, &variable);
    let tls = read_https(section);
    let needs_tls = !matches!(&endpoint, Some(Endpoint::Url(url)) if !url.https);
    let tls = read_client(section, &tls, needs_tls, TLS_OFF, fs);
    let default_region = section.get(&DEFAULT_REGION).check(|name| check_region(name)).optional();
    let (groups, region) = groups?;
    let of_role = default_region.unwrap_or_else(|| region.clone());
    let source = Source::read(section, (&of_role, !has_url), fs, &variable)?;
    let provider = Provider::new(source, proxy.clone(), Arc::clone(fs));
    let provider = provider.map_err(|error| section.problem_named(error.setting(), &error)).ok()?;
    let servers = Servers {
        region,
        endpoint,
        path_style: None,
        fips,
        provider: Arc::new(provider),
        tls: tls.ok()?,
        proxy,
        timeout,
    };
    if is_wrong {
        return None;
    }
    let streams = streams?;
    Some(AwsCloudwatch::new(Settings {
        groups,
        streams,
        from_end,
        scan_frequency,
        api_sleep,
        latency,
        workers,
        servers,
    }))
}

/// The groups, and the region where they are. `None`, and the problem is reported, if that is not clear.
fn read_groups(section: &Section<'_>) -> Option<(Groups, String)> {
    let arn = section
        .get(&LOG_GROUP_ARN)
        .try_map(|text| if text.is_empty() { Ok(None) } else { parse_arn(&text).map(Some) });
    let is_wrong = arn.is_wrong();
    let arn = arn.optional().flatten();
    let name = section.get(&LOG_GROUP_NAME).check(|name| check_group(name));
    let is_wrong = is_wrong || name.is_wrong();
    let name = name.optional().filter(|name| !name.is_empty());
    let prefix = section.get(&LOG_GROUP_NAME_PREFIX).optional().filter(|text| !text.is_empty());
    let linked = section.get(&INCLUDE_LINKED).value();
    let check_if_set = |name: &String| if name.is_empty() { Ok(()) } else { check_region(name) };
    let region = section.get(&REGION_NAME).check(check_if_set);
    let is_wrong = is_wrong || region.is_wrong();
    let region = region.optional().filter(|name| !name.is_empty());
    if is_wrong {
        return None;
    }
    if let Some((arn, of_arn)) = arn {
        let is_other = region.as_ref().is_some_and(|region| *region != of_arn);
        for (key, is_set) in [
            (&LOG_GROUP_NAME, name.is_some()),
            (&LOG_GROUP_NAME_PREFIX, prefix.is_some()),
            (&REGION_NAME, is_other),
        ] {
            if is_set {
                let message = format!("`{}` has no effect beside `log_group_arn`", key.name());
                section.warning(key.name(), message, "leave it out");
            }
        }
        warn_of_linked(section, linked);
        return Some((Groups::Arn(arn), of_arn));
    }
    let groups = match (name, prefix) {
        (Some(_), Some(_)) => {
            let message = "`log_group_name` and `log_group_name_prefix` are both set";
            section.problem(LOG_GROUP_NAME_PREFIX.name(), message, "write an input for each");
            return None;
        }
        (None, None) => {
            let hint = "or `log_group_name`, or `log_group_name_prefix`, both with `region_name`";
            section.missing(LOG_GROUP_ARN.name(), "is not set, nor is another log group", hint);
            return None;
        }
        (Some(name), None) => {
            warn_of_linked(section, linked);
            Groups::Name(name)
        }
        (None, Some(prefix)) => Groups::Prefix { prefix, linked },
    };
    let Some(region) = region else {
        let what = format!("is not set, and `{}` is", groups.setting());
        section.missing(REGION_NAME.name(), &what, "as in `region_name: eu-central-1`");
        return None;
    };
    Some((groups, region))
}

fn warn_of_linked(section: &Section<'_>, linked: bool) {
    if linked {
        let message = "`include_linked_accounts_for_prefix_mode` has no effect without `log_group_name_prefix`";
        let hint = "leave it out; `log_group_arn` may name a group of a linked account";
        section.warning(INCLUDE_LINKED.name(), message, hint);
    }
}

/// Reads `arn:PARTITION:logs:REGION:ACCOUNT:log-group:NAME`; returns it without `:*`, and the region. The error ends the
/// sentence "`log_group_arn` is …; ".
fn parse_arn(text: &str) -> Result<(String, String), String> {
    let arn = text.strip_suffix(":*").unwrap_or(text);
    let parts: Vec<&str> = arn.split(':').collect();
    match parts[..] {
        ["arn", _, "logs", region, _, "log-group", name] => {
            check_region(region)?;
            check_group(name)?;
            Ok((arn.to_owned(), region.to_owned()))
        }
        ["arn", _, "logs", _, _, "log-group", _, "log-stream", ..] => {
            Err("it names a stream: set that in `log_streams`".to_owned())
        }
        _ => Err("expected `arn:aws:logs:REGION:ACCOUNT:log-group:NAME`".to_owned()),
    }
}

/// <https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_CreateLogGroup.html>
fn check_group(name: &str) -> Result<(), String> {
    let is_good = |byte: u8| byte.is_ascii_alphanumeric() || b"_-/.#".contains(&byte);
    if name.len() > 512 || !name.bytes().all(is_good) {
        return Err(
            "the name of a log group has 1 to 512 letters, digits, `_`, `-`, `/`, `.` and `#`"
                .to_owned(),
        );
    }
    Ok(())
}

/// The streams; reports mistakes.
fn read_streams(section: &Section<'_>) -> Option<Streams> {
    let names = section.get(&LOG_STREAMS).check(|names: &Vec<String>| {
        if names.len() > STREAMS_MAX {
            return Err(format!(
                "CloudWatch takes at most {STREAMS_MAX} in a request: write another input for the rest, or use \
                 `log_stream_prefix`"
            ));
        }
        if names.iter().any(String::is_empty) {
            return Err("a stream has no name".to_owned());
        }
        Ok(())
    });
    let is_wrong = names.is_wrong();
    let names = names.optional().unwrap_or_default();
    let prefix = section.get(&LOG_STREAM_PREFIX).value();
    if is_wrong {
        return None;
    }
    match (names.is_empty(), prefix.is_empty()) {
        (true, true) => Some(Streams::All),
        (false, true) => Some(Streams::Named(names)),
        (true, false) => Some(Streams::Prefix(prefix)),
        (false, false) => {
            let message =
                "`log_streams` and `log_stream_prefix` are both set, which CloudWatch refuses";
            section.problem(LOG_STREAM_PREFIX.name(), message, "write an input for each");
            None
        }
    }
}

#[cfg(test)]
pub(super) mod tests;

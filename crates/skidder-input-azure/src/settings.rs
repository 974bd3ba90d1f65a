//! Settings of the input `azure-blob-storage`, as Filebeat has them (`x-pack/filebeat/input/azureblobstorage/config.go`).

mod auth;
mod reading;

use crate::AzureBlobs;
use auth::{AZURE_AUTH, Access};
pub use reading::{AZURE_BLOB_READING, BlobReading};
use skidder_azure::{Credential, PAGE_BLOBS_MAX, Provider, Service, Target, check_container_name};
use skidder_config::{Group, Key, Section, settings};
use skidder_net::{HTTPS, HostUrl, PROXY, ProxyChoice, read_client, read_https, usual_port};
use skidder_os::{Fs, Timestamp};
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);
/// Of connecting, and of a request, or of each piece of its answer.
const TIMEOUT: Duration = Duration::from_mins(2);
/// Most workers of a container, as in Filebeat.
const WORKERS_MAX: usize = 5000;
/// The first second of the year 3000, as in Filebeat.
const EPOCH_MAX: i64 = 32_503_680_000;
/// Why `retry.*` does nothing.
const NO_RETRIES: &str = "requests that fail are repeated for minutes, with longer and longer pauses, and blobs with each \
                          listing";

settings! {
    /// Settings of `azure-blob-storage`, without those of containers ([`AZURE_LISTING`], [`AZURE_BLOB_READING`]).
    pub static AZURE_BLOB_INPUT = Group::new("input.azure-blob-storage.account", "A storage account.")
        .include(&[&AZURE_AUTH, &PROXY, &HTTPS])
        .without_effect(&[("retry.*", NO_RETRIES)])
        .called_elsewhere(&[
            ("account", "account_name", ""),
            ("container", "containers", "`containers: [{name: …}]`"),
            ("container_name", "containers", "`containers: [{name: …}]`"),
            ("connection_string", "auth.connection_string.uri", ""),
            ("account_key", "auth.shared_credentials.account_key", ""),
        ]);

    ACCOUNT_NAME: String = Key::new("account_name")
        .default_words("that of the connection string")
        .noun("the name of a storage account")
        .about("the storage account");
    STORAGE_URL: String = Key::new("storage_url")
        .default_words("`https://ACCOUNT.blob.core.windows.net`, or that of the connection string")
        .noun("a URL")
        .about(
            "where the account is, as `https://ACCOUNT.blob.core.chinacloudapi.cn`. With a connection string, which has its \
             own URL, only what events have in `log.file.path`",
        );
}

settings! {
    /// Which blobs of a container are read, and when: of the input, for containers that have no other value, or of one.
    pub static AZURE_LISTING = Group::new("input.azure-blob-storage.listing", "How a container is listed.");

    MAX_WORKERS: usize = Key::new("max_workers")
        .default(1)
        .range(1, WORKERS_MAX)
        .noun("a number of workers")
        .about("blobs of a container that are read at once. *Cost*: each has a connection");
    BATCH_SIZE: usize = Key::new("batch_size")
        .default_words("5000")
        .range(1, PAGE_BLOBS_MAX as usize)
        .noun("a number of blobs")
        .about("most blobs of a request of a listing. *Differs*: without it as many as Azure gives, and not `max_workers`");
    POLL: bool = Key::new("poll")
        .default(false)
        .about("whether containers are listed again and again; `false`: once, and then the input ends");
    POLL_INTERVAL: Duration = Key::new("poll_interval")
        .default(Duration::from_mins(5))
        .range(SECOND, Duration::from_hours(24 * 365))
        .about("pause between two listings");
    TIMESTAMP_EPOCH: i64 = Key::new("timestamp_epoch")
        .range(0, EPOCH_MAX)
        .noun("seconds since 1970")
        .about("only blobs that were changed then or later are read");
    PATH_PREFIX: String = Key::new("path_prefix")
        .default("")
        .about("what the names of blobs begin with; others are not even listed");
}

/// What is said of a listing: of the input, or of one container.
#[derive(Clone, Debug, Default)]
pub struct ListingOptions {
    workers: Option<usize>,
    batch: Option<usize>,
    poll: Option<bool>,
    interval: Option<Duration>,
    epoch: Option<i64>,
    prefix: Option<String>,
}

impl ListingOptions {
    /// Reads the settings of [`AZURE_LISTING`].
    pub fn read(section: &Section<'_>) -> Self {
        let prefix = section.get(&PATH_PREFIX).optional();
        Self {
            workers: section.get(&MAX_WORKERS).optional(),
            batch: section.get(&BATCH_SIZE).optional(),
            poll: section.get(&POLL).optional(),
            interval: section.get(&POLL_INTERVAL).optional(),
            epoch: section.get(&TIMESTAMP_EPOCH).optional(),
            prefix: prefix.filter(|prefix| !prefix.is_empty()),
        }
    }

    /// These of a container, and where it says nothing, those of the input.
    #[must_use]
    pub fn or(self, input: &Self) -> Self {
        Self {
            workers: self.workers.or(input.workers),
            batch: self.batch.or(input.batch),
            poll: self.poll.or(input.poll),
            interval: self.interval.or(input.interval),
            epoch: self.epoch.or(input.epoch),
            prefix: self.prefix.or_else(|| input.prefix.clone()),
        }
    }
}

/// A container as the settings have it.
#[derive(Debug)]
pub struct ContainerSettings {
    /// Its name.
    pub name: String,
    /// Which of its blobs are read, and when; with the values of the input.
    pub listing: ListingOptions,
    /// How they are read.
    pub blobs: BlobReading,
}

/// A container that is listed.
#[derive(Debug)]
pub(crate) struct ContainerToRead {
    pub(crate) name: String,
    pub(crate) service: Service,
    pub(crate) workers: usize,
    /// Most blobs of a page.
    pub(crate) batch: Option<u16>,
    pub(crate) poll: bool,
    pub(crate) interval: Duration,
    /// Blobs must be younger.
    pub(crate) start: Option<Timestamp>,
    pub(crate) prefix: String,
    pub(crate) blobs: BlobReading,
}

/// What the input is run with.
#[derive(Debug)]
pub(crate) struct Settings {
    /// The account's name; that of its server if there is none.
    pub(crate) account: String,
    /// The account's URL as events have it, without a slash at its end.
    pub(crate) url: String,
    /// At least one.
    pub(crate) containers: Vec<ContainerToRead>,
}

/// Reads the settings of [`AZURE_BLOB_INPUT`]; `variable` gives the value of one of the environment. `None`, and the problems
/// are reported, if something is wrong.
pub fn read(
    section: &Section<'_>,
    fs: &Arc<dyn Fs>,
    containers: Vec<ContainerSettings>,
    variable: impl Fn(&str) -> Option<String>,
) -> Option<AzureBlobs> {
    let name = section.get(&ACCOUNT_NAME).optional().filter(|name| !name.is_empty());
    let storage_url = section.get(&STORAGE_URL).try_map(|text| read_url(&text));
    let is_wrong = storage_url.is_wrong();
    let storage_url = storage_url.optional();
    let access = Access::read(section, name.as_deref(), &variable);
    let proxy = ProxyChoice::read(section, &variable);
    let tls = read_https(section);
    let are_good = check_names(section, &containers);
    let access = access?;
    let shown = storage_url.clone();
    let url = access.url.clone().or(storage_url);
    if is_wrong || !are_good {
        return None;
    }
    let url = match url {
        Some(url) => url,
        None => usual_url(section, name.as_deref())?,
    };
    check_token(section, &access.credential, &url);
    let off = ("the account needs TLS, but `ssl.enabled` is false", "leave it out");
    let tls = read_client(section, &tls, url.https, off, fs).ok()?;
    let provider = Provider::new(access.credential, proxy.clone(), Arc::clone(fs));
    let provider = provider.map_err(|error| section.problem_named(error.setting(), &error)).ok()?;
    let (target, provider) = (Arc::new(Target::at(url, &proxy)), Arc::new(provider));
    let shown = shown.map_or_else(|| target.url(), |url| Target::at(url, &proxy).url());
    let service = |container: String| Service {
        target: Arc::clone(&target),
        container,
        tls: tls.clone(),
        provider: Arc::clone(&provider),
        timeout: TIMEOUT,
    };
    let containers = containers.into_iter().map(|container| {
        let service = service(container.name.clone());
        to_read(container, service)
    });
    let containers = containers.collect();
    let name = name.or(access.account).unwrap_or_else(|| target.authority.clone());
    let settings = Settings { account: name, url: shown, containers };
    Some(AzureBlobs::new(settings, Arc::clone(fs)))
}

fn to_read(container: ContainerSettings, service: Service) -> ContainerToRead {
    let ContainerSettings { name, listing, blobs } = container;
    let default = |key: &Key<usize>| key.default_value().unwrap_or(1);
    // Blobs of that second are read, too.
    let start = listing.epoch.map(|seconds| Timestamp(seconds.saturating_mul(1_000_000_000) - 1));
    ContainerToRead {
        name,
        service,
        workers: listing.workers.unwrap_or_else(|| default(&MAX_WORKERS)),
        batch: listing.batch.and_then(|number| u16::try_from(number).ok()),
        poll: listing.poll.unwrap_or(false),
        interval: listing.interval.unwrap_or(Duration::from_mins(5)),
        start,
        prefix: listing.prefix.unwrap_or_default(),
        blobs,
    }
}

/// Reads `storage_url`. The error ends the sentence "`storage_url` is …; ".
fn read_url(text: &str) -> Result<HostUrl, String> {
    if !text.contains("://") {
        return Err("expected a URL, as in `https://ACCOUNT.blob.core.windows.net`".to_owned());
    }
    if text.contains('?') {
        return Err("a shared access signature stands in `auth.connection_string.uri`, as \
                    `BlobEndpoint=URL;SharedAccessSignature=…`"
            .to_owned());
    }
    let url = HostUrl::parse(text, "", "", usual_port)?;
    if url.credentials.is_some() {
        return Err("credentials stand below `auth`".to_owned());
    }
    Ok(url)
}

/// Where Azure has the account. `None`, and the problem is reported, if it has no such name.
fn usual_url(section: &Section<'_>, name: Option<&str>) -> Option<HostUrl> {
    let Some(name) = name else {
        section.missing(ACCOUNT_NAME.name(), "is not set", "the name of the storage account");
        return None;
    };
    let is_good = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if !(3..=40).contains(&name.len()) || !name.bytes().all(is_good) {
        let message = format!("`{}` is `{name}`", section.path_of(ACCOUNT_NAME.name()));
        let hint = "the name of a storage account has 3 to 24 lower-case letters and digits; or set `storage_url`";
        section.problem(ACCOUNT_NAME.name(), message, hint);
        return None;
    }
    read_url(&format!("https://{name}.blob.core.windows.net")).ok()
}

/// Whether the names of containers are good; reports what is not.
fn check_names(section: &Section<'_>, containers: &[ContainerSettings]) -> bool {
    let mut seen = HashSet::new();
    let mut are_good = !containers.is_empty();
    for ContainerSettings { name, .. } in containers {
        if let Err(error) = check_container_name(name) {
            let message = format!("`{}` has `{name}`", section.path_of("containers"));
            section.problem("containers", message, error);
            are_good = false;
        } else if !seen.insert(name) {
            let message = format!("`{}` has `{name}` twice", section.path_of("containers"));
            let hint = "each blob would be read by both: write one container with all of its `file_selectors`";
            section.problem("containers", message, hint);
            are_good = false;
        }
    }
    are_good
}

/// Refuses to send tokens that anybody on the way can read, as Azure's own programs do.
fn check_token(section: &Section<'_>, credential: &Credential, url: &HostUrl) {
    if matches!(credential, Credential::Token(_)) && !url.https {
        let message = "a token would be sent without TLS";
        section.problem(STORAGE_URL.name(), message, "write `https://`");
    }
}

#[cfg(test)]
mod tests;

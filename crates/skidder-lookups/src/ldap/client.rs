//! The connection to a server, in a thread of its own, and what was learned from it.

use super::discover::Discovery;
use super::guid;
use crate::background::Background;
use crate::cache::Cache;
use ldap3::{Ldap, LdapConnAsync, LdapConnSettings, LdapError, Scope, SearchEntry, SearchOptions};
use rustls::ClientConfig;
use skidder_config::Secret;
use skidder_os::{Clock, Monotonic};
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::Duration;
use tokio::sync::mpsc;

/// How long a server that cannot be reached, or does not answer, is left alone; as in Filebeat.
const PAUSE: Duration = Duration::from_secs(30);
/// How long what was found is remembered.
const FOUND_TIME: Duration = Duration::from_mins(5);
/// How long it is remembered that there is nothing.
const NOTHING_TIME: Duration = Duration::from_secs(30);
/// How many answers are remembered.
const ANSWERS_MAX: usize = 10_000;
/// How many look-ups wait for the connection: more than there are threads that ask.
const WAITING_MAX: usize = 256;

/// The values of an attribute.
pub(super) type Values = Arc<[Box<str>]>;
/// An answer, or in words why there is none.
type Answer = Result<Values, Arc<str>>;

/// Where the server is.
pub(super) enum Address {
    Given(String),
    /// From DNS, for each connection.
    Discovered(Arc<Discovery>),
}

/// The server, and what to look up there.
pub(super) struct Directory {
    pub(super) address: Address,
    /// Requested from the server if it is empty.
    pub(super) base: String,
    pub(super) user: String,
    pub(super) password: Secret,
    pub(super) search: String,
    pub(super) mapped: String,
    /// Whether the values are GUIDs of Active Directory.
    pub(super) guid_found: bool,
    /// Longest time that one look-up takes, with connecting if need be.
    pub(super) limit: Duration,
    pub(super) tls: Option<Arc<ClientConfig>>,
}

/// Why a look-up gave nothing.
#[derive(Debug, thiserror::Error)]
enum FindError {
    #[error("no LDAP server found via DNS for the domain {0}; set `ldap_address`")]
    NoServer(String),
    #[error("failed to dial LDAP server: {0}")]
    Dial(LdapError),
    #[error("failed to bind to LDAP server: {0}")]
    Bind(LdapError),
    #[error("failed to initialize server metadata: {0}; set `ldap_base_dn`")]
    Base(String),
    #[error("search failed: {0}")]
    Search(LdapError),
    #[error("search failed: no answer within {} s", .0.as_secs())]
    Time(Duration),
    #[error("no entries found for search attribute {0}")]
    Nothing(String),
    #[error("objectGUID conversion failed: {0}")]
    Guid(#[from] guid::GuidError),
}

impl Address {
    /// The address, or the domain whose servers are discovered.
    fn text(&self) -> &str {
        match self {
            Self::Given(address) => address,
            Self::Discovered(discovery) => discovery.domain(),
        }
    }
}

impl FindError {
    /// Whether the server is to be left alone for a while.
    fn pauses(&self) -> bool {
        matches!(
            self,
            Self::NoServer(_) | Self::Dial(_) | Self::Bind(_) | Self::Base(_) | Self::Time(_)
        )
    }

    /// Whether the connection is of no use any more.
    fn breaks(&self) -> bool {
        match self {
            Self::Search(LdapError::LdapResult { .. }) | Self::Nothing(_) | Self::Guid(_) => false,
            Self::NoServer(_)
            | Self::Search(_)
            | Self::Dial(_)
            | Self::Bind(_)
            | Self::Base(_)
            | Self::Time(_) => true,
        }
    }
}

/// Shared by the callers and the thread.
struct Known {
    answers: Cache<Answer>,
    /// Until when no request is sent, and why.
    paused: Mutex<Option<(Monotonic, Arc<str>)>>,
    clock: Arc<dyn Clock>,
}

impl Known {
    fn paused(&self) -> Option<Arc<str>> {
        let paused = self.paused.lock().unwrap_or_else(PoisonError::into_inner);
        let (until, reason) = paused.as_ref()?;
        (self.clock.monotonic() < *until).then(|| Arc::clone(reason))
    }

    fn pause(&self, reason: &Arc<str>) {
        let until = self.clock.monotonic() + PAUSE;
        let mut paused = self.paused.lock().unwrap_or_else(PoisonError::into_inner);
        *paused = Some((until, Arc::clone(reason)));
    }
}

/// A question, and where its answer goes.
struct Ask {
    value: String,
    answer: SyncSender<Answer>,
    /// Gone when the caller has given up.
    waiting: Weak<()>,
}

/// The client; for use from any thread.
pub(super) struct Client {
    limit: Duration,
    known: Arc<Known>,
    sender: mpsc::Sender<Ask>,
    /// The thread's arguments, until the first look-up starts it.
    idle: Mutex<Option<(Directory, mpsc::Receiver<Ask>)>>,
    background: OnceLock<Option<Background>>,
}

impl Client {
    /// Nothing is connected before the first look-up.
    pub(super) fn new(directory: Directory, clock: Arc<dyn Clock>) -> Self {
        let answers = Cache::new(0, ANSWERS_MAX);
        let known = Arc::new(Known { answers, paused: Mutex::new(None), clock });
        let (sender, requests) = mpsc::channel(WAITING_MAX);
        let limit = directory.limit;
        let idle = Mutex::new(Some((directory, requests)));
        Self { limit, known, sender, idle, background: OnceLock::new() }
    }

    /// The values for an escaped value of the attribute that is searched for. Takes no longer than the limit.
    pub(super) fn find(&self, value: String) -> Answer {
        if let Some(answer) = self.known.answers.get(&value, self.known.clock.monotonic()) {
            return answer;
        }
        if let Some(reason) = self.known.paused() {
            return Err(format!("ldap client initialization paused: {reason}").into());
        }
        if self.background.get_or_init(|| self.start()).is_none() {
            return Err("there is no thread for the connection".into());
        }
        let (answer, answered) = sync_channel(1);
        let waiting = Arc::new(());
        let ask = Ask { value, answer, waiting: Arc::downgrade(&waiting) };
        if self.sender.try_send(ask).is_err() {
            return Err("search failed: too many wait for the server".into());
        }
        answered.recv_timeout(self.limit).unwrap_or_else(|error| match error {
            RecvTimeoutError::Timeout => {
                let reason: Arc<str> = FindError::Time(self.limit).to_string().into();
                self.known.pause(&reason);
                Err(reason)
            }
            RecvTimeoutError::Disconnected => Err("the thread of the connection ended".into()),
        })
    }

    fn start(&self) -> Option<Background> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).take();
        let (directory, requests) = idle?;
        let known = Arc::clone(&self.known);
        let worker = Worker { base: directory.base.clone(), directory, known, connection: None };
        let started = Background::start("ldap", worker.run(requests));
        started
            .inspect_err(|error| tracing::error!(%error, "no thread for translate_ldap_attribute"))
            .ok()
    }
}

/// Has the connection.
struct Worker {
    directory: Directory,
    /// Below which is searched; empty until it is known.
    base: String,
    known: Arc<Known>,
    connection: Option<Ldap>,
}

impl Worker {
    async fn run(mut self, mut requests: mpsc::Receiver<Ask>) {
        while let Some(ask) = requests.recv().await {
            if ask.waiting.strong_count() == 0 {
                continue;
            }
            let answer = self.answer(&ask.value).await;
            // The caller may have given up meanwhile.
            drop(ask.answer.try_send(answer));
        }
    }

    async fn answer(&mut self, value: &str) -> Answer {
        let limit = self.directory.limit;
        let found = tokio::time::timeout(limit, self.find(value)).await;
        let error = match found.unwrap_or(Err(FindError::Time(limit))) {
            Ok(values) => {
                self.remember(value, &Ok(Arc::clone(&values)), FOUND_TIME);
                return Ok(values);
            }
            Err(error) => error,
        };
        let reason: Arc<str> = error.to_string().into();
        if error.breaks() {
            self.connection = None;
        }
        if error.pauses() {
            tracing::warn!(
                address = self.directory.address.text(), %error, pause = ?PAUSE, "no look-ups in LDAP for now"
            );
            self.known.pause(&reason);
        }
        if matches!(error, FindError::Nothing(_)) {
            self.remember(value, &Err(Arc::clone(&reason)), NOTHING_TIME);
        }
        Err(reason)
    }

    fn remember(&self, value: &str, answer: &Answer, time: Duration) {
        self.known.answers.put(value, answer.clone(), self.known.clock.monotonic() + time);
    }

    /// Searches; again with a new connection if the one that was there is broken.
    async fn find(&mut self, value: &str) -> Result<Values, FindError> {
        let old = self.connection.take().filter(|old| !old.clone().is_closed());
        if let Some(old) = old {
            match self.search(old, value).await {
                Err(error) if error.breaks() => {}
                done => return done,
            }
        }
        let new = self.connect().await?;
        self.search(new, value).await
    }

    /// Connects to the first server that takes the connection and the user.
    async fn connect(&mut self) -> Result<Ldap, FindError> {
        let addresses = match &self.directory.address {
            Address::Given(address) => vec![address.clone()],
            Address::Discovered(discovery) => {
                let shared = Arc::clone(discovery);
                let found = tokio::task::spawn_blocking(move || shared.find()).await;
                found.unwrap_or_default()
            }
        };
        let mut last = FindError::NoServer(self.directory.address.text().to_owned());
        for address in addresses {
            match self.connect_to(&address).await {
                Ok(ldap) => return Ok(ldap),
                Err(error) => {
                    tracing::debug!(address, %error, "an LDAP server is of no use");
                    last = error;
                }
            }
        }
        Err(last)
    }

    async fn connect_to(&mut self, address: &str) -> Result<Ldap, FindError> {
        let directory = &self.directory;
        let mut settings = LdapConnSettings::new();
        if let Some(tls) = &directory.tls {
            settings = settings.set_config(Arc::clone(tls));
        }
        let connecting = LdapConnAsync::with_settings(settings, address);
        let (connection, mut ldap) = connecting.await.map_err(FindError::Dial)?;
        tokio::spawn(async move {
            if let Err(error) = connection.drive().await {
                tracing::debug!(%error, "the connection to an LDAP server ended");
            }
        });
        let bound = ldap.simple_bind(&directory.user, directory.password.reveal()).await;
        bound.and_then(ldap3::LdapResult::success).map_err(FindError::Bind)?;
        if self.base.is_empty() {
            self.base = match naming_context(&mut ldap).await {
                Some(base) => base,
                None => base_of_address(address).map_err(FindError::Base)?,
            };
        }
        Ok(ldap)
    }

    /// Keeps the connection if it is of use afterwards.
    async fn search(&mut self, mut ldap: Ldap, value: &str) -> Result<Values, FindError> {
        let Directory { search, mapped, limit, .. } = &self.directory;
        let seconds = i32::try_from(limit.as_secs()).unwrap_or(i32::MAX);
        ldap.with_search_options(SearchOptions::new().sizelimit(1).timelimit(seconds));
        let filter = format!("({search}={value})");
        let found = ldap.search(&self.base, Scope::Subtree, &filter, [mapped.as_str()]).await;
        let found = found.and_then(ldap3::SearchResult::success).map_err(FindError::Search);
        if found.as_ref().err().is_none_or(|error| !error.breaks()) {
            self.connection = Some(ldap);
        }
        let (entries, _) = found?;
        let mut entries = entries.into_iter();
        let entry = entries.find(|entry| !entry.is_ref() && !entry.is_intermediate());
        let entry = entry.ok_or_else(|| FindError::Nothing(value.to_owned()))?;
        let mut values: Vec<Box<str>> = Vec::new();
        for value in values_of(SearchEntry::construct(entry), mapped) {
            let guid = self.directory.guid_found.then(|| guid::text(&value)).transpose()?;
            let text = guid.unwrap_or_else(|| String::from_utf8_lossy(&value).into_owned());
            values.push(text.into_boxed_str());
        }
        Ok(values.into())
    }
}

/// The values of an attribute, whatever the case of its name is.
fn values_of(entry: SearchEntry, name: &str) -> Vec<Vec<u8>> {
    let texts = entry.attrs.into_iter().map(|(name, values)| {
        (name, values.into_iter().map(String::into_bytes).collect::<Vec<_>>())
    });
    let all = texts.chain(entry.bin_attrs);
    all.filter(|(known, _)| known.eq_ignore_ascii_case(name)).flat_map(|(_, v)| v).collect()
}

/// The server's own naming context: the default of Active Directory, or the first of all (RFC 4512, 5.1).
async fn naming_context(ldap: &mut Ldap) -> Option<String> {
    let names = ["defaultNamingContext", "namingContexts"];
    let found = ldap.search("", Scope::Base, "(objectClass=*)", names).await;
    let found = found.and_then(ldap3::SearchResult::success);
    let (entries, _) = found
        .inspect_err(|error| tracing::debug!(%error, "the LDAP server says nothing about itself"))
        .ok()?;
    let entry = SearchEntry::construct(entries.into_iter().next()?);
    names.iter().find_map(|name| {
        let known = entry.attrs.iter().find(|(known, _)| known.eq_ignore_ascii_case(name))?;
        known.1.first().filter(|base| !base.is_empty()).cloned()
    })
}

/// The base that the name of a server has, without its first part if there are three or more.
fn base_of_address(address: &str) -> Result<String, String> {
    let rest = address.split_once("://").map_or(address, |(_, rest)| rest);
    let authority = rest.split(['/', '?']).next().unwrap_or_default();
    let bracketed = authority.starts_with('[');
    let host = authority.split(':').next().unwrap_or_default();
    if bracketed || host.parse::<std::net::Ipv4Addr>().is_ok() {
        return Err(format!("cannot infer base DN from IP address: {authority}"));
    }
    let parts: Vec<&str> = host.split('.').collect();
    let domain = match parts.len() {
        0 | 1 => return Err(format!("hostname does not contain a domain: {host}")),
        2 => &parts[..],
        _ => &parts[1..],
    };
    Ok(domain.iter().map(|part| format!("dc={part}")).collect::<Vec<_>>().join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_server_tells_the_base() {
        for (address, base) in [
            ("ldap://dc1.example.com:389", Ok("dc=example,dc=com")),
            ("ldaps://example.com:636", Ok("dc=example,dc=com")),
            ("ldap://auth.example.co.uk/", Ok("dc=example,dc=co,dc=uk")),
            ("ldap://localhost:389", Err("does not contain a domain")),
            ("ldaps://192.168.1.10:636", Err("from IP address")),
            ("ldap://[2001:db8::1]:389", Err("from IP address")),
        ] {
            match (base_of_address(address), base) {
                (Ok(got), Ok(expected)) => assert_eq!(got, expected, "{address}"),
                (Err(got), Err(expected)) => assert!(got.contains(expected), "{address}: {got}"),
                (got, _) => panic!("{address}: {got:?}"),
            }
        }
    }
}

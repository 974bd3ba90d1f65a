//! An entry of `hosts`.

use skidder_config::Secret;
use skidder_net::{Host, read_address, read_credentials, read_host, wrong_scheme};

/// Port of a host that names none.
const DEFAULT_PORT: u16 = 6379;

/// One server of `hosts`, with the settings in its URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// Where it is.
    pub host: Host,
    /// `rediss://`: yes; `redis://`: no; otherwise `ssl` decides.
    pub tls: Option<bool>,
    /// User and password; the user may be empty.
    pub credentials: Option<(String, Secret)>,
    /// Number of the database.
    pub db: Option<u32>,
}

impl Server {
    /// Reads one entry of `hosts`. The error ends the sentence "`hosts` is …; ".
    pub fn parse(text: &str) -> Result<Self, String> {
        let (tls, rest) = match text.split_once("://") {
            None => (None, text),
            Some(("redis", rest)) => (Some(false), rest),
            Some(("rediss", rest)) => (Some(true), rest),
            Some((scheme, _)) => {
                return Err(wrong_scheme(scheme, "`redis` nor `rediss`"));
            }
        };
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (credentials, address) = match authority.rsplit_once('@') {
            Some((user, address)) => (Some(read_credentials(user)?), address),
            None => (None, authority),
        };
        // The text is not shown here: a password may stand in it.
        if address.contains(['?', '#']) || path.contains(['?', '#']) {
            return Err("a host takes no query; user and password stand before the host".to_owned());
        }
        let is_url = text.contains("://") || credentials.is_some();
        let read = if is_url { read_address } else { read_host };
        let (name, port) = read(address, DEFAULT_PORT)?;
        let db = match path {
            "" => None,
            number => {
                let wrong = |_| "behind its host is no number of a database".to_owned();
                Some(number.parse().map_err(wrong)?)
            }
        };
        Ok(Self { host: Host { name, port }, tls, credentials, db })
    }

    /// Whether `ssl` has no effect: all hosts begin with `redis://`.
    pub fn are_plain(servers: &[Self]) -> bool {
        !servers.is_empty() && servers.iter().all(|server| server.tls == Some(false))
    }
}

//! SOCKS5 (RFC 1928) with user and password (RFC 1929): `proxy_url` of the outputs over plain TCP.

use crate::address::{PROXY_HINT, read_address, read_credentials};
use crate::route::{Host, NetError, dial, resolve};
use skidder_config::{Group, Key, Secret, Section, settings};
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// Port of a proxy that names none.
const DEFAULT_PORT: u16 = 1080;
const VERSION: u8 = 5;
const NO_PASSWORD: u8 = 0;
const PASSWORD: u8 = 2;
const NOT_ACCEPTED: u8 = 0xff;
const CONNECT: u8 = 1;
const IPV4: u8 = 1;
const NAME: u8 = 3;
const IPV6: u8 = 4;

settings! {
    /// The proxy of an output over plain TCP.
    pub static SOCKS = Group::new("socks", "A SOCKS5 proxy.");

    PROXY_URL: Secret = Key::new("proxy_url")
        .noun("the URL of a SOCKS5 proxy")
        .about("`socks5://[user:password@]host[:1080]`");
    LOCAL_RESOLVER: bool = Key::new("proxy_use_local_resolver")
        .default(false)
        .about("names are resolved here; `false`: by the proxy");
}

/// A SOCKS5 proxy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SocksProxy {
    /// Where it listens.
    pub host: Host,
    /// User and password of the URL.
    pub credentials: Option<(String, Secret)>,
    /// `proxy_use_local_resolver`: names are resolved here, not by the proxy.
    pub local_resolver: bool,
}

impl fmt::Display for SocksProxy {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "socks5://{}", self.host)
    }
}

impl SocksProxy {
    /// Reads `proxy_url` and `proxy_use_local_resolver`; reports mistakes to the section's problems.
    pub fn read(section: &Section<'_>) -> Option<Self> {
        let local_resolver = section.get(&LOCAL_RESOLVER).value();
        let url = section.get(&PROXY_URL).hint(PROXY_HINT);
        let proxy = url.try_map(|url| Self::parse(url.reveal(), local_resolver)).optional();
        if proxy.is_none() && local_resolver {
            let message = "`proxy_use_local_resolver` has no meaning without `proxy_url`";
            section.warning(LOCAL_RESOLVER.name(), message, "remove it");
        }
        proxy
    }

    pub(crate) fn parse(url: &str, local_resolver: bool) -> Result<Self, String> {
        let rest = url
            .strip_prefix("socks5://")
            .ok_or("expected `socks5://[user:password@]host[:port]`; no other proxy carries TCP")?;
        let rest = rest.trim_end_matches('/');
        let (credentials, address) = match rest.rsplit_once('@') {
            Some((user, address)) => (Some(read_credentials(user)?), address),
            None => (None, rest),
        };
        let too_long = |text: &str| text.len() > 255;
        if let Some((user, password)) = &credentials
            && (user.is_empty() || too_long(user) || too_long(password.reveal()))
        {
            return Err("user and password have 1 to 255 bytes".to_owned());
        }
        let (name, port) = read_address(address, DEFAULT_PORT)?;
        Ok(Self { host: Host { name, port }, credentials, local_resolver })
    }

    /// A connection to `target` through the proxy.
    pub(crate) async fn dial(&self, target: &Host) -> Result<TcpStream, NetError> {
        let mut tcp = dial(&resolve(&self.host.name, self.host.port).await?).await?;
        let target = match (self.local_resolver, target.name.parse::<IpAddr>()) {
            (_, Ok(address)) => Target::Address(SocketAddr::new(address, target.port)),
            (false, Err(_)) => Target::Name(target),
            // The first address, as a proxy would choose.
            (true, Err(_)) => Target::Address(resolve(&target.name, target.port).await?[0]),
        };
        self.ask(&mut tcp, &target).await.map_err(|what| self.error(what))?;
        Ok(tcp)
    }

    fn error(&self, what: String) -> NetError {
        NetError::Proxy { proxy: self.to_string(), what }
    }

    /// Speaks with the proxy until it has connected us; what went wrong ends the sentence "the proxy …".
    async fn ask(&self, tcp: &mut TcpStream, target: &Target<'_>) -> Result<(), String> {
        let method = if self.credentials.is_some() { PASSWORD } else { NO_PASSWORD };
        send(tcp, &[VERSION, 1, method]).await?;
        let answer: [u8; 2] = receive(tcp).await?;
        match answer {
            [VERSION, NO_PASSWORD] => {}
            [VERSION, PASSWORD] => self.log_in(tcp).await?,
            [VERSION, NOT_ACCEPTED] if self.credentials.is_none() => {
                return Err("wants a user and a password; put them into `proxy_url`".to_owned());
            }
            [VERSION, NOT_ACCEPTED] => return Err("takes no user and password".to_owned()),
            _ => return Err("does not answer as SOCKS5 does".to_owned()),
        }
        let mut request = vec![VERSION, CONNECT, 0];
        target.write(&mut request)?;
        send(tcp, &request).await?;
        let [version, status, _, kind]: [u8; 4] = receive(tcp).await?;
        if version != VERSION {
            return Err("does not answer as SOCKS5 does".to_owned());
        }
        if status != 0 {
            return Err(format!("cannot connect to {target}: {}", reason(status)));
        }
        // The address that the proxy sends from, and its port: unused.
        match kind {
            IPV4 => drop(receive::<6>(tcp).await?),
            IPV6 => drop(receive::<18>(tcp).await?),
            NAME => {
                let [length]: [u8; 1] = receive(tcp).await?;
                let mut rest = vec![0; usize::from(length) + 2];
                tcp.read_exact(&mut rest).await.map_err(|error| broken(&error))?;
            }
            _ => return Err("does not answer as SOCKS5 does".to_owned()),
        }
        Ok(())
    }

    async fn log_in(&self, tcp: &mut TcpStream) -> Result<(), String> {
        let (user, password) = self.credentials.as_ref().ok_or("asks for what was not offered")?;
        let mut request = vec![1, user.len() as u8];
        request.extend_from_slice(user.as_bytes());
        request.push(password.reveal().len() as u8);
        request.extend_from_slice(password.reveal().as_bytes());
        send(tcp, &request).await?;
        match receive::<2>(tcp).await? {
            [_, 0] => Ok(()),
            _ => Err("refuses the user and password of `proxy_url`".to_owned()),
        }
    }
}

/// Where the proxy is to connect.
enum Target<'a> {
    Address(SocketAddr),
    Name(&'a Host),
}

impl Target<'_> {
    fn write(&self, request: &mut Vec<u8>) -> Result<(), String> {
        let port = match self {
            Self::Address(address) => {
                match address.ip() {
                    IpAddr::V4(ip) => {
                        request.push(IPV4);
                        request.extend_from_slice(&ip.octets());
                    }
                    IpAddr::V6(ip) => {
                        request.push(IPV6);
                        request.extend_from_slice(&ip.octets());
                    }
                }
                address.port()
            }
            Self::Name(host) => {
                let length = u8::try_from(host.name.len())
                    .map_err(|_| format!("cannot be told the name `{}`: too long", host.name))?;
                request.extend_from_slice(&[NAME, length]);
                request.extend_from_slice(host.name.as_bytes());
                host.port
            }
        };
        request.extend_from_slice(&port.to_be_bytes());
        Ok(())
    }
}

impl fmt::Display for Target<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address) => address.fmt(out),
            Self::Name(host) => host.fmt(out),
        }
    }
}

/// The status of an answer (RFC 1928, section 6).
fn reason(status: u8) -> &'static str {
    match status {
        1 => "general failure",
        2 => "its rules do not allow it",
        3 => "network unreachable",
        4 => "host unreachable",
        5 => "connection refused",
        6 => "TTL expired",
        7 => "it cannot connect at all",
        8 => "it does not know this kind of address",
        _ => "unknown status",
    }
}

async fn send(tcp: &mut TcpStream, bytes: &[u8]) -> Result<(), String> {
    tcp.write_all(bytes).await.map_err(|error| broken(&error))
}

async fn receive<const N: usize>(tcp: &mut TcpStream) -> Result<[u8; N], String> {
    let mut bytes = [0; N];
    tcp.read_exact(&mut bytes).await.map_err(|error| broken(&error))?;
    Ok(bytes)
}

fn broken(error: &std::io::Error) -> String {
    format!("broke the connection: {error}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::net::TcpListener;

    #[test]
    fn proxies_are_read_and_others_than_socks5_refused() {
        let proxy = SocksProxy::parse("socks5://u:p%40x@proxy:1081/", true).unwrap();
        assert_eq!(proxy.to_string(), "socks5://proxy:1081");
        assert_eq!(proxy.credentials, Some(("u".to_owned(), Secret::new("p@x"))));
        assert!(!format!("{proxy:?}").contains("p@x"));
        assert_eq!(SocksProxy::parse("socks5://[::1]", false).unwrap().host.port, DEFAULT_PORT);
        for text in ["http://proxy", "proxy:1080", "socks5://:x@proxy", "socks5://proxy:0"] {
            SocksProxy::parse(text, false).unwrap_err();
        }
        for text in ["socks5://", "socks5://:1080", "socks5://u:SECRET@", "socks5://u:SECRET@/"] {
            assert_eq!(SocksProxy::parse(text, false).unwrap_err(), "it names no host", "{text}");
        }
        assert!(!SocksProxy::parse("socks5://u:SECRET", false).unwrap_err().contains("SECRET"));
    }

    /// The result of a connection through a proxy that expects and answers `talk`.
    async fn connect_result(
        proxy: &str,
        target: &str,
        talk: Vec<(Vec<u8>, Vec<u8>)>,
    ) -> Result<(), String> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = tokio::spawn(async move {
            let (mut tcp, _) = listener.accept().await.unwrap();
            for (expected, answer) in talk {
                let mut got = vec![0; expected.len()];
                tcp.read_exact(&mut got).await.unwrap();
                assert_eq!(got, expected);
                tcp.write_all(&answer).await.unwrap();
            }
        });
        let mut proxy = SocksProxy::parse(proxy, target == "localhost").unwrap();
        proxy.host = Host { name: "127.0.0.1".to_owned(), port };
        let target = Host { name: target.to_owned(), port: 258 };
        let dialled = proxy.dial(&target).await;
        server.await.unwrap();
        dialled.map(drop).map_err(|error| error.to_string())
    }

    #[tokio::test]
    async fn the_proxy_is_asked_as_the_standard_says() {
        let good = vec![5, 0, 0, 1, 1, 2, 3, 4, 5, 6];
        let greeting = (vec![5, 1, 0], vec![5, 0]);
        let name = vec![5, 1, 0, 3, 2, b'e', b's', 1, 2];
        let connected = vec![greeting.clone(), (name.clone(), good.clone())];
        assert_eq!(connect_result("socks5://p", "es", connected).await, Ok(()));
        let address = vec![5, 1, 0, 1, 10, 0, 0, 1, 1, 2];
        let connected = vec![greeting.clone(), (address, vec![5, 0, 0, 3, 1, b'x', 0, 0])];
        assert_eq!(connect_result("socks5://p", "10.0.0.1", connected).await, Ok(()));
        let secret = (vec![5, 1, 2], vec![5, 2]);
        let login = vec![1, 1, b'u', 2, b'p', b'w'];
        let connected =
            vec![secret.clone(), (login.clone(), vec![1, 0]), (name.clone(), good.clone())];
        assert_eq!(connect_result("socks5://u:pw@p", "es", connected).await, Ok(()));
        let refused =
            connect_result("socks5://u:pw@p", "es", vec![secret, (login, vec![1, 1])]).await;
        assert!(refused.unwrap_err().contains("refuses the user"));
        let unwilling =
            connect_result("socks5://p", "es", vec![(vec![5, 1, 0], vec![5, 255])]).await;
        assert!(unwilling.unwrap_err().contains("wants a user"));
        let failed =
            connect_result("socks5://p", "es", vec![greeting, (name, vec![5, 5, 0, 1])]).await;
        assert!(failed.unwrap_err().ends_with("cannot connect to es:258: connection refused"));
    }
}

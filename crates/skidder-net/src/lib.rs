//! The network: everything between a setting that names a server and bytes on a connection.
//!
//! Clients of HTTP use [`HttpClient`] for single requests and [`Connection`] for many requests to one host, with answers
//! whole ([`Connection::send`]) or piece by piece ([`Connection::send_streamed`]); those of clouds sign them ([`cloud`]).
//! Clients of other protocols open a [`Stream`] over a [`Route`], which knows proxies and TLS. Servers are [`Server`] and
//! [`serve_http`].

mod address;
mod client;
pub mod cloud;
mod connection;
mod first;
mod headers;
mod http2;
mod http_proxy;
mod login;
mod post;
mod proxy_choice;
mod read;
mod redact;
mod route;
mod server;
mod socks;
mod steps;
mod streamed;
mod tcp;
mod url;

pub use address::{read_address, read_credentials, read_host, wrong_scheme};
pub use client::{AnswerStream, HttpClient, HttpError, HttpRequest};
pub use connection::{ANSWER_KEPT_BYTES_MAX, Connection, ConnectionError, Pieces, within};
pub use first::first_of;
pub use headers::{
    AGENT, basic_login, basic_login_of, excerpt, proxy_login, request_uri, retry_after,
    secret_header,
};
pub use http_proxy::HttpProxy;
pub use http2::{Http2, Http2Answer};
pub use login::Login;
pub use post::{POSTER, PostError, Posted, Poster, PosterDefaults};
pub use proxy_choice::{Environment, PROXY, ProxyChoice};
pub use read::{HTTPS, Reported, TLS, read_client, read_headers, read_hosts, read_https, read_tls};
pub use redact::{Redactor, redact};
pub use route::{
    Host, NetError, Proxy, Route, Stream, WithoutTls, connect_remedy, dial, encrypt, is_hang_up,
    is_tls_alert, plain_remedy, resolve, tls_remedy,
};
pub use server::{
    Accept, AcceptFuture, Accepted, Arena, BoundAddress, BoundDatagrams, Claim, ClientCertificate,
    Datagram, DatagramNetwork, DatagramPlace, DatagramSocket, DatagramState, Datagrams, Family,
    HandshakeError, HttpEnd, HttpLimits, InheritError, IpPlace, ListenAddress, ListenError,
    ListenFuture, Listener, Network, Peer, Place, Places, RealNetwork, RequestBodyError, Server,
    ServerConnection, ServerSettings, SocketKey, Sockets, StreamPlace, TlsSession, UnixName,
    UnixPlace, is_authorized, is_wrong_http, read_request_body, serve_http, serve_http_any,
};
pub use socks::{SOCKS, SocksProxy};
pub use steps::Steps;
pub use streamed::{AnswerPieces, StreamedAnswer};
pub use tcp::connect;
pub use url::{HostUrl, encode_path, encode_percent, percent_decoded, percent_encoded, usual_port};

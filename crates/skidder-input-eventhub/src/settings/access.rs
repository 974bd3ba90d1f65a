//! Settings of credentials, and of where the namespace and the storage account are.

use crate::connection_string::ConnectionString;
use crate::sign::Login;
use skidder_azure::{
    AccountKey, ConnectionString as StorageString, Credential, EVENT_HUBS, ManagedIdentity,
    Provider, TokenSource, Tokens, authority_host,
};
use skidder_config::{Group, Key, OneOf, Secret, Section, settings};
use skidder_net::{Host, HostUrl, ProxyChoice, read_address, usual_port};
use skidder_os::Fs;
use std::net::IpAddr;
use std::sync::Arc;

/// The port of AMQP over TLS.
const PORT: u16 = 5671;
/// The port of HTTPS, for websockets.
const WEB_PORT: u16 = 443;
/// The port of Microsoft's emulator.
const EMULATOR_PORT: u16 = 5672;
/// Where the blobs of the public cloud are.
const SUFFIX: &str = "core.windows.net";

/// How to show the right to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    ConnectionString,
    ClientSecret,
    ManagedIdentity,
}

settings! {
    /// Settings of [`Access::read`].
    pub(super) static ACCESS = Group::new("input.azure-eventhub.access", "Credentials, and where the servers are.");

    AUTH_TYPE: OneOf<Way> = Key::one_of("auth_type", &[
            ("connection_string", Way::ConnectionString),
            ("client_secret", Way::ClientSecret),
            ("managed_identity", Way::ManagedIdentity),
        ])
        .default("connection_string")
        .about("how to show the right to read the event hub and to write the blobs");
    CONNECTION_STRING: Secret = Key::new("connection_string").about(
        "of `connection_string`: `Endpoint=sb://NAMESPACE.servicebus.windows.net/;SharedAccessKeyName=…;SharedAccessKey=…`, \
         with or without `EntityPath=EVENTHUB`, or with `SharedAccessSignature=…`",
    );
    NAMESPACE: String = Key::new("eventhub_namespace")
        .noun("a host, as in `NAMESPACE.servicebus.windows.net`")
        .about("of the other two: the namespace");
    TENANT_ID: String = Key::new("tenant_id")
        .noun("the id or domain of a tenant")
        .about("of `client_secret`: the tenant of Entra ID");
    CLIENT_ID: String = Key::new("client_id")
        .noun("the id of a client")
        .about("of `client_secret`: a client (an application) of Entra ID");
    CLIENT_SECRET: Secret = Key::new("client_secret").about("of `client_secret`: its secret");
    AUTHORITY_HOST: String = Key::new("authority_host")
        .default_words("`AZURE_AUTHORITY_HOST`, that of the public cloud")
        .noun("a URL, as in `https://login.microsoftonline.us`")
        .about("Entra ID of another cloud; names the storage of that cloud, too");
    MANAGED_ID: String = Key::new("managed_identity_client_id")
        .default_words("that of the system")
        .noun("the id of a client")
        .about("of `managed_identity`: the client id of an identity that is assigned by a user");
    ACCOUNT: String = Key::new("storage_account")
        .default_words("that of the connection string")
        .noun("the name of a storage account")
        .about("the storage account with the checkpoints");
    ACCOUNT_KEY: Secret = Key::new("storage_account_key")
        .about("of `connection_string`: a key of the account, in place of the next one");
    STORAGE_STRING: Secret = Key::new("storage_account_connection_string")
        .about("of `connection_string`: `AccountName=…;AccountKey=…`, `BlobEndpoint=…;SharedAccessSignature=…`");
}

/// The namespace.
pub(super) struct Place {
    /// As names of blobs have it: without a port, which Azure has none of.
    pub(super) namespace: String,
    pub(super) host: Host,
    pub(super) tls: bool,
}

/// The right to read and write.
pub(super) struct Access {
    pub(super) place: Place,
    pub(super) login: Login,
    /// Where the blobs are.
    pub(super) blobs: HostUrl,
    pub(super) provider: Provider,
}

/// The settings as they are.
struct Given<'a, 's> {
    section: &'a Section<'s>,
    /// Of a namespace without one.
    port: u16,
    account: Option<String>,
    suffix: &'static str,
    namespace: Option<String>,
    text: Option<Secret>,
    key: Option<Secret>,
    storage: Option<Secret>,
}

impl Access {
    /// `None`, and the problems are reported, if something is wrong.
    pub(super) fn read(
        section: &Section<'_>,
        hub: &str,
        (fs, proxy, is_websocket): (&Arc<dyn Fs>, &ProxyChoice, bool),
        variable: &impl Fn(&str) -> Option<String>,
    ) -> Option<Self> {
        let filled =
            |key: &Key<String>| section.get(key).optional().filter(|text| !text.is_empty());
        let secret =
            |key: &Key<Secret>| section.get(key).optional().filter(|text| !text.is_empty());
        let authority = filled(&AUTHORITY_HOST);
        let given = Given {
            section,
            port: if is_websocket { WEB_PORT } else { PORT },
            account: filled(&ACCOUNT),
            suffix: suffix(authority.as_deref().unwrap_or_default()),
            namespace: filled(&NAMESPACE),
            text: secret(&CONNECTION_STRING),
            key: secret(&ACCOUNT_KEY),
            storage: secret(&STORAGE_STRING),
        };
        let (tenant, id, client) = (filled(&TENANT_ID), filled(&CLIENT_ID), secret(&CLIENT_SECRET));
        let managed = filled(&MANAGED_ID);
        let source = match section.get(&AUTH_TYPE).value() {
            Way::ConnectionString => return given.by_strings(hub, (fs, proxy)),
            Way::ClientSecret => {
                let parts = [
                    (TENANT_ID.name(), tenant.is_some()),
                    (CLIENT_ID.name(), id.is_some()),
                    (CLIENT_SECRET.name(), client.is_some()),
                ];
                for (name, _) in parts.iter().filter(|(_, is_there)| !is_there) {
                    let hint = "`auth_type: client_secret` needs `tenant_id`, `client_id` and `client_secret`";
                    section.missing(name, "is not set", hint);
                }
                let authority = authority_host(|name| authority.clone().or_else(|| variable(name)));
                let report = |message: String| section.problem(AUTHORITY_HOST.name(), message, "");
                let (authority, tenant) = (authority.map_err(report).ok(), tenant);
                let (id, secret) = (id, client);
                given.check_tokens();
                TokenSource::Client {
                    authority: authority?,
                    tenant: tenant?,
                    id: id?,
                    secret: secret?,
                }
            }
            Way::ManagedIdentity => {
                given.check_tokens();
                let identity = ManagedIdentity::read(managed, variable);
                let report = |message: String| {
                    section.problem(AUTH_TYPE.name(), message, "use `client_secret` there");
                };
                TokenSource::Managed(identity.map_err(report).ok()?)
            }
        };
        given.by_tokens(source, (fs, proxy))
    }
}

impl Given<'_, '_> {
    /// Reports what is missing for tokens.
    fn check_tokens(&self) {
        if self.namespace.is_none() {
            let hint = "as in `NAMESPACE.servicebus.windows.net`";
            self.section.missing(NAMESPACE.name(), "is not set", hint);
        }
        if self.account.is_none() {
            self.section.missing(
                ACCOUNT.name(),
                "is not set",
                "the storage account with the checkpoints",
            );
        }
        let unused = [
            (CONNECTION_STRING.name(), self.text.is_some()),
            (ACCOUNT_KEY.name(), self.key.is_some()),
            (STORAGE_STRING.name(), self.storage.is_some()),
        ];
        for (name, _) in unused.iter().filter(|(_, is_set)| *is_set) {
            let message = "no effect: `auth_type` is another one than `connection_string`";
            self.section.warning(name, message, "leave one of them out");
        }
    }

    fn by_tokens(
        self,
        source: TokenSource,
        (fs, proxy): (&Arc<dyn Fs>, &ProxyChoice),
    ) -> Option<Access> {
        let namespace = self.namespace.clone()?;
        let place = self.place(&namespace, NAMESPACE.name(), false)?;
        let blobs = self.usual_blobs()?;
        let credential = Credential::Token(Box::new(source.clone()));
        let provider = Provider::new(credential, proxy.clone(), Arc::clone(fs));
        let tokens = Tokens::new(source, EVENT_HUBS, proxy.clone(), Arc::clone(fs));
        let section = self.section;
        let report = |error: skidder_tls::TlsError| section.problem_named(error.setting(), &error);
        let (provider, tokens) = (provider.map_err(report).ok()?, tokens.map_err(report).ok()?);
        Some(Access { place, login: Login::Entra(Box::new(tokens)), blobs, provider })
    }

    fn by_strings(self, hub: &str, (fs, proxy): (&Arc<dyn Fs>, &ProxyChoice)) -> Option<Access> {
        let section = self.section;
        let of_hub = self.of_hub(hub);
        let storage = self.of_storage();
        let (ConnectionString { namespace, access, is_emulator, .. }, (blobs, credential)) =
            (of_hub?, storage?);
        let place = self.place(&namespace, CONNECTION_STRING.name(), is_emulator)?;
        if is_emulator && !is_here(&place.host.name) {
            let message =
                format!("{} is reached without TLS: `UseDevelopmentEmulator=true`", place.host);
            let hint = "everybody on the way can read the events; leave it out for Azure itself";
            section.warning(CONNECTION_STRING.name(), message, hint);
        }
        let provider = Provider::new(credential, proxy.clone(), Arc::clone(fs));
        let provider =
            provider.map_err(|error| section.problem_named(error.setting(), &error)).ok()?;
        Some(Access { place, login: Login::Access(access), blobs, provider })
    }

    fn of_hub(&self, hub: &str) -> Option<ConnectionString> {
        let (section, name) = (self.section, CONNECTION_STRING.name());
        let Some(text) = &self.text else {
            let hint = "copy it from the page `Shared access policies` of the event hub, or set `auth_type`";
            section.missing(name, "is not set", hint);
            return None;
        };
        match ConnectionString::parse(text.reveal()) {
            Ok(parsed) if !parsed.hub.is_empty() && parsed.hub != hub => {
                let (of_string, path) = (&parsed.hub, section.path_of("eventhub"));
                let message = format!(
                    "the connection string is of the event hub `{of_string}`, but `{path}` is `{hub}`"
                );
                section.problem(
                    name,
                    message,
                    "write the same name, or take the string of the namespace",
                );
                None
            }
            Ok(parsed) => Some(parsed),
            Err(error) => {
                let message =
                    format!("the connection string in `{}` {error}", section.path_of(name));
                let hint = "copy it from the page `Shared access policies` of the event hub";
                section.problem(name, message, hint);
                None
            }
        }
    }

    /// Where the blobs are, and the right to write them.
    fn of_storage(&self) -> Option<(HostUrl, Credential)> {
        let section = self.section;
        if let Some(text) = &self.storage {
            let name = STORAGE_STRING.name();
            if self.key.is_some() {
                let message = "no effect beside `storage_account_connection_string`";
                section.warning(ACCOUNT_KEY.name(), message, "leave one of them out");
            }
            return match StorageString::parse(text.reveal()) {
                Ok(parsed) => Some((parsed.url, parsed.credential)),
                Err(error) => {
                    let message =
                        format!("the connection string in `{}` {error}", section.path_of(name));
                    section.problem(
                        name,
                        message,
                        "copy it from the page `Access keys` of the account",
                    );
                    None
                }
            };
        }
        let (Some(account), Some(key)) = (&self.account, &self.key) else {
            let hint = "or set `storage_account` and `storage_account_key`: checkpoints are kept in a storage account";
            section.missing(STORAGE_STRING.name(), "is not set", hint);
            return None;
        };
        match AccountKey::new(account, key) {
            Ok(key) => Some((self.usual_blobs()?, Credential::Key(key))),
            Err(error) => {
                let message =
                    format!("the key in `{}` {error}", section.path_of(ACCOUNT_KEY.name()));
                section.problem(ACCOUNT_KEY.name(), message, "");
                None
            }
        }
    }

    fn usual_blobs(&self) -> Option<HostUrl> {
        let account = self.account.as_deref()?;
        let is_good = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        if !(3..=40).contains(&account.len()) || !account.bytes().all(is_good) {
            let message = format!("`{}` is `{account}`", self.section.path_of(ACCOUNT.name()));
            let hint = "the name of a storage account has 3 to 24 lower-case letters and digits";
            self.section.problem(ACCOUNT.name(), message, hint);
            return None;
        }
        let url = format!("https://{account}.blob.{}", self.suffix);
        HostUrl::parse(&url, "", "", usual_port).ok()
    }

    fn place(&self, namespace: &str, key: &str, is_emulator: bool) -> Option<Place> {
        let port = if is_emulator { EMULATOR_PORT } else { self.port };
        match read_address(namespace, port) {
            Ok((name, port)) => Some(Place {
                namespace: name.clone(),
                host: Host { name, port },
                tls: !is_emulator,
            }),
            Err(error) => {
                let message =
                    format!("the namespace of `{}` is no host: {error}", self.section.path_of(key));
                self.section.problem(key, message, "as in `NAMESPACE.servicebus.windows.net`");
                None
            }
        }
    }
}

/// Where the blobs of a cloud are, which its Entra ID names, as in Filebeat.
fn suffix(authority: &str) -> &'static str {
    if authority.contains("microsoftonline.us") {
        "core.usgovcloudapi.net"
    } else if authority.contains("chinacloudapi.cn") || authority.contains("microsoftonline.cn") {
        "core.chinacloudapi.cn"
    } else {
        SUFFIX
    }
}

fn is_here(name: &str) -> bool {
    name == "localhost" || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

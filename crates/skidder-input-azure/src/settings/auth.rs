//! `auth`: one of a key, a connection string, a client of Entra ID, and a managed identity.

use skidder_azure::{
    AccountKey, ConnectionString, Credential, ManagedIdentity, TokenSource, authority_host,
};
use skidder_config::{Group, Key, Secret, Section, settings};
use skidder_net::HostUrl;

settings! {
    /// Settings of [`Access::read`].
    pub(crate) static AZURE_AUTH = Group::new("azure.auth", "Credentials of a storage account.");

    ACCOUNT_KEY: Secret = Key::new("auth.shared_credentials.account_key")
        .about("an access key of the account, in base64; signs each request");
    CONNECTION_STRING: Secret = Key::new("auth.connection_string.uri").about(
        "a connection string, with a key or a shared access signature: `AccountName=…;AccountKey=…`, \
         `BlobEndpoint=…;SharedAccessSignature=…`, or `UseDevelopmentStorage=true`",
    );
    CLIENT_ID: String = Key::new("auth.oauth2.client_id")
        .noun("the id of a client")
        .about("a client (an application) of Entra ID, with the next two. It needs the role `Storage Blob Data Reader`");
    CLIENT_SECRET: Secret = Key::new("auth.oauth2.client_secret").about("its secret");
    TENANT_ID: String = Key::new("auth.oauth2.tenant_id")
        .noun("the id or domain of a tenant")
        .about("its tenant");
    MANAGED: bool = Key::new("auth.managed_identity.enabled")
        .default(false)
        .about("use a managed identity of this host: of a virtual machine, AKS, App Service or Container Apps");
    MANAGED_ID: String = Key::new("auth.managed_identity.client_id")
        .default_words("that of the system")
        .noun("the id of a client")
        .about("the client id of an identity that is assigned by a user");
}

/// The right to use an account.
pub(crate) struct Access {
    pub(crate) credential: Credential,
    /// Of a connection string.
    pub(crate) account: Option<String>,
    /// Of a connection string.
    pub(crate) url: Option<HostUrl>,
}

impl From<Credential> for Access {
    fn from(credential: Credential) -> Self {
        Self { credential, account: None, url: None }
    }
}

/// The ways, the first of which is taken, as in Filebeat.
const WAYS: [&str; 4] =
    ["auth.shared_credentials", "auth.connection_string", "auth.oauth2", "auth.managed_identity"];

impl Access {
    /// Reads the settings of [`AZURE_AUTH`]. `account` is `account_name`. `None`, and the problem is reported, if something is
    /// wrong.
    pub(crate) fn read(
        section: &Section<'_>,
        account: Option<&str>,
        variable: &impl Fn(&str) -> Option<String>,
    ) -> Option<Self> {
        let key = section.get(&ACCOUNT_KEY).optional();
        let text = section.get(&CONNECTION_STRING).optional();
        let client = Client::read(section);
        let managed = section.get(&MANAGED).value();
        let managed_id = section.get(&MANAGED_ID).optional();
        let are_set = [key.is_some(), text.is_some(), client.is_set(), managed];
        let set = WAYS.iter().zip(are_set).filter(|(_, is_set)| *is_set).map(|(way, _)| *way);
        let set: Vec<&str> = set.collect();
        if let [first, others @ ..] = &set[..] {
            for other in others {
                let message = format!("`{other}` has no effect beside `{first}`");
                section.warning(other, message, "leave one of them out");
            }
        }
        if managed_id.is_some() && !managed {
            let message =
                "`auth.managed_identity.client_id` has no effect: the identity is not enabled";
            section.warning(
                MANAGED_ID.name(),
                message,
                "set `auth.managed_identity.enabled: true`",
            );
        }
        if let Some(key) = key {
            return of_key(section, account, &key);
        }
        if let Some(text) = text {
            return of_string(section, &text);
        }
        if client.is_set() {
            return client.access(section, variable);
        }
        if managed {
            return of_host(section, managed_id, variable);
        }
        let hint = "set `auth.shared_credentials.account_key`, `auth.connection_string.uri`, `auth.oauth2`, or \
                    `auth.managed_identity.enabled`";
        section.missing("auth", "has no credentials", hint);
        None
    }
}

fn of_key(section: &Section<'_>, account: Option<&str>, key: &Secret) -> Option<Access> {
    let Some(account) = account else {
        section.missing("account_name", "is not set", "the key is one of an account");
        return None;
    };
    match AccountKey::new(account, key) {
        Ok(key) => Some(Credential::Key(key).into()),
        Err(error) => {
            let message = format!("the key in `{}` {error}", section.path_of(ACCOUNT_KEY.name()));
            section.problem(ACCOUNT_KEY.name(), message, "");
            None
        }
    }
}

fn of_string(section: &Section<'_>, text: &Secret) -> Option<Access> {
    match ConnectionString::parse(text.reveal()) {
        Ok(ConnectionString { account, url, credential }) => {
            let account = Some(account).filter(|account| !account.is_empty());
            Some(Access { credential, account, url: Some(url) })
        }
        Err(error) => {
            let path = section.path_of(CONNECTION_STRING.name());
            let message = format!("the connection string in `{path}` {error}");
            let hint =
                "copy it from the page `Access keys` or `Shared access signature` of the account";
            section.problem(CONNECTION_STRING.name(), message, hint);
            None
        }
    }
}

fn of_host(
    section: &Section<'_>,
    id: Option<String>,
    variable: &impl Fn(&str) -> Option<String>,
) -> Option<Access> {
    match ManagedIdentity::read(id, variable) {
        Ok(identity) => Some(Credential::Token(Box::new(TokenSource::Managed(identity))).into()),
        Err(message) => {
            section.problem(MANAGED.name(), message, "use `auth.oauth2` there");
            None
        }
    }
}

/// `auth.oauth2`.
struct Client {
    id: Option<String>,
    secret: Option<Secret>,
    tenant: Option<String>,
}

impl Client {
    fn read(section: &Section<'_>) -> Self {
        let filled =
            |key: &Key<String>| section.get(key).optional().filter(|text| !text.is_empty());
        let secret = section.get(&CLIENT_SECRET).optional().filter(|text| !text.is_empty());
        Self { id: filled(&CLIENT_ID), secret, tenant: filled(&TENANT_ID) }
    }

    fn is_set(&self) -> bool {
        self.id.is_some() || self.secret.is_some() || self.tenant.is_some()
    }

    fn access(
        self,
        section: &Section<'_>,
        variable: &impl Fn(&str) -> Option<String>,
    ) -> Option<Access> {
        let parts = [
            (CLIENT_ID.name(), self.id.is_some()),
            (CLIENT_SECRET.name(), self.secret.is_some()),
            (TENANT_ID.name(), self.tenant.is_some()),
        ];
        for (name, _) in parts.iter().filter(|(_, is_there)| !is_there) {
            let hint = "`client_id`, `client_secret` and `tenant_id` belong together";
            section.missing(name, "is not set", hint);
        }
        let authority = authority_host(variable);
        let authority = authority.map_err(|message| section.problem("auth.oauth2", message, ""));
        let (id, secret, tenant) = (self.id?, self.secret?, self.tenant?);
        let source = TokenSource::Client { authority: authority.ok()?, tenant, id, secret };
        Some(Credential::Token(Box::new(source)).into())
    }
}

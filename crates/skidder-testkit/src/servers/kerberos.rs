//! A realm of Kerberos, and a server that knows its users.

use super::{Server, ServerError};

impl Server {
    /// A realm of Kerberos for one test; see `tests/servers/kerberos.sh` for what is in its folder.
    pub fn kerberos() -> Result<Self, ServerError> {
        Self::start("kerberos.sh", false, "")
    }

    /// Elasticsearch 9.5 for one test, with a trial licence: over TLS, with the users of `realm`
    /// ([`Server::kerberos`]) besides [`super::USER`].
    pub fn own_elasticsearch_of(realm: &Self) -> Result<Self, ServerError> {
        Self::start_with("elasticsearch.sh", true, &[("KERBEROS", realm.folder().as_os_str())])
    }
}

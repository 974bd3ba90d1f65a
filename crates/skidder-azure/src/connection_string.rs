//! Connection strings of storage accounts
//! (<https://learn.microsoft.com/azure/storage/common/storage-configure-connection-string>).

use crate::credentials::Credential;
use crate::sign::{AccountKey, KeyError};
use skidder_config::Secret;
use skidder_net::{HostUrl, usual_port};

/// Where blobs are, unless the string says so.
const SUFFIX: &str = "core.windows.net";
/// What `UseDevelopmentStorage=true` stands for: the account of the emulator, whose key is public.
const EMULATOR_ACCOUNT: &str = "devstoreaccount1";
const EMULATOR_KEY: &str =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";
const EMULATOR_PORT: u16 = 10_000;

/// An account, and what shows the right to use it.
#[derive(Clone, Debug)]
pub struct ConnectionString {
    /// The account's name; empty if there is only a URL and a shared access signature.
    pub account: String,
    /// Where its blobs are.
    pub url: HostUrl,
    /// Its key, or a shared access signature.
    pub credential: Credential,
}

/// Why a text is no connection string. Ends the sentence "the connection string …". Never has a part of it that may be
/// secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConnectionStringError {
    /// A part without `=`.
    #[error("has a part without `=`: parts are `Name=value`, with `;` between them")]
    Part,
    /// A part is missing.
    #[error("has no {0}")]
    Missing(&'static str),
    /// The key is not one.
    #[error("has an `AccountKey` that {0}")]
    Key(KeyError),
    /// A URL is not one.
    #[error("has a wrong `{name}`: {what}")]
    Url {
        /// The name of the part.
        name: &'static str,
        /// The mistake.
        what: String,
    },
}

/// The parts that are used; all others are for other services.
#[derive(Default)]
struct Parts<'a> {
    protocol: &'a str,
    account: &'a str,
    key: &'a str,
    sas: &'a str,
    suffix: &'a str,
    blobs: &'a str,
    is_emulator: bool,
    emulator_proxy: &'a str,
}

impl ConnectionString {
    /// Reads one. Names of parts are found in any case, as Azure's own programs do.
    ///
    /// # Errors
    ///
    /// Something is missing or wrong.
    pub fn parse(text: &str) -> Result<Self, ConnectionStringError> {
        let parts = Parts::read(text)?;
        if parts.is_emulator {
            return parts.emulator();
        }
        let credential = match (parts.key, parts.sas) {
            ("", "") => {
                return Err(ConnectionStringError::Missing(
                    "`AccountKey`, nor a `SharedAccessSignature`",
                ));
            }
            ("", sas) => Credential::Sas(Secret::new(sas.trim_start_matches('?'))),
            (key, _) => {
                if parts.account.is_empty() {
                    return Err(ConnectionStringError::Missing("`AccountName`"));
                }
                let key = AccountKey::new(parts.account, &Secret::new(key));
                Credential::Key(key.map_err(ConnectionStringError::Key)?)
            }
        };
        Ok(Self { account: parts.account.to_owned(), url: parts.url()?, credential })
    }
}

impl<'a> Parts<'a> {
    fn read(text: &'a str) -> Result<Self, ConnectionStringError> {
        let mut parts = Self::default();
        for part in text.split(';').map(str::trim).filter(|part| !part.is_empty()) {
            let (name, value) = part.split_once('=').ok_or(ConnectionStringError::Part)?;
            let value = value.trim();
            match &*name.trim().to_ascii_lowercase() {
                "defaultendpointsprotocol" => parts.protocol = value,
                "accountname" => parts.account = value,
                "accountkey" => parts.key = value,
                "sharedaccesssignature" => parts.sas = value,
                "endpointsuffix" => parts.suffix = value,
                "blobendpoint" => parts.blobs = value,
                "usedevelopmentstorage" => parts.is_emulator = value.eq_ignore_ascii_case("true"),
                "developmentstorageproxyuri" => parts.emulator_proxy = value,
                _ => {}
            }
        }
        Ok(parts)
    }

    fn url(&self) -> Result<HostUrl, ConnectionStringError> {
        if !self.blobs.is_empty() {
            // One with a signature may stand there too.
            let blobs = self.blobs.split('?').next().unwrap_or_default();
            return url("BlobEndpoint", blobs);
        }
        if self.account.is_empty() {
            return Err(ConnectionStringError::Missing("`AccountName`, nor a `BlobEndpoint`"));
        }
        let protocol = if self.protocol.is_empty() { "https" } else { self.protocol };
        let suffix = if self.suffix.is_empty() { SUFFIX } else { self.suffix };
        let name =
            if self.protocol.is_empty() { "AccountName" } else { "DefaultEndpointsProtocol" };
        url(name, &format!("{protocol}://{}.blob.{suffix}", self.account))
    }

    fn emulator(&self) -> Result<ConnectionString, ConnectionStringError> {
        let (name, server) = match self.emulator_proxy {
            "" => ("UseDevelopmentStorage", "http://127.0.0.1"),
            server => ("DevelopmentStorageProxyUri", server.trim_end_matches('/')),
        };
        let url = url(name, &format!("{server}:{EMULATOR_PORT}/{EMULATOR_ACCOUNT}"))?;
        let key = AccountKey::new(EMULATOR_ACCOUNT, &Secret::new(EMULATOR_KEY));
        let credential = Credential::Key(key.map_err(ConnectionStringError::Key)?);
        Ok(ConnectionString { account: EMULATOR_ACCOUNT.to_owned(), url, credential })
    }
}

fn url(name: &'static str, text: &str) -> Result<HostUrl, ConnectionStringError> {
    let wrong = |what: String| ConnectionStringError::Url { name, what };
    let url = HostUrl::parse(text, "https", "", usual_port).map_err(wrong)?;
    if url.credentials.is_some() {
        return Err(wrong("a URL has no user and password here".to_owned()));
    }
    Ok(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Result<String, String> {
        let read = ConnectionString::parse(text).map_err(|error| error.to_string())?;
        assert!(!format!("{read:?}").contains("c2VjcmV0"), "{read:?}");
        Ok(format!("{} {} {}", read.account, read.url, read.credential.name()))
    }

    #[test]
    fn the_forms_of_microsofts_text_are_read() {
        let table = [
            (
                "DefaultEndpointsProtocol=https;AccountName=logs;AccountKey=c2VjcmV0==;EndpointSuffix=core.windows.net",
                "has an `AccountKey` that is not in base64",
            ),
            (
                "DefaultEndpointsProtocol=https;AccountName=logs;AccountKey=c2VjcmV0;EndpointSuffix=core.chinacloudapi.cn",
                "logs https://logs.blob.core.chinacloudapi.cn:443 the key of `logs`",
            ),
            (
                "accountname=logs;accountkey=c2VjcmV0;",
                "logs https://logs.blob.core.windows.net:443 the key of `logs`",
            ),
            (
                "DefaultEndpointsProtocol=http;AccountName=logs;AccountKey=c2VjcmV0;\
                 BlobEndpoint=http://127.0.0.1:10000/logs;QueueEndpoint=http://127.0.0.1:10001/logs;",
                "logs http://127.0.0.1:10000/logs the key of `logs`",
            ),
            (
                "BlobEndpoint=https://logs.blob.core.windows.net/;SharedAccessSignature=?sv=2021&sig=c2VjcmV0%3D",
                " https://logs.blob.core.windows.net:443 a shared access signature",
            ),
            (
                "UseDevelopmentStorage=true",
                "devstoreaccount1 http://127.0.0.1:10000/devstoreaccount1 the key of `devstoreaccount1`",
            ),
            (
                "UseDevelopmentStorage=true;DevelopmentStorageProxyUri=http://host",
                "devstoreaccount1 http://host:10000/devstoreaccount1 the key of `devstoreaccount1`",
            ),
            ("AccountName=logs", "has no `AccountKey`, nor a `SharedAccessSignature`"),
            ("AccountKey=c2VjcmV0", "has no `AccountName`"),
            ("SharedAccessSignature=sv=1", "has no `AccountName`, nor a `BlobEndpoint`"),
            ("c2VjcmV0", "has a part without `=`: parts are `Name=value`, with `;` between them"),
            ("BlobEndpoint=ftp://x;SharedAccessSignature=sv=1", "has a wrong `BlobEndpoint`: "),
        ];
        for (text, expected) in table {
            let found = shown(text).unwrap_or_else(|error| error);
            assert!(found.starts_with(expected), "{text}: {found}");
        }
    }

    #[test]
    fn the_signature_is_what_stands_behind_the_question_mark() {
        let text = "BlobEndpoint=https://a.b?sv=1;SharedAccessSignature=?sv=2021&sig=x%3D";
        let Credential::Sas(sas) = ConnectionString::parse(text).unwrap().credential else {
            panic!("another credential")
        };
        assert_eq!(sas.reveal(), "sv=2021&sig=x%3D");
    }
}

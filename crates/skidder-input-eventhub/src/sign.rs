//! Tokens that show the right to use a node: signed here with a key, signed elsewhere, or of Entra ID.
//!
//! Source of the format: <https://learn.microsoft.com/rest/api/eventhub/generate-sas-token>.

use crate::connection_string::Access;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::hmac;
use skidder_azure::{CredentialsError, Tokens};
use skidder_config::Secret;
use skidder_net::percent_encoded;
use skidder_os::{Clock, Timestamp};
use std::sync::Arc;
use std::time::Duration;

/// How long a token that is signed here holds.
const LIFETIME: Duration = Duration::from_hours(1);
/// What `put-token` calls tokens that are signed with a key.
const SIGNED: &str = "servicebus.windows.net:sastoken";
/// The same for those of Entra ID.
const ENTRA: &str = "jwt";

/// Where tokens come from.
#[derive(Debug)]
pub(crate) enum Login {
    /// A connection string.
    Access(Access),
    /// Entra ID, or an identity of the host.
    Entra(Box<Tokens>),
}

/// A token for one node.
pub(crate) struct Token {
    pub(crate) kind: &'static str,
    pub(crate) text: Secret,
    pub(crate) until: Timestamp,
}

impl Login {
    /// A token for a node, which is named by its URL.
    pub(crate) async fn token(
        &self,
        node: &str,
        clock: &Arc<dyn Clock>,
    ) -> Result<Token, CredentialsError> {
        Ok(match self {
            Self::Access(Access::Key(name, key)) => {
                let lifetime = i64::try_from(LIFETIME.as_nanos()).unwrap_or(i64::MAX);
                let until = Timestamp(clock.wall().0.saturating_add(lifetime));
                let text = Secret::new(sign(node, name, key, until.seconds()));
                Token { kind: SIGNED, text, until }
            }
            Self::Access(Access::Token(text)) => {
                Token { kind: SIGNED, text: text.clone(), until: expiry(text.reveal()) }
            }
            Self::Entra(tokens) => {
                let (text, until) = tokens.get(clock).await?;
                Token { kind: ENTRA, text, until }
            }
        })
    }

    /// The server refuses the token.
    pub(crate) async fn forget(&self) {
        if let Self::Entra(tokens) = self {
            tokens.forget().await;
        }
    }
}

/// Signs a token that holds until `expiry`, in seconds since 1970.
fn sign(node: &str, name: &str, key: &Secret, expiry: i64) -> String {
    let node = percent_encoded(node).to_ascii_lowercase();
    let key = hmac::Key::new(hmac::HMAC_SHA256, key.reveal().as_bytes());
    let signature = hmac::sign(&key, format!("{node}\n{expiry}").as_bytes());
    let signature = percent_encoded(&STANDARD.encode(signature));
    let name = percent_encoded(name);
    format!("SharedAccessSignature sr={node}&sig={signature}&se={expiry}&skn={name}")
}

/// Until when a token says that it holds; for ever if it says nothing.
fn expiry(token: &str) -> Timestamp {
    let token = token.trim_start_matches("SharedAccessSignature ");
    let seconds = token.split('&').find_map(|part| part.strip_prefix("se=")?.parse::<i64>().ok());
    Timestamp(seconds.map_or(i64::MAX, |seconds| seconds.saturating_mul(1_000_000_000)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_signed_as_azure_checks_it() {
        // printf 'amqps%%3a%%2f%%2fn.servicebus.windows.net%%2fh\n1700000000' | openssl dgst -sha256 -hmac key -binary | base64
        let token = sign(
            "amqps://N.servicebus.windows.net/h",
            "read all",
            &Secret::new("key"),
            1_700_000_000,
        );
        let (node, rest) = token.split_once("&sig=").unwrap();
        let expected = "SharedAccessSignature sr=amqps%3a%2f%2fn.servicebus.windows.net%2fh";
        assert_eq!(node, expected);
        let (signature, rest) = rest.split_once('&').unwrap();
        assert_eq!(signature, SIGNATURE);
        assert_eq!(rest, "se=1700000000&skn=read%20all");
        assert_eq!(expiry(&token), Timestamp(1_700_000_000_000_000_000));
        assert_eq!(expiry("SharedAccessSignature sr=x"), Timestamp(i64::MAX));
    }

    const SIGNATURE: &str = "VFETNcqwFk0vv4SVXDhjbPtJ6g%2F%2F2ipmQntL1bhUV2s%3D";
}

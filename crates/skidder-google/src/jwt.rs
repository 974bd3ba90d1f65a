//! The proof of a service account: claims that its key has signed with RS256 (RFC 7515, RFC 7523).
//!
//! <https://developers.google.com/identity/protocols/oauth2/service-account#authorizingrequests>

use crate::key::ServiceAccount;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ring::rand::SystemRandom;
use ring::rsa::KeyPair;
use ring::signature::RSA_PKCS1_SHA256;
use serde_json::json;
use skidder_os::Timestamp;

/// How long a proof holds, seconds: the most that Google takes.
const LIFETIME: i64 = 3600;
/// Clocks may differ by so much, seconds.
const SKEW: i64 = 10;

/// Why a key cannot sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SignError {
    /// It is no PEM, or of another algorithm.
    #[error("`private_key` is no RSA key in PEM, as `-----BEGIN PRIVATE KEY-----` begins one")]
    Pem,
    /// It is damaged, or has fewer than 2048 bits.
    #[error("`private_key` is no RSA key of 2048 to 4096 bits")]
    Key,
    /// The system gives no random numbers.
    #[error("cannot sign with `private_key`")]
    Sign,
}

/// A proof for a token of this `scope`.
pub(crate) fn assertion(
    account: &ServiceAccount,
    scope: &str,
    now: Timestamp,
) -> Result<String, SignError> {
    let key = key_pair(account.key.reveal())?;
    let mut header = json!({ "alg": "RS256", "typ": "JWT" });
    if !account.key_id.is_empty() {
        header["kid"] = account.key_id.as_str().into();
    }
    let issued = now.seconds() - SKEW;
    let claims = json!({
        "iss": account.email, "scope": scope, "aud": account.token_uri,
        "iat": issued, "exp": issued + LIFETIME,
    });
    let encode = |text: String| URL_SAFE_NO_PAD.encode(text);
    let signed = format!("{}.{}", encode(header.to_string()), encode(claims.to_string()));
    let mut signature = vec![0; key.public().modulus_len()];
    let random = SystemRandom::new();
    key.sign(&RSA_PKCS1_SHA256, &random, signed.as_bytes(), &mut signature)
        .map_err(|_| SignError::Sign)?;
    Ok(format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature)))
}

/// The key of a PEM: PKCS #8, or PKCS #1.
pub(crate) fn key_pair(pem: &str) -> Result<KeyPair, SignError> {
    let der = |label: &str| {
        let (_, rest) = pem.split_once(&format!("-----BEGIN {label}-----"))?;
        let (body, _) = rest.split_once(&format!("-----END {label}-----"))?;
        let body: String = body.chars().filter(|character| !character.is_whitespace()).collect();
        STANDARD.decode(body).ok()
    };
    if let Some(der) = der("PRIVATE KEY") {
        return KeyPair::from_pkcs8(&der).map_err(|_| SignError::Key);
    }
    let der = der("RSA PRIVATE KEY").ok_or(SignError::Pem)?;
    KeyPair::from_der(&der).map_err(|_| SignError::Key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ring::signature::{KeyPair as _, RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey};
    use serde_json::Value;
    use skidder_config::Secret;

    const PEM: &str = include_str!("testdata/key.pem");

    fn account(key_id: &str) -> ServiceAccount {
        ServiceAccount {
            email: "logs@p.iam.gserviceaccount.com".to_owned(),
            key_id: key_id.to_owned(),
            key: Secret::new(PEM),
            token_uri: "https://oauth2.googleapis.com/token".to_owned(),
        }
    }

    #[test]
    fn a_proof_has_its_claims_and_a_signature_of_the_key() {
        let now = Timestamp(1_440_938_160_000_000_000);
        let proof = assertion(&account("k1"), "read", now).unwrap();
        let parts: Vec<&str> = proof.split('.').collect();
        let [header, claims, signature] = parts[..] else { panic!("{proof}") };
        let json = |part: &str| -> Value {
            serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap()
        };
        assert_eq!(json(header), json!({ "alg": "RS256", "typ": "JWT", "kid": "k1" }));
        let expected = json!({
            "iss": "logs@p.iam.gserviceaccount.com", "scope": "read",
            "aud": "https://oauth2.googleapis.com/token", "iat": 1_440_938_150, "exp": 1_440_941_750,
        });
        assert_eq!(json(claims), expected);
        let key = key_pair(PEM).unwrap();
        let public = UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, key.public_key());
        let signed = format!("{header}.{claims}");
        public.verify(signed.as_bytes(), &URL_SAFE_NO_PAD.decode(signature).unwrap()).unwrap();
        let proof = assertion(&account(""), "read", now).unwrap();
        let header = proof.split('.').next().unwrap();
        assert_eq!(json(header), json!({ "alg": "RS256", "typ": "JWT" }));
    }

    #[test]
    fn both_forms_of_a_key_are_the_same_key_and_others_are_errors() {
        let older = key_pair(include_str!("testdata/key.pkcs1.pem")).unwrap();
        let key = key_pair(PEM).unwrap();
        assert_eq!(older.public_key().as_ref(), key.public_key().as_ref());
        let table = [
            ("", SignError::Pem),
            ("-----BEGIN EC PRIVATE KEY-----\nAAAA\n-----END EC PRIVATE KEY-----", SignError::Pem),
            ("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----", SignError::Key),
            ("-----BEGIN PRIVATE KEY-----\n!\n-----END PRIVATE KEY-----", SignError::Pem),
        ];
        for (text, expected) in table {
            assert_eq!(key_pair(text).map(|_| ()).unwrap_err(), expected, "{text}");
        }
    }
}

//! Logging in at a broker: SASL `PLAIN` (RFC 4616) and `SCRAM` (RFC 5802), in the frames of Kafka.
//!
//! Two requests of the protocol (<https://kafka.apache.org/protocol>): `SaslHandshake` version 1 names the
//! mechanism, `SaslAuthenticate` version 0 carries its messages. Each frame is a length of 4 bytes, big-endian,
//! and that many bytes.

use crate::codes::Code;
use crate::login::{Credentials, Mechanism};
use crate::wire::{self, Api, Nonsense, Reader};
use sha2::{Digest, Sha256, Sha512};
use skidder_net::{WithoutTls, is_tls_alert, plain_remedy};
use std::io;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// Longest answer that is read; a broker's has some hundred bytes.
const ANSWER_BYTES_MAX: usize = 64 << 10;
/// Most rounds of SCRAM that we go: a hundred times what brokers use by themselves.
const ITERATIONS_MAX: u32 = 1_000_000;

/// Why the login failed.
#[derive(Debug, thiserror::Error)]
pub enum SaslError {
    /// The connection broke.
    #[error("the broker ended the login: {0}; is this its port with SASL?")]
    Io(#[from] io::Error),
    /// The answer is an alert of TLS.
    #[error("{}", plain_remedy(WithoutTls::NoSsl, true))]
    Tls,
    /// The broker offers others.
    #[error("the broker does not offer `sasl.mechanism: {0}`, but {1}")]
    Mechanism(&'static str, String),
    /// The broker refused.
    #[error("the broker refused `username` and `password`: {0}")]
    Refused(String),
    /// The broker answered something else.
    #[error("the broker answered the login with nonsense: {0}")]
    Nonsense(&'static str),
    /// The broker does not know the password itself.
    #[error("the broker could not prove that it knows the password: it is not who it says")]
    Impostor,
}

impl From<Nonsense> for SaslError {
    fn from(nonsense: Nonsense) -> Self {
        Self::Nonsense(nonsense.0)
    }
}

/// Logs in. `nonce` is random and never used twice; it is of printable ASCII without a comma.
pub async fn log_in<S: AsyncRead + AsyncWrite + Unpin>(
    stream: &mut S,
    credentials: &Credentials,
    client_id: &str,
    nonce: &str,
) -> Result<(), SaslError> {
    let mut session = Session { stream, client_id, number: 0 };
    session.handshake(credentials.mechanism.name()).await?;
    match credentials.mechanism {
        Mechanism::Plain => {
            let (user, password) = (&credentials.username, credentials.password.reveal());
            session.authenticate(format!("\0{user}\0{password}").as_bytes()).await?;
            Ok(())
        }
        Mechanism::ScramSha256 => scram::<Sha256, _>(&mut session, credentials, nonce).await,
        Mechanism::ScramSha512 => scram::<Sha512, _>(&mut session, credentials, nonce).await,
    }
}

async fn scram<H: Hash, S: AsyncRead + AsyncWrite + Unpin>(
    session: &mut Session<'_, S>,
    credentials: &Credentials,
    nonce: &str,
) -> Result<(), SaslError> {
    let bare = format!("n={},r={nonce}", escaped(&credentials.username));
    let challenge = session.authenticate(format!("n,,{bare}").as_bytes()).await?;
    let password = credentials.password.reveal();
    // Some ten thousand rounds of a hash: milliseconds.
    let (answer, proof) = Proof::<H>::of(password, &bare, nonce, &challenge)?;
    let last = session.authenticate(answer.as_bytes()).await?;
    proof.check(&last)
}

struct Session<'a, S> {
    stream: &'a mut S,
    client_id: &'a str,
    number: i32,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Session<'_, S> {
    async fn handshake(&mut self, mechanism: &'static str) -> Result<(), SaslError> {
        let mut body = Vec::new();
        wire::put_text(&mut body, mechanism);
        let answer = self.exchange(Api::SaslHandshake, 1, &body).await?;
        let mut reader = Reader(&answer);
        let code = Code(reader.i16()?);
        let count = reader.count()?;
        let mut offered = Vec::new();
        for _ in 0..count.min(32) {
            offered.push(reader.text()?.unwrap_or_default());
        }
        match code {
            Code::NONE => Ok(()),
            Code::UNSUPPORTED_SASL_MECHANISM => {
                Err(SaslError::Mechanism(mechanism, offered.join(", ")))
            }
            code => Err(SaslError::Refused(code.to_string())),
        }
    }

    /// Brings one message of the mechanism; gives the broker's.
    async fn authenticate(&mut self, message: &[u8]) -> Result<Vec<u8>, SaslError> {
        let mut body = Vec::with_capacity(message.len() + 4);
        body.extend_from_slice(&(message.len() as i32).to_be_bytes());
        body.extend_from_slice(message);
        let answer = self.exchange(Api::SaslAuthenticate, 0, &body).await?;
        let mut reader = Reader(&answer);
        let code = Code(reader.i16()?);
        let text = reader.text()?;
        if !code.is_ok() {
            return Err(SaslError::Refused(text.unwrap_or_else(|| code.to_string())));
        }
        Ok(reader.bytes()?.to_vec())
    }

    /// A request with header version 1, and the body of its answer.
    async fn exchange(
        &mut self,
        api: Api,
        version: i16,
        body: &[u8],
    ) -> Result<Vec<u8>, SaslError> {
        self.number += 1;
        let mut frame = Vec::new();
        wire::begin_request(&mut frame, api, version, self.number, self.client_id);
        frame.extend_from_slice(body);
        wire::end_request(&mut frame, 0);
        self.stream.write_all(&frame).await?;
        self.stream.flush().await?;
        let mut length = [0; 4];
        self.stream.read_exact(&mut length).await?;
        if is_tls_alert(&length) {
            return Err(SaslError::Tls);
        }
        let length = u32::from_be_bytes(length) as usize;
        if !(4..=ANSWER_BYTES_MAX).contains(&length) {
            return Err(SaslError::Nonsense("its length is none"));
        }
        let mut answer = vec![0; length];
        self.stream.read_exact(&mut answer).await?;
        let mut reader = Reader(&answer);
        if reader.i32()? != self.number {
            return Err(SaslError::Nonsense("it is for another request"));
        }
        Ok(reader.0.to_vec())
    }
}

/// A user's name in SCRAM: `=` and `,` have meanings.
fn escaped(name: &str) -> String {
    name.replace('=', "=3D").replace(',', "=2C")
}

/// A hash with the size of its blocks, for HMAC.
pub trait Hash: Digest {
    /// Bytes that it takes at once.
    const BLOCK: usize;
}

impl Hash for Sha256 {
    const BLOCK: usize = 64;
}

impl Hash for Sha512 {
    const BLOCK: usize = 128;
}

/// HMAC (RFC 2104).
fn hmac<H: Hash>(key: &[u8], parts: &[&[u8]]) -> Vec<u8> {
    let mut block = if key.len() > H::BLOCK { H::digest(key).to_vec() } else { key.to_vec() };
    block.resize(H::BLOCK, 0);
    let padded = |with: u8| block.iter().map(|byte| byte ^ with).collect::<Vec<u8>>();
    let mut inner = H::new();
    inner.update(padded(0x36));
    for part in parts {
        inner.update(part);
    }
    let mut outer = H::new();
    outer.update(padded(0x5c));
    outer.update(inner.finalize());
    outer.finalize().to_vec()
}

/// `Hi` of RFC 5802: PBKDF2 with HMAC, one block.
fn salted<H: Hash>(password: &[u8], salt: &[u8], iterations: u32) -> Vec<u8> {
    let mut last = hmac::<H>(password, &[salt, &1_u32.to_be_bytes()]);
    let mut all = last.clone();
    for _ in 1..iterations {
        last = hmac::<H>(password, &[&last]);
        for (all, last) in all.iter_mut().zip(&last) {
            *all ^= last;
        }
    }
    all
}

/// The final message that the broker must send.
struct Proof<H> {
    signature: Vec<u8>,
    hash: std::marker::PhantomData<H>,
}

impl<H: Hash> Proof<H> {
    /// The client's last message, from the broker's challenge.
    fn of(
        password: &str,
        bare: &str,
        nonce: &str,
        challenge: &[u8],
    ) -> Result<(String, Self), SaslError> {
        let challenge =
            std::str::from_utf8(challenge).map_err(|_| SaslError::Nonsense("it is no text"))?;
        let part = |name: &str| {
            let found = challenge.split(',').find_map(|part| part.strip_prefix(name));
            found.ok_or(SaslError::Nonsense("a part of the challenge is missing"))
        };
        let (both, salt, iterations) = (part("r=")?, part("s=")?, part("i=")?);
        if !both.starts_with(nonce) || both.len() == nonce.len() {
            return Err(SaslError::Nonsense("it is the challenge of another login"));
        }
        let salt = base64::decode(salt).ok_or(SaslError::Nonsense("the salt is no Base64"))?;
        let iterations: u32 =
            iterations.parse().map_err(|_| SaslError::Nonsense("its iterations are no number"))?;
        if !(1..=ITERATIONS_MAX).contains(&iterations) {
            return Err(SaslError::Nonsense("it asks for too many iterations"));
        }
        let salted = salted::<H>(password.as_bytes(), &salt, iterations);
        let client_key = hmac::<H>(&salted, &[b"Client Key"]);
        let stored_key = H::digest(&client_key);
        let last = format!("c=biws,r={both}");
        let message = format!("{bare},{challenge},{last}");
        let signature = hmac::<H>(&stored_key, &[message.as_bytes()]);
        let proof: Vec<u8> = client_key.iter().zip(&signature).map(|(a, b)| a ^ b).collect();
        let server_key = hmac::<H>(&salted, &[b"Server Key"]);
        let expected = hmac::<H>(&server_key, &[message.as_bytes()]);
        let answer = format!("{last},p={}", base64::encode(&proof));
        Ok((answer, Self { signature: expected, hash: std::marker::PhantomData }))
    }

    fn check(&self, last: &[u8]) -> Result<(), SaslError> {
        let text = std::str::from_utf8(last).map_err(|_| SaslError::Nonsense("it is no text"))?;
        for part in text.split(',') {
            if let Some(error) = part.strip_prefix("e=") {
                return Err(SaslError::Refused(error.to_owned()));
            }
            if let Some(signature) = part.strip_prefix("v=") {
                let is_right = base64::decode(signature).is_some_and(|it| it == self.signature);
                return if is_right { Ok(()) } else { Err(SaslError::Impostor) };
            }
        }
        Err(SaslError::Nonsense("the end has no signature"))
    }
}

/// Base64 (RFC 4648) with padding.
mod base64 {
    use ::base64::Engine;
    use ::base64::engine::general_purpose::STANDARD;

    pub(super) fn encode(bytes: &[u8]) -> String {
        STANDARD.encode(bytes)
    }

    pub(super) fn decode(text: &str) -> Option<Vec<u8>> {
        STANDARD.decode(text).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_examples_of_the_standards_come_out() {
        // RFC 7677, section 3.
        let nonce = "rOprNGfwEbeRWgbNEkqO";
        let bare = format!("n=user,r={nonce}");
        let challenge =
            format!("r={nonce}%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096");
        let (answer, proof) =
            Proof::<Sha256>::of("pencil", &bare, nonce, challenge.as_bytes()).expect("a proof");
        assert!(answer.ends_with("p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="), "{answer}");
        proof.check(b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=").expect("the signature");
        assert!(matches!(proof.check(b"v=AAAA"), Err(SaslError::Impostor)));
        assert!(matches!(proof.check(b"e=invalid-proof"), Err(SaslError::Refused(_))));
        assert!(matches!(proof.check(b"x"), Err(SaslError::Nonsense(_))));
    }

    #[test]
    fn nonsense_is_no_challenge() {
        for challenge in [
            &b"r=abcX,s=AAAA"[..],
            b"r=abcX,s=?,i=1",
            b"r=abcX,s=AAAA,i=0",
            b"r=abcX,s=AAAA,i=1000001",
            b"r=abc,s=AAAA,i=1",
            b"r=xyzX,s=AAAA,i=1",
            b"\xff",
        ] {
            let made = Proof::<Sha512>::of("x", "n=a,r=abc", "abc", challenge);
            assert!(matches!(made, Err(SaslError::Nonsense(_))), "{challenge:?}");
        }
    }

    #[tokio::test]
    async fn a_port_with_tls_is_known_by_its_alert() {
        let (mut ours, mut theirs) = tokio::io::duplex(1000);
        theirs.write_all(b"\x15\x03\x03\x00\x02\x02\x46").await.expect("room");
        let mut session = Session { stream: &mut ours, client_id: "a", number: 0 };
        let error = session.handshake("PLAIN").await.expect_err("no answer");
        assert!(error.to_string().starts_with("this port speaks TLS: set `ssl.enabled"), "{error}");
    }

    #[test]
    fn names_are_escaped() {
        assert_eq!(escaped("a=b,c"), "a=3Db=2Cc");
    }
}

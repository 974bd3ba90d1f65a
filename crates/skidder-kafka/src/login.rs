//! Where the brokers are, and who logs in there: settings that the output and the input share.

use skidder_config::Secret;
use std::num::NonZeroU16;

/// The port of a host that names none, as in Sarama's documentation.
const PORT: u16 = 9092;

/// `sasl.mechanism`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mechanism {
    /// `PLAIN`.
    Plain,
    /// `SCRAM-SHA-256`.
    ScramSha256,
    /// `SCRAM-SHA-512`.
    ScramSha512,
}

impl Mechanism {
    /// The words of the YAML.
    pub const WORDS: [(&str, Self); 3] = [
        ("PLAIN", Self::Plain),
        ("SCRAM-SHA-256", Self::ScramSha256),
        ("SCRAM-SHA-512", Self::ScramSha512),
    ];

    /// The word of the YAML, and of the protocol.
    pub fn name(self) -> &'static str {
        match self {
            Self::Plain => "PLAIN",
            Self::ScramSha256 => "SCRAM-SHA-256",
            Self::ScramSha512 => "SCRAM-SHA-512",
        }
    }
}

/// The login at the brokers.
#[derive(Clone, Debug)]
pub struct Credentials {
    /// `username`.
    pub username: String,
    /// `password`.
    pub password: Secret,
    /// `sasl.mechanism`.
    pub mechanism: Mechanism,
}

/// A broker's name or address with its port.
///
/// # Errors
/// If it is neither; says what is expected.
pub fn host(text: &str) -> Result<String, String> {
    let wrong = || "expected `host:port`".to_owned();
    if text.is_empty() || text.contains([',', '/', ' ', '@']) {
        return Err(wrong());
    }
    let is_v6 = text.starts_with('[');
    let (name, port) = match text.rsplit_once(':') {
        Some((name, port)) if !is_v6 || name.ends_with(']') => (name, Some(port)),
        _ => (text, None),
    };
    if name.is_empty() || (!is_v6 && name.contains(':')) || (is_v6 && !name.ends_with(']')) {
        return Err(wrong());
    }
    match port {
        None => Ok(format!("{name}:{PORT}")),
        Some(port) => {
            let port: NonZeroU16 = port.parse().map_err(|_| wrong())?;
            Ok(format!("{name}:{port}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kafka_hosts_have_a_port() {
        for (text, expected) in [
            ("kafka", "kafka:9092"),
            ("kafka:1", "kafka:1"),
            ("127.0.0.1:9093", "127.0.0.1:9093"),
            ("[::1]", "[::1]:9092"),
            ("[::1]:9093", "[::1]:9093"),
        ] {
            assert_eq!(host(text), Ok(expected.to_owned()));
        }
        for text in
            ["", ":9092", "a:b", "a:0", "a:70000", "u:p@a", "http://a:1", "a,b", "::1", "[::1"]
        {
            host(text).expect_err(text);
        }
    }
}

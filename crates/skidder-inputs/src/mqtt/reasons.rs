//! What the codes of a broker mean, and what to do.

use super::decode::Version;

/// What a code says, and the remedy; empty if there is none.
type Reason = (&'static str, &'static str);

const LOGIN: &str = "see `username` and `password`";
const RIGHTS: &str = "see `username`, `client_id`, and the rights that the broker gives to them";
const ID: &str = "set another `client_id`";
const VERSION: &str = "set `protocol_version` to the other one of `3.1.1` and `5`";
const LATER: &str = "it is tried again; see the broker's log";

/// Why the broker refuses a connection, or ends it.
pub(super) fn connection(version: Version, code: u8) -> Reason {
    match (version, code) {
        // Version 3.1.1, and what an old broker answers to version 5.
        (_, 1) => ("it does not speak this version of the protocol", VERSION),
        (_, 2) => ("it does not allow this client id", ID),
        (_, 3) => ("it is not available", LATER),
        (_, 4) if version == Version::V311 => ("wrong user or password", LOGIN),
        (_, 5) => ("the client has no right to connect", RIGHTS),
        (Version::V311, _) => ("it gives no known reason", "see the broker's log"),
        (Version::V5, code) => reason(code),
    }
}

/// The meaning of the codes of version 5 (2.4).
fn reason(code: u8) -> Reason {
    match code {
        0x00 => ("it ends the connection", LATER),
        0x81..=0x83 => ("it does not accept what was sent", "see the broker's log"),
        0x84 => ("it does not speak this version of the protocol", VERSION),
        0x85 => ("it does not allow this client id", ID),
        0x86 | 0x8c => ("wrong user or password", LOGIN),
        0x87 => ("the client has no right to do this", RIGHTS),
        0x88 => ("it is not available", LATER),
        0x89 => ("it is busy", LATER),
        0x8a => ("the client is banned", RIGHTS),
        0x8b => ("it shuts down", LATER),
        0x8d => ("it has waited in vain for a sign of life", "set a shorter `keep_alive`"),
        0x8e => (
            "another client has connected with the same client id",
            "give each process a `client_id` of its own",
        ),
        0x8f => ("it does not accept a filter", "see `topics`"),
        0x91 => ("it uses the packet id already", LATER),
        0x93 => ("more messages than allowed have no acknowledgement", LATER),
        0x95 => ("a packet is too long for it", "shorten `topics`"),
        0x96 | 0x9f => ("connections or messages come too fast", "set a longer `backoff.init`"),
        0x97 => ("a quota is exceeded", "see the broker's settings"),
        0x98 => ("an administrator has ended the connection", LATER),
        0x9c | 0x9d => ("another server is to be used", "set its address in `hosts`"),
        0x9e => ("it has no shared subscriptions", "remove `$share/` from `topics`"),
        0xa0 => ("the time of connections is bounded", LATER),
        0xa1 => ("it has no identifiers of subscriptions", LATER),
        0xa2 => ("it has no filters with `+` and `#`", "name whole topics in `topics`"),
        _ => ("it gives no known reason", "see the broker's log"),
    }
}

/// Why the broker refuses a subscription.
pub(super) fn subscription(version: Version, code: u8) -> Reason {
    match version {
        Version::V311 => ("it refuses the subscription", RIGHTS),
        Version::V5 => reason(code),
    }
}

/// Reason, explanation of the broker, and remedy as one text.
pub(super) fn sentence((what, remedy): Reason, code: u8, words: Option<&str>) -> String {
    let words = words.filter(|words| !words.is_empty());
    let words = words.map(|words| format!(", it says `{words}`")).unwrap_or_default();
    let remedy = if remedy.is_empty() { String::new() } else { format!("; {remedy}") };
    format!("{what} (code {code}{words}){remedy}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_refusal_has_a_remedy() {
        for (version, code, expected) in [
            (
                Version::V311,
                1,
                "does not speak this version of the protocol (code 1); set `protocol_version`",
            ),
            (Version::V311, 2, "client id (code 2); set another `client_id`"),
            (Version::V311, 3, "not available"),
            (Version::V311, 4, "wrong user or password (code 4); see `username`"),
            (Version::V311, 5, "no right to connect"),
            (Version::V311, 99, "no known reason"),
            (Version::V5, 1, "set `protocol_version`"),
            (Version::V5, 0x84, "set `protocol_version`"),
            (Version::V5, 0x86, "wrong user or password (code 134)"),
            (Version::V5, 0x8e, "same client id"),
            (Version::V5, 0x4, "no known reason"),
        ] {
            let said = sentence(connection(version, code), code, None);
            assert!(said.contains(expected), "{code}: {said}");
        }
        for code in 0x80..=0xff {
            assert!(!subscription(Version::V5, code).1.is_empty(), "{code}");
        }
        let said = sentence(subscription(Version::V5, 0x9e), 0x9e, Some("no"));
        assert_eq!(
            said,
            "it has no shared subscriptions (code 158, it says `no`); remove `$share/` from `topics`"
        );
        assert!(sentence(subscription(Version::V311, 128), 128, Some("")).contains("(code 128);"));
    }
}

//! What to do about the errors of a server.

/// An error of the server with what to do about it.
pub fn with_advice(error: &str) -> String {
    let advice = match error.split(' ').next().unwrap_or_default() {
        "WRONGPASS" | "NOAUTH" => "; see `username` and `password`",
        "NOPERM" => "; the user may not: see its ACL",
        // A server that wants a password takes only small commands before it.
        "ERR" if error.contains("unauthenticated") => {
            "; the server wants a password: see `username` and `password`"
        }
        "ERR" if error.contains("AUTH") => "; the server has no password: remove `password`",
        "ERR" if error.contains("DB index") => "; see `db`",
        "LOADING" | "MASTERDOWN" => "; it will be ready later",
        "OOM" => "; see `maxmemory` of the server",
        "READONLY" => "; it is a replica: name the master in `hosts`",
        "MISCONF" => "; it cannot write to its disk, see its log",
        "WRONGTYPE" => "; use another key, or delete this one",
        "NOGROUP" => "; the group or its stream was deleted, and is made anew",
        "DENIED" => "; the server is in protected mode: give it a password",
        _ => "",
    };
    format!("{error}{advice}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_say_what_to_do() {
        for (error, advice) in [
            ("NOAUTH Authentication required.", "see `username` and `password`"),
            (
                "ERR Protocol error: unauthenticated multibulk length",
                "see `username` and `password`",
            ),
            ("ERR Protocol error: unauthenticated bulk length", "see `username` and `password`"),
            ("ERR Client sent AUTH, but no password is set", "remove `password`"),
            ("ERR DB index is out of range", "see `db`"),
            ("LOADING Redis is loading the dataset in memory", "ready later"),
            (
                "OOM command not allowed when used memory > 'maxmemory'.",
                "`maxmemory` of the server",
            ),
            ("READONLY You can't write against a read only replica.", "the master in `hosts`"),
            ("WRONGTYPE Operation against a key", "use another key, or delete this one"),
        ] {
            let text = with_advice(error);
            assert!(text.starts_with(error) && text.ends_with(advice), "{text}");
        }
        assert_eq!(with_advice("ERR no"), "ERR no");
    }
}

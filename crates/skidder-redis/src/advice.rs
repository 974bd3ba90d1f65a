//! What to do about the errors of a server.

/// An error of the server with what to do about it.
pub fn with_advice(error: &str) -> String {
    let advice = match error.split(' ').next().unwrap_or_default() {
        "WRONGPASS" | "NOAUTH" => "; see `username` and `password`",
        "NOPERM" => "; the user may not: see its ACL",
        "ERR" if error.contains("AUTH") => "; the server has no password: remove `password`",
        "ERR" if error.contains("DB index") => "; see `db`",
        "LOADING" | "MASTERDOWN" => "; it will be ready later",
        "DENIED" => "; the server is in protected mode: give it a password",
        _ => "",
    };
    format!("{error}{advice}")
}

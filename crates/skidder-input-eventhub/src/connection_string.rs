//! Connection strings of Event Hubs
//! (<https://learn.microsoft.com/azure/event-hubs/event-hubs-get-connection-string>).

use skidder_config::Secret;

/// A namespace, and what shows the right to use it.
#[derive(Clone, Debug)]
pub(crate) struct ConnectionString {
    /// `host[:port]`, as written.
    pub(crate) namespace: String,
    /// The hub; empty for a string of a whole namespace.
    pub(crate) hub: String,
    pub(crate) access: Access,
    /// Microsoft's emulator, without TLS.
    pub(crate) is_emulator: bool,
}

/// What shows the right.
#[derive(Clone, Debug)]
pub(crate) enum Access {
    /// A key that signs tokens, with its name.
    Key(String, Secret),
    /// A token that was signed elsewhere.
    Token(Secret),
}

impl ConnectionString {
    /// Reads one. Names of parts are found in any case, as Azure's own programs do. The error ends the sentence "the
    /// connection string …", and has nothing that may be secret.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let (mut endpoint, mut hub, mut name, mut key, mut token) = ("", "", "", "", "");
        let mut is_emulator = false;
        for part in text.split(';').map(str::trim).filter(|part| !part.is_empty()) {
            let Some((part, value)) = part.split_once('=') else {
                return Err(
                    "has a part without `=`: parts are `Name=value`, with `;` between them"
                        .to_owned(),
                );
            };
            let value = value.trim();
            match &*part.trim().to_ascii_lowercase() {
                "endpoint" => endpoint = value,
                "entitypath" => hub = value,
                "sharedaccesskeyname" => name = value,
                "sharedaccesskey" => key = value,
                "sharedaccesssignature" => token = value,
                "usedevelopmentemulator" => is_emulator = value.eq_ignore_ascii_case("true"),
                _ => {}
            }
        }
        let namespace = match endpoint.split_once("://") {
            Some(("sb" | "amqps" | "amqp", rest)) => rest,
            Some(_) => return Err("has an `Endpoint` that does not begin with `sb://`".to_owned()),
            None => endpoint,
        };
        let namespace = namespace.trim_end_matches('/');
        if namespace.is_empty() {
            return Err("has no `Endpoint`, as `Endpoint=sb://NAMESPACE.servicebus.windows.net/`"
                .to_owned());
        }
        let access = match (name, key, token) {
            (_, _, token) if !token.is_empty() => Access::Token(Secret::new(token)),
            ("", ..) => return Err("has no `SharedAccessKeyName`".to_owned()),
            (_, "", _) => {
                return Err("has no `SharedAccessKey`, nor a `SharedAccessSignature`".to_owned());
            }
            (name, key, _) => Access::Key(name.to_owned(), Secret::new(key)),
        };
        let (namespace, hub) = (namespace.to_owned(), hub.to_owned());
        Ok(Self { namespace, hub, access, is_emulator })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_found_in_any_case_and_order() {
        let text = "endpoint=sb://logs.servicebus.windows.net/;SharedAccessKeyName=read;\
                    SHAREDACCESSKEY=abc=;EntityPath=audit";
        let parsed = ConnectionString::parse(text).unwrap();
        assert_eq!((&*parsed.namespace, &*parsed.hub), ("logs.servicebus.windows.net", "audit"));
        assert!(
            matches!(&parsed.access, Access::Key(name, key) if name == "read" && key.reveal() == "abc=")
        );
        assert!(!parsed.is_emulator && !format!("{parsed:?}").contains("abc"));
        let text = "Endpoint=sb://localhost:5673;SharedAccessSignature=SharedAccessSignature sr=x;\
                    UseDevelopmentEmulator=true";
        let parsed = ConnectionString::parse(text).unwrap();
        assert_eq!((&*parsed.namespace, parsed.is_emulator), ("localhost:5673", true));
        assert!(matches!(parsed.access, Access::Token(_)));
    }

    #[test]
    fn mistakes_are_named_without_secrets() {
        let key = "SharedAccessKeyName=a;SharedAccessKey=SECRET";
        for (text, expected) in [
            ("SECRET", "without `=`"),
            (key, "no `Endpoint`"),
            ("Endpoint=sb://;SharedAccessKey=SECRET", "no `Endpoint`"),
            ("Endpoint=https://x;SharedAccessKeyName=a;SharedAccessKey=SECRET", "sb://"),
            ("Endpoint=sb://x;SharedAccessKey=SECRET", "no `SharedAccessKeyName`"),
            ("Endpoint=sb://x;SharedAccessKeyName=a", "no `SharedAccessKey`"),
        ] {
            let error = ConnectionString::parse(text).unwrap_err();
            assert!(error.contains(expected) && !error.contains("SECRET"), "{text}: {error}");
        }
    }
}

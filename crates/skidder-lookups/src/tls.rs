//! The section `ssl` of a look-up.

use skidder_config::{Group, Key, Part, Section, settings};
use skidder_processors::Context;
use skidder_tls::{Pem, TlsClient, TlsSettings};
use std::sync::Arc;

settings! {
    /// TLS of a look-up.
    pub(crate) static TLS = Group::new("processor.tls", "TLS of a look-up.");

    pub(crate) SSL: Part = Key::part("ssl", &own::SSL).about(
        "[TLS](outputs.md#ssl), as in outputs; `certificate_authority` is one more of the authorities",
    );
}

mod own {
    use skidder_config::{Group, Key, settings};

    settings! {
        /// `ssl` of a look-up.
        pub(super) static SSL = Group::new("processor.ssl", "TLS of a look-up.").include(&[&skidder_tls::SSL]);

        // The name that Filebeat has for Docker alone.
        pub(super) CERTIFICATE_AUTHORITY: String =
            Key::new("certificate_authority").about("one more of `certificate_authorities`");
    }
}

/// The settings are wrong; the problem is reported.
#[derive(Debug)]
pub(crate) struct InvalidTls;

/// The TLS of connections; nothing if there is no `ssl`, or if it is turned off.
pub(crate) fn read(
    settings: &Section<'_>,
    context: &Context,
) -> Result<Option<Arc<TlsClient>>, InvalidTls> {
    let Some(section) = settings.optional_part(&SSL) else { return Ok(None) };
    let mut tls = TlsSettings::read(&section);
    if let Some(authority) = section.get(&own::CERTIFICATE_AUTHORITY).optional() {
        tls.certificate_authorities.push(Pem::of(&authority));
    }
    if !tls.enabled {
        return Ok(None);
    }
    match TlsClient::new(&tls, Arc::clone(&context.fs)) {
        Ok(client) => Ok(Some(client)),
        Err(error) => {
            error.report(settings);
            Err(InvalidTls)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use skidder_config::{Problems, Settings};
    use skidder_testkit::{SimClock, SimFs};

    #[test]
    fn the_authority_that_only_docker_has_is_read() {
        let text = "{ssl.certificate_authority: /none.pem}";
        let settings = Settings::parse("f.yml", text).unwrap();
        let problems = Problems::new();
        let clock = SimClock::new();
        let context = Context::new(Arc::new(SimFs::new(&clock)), Arc::new(clock.clone()));
        let section = settings.root(&problems);
        section.declared_by(&TLS);
        assert!(read(&section, &context).is_err());
        section.finish();
        assert!(problems.to_string().contains("/none.pem"), "{problems}");
    }
}

//! The section `ssl` of a look-up.

use skidder_config::Section;
use skidder_processors::Context;
use skidder_tls::{Pem, TlsClient, TlsSettings};
use std::sync::Arc;

/// The settings are wrong, which was told.
#[derive(Debug)]
pub(crate) struct Told;

/// What connections need; nothing if there is no `ssl`, or if it is turned off.
pub(crate) fn read(
    settings: &Section<'_>,
    context: &Context,
) -> Result<Option<Arc<TlsClient>>, Told> {
    let Some(section) = settings.optional_section("ssl") else { return Ok(None) };
    let mut tls = TlsSettings::read(&section);
    // The name that Filebeat has for Docker alone.
    if let Some(authority) = section.string("certificate_authority").optional() {
        tls.certificate_authorities.push(Pem::of(&authority));
    }
    if !tls.enabled {
        return Ok(None);
    }
    match TlsClient::new(&tls, Arc::clone(&context.fs)) {
        Ok(client) => Ok(Some(client)),
        Err(error) => {
            settings.problem(error.setting(), error.to_string(), "");
            Err(Told)
        }
    }
}

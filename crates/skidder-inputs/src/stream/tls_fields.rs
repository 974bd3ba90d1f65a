//! `tls.*` of a connection, as ECS names them (elastic.co/guide/en/ecs/current/ecs-tls.html).
//!
//! Filebeat 9.6 collects what was negotiated (filebeat/inputsource/tcp/handler.go) and puts none of it into events; so they
//! are there only on request.

use skidder_event::Map;
use skidder_net::TlsSession;

/// Adds what is known of a connection.
pub(super) fn add(session: &TlsSession, fields: &mut Map) {
    fields.insert_path("tls.established", true);
    if let Some(version) = session.version.strip_prefix("TLSv") {
        fields.insert_path("tls.version", version);
        fields.insert_path("tls.version_protocol", "tls");
    }
    fields.insert_path("tls.cipher", session.cipher.as_str());
    if let Some(name) = &session.server_name {
        fields.insert_path("tls.client.server_name", name.as_str());
    }
    if let Some(client) = &session.client {
        fields.insert_path("tls.client.subject", client.subject.as_str());
        fields.insert_path("tls.client.issuer", client.issuer.as_str());
    }
}

//! The settings, with Filebeat's names and defaults.

mod address;
mod login;

use super::crc::Crc;
use super::faces::{Face, FaceSettings, NAMES};
use super::in_flight::Limits;
use super::program::Program;
use super::validate::{HmacKind, Validator};
use super::{HttpEndpoint, paths};
use crate::Context;
use crate::common::{EVERY_INPUT, HttpPart, begin};
use crate::listen::{ListenPlace, StreamAddress, read_tls};
use hyper::StatusCode;
use hyper::header::HeaderName;
use login::{read_crc, read_secret, read_validator};
use skidder_config::{Any, Group, Key, OneOf, Part, Secret, Section, Size, nearest, settings};
use skidder_event::Path;
use skidder_input::Input;
use skidder_net::{Family, RealNetwork, SocketKey};
use skidder_tls::SSL_SERVER;
use std::sync::Arc;
use std::time::Duration;

/// The largest body, decompressed, unless `max_body_bytes` says another one. Filebeat has no limit.
pub(super) const BODY_BYTES_MAX: u64 = 100 << 20;

/// The largest `max_body_bytes`: a body is in memory as a whole.
pub(super) const BODY_BYTES_LIMIT: u64 = 512 << 20;

/// What a client with TLS can choose, as with Filebeat.
const PROTOCOLS: [&str; 2] = ["h2", "http/1.1"];

/// Less than clients wait for an answer: Beats 90 s, Logstash and Vector 60 s.
const COMPLETION_TIMEOUT_DEFAULT: Duration = Duration::from_secs(50);

/// The largest `max_in_flight_bytes`.
const IN_FLIGHT_BYTES_LIMIT: u64 = 1 << 40;

settings! {
    /// Settings of `http_endpoint`.
    pub static HTTP_ENDPOINT = Group::new("input.http_endpoint", "Events in requests of HTTP.")
        .include(&[&EVERY_INPUT])
        .without_effect(&[("tracer.*", "requests are not written to a file; a proxy before this input can")])
        .called_elsewhere(&[
            ("address", "listen_address", ""),
            ("bind", "listen_address", "did you mean `listen_address`? The port is `listen_port`"),
            ("host", "listen_address", "did you mean `listen_address`? The port is `listen_port`"),
            ("listen", "listen_address", "did you mean `listen_address`? The port is `listen_port`"),
            ("path", "url", ""),
            ("port", "listen_port", ""),
            ("tls", "ssl", ""),
        ]);

    LISTEN_ADDRESS: String = Key::new("listen_address")
        .default("127.0.0.1")
        .about("a name or an address of this machine; an empty text is all of them");
    LISTEN_PORT: u64 = Key::new("listen_port").default(8000).range(0, 65535).noun("a port").about(
        "several inputs may have the same address and port, with the same `ssl` and each its own `url`",
    );
    URL: String = Key::new("url").default("/").about(
        "the path; one that ends with `/` takes all paths below it that no longer one takes",
    );
    METHOD: OneOf<&'static str> =
        Key::one_of("method", &[("POST", "POST"), ("PUT", "PUT"), ("PATCH", "PATCH")])
            .default("POST")
            .about("that requests must have");
    PROGRAM: String = Key::new("program").about(
        "an expression in CEL, which makes an object or a list of objects of each value of a body, `obj`",
    );
    PREFIX: String =
        Key::new("prefix").default("json").about("the field for the object; `.` is the root of the event");
    CONTENT_TYPE: String = Key::new("content_type")
        .default("application/json")
        .about("that requests must have, exactly; an empty text takes any");
    RESPONSE_CODE: u64 = Key::new("response_code")
        .default(200)
        .range(200, 599)
        .noun("a status of HTTP")
        .about("of the answer to a request that was taken");
    RESPONSE_BODY: String = Key::new("response_body")
        .default(r#"{"message": "success"}"#)
        .about("JSON, likewise");
    OPTIONS_HEADERS: Any = Key::new("options_headers").map().about(
        "headers, each with a list of values, of the answer to `OPTIONS`; without it `OPTIONS` is refused",
    );
    OPTIONS_RESPONSE_CODE: u64 = Key::new("options_response_code")
        .default(200)
        .range(200, 599)
        .noun("a status of HTTP")
        .about("of that answer");
    BASIC_AUTH: bool =
        Key::new("basic_auth").default(false).about("requests need `username` and `password`");
    USERNAME: String = Key::new("username").about("for `basic_auth`");
    PASSWORD: Secret = Key::new("password").about("for `basic_auth`");
    SECRET_HEADER: String = Key::new("secret.header").about("a header that requests need");
    SECRET_VALUE: Secret = Key::new("secret.value").about("its value");
    HMAC_HEADER: String =
        Key::new("hmac.header").about("a header with the signature of the body: hexadecimal or base64");
    HMAC_KEY: Secret = Key::new("hmac.key").about("the key of the signature");
    HMAC_TYPE: OneOf<HmacKind> =
        Key::one_of("hmac.type", &[("sha256", HmacKind::Sha256), ("sha1", HmacKind::Sha1)])
            .about("its hash; required with `hmac.key`");
    HMAC_PREFIX: String =
        Key::new("hmac.prefix").default("").about("of the header's value, as `sha256=`");
    CRC_PROVIDER: String = Key::new("crc.provider").about("`zoom`: its challenges are answered");
    CRC_SECRET: Secret = Key::new("crc.secret").about("the secret for the answer");
    INCLUDE_HEADERS: Vec<String> =
        Key::<Vec<String>>::new("include_headers").default(&[]).about("headers that events get, in `headers`");
    PRESERVE_ORIGINAL_EVENT: bool = Key::new("preserve_original_event")
        .default(false)
        .about("the object as text goes into `event.original`");
    MAX_BODY_BYTES: Size = Key::new("max_body_bytes")
        .range(0, BODY_BYTES_LIMIT)
        .default_words("100 MiB")
        .about("of a body, decompressed, at most 512 MiB; a longer one is refused with 413");
    MAX_IN_FLIGHT_BYTES: Size = Key::new("max_in_flight_bytes")
        .default(0)
        .range(0, IN_FLIGHT_BYTES_LIMIT)
        .about("of bodies without an answer; a request that exceeds it is refused with 503. 0 is no limit");
    HIGH_WATER: Size = Key::new("high_water_in_flight_bytes")
        .range(0, IN_FLIGHT_BYTES_LIMIT)
        .default_words("half of `max_in_flight_bytes`")
        .about("from which on new requests are refused with 503 and `Retry-After`");
    LOW_WATER: Size = Key::new("low_water_in_flight_bytes")
        .range(0, IN_FLIGHT_BYTES_LIMIT)
        .default_words("80 % of that, or 64 KiB less if that is smaller")
        .about("down to which they are");
    RETRY_AFTER: u64 = Key::new("retry_after")
        .default(10)
        .range(0, 86400)
        .noun("seconds")
        .about("the value of `Retry-After`, in seconds; twice of it above `max_in_flight_bytes`");
    ACCEPT: Vec<String> = Key::<Vec<String>>::new("accept").default(&["ndjson"]).ours().about(
        "`ndjson`: JSON, as with Filebeat; or other [faces](#faces), together at the same `url`: `elasticsearch`, `splunk_hec`, \
         `loki`, `otlp`",
    );
    COMPLETION_TIMEOUT: Duration = Key::new("completion_timeout")
        .default(COMPLETION_TIMEOUT_DEFAULT)
        .at_least(Duration::from_millis(1))
        .ours()
        .about("with another face: how long a request waits for room in the queue and for its verdicts");
    HEC_TOKEN: Secret =
        Key::new("splunk_hec.token").ours().about("that requests of `splunk_hec` need, instead of `basic_auth`");
    HEC_USE_ACK: bool = Key::new("splunk_hec.use_ack").default(false).ours().about(
        "requests of `splunk_hec` need a channel and are answered at once; their client asks later whether its events \
         have their verdicts",
    );
    SSL: Part = Key::part("ssl", &SSL_SERVER).about(
        "[TLS](outputs.md#ssl) with `certificate` and `key`; `client_authentication`: `none`, `optional`, `required` \
         (default if there are `certificate_authorities`)",
    );
}

/// What the requests of a path need, and how they are answered.
#[derive(Debug)]
pub(super) struct Settings {
    /// The path.
    pub(super) path: String,
    pub(super) validator: Validator,
    /// `None`: the root.
    pub(super) target: Option<Path>,
    pub(super) response: (StatusCode, Box<str>),
    pub(super) include_headers: Vec<HeaderName>,
    pub(super) preserve_original: bool,
    pub(super) body_bytes_max: usize,
    pub(super) in_flight: Option<Limits>,
    pub(super) retry_after: u64,
    pub(super) crc: Option<Crc>,
    pub(super) program: Option<Program>,
    pub(super) faces: FaceSettings,
}

/// Reads its settings.
pub fn read(section: &Section<'_>, context: &Context) -> Option<Box<dyn Input>> {
    begin(section, &HTTP_ENDPOINT);
    let path = section.get(&URL).try_map(|url| paths::of_url(&url)).value();
    let validator = read_validator(section);
    let target = section.get(&PREFIX).try_map(|text| match &*text {
        "." => Ok(None),
        path => Path::parse(path).map(Some).map_err(|error| error.to_string()),
    });
    let target = target.value();
    let response_body = section.get(&RESPONSE_BODY).try_map(|text| {
        match serde_json::from_str::<serde_json::Value>(&text) {
            Ok(_) => Ok(escape_html(&text)),
            Err(error) => Err(format!("expected JSON: {error}")),
        }
    });
    let response_body = response_body.value();
    let response_code = read_status(section, &RESPONSE_CODE);
    let include_headers = section.get(&INCLUDE_HEADERS).try_each(|name| {
        HeaderName::try_from(name).map_err(|_| "expected the name of a header".to_owned())
    });
    let include_headers = include_headers.value();
    let preserve_original = section.get(&PRESERVE_ORIGINAL_EVENT).value();
    let body_bytes_max = section.get(&MAX_BODY_BYTES).optional().unwrap_or(BODY_BYTES_MAX);
    let in_flight = read_in_flight(section);
    let retry_after = section.get(&RETRY_AFTER).value();
    let crc = read_crc(section);
    let program = section.get(&PROGRAM).try_map(|source| match source.trim() {
        "" => Ok(None),
        source => Program::new(source).map(Some),
    });
    let program = program.optional().flatten();
    let faces = read_faces(section, &path);
    let tls = read_tls(section, &SSL, context, &PROTOCOLS);
    let host = section.get(&LISTEN_ADDRESS).try_map(|text| address::host_of(&text));
    let is_host = !host.is_wrong();
    let host = Some(host.value()).filter(|_| is_host);
    let port = u16::try_from(section.get(&LISTEN_PORT).value()).ok()?;
    let (host, tls) = (host?, tls.ok()?);
    let settings = Settings {
        path: path.clone(),
        validator: validator?,
        target,
        response: (response_code, response_body.into()),
        include_headers,
        preserve_original,
        body_bytes_max: usize::try_from(body_bytes_max).ok()?,
        in_flight: in_flight?,
        retry_after,
        crc: crc?,
        program,
        faces: faces?,
    };
    let key = SocketKey::Tcp { host: host.clone(), port, family: Family::Any };
    let part = HttpPart { path, tls: tls.as_ref().map(|(settings, _)| settings.clone()) };
    let claim =
        context.wanted.claim_for_http(&context.sockets, section, LISTEN_PORT.name(), key, part);
    let server = context.servers.of(&host, port);
    let device =
        if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") };
    let address = StreamAddress::Tcp { host, port, family: Family::Any };
    let place = ListenPlace { address, claim, network: Arc::new(RealNetwork) };
    let fs = Arc::clone(&context.fs);
    Some(Box::new(HttpEndpoint { settings, server, place, tls, fs, device }))
}

/// Settings that only requests with plain JSON have.
const OF_NDJSON: [&str; 11] = [
    "method",
    "program",
    "prefix",
    "content_type",
    "response_code",
    "response_body",
    "options_headers",
    "options_response_code",
    "crc.provider",
    "crc.secret",
    "preserve_original_event",
];

/// Paths of protocols, which clients add to an address.
const OWN_PATHS: [(Face, &str); 4] = [
    (Face::Elasticsearch, "/_bulk"),
    (Face::SplunkHec, "/services/collector"),
    (Face::Loki, "/loki/api/v1"),
    (Face::Otlp, "/v1/logs"),
];

/// What to write in `accept` in place of a word that is not there.
fn unknown_face(name: &str) -> String {
    let names: Vec<&str> = NAMES.iter().map(|(name, _)| *name).collect();
    let expected = format!("expected `ndjson`, or some of `{}`", names.join("`, `"));
    let meant = match name {
        "splunk" | "hec" => Some("splunk_hec"),
        "elastic" | "es" | "bulk" => Some("elasticsearch"),
        "json" => Some("ndjson"),
        "otel" | "opentelemetry" => Some("otlp"),
        _ => nearest(name, names),
    };
    match meant {
        Some(meant) => format!("{expected}; did you mean `{meant}`?"),
        None => expected,
    }
}

/// `accept` and what belongs to it. `None` if it is wrong, which is reported.
fn read_faces(section: &Section<'_>, path: &str) -> Option<FaceSettings> {
    let completion_timeout = section.get(&COMPLETION_TIMEOUT).value();
    let names = section.get(&ACCEPT).at_least_one("face").try_each(|name| {
        if name == "ndjson" {
            return Ok(None);
        }
        let known = NAMES.iter().find(|(known, _)| *known == name);
        known.map(|(_, face)| Some(*face)).ok_or_else(|| unknown_face(name))
    });
    let is_known = !names.is_wrong();
    let mut is_right = true;
    let names = names.value();
    let token = read_secret(section, &HEC_TOKEN);
    let use_ack = section.get(&HEC_USE_ACK).value();
    let faces: Vec<_> = names.iter().filter_map(|face| *face).collect();
    if token.is_none() && section.has_key(&HEC_TOKEN) {
        let message =
            format!("`{}` is empty: anybody could send", section.path_of(HEC_TOKEN.name()));
        section.problem(HEC_TOKEN.name(), message, "set a token, or remove this");
        is_right = false;
    } else if is_known && !faces.contains(&Face::SplunkHec) && (token.is_some() || use_ack) {
        let name = if use_ack { HEC_USE_ACK.name() } else { HEC_TOKEN.name() };
        let message = format!("`{}` needs `splunk_hec` in `accept`", section.path_of(name));
        section.problem(name, message, "add it there, or remove this");
        is_right = false;
    }
    let settings = FaceSettings { faces, completion_timeout, token, use_ack };
    let faces = &settings.faces;
    if faces.is_empty() {
        return is_right.then_some(settings);
    }
    if faces.len() < names.len() {
        let message = format!("`{}` has `ndjson` beside others", section.path_of(ACCEPT.name()));
        let hint =
            "give `ndjson` an input of its own with another `url`; the address can be the same";
        section.problem(ACCEPT.name(), message, hint);
        return None;
    }
    is_right &= check_path(section, path, faces).is_some();
    let is_used = |name: &str| name == "prefix" && faces.contains(&Face::SplunkHec);
    let without_effect = OF_NDJSON.into_iter().filter(|name| !is_used(name));
    for name in without_effect.filter(|name| section.item(name).is_some()) {
        let name_of = section.path_of(name);
        let message = format!("`{name_of}` has no effect: only `ndjson` in `accept` has it");
        section.warning(name, message, "remove it");
    }
    is_right.then_some(settings)
}

/// Checks the path that those of the protocols are below. `None` if it is wrong, which is reported.
fn check_path(section: &Section<'_>, path: &str, faces: &[Face]) -> Option<()> {
    let of_protocol = |(face, own): &(Face, &str)| faces.contains(face) && path.contains(own);
    let hint = match OWN_PATHS.iter().find(|own| of_protocol(own)) {
        Some((_, own)) => {
            format!("use `url: /`, which is the default: clients add `{own}` by themselves")
        }
        None => "add a `/`".to_owned(),
    };
    let name = section.path_of(URL.name());
    if !path.ends_with('/') {
        let message = format!(
            "`{name}` does not end with `/`; with `accept` it is what the paths of the protocol are below"
        );
        section.problem(URL.name(), message, hint);
        return None;
    }
    if OWN_PATHS.iter().any(of_protocol) {
        let message = format!("`{name}` is `{path}`, and the paths of the protocol are below that");
        section.warning(URL.name(), message, hint);
    }
    Some(())
}

fn read_status(section: &Section<'_>, key: &Key<u64>) -> StatusCode {
    let code = u16::try_from(section.get(key).value()).unwrap_or_default();
    StatusCode::from_u16(code).unwrap_or(StatusCode::OK)
}

#[expect(clippy::option_option, reason = "the outer one says that the settings are wrong")]
fn read_in_flight(section: &Section<'_>) -> Option<Option<Limits>> {
    let max = section.get(&MAX_IN_FLIGHT_BYTES).value();
    let high = section.get(&HIGH_WATER).optional().unwrap_or(0);
    let low = section.get(&LOW_WATER).optional().unwrap_or(0);
    match Limits::new(max, high, low) {
        Ok(limits) => Some(limits),
        Err(message) => {
            let key = if max == 0 { &HIGH_WATER } else { &MAX_IN_FLIGHT_BYTES };
            let key = if section.has_key(key) { key } else { &LOW_WATER };
            section.problem(key.name(), message, "0 < low < high < max");
            None
        }
    }
}

/// As Go's `json.HTMLEscape`.
pub(super) fn escape_html(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for character in json.chars() {
        match character {
            '<' => out.push_str("\\u003c"),
            '>' => out.push_str("\\u003e"),
            '&' => out.push_str("\\u0026"),
            '\u{2028}' => out.push_str("\\u2028"),
            '\u{2029}' => out.push_str("\\u2029"),
            other => out.push(other),
        }
    }
    out
}

//! Asking the running skidder over its HTTP endpoint.

use anyhow::{Context as _, Result, bail};
use serde_json::Value;
use skidder_net::{Host, HttpClient, HttpRequest, basic_login};
use skidder_observe::{Endpoint, HttpConfig, encoded};
use skidder_os::RealFs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// How long an answer is waited for: longer than the endpoint waits for the scanner.
const PATIENCE: Duration = Duration::from_secs(30);

/// The largest answer that is read.
const ANSWER_BYTES_MAX: usize = 256 << 20;

/// Sources of one answer.
const SOURCES_AT_ONCE: usize = 5000;

/// Passes all files to `each`, page by page; with `output` only those of it. `id` is that of the data directory:
/// another skidder at this address is refused.
pub(crate) fn files(
    http: &HttpConfig,
    id: Option<&str>,
    paths: &[PathBuf],
    output: Option<&str>,
    each: &mut dyn FnMut(&Value),
) -> Result<()> {
    check(http, id)?;
    let mut query: Vec<String> = vec!["input=0".to_owned()];
    query.extend(output.map(|id| format!("output={id}")));
    query.extend(paths.iter().map(|path| format!("path={}", encoded(path))));
    let mut next = Some(query.join("&"));
    while let Some(query) = next {
        let page = get(http, &format!("/files?{query}"))?;
        let Some(files) = page["files"].as_array() else {
            bail!("the endpoint at {} gave no files: {page}", shown(&http.endpoint));
        };
        files.iter().for_each(&mut *each);
        next = page["next"].as_str().map(str::to_owned);
    }
    Ok(())
}

/// Passes all open sources of inputs that read no files to `each`, page by page; with `output` only those that feed
/// it.
pub(crate) fn sources(
    http: &HttpConfig,
    output: Option<&str>,
    each: &mut dyn FnMut(&Value),
) -> Result<()> {
    let output = output.map_or(String::new(), |id| format!("&output={id}"));
    let mut offset = 0;
    loop {
        let page = get(http, &format!("/sources?offset={offset}&limit={SOURCES_AT_ONCE}{output}"))?;
        let sources = page["sources"].as_array().map_or(&[][..], Vec::as_slice);
        sources.iter().for_each(&mut *each);
        offset += sources.len();
        if sources.len() < SOURCES_AT_ONCE {
            return Ok(());
        }
    }
}

/// Asks for the identity of the program. `id` is that of the data directory: any other is an error.
pub(crate) fn check(http: &HttpConfig, id: Option<&str>) -> Result<()> {
    let about = get(http, "/")?;
    if let (Some(id), Some(theirs)) = (id, about["uuid"].as_str())
        && id != theirs
    {
        bail!("at {} is another skidder, with other data", shown(&http.endpoint));
    }
    Ok(())
}

/// Sends one request, on a connection of its own, with the credentials of `http.auth`.
pub(crate) fn get(http: &HttpConfig, target: &str) -> Result<Value> {
    let token = http.auth.token.as_ref().or(http.auth.own.as_ref().filter(|_| !http.auth.is_set()));
    let login = match (token, &http.auth.user) {
        (Some(token), _) => Some(format!("Bearer {}", token.reveal())),
        (None, Some((user, password))) => Some(basic_login(user, password)),
        (None, None) => None,
    };
    let headers: Vec<(&str, &str)> =
        login.iter().map(|login| ("authorization", login.as_str())).collect();
    let client = match &http.endpoint {
        Endpoint::Tcp { host, port } => {
            let tls = http.tls_client(&(Arc::new(RealFs) as _)).with_context(|| {
                format!(
                    "cannot connect to {} over TLS, as `http.ssl` demands",
                    shown(&http.endpoint)
                )
            })?;
            HttpClient::tcp(Host { name: host.clone(), port: *port }, tls, PATIENCE)
        }
        Endpoint::Unix(path) => HttpClient::unix(path, PATIENCE),
    };
    let client = client.answer_bytes_max(ANSWER_BYTES_MAX);
    let place = shown(&http.endpoint);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let answer = runtime.block_on(client.answer(HttpRequest::get(target).headers(&headers)));
    let (status, body) =
        answer.with_context(|| format!("cannot ask the running skidder at {place}"))?;
    let body: Value = serde_json::from_slice(&body).with_context(|| {
        format!("{place} answered {} without JSON; is it skidder?", status.as_u16())
    })?;
    if status.as_u16() != 200 {
        let error = body["error"].as_str().unwrap_or_default();
        bail!("the running skidder at {place} answered {}: {error}", status.as_u16());
    }
    Ok(body)
}

fn shown(endpoint: &Endpoint) -> String {
    match endpoint {
        Endpoint::Tcp { host, port } => format!("`{host}:{port}`"),
        Endpoint::Unix(path) => format!("`{}`", path.display()),
    }
}

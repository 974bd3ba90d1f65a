//! Asking the running skidder over its HTTP endpoint.

use anyhow::{Context as _, Result, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use skidder_observe::{Endpoint, HttpConfig, encoded};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

/// How long an answer is waited for: longer than the endpoint waits for the scanner.
const PATIENCE: Duration = Duration::from_secs(30);

/// The largest answer that is taken, in bytes.
const ANSWER_BYTES_MAX: u64 = 256 << 20;

/// Gives all files to `each`, page by page; with `output` only of this one. `id` is that of the data directory: another skidder at this
/// address is not asked.
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

/// Asks who is there. `id` is that of the data directory: another skidder at this address is an error.
pub(crate) fn check(http: &HttpConfig, id: Option<&str>) -> Result<()> {
    let about = get(http, "/")?;
    if let (Some(id), Some(theirs)) = (id, about["uuid"].as_str())
        && id != theirs
    {
        bail!("at {} is another skidder, with other data", shown(&http.endpoint));
    }
    Ok(())
}

/// One request, on a connection of its own, with what `http.auth` asks for.
pub(crate) fn get(http: &HttpConfig, target: &str) -> Result<Value> {
    let token = http.auth.token.as_ref().or(http.auth.own.as_ref().filter(|_| !http.auth.is_set()));
    let authorization = match (token, &http.auth.user) {
        (Some(token), _) => format!("Authorization: Bearer {}\r\n", token.reveal()),
        (None, Some((user, password))) => {
            let pair = STANDARD.encode(format!("{user}:{}", password.reveal()));
            format!("Authorization: Basic {pair}\r\n")
        }
        (None, None) => String::new(),
    };
    let request = format!(
        "GET {target} HTTP/1.1\r\nHost: localhost\r\nAccept: */*\r\n{authorization}\
         Connection: close\r\n\r\n"
    );
    let place = shown(&http.endpoint);
    let answer = match &http.endpoint {
        Endpoint::Tcp { host, port } => {
            TcpStream::connect((host.as_str(), *port)).and_then(|stream| {
                stream.set_read_timeout(Some(PATIENCE))?;
                converse(stream, &request)
            })
        }
        Endpoint::Unix(path) => UnixStream::connect(path).and_then(|stream| {
            stream.set_read_timeout(Some(PATIENCE))?;
            converse(stream, &request)
        }),
    };
    let answer = answer.with_context(|| format!("cannot ask the running skidder at {place}"))?;
    let end = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n");
    let Some((head, body)) = end.map(|end| (&answer[..end], &answer[end + 4..])) else {
        bail!("{place} does not speak HTTP");
    };
    let head = String::from_utf8_lossy(head);
    let status = head.split(' ').nth(1).unwrap_or_default();
    let body: Value = serde_json::from_slice(body)
        .with_context(|| format!("{place} answered {status} without JSON; is it skidder?"))?;
    if status != "200" {
        let error = body["error"].as_str().unwrap_or_default();
        bail!("the running skidder at {place} answered {status}: {error}");
    }
    Ok(body)
}

fn converse(mut stream: impl Read + Write, request: &str) -> std::io::Result<Vec<u8>> {
    stream.write_all(request.as_bytes())?;
    let mut answer = Vec::new();
    stream.take(ANSWER_BYTES_MAX).read_to_end(&mut answer)?;
    Ok(answer)
}

fn shown(endpoint: &Endpoint) -> String {
    match endpoint {
        Endpoint::Tcp { host, port } => format!("`{host}:{port}`"),
        Endpoint::Unix(path) => format!("`{}`", path.display()),
    }
}

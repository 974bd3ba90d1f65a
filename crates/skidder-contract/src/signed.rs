//! Requests that are signed by Amazon's Signature Version 4, as a server of tests reads and checks them, by other code than
//! ours.

use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use tokio::io::{AsyncBufReadExt, AsyncReadExt};

/// One request as it came.
#[derive(Clone, Debug)]
pub struct ReceivedRequest {
    /// `GET`, `PUT`, ….
    pub method: String,
    /// As it was sent; the whole URL if a proxy forwarded it.
    pub target: String,
    /// Names in lower case.
    pub headers: BTreeMap<String, String>,
    /// The body.
    pub body: Vec<u8>,
}

/// What a signature must be made with.
#[derive(Clone, Copy, Debug)]
pub struct Signer<'a> {
    /// The access key.
    pub id: &'a str,
    /// Its secret.
    pub secret: &'a str,
    /// The region.
    pub region: &'a str,
    /// The service.
    pub service: &'a str,
}

impl ReceivedRequest {
    /// The next request of a connection; nothing at its end.
    pub async fn read(
        stream: &mut (impl AsyncBufReadExt + AsyncReadExt + Unpin),
    ) -> std::io::Result<Option<Self>> {
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            if stream.read_line(&mut line).await? == 0 {
                return Ok(None);
            }
            match line.trim_end() {
                "" => break,
                line => lines.push(line.to_owned()),
            }
        }
        let mut first = lines[0].split(' ').map(str::to_owned);
        let (method, target) = (first.next().unwrap(), first.next().unwrap());
        let headers = lines[1..].iter().map(|line| {
            let (name, value) = line.split_once(':').unwrap();
            (name.to_ascii_lowercase(), value.trim().to_owned())
        });
        let headers: BTreeMap<String, String> = headers.collect();
        let length = headers.get("content-length").map_or(0, |length| length.parse().unwrap());
        let mut body = vec![0; length];
        stream.read_exact(&mut body).await?;
        Ok(Some(Self { method, target, headers, body }))
    }

    /// The path, not escaped any more.
    pub fn path(&self) -> String {
        let path = self.raw_path();
        let mut bytes = Vec::new();
        let mut rest = path.as_bytes();
        while let Some((&first, behind)) = rest.split_first() {
            rest = behind;
            if first == b'%' {
                let code = std::str::from_utf8(&behind[..2]).unwrap();
                bytes.push(u8::from_str_radix(code, 16).unwrap());
                rest = &behind[2..];
            } else {
                bytes.push(first);
            }
        }
        String::from_utf8(bytes).unwrap()
    }

    fn local(&self) -> &str {
        match self.target.split_once("://") {
            Some((_, rest)) => &rest[rest.find('/').unwrap()..],
            None => &self.target,
        }
    }

    fn raw_path(&self) -> &str {
        self.local().split('?').next().unwrap()
    }

    /// The query as it was sent, without `?`.
    pub fn query(&self) -> &str {
        self.local().split_once('?').map_or("", |(_, query)| query)
    }

    /// The value of a header, or an empty text.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }

    /// Checks signature and digest (<https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html>). The
    /// error is the status and code that S3 answers with.
    pub fn check(&self, signer: Signer<'_>) -> Result<(), (u16, &'static str)> {
        let authorization = self.header("authorization");
        let field = |name: &str| {
            let (_, rest) = authorization.split_once(name)?;
            rest.split(',').next()
        };
        let (Some(place), Some(names), Some(signature)) =
            (field("Credential="), field("SignedHeaders="), field("Signature="))
        else {
            return Err((403, "AccessDenied"));
        };
        let signed: Vec<&str> = names.split(';').collect();
        for name in self.headers.keys() {
            let must = name == "host" || name.starts_with("x-amz-");
            assert!(!must || signed.contains(&name.as_str()), "`{name}` is not signed: {signed:?}");
        }
        assert!(signed.is_sorted(), "{signed:?}");
        let parts: Vec<&str> = place.split('/').collect();
        let [id, day, region, service, end] = parts[..] else { return Err((403, "AccessDenied")) };
        if id != signer.id {
            return Err((403, "InvalidAccessKeyId"));
        }
        if region != signer.region {
            return Err((400, "AuthorizationHeaderMalformed"));
        }
        let time = self.header("x-amz-date");
        let is_there = service == signer.service && end == "aws4_request";
        assert!(time.starts_with(day) && is_there, "{place}");
        let mut query: Vec<&str> = self.query().split('&').collect();
        query.sort_unstable();
        let query = query.join("&");
        let mut request = format!("{}\n{}\n{query}\n", self.method, self.raw_path());
        for name in &signed {
            request += &format!("{name}:{}\n", self.header(name).trim());
        }
        request += &format!("\n{names}\n{}", self.header("x-amz-content-sha256"));
        let text = format!(
            "AWS4-HMAC-SHA256\n{time}\n{day}/{region}/{service}/aws4_request\n{}",
            hex(&Sha256::digest(request))
        );
        let mut key = format!("AWS4{}", signer.secret).into_bytes();
        for part in [day, region, service, "aws4_request"] {
            key = keyed(&key, part.as_bytes());
        }
        if hex(&keyed(&key, text.as_bytes())) != signature {
            return Err((403, "SignatureDoesNotMatch"));
        }
        if hex(&Sha256::digest(&self.body)) != self.header("x-amz-content-sha256") {
            return Err((400, "XAmzContentSHA256Mismatch"));
        }
        Ok(())
    }
}

fn keyed(key: &[u8], text: &[u8]) -> Vec<u8> {
    let mut code = Hmac::<Sha256>::new_from_slice(key).unwrap();
    code.update(text);
    code.finalize().into_bytes().to_vec()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |text, byte| format!("{text}{byte:02x}"))
}

//! Where buckets and queues are, and how requests get there.

use skidder_amazon::{Provider, QueueUrl, Service, Target, bucket_url, service_url};
use skidder_net::{HostUrl, ProxyChoice, usual_port};
use skidder_tls::TlsClient;
use std::sync::Arc;
use std::time::Duration;

/// `endpoint`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Endpoint {
    /// A server that is not Amazon's.
    Url(HostUrl),
    /// What the names of Amazon's servers end with in another partition, as `amazonaws.com.cn`.
    Domain(String),
}

/// The name that a bucket is asked for by.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum BucketName {
    /// Its own.
    Bucket(String),
    /// That of an access point.
    AccessPoint {
        /// Its name.
        name: String,
        /// The number of its account.
        account: String,
    },
}

/// An ARN as settings have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BucketArn {
    pub(crate) bucket: BucketName,
    /// Only in that of an access point.
    pub(crate) region: Option<String>,
}

/// See the module's text. Shared by the whole input.
#[derive(Clone, Debug)]
pub(crate) struct Servers {
    pub(crate) region: String,
    pub(crate) endpoint: Option<Endpoint>,
    pub(crate) path_style: Option<bool>,
    pub(crate) fips: bool,
    pub(crate) provider: Arc<Provider>,
    pub(crate) tls: Option<Arc<TlsClient>>,
    pub(crate) proxy: ProxyChoice,
    /// Of connecting, and of a request, or of each piece of its answer.
    pub(crate) timeout: Duration,
}

impl Endpoint {
    /// Reads a URL or a domain. The error ends the sentence "`endpoint` is …; ".
    pub(crate) fn parse(text: String) -> Result<Self, String> {
        if !text.contains("://") {
            let is_good = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.');
            if text.contains('.') && text.bytes().all(is_good) {
                return Ok(Self::Domain(text));
            }
            let message = "expected a URL, as in `https://minio.example.com:9000`, or a domain of Amazon's, as \
                           `amazonaws.com.cn`";
            return Err(message.to_owned());
        }
        let url = HostUrl::parse(&text, "", "", usual_port)?;
        if url.credentials.is_some() {
            return Err("credentials stand in `access_key_id` and `secret_access_key`".to_owned());
        }
        Ok(Self::Url(url))
    }

    /// Whether it is a server that is not Amazon's.
    pub(crate) fn is_url(&self) -> bool {
        matches!(self, Self::Url(_))
    }
}

impl BucketName {
    /// The name in messages, and in the registry.
    pub(crate) fn text(&self) -> String {
        match self {
            Self::Bucket(name) => name.clone(),
            Self::AccessPoint { name, account } => format!("{name}-{account}"),
        }
    }
}

impl BucketArn {
    /// Reads `arn:aws:s3:::name`, or `arn:aws:s3:REGION:ACCOUNT:accesspoint/NAME`. The error ends the sentence
    /// "`bucket_arn` is …; ".
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let parts: Vec<&str> = text.split(':').collect();
        match parts[..] {
            ["arn", _, "s3", "", "", name] | [name] => {
                check_bucket(name)?;
                Ok(Self { bucket: BucketName::Bucket(name.to_owned()), region: None })
            }
            ["arn", _, "s3", region, account, resource] => {
                let name = resource.strip_prefix("accesspoint/").unwrap_or_default();
                if region.is_empty() {
                    let message = "an access point of several regions, whose requests are signed in another way: name \
                                   the access point or the bucket of one region";
                    return Err(message.to_owned());
                }
                check_region(region)?;
                check_bucket(name)?;
                if account.is_empty() || !account.bytes().all(|byte| byte.is_ascii_digit()) {
                    return Err("the number of the account is missing".to_owned());
                }
                let (name, account) = (name.to_owned(), account.to_owned());
                let bucket = BucketName::AccessPoint { name, account };
                Ok(Self { bucket, region: Some(region.to_owned()) })
            }
            _ => Err("expected `arn:aws:s3:::NAME`, or \
                      `arn:aws:s3:REGION:ACCOUNT:accesspoint/NAME`"
                .to_owned()),
        }
    }
}

/// <https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucketnamingrules.html>; other servers also take upper case and `_`.
/// What is checked may stand in the name of a host.
pub(crate) fn check_bucket(name: &str) -> Result<(), String> {
    let is_good = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
    if !(3..=63).contains(&name.len()) || !name.bytes().all(is_good) {
        return Err("the name of a bucket has 3 to 63 letters, digits, `-` and `.`".to_owned());
    }
    Ok(())
}

/// The name of a region. What is checked may stand in the name of a host.
pub(crate) fn check_region(name: &str) -> Result<(), String> {
    let is_good = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    if name.is_empty() || name.len() > 63 || !name.bytes().all(is_good) {
        return Err("expected the name of a region, as in `eu-central-1`".to_owned());
    }
    Ok(())
}

impl Servers {
    /// S3 in a region, without the name of a bucket.
    fn s3(&self, service: &str, region: &str) -> HostUrl {
        let service = if self.fips { format!("{service}-fips") } else { service.to_owned() };
        match &self.endpoint {
            Some(Endpoint::Url(url)) => url.clone(),
            Some(Endpoint::Domain(domain)) => HostUrl {
                name: format!("{service}.{region}.{domain}"),
                ..service_url("s3", region)
            },
            None => service_url(&service, region),
        }
    }

    /// A bucket in a region.
    pub(crate) fn bucket(&self, bucket: &BucketName, region: &str) -> Service {
        let url = match bucket {
            BucketName::Bucket(name) => {
                let has_url = self.endpoint.as_ref().is_some_and(Endpoint::is_url);
                // A name with dots has no certificate.
                let by_path = self.path_style.unwrap_or(has_url || name.contains('.'));
                bucket_url(self.s3("s3", region), name, by_path)
            }
            // https://docs.aws.amazon.com/AmazonS3/latest/userguide/access-points-naming.html
            BucketName::AccessPoint { name, account } => {
                let mut url = self.s3("s3-accesspoint", region);
                url.name = format!("{name}-{account}.{}", url.name);
                url
            }
        };
        self.service("s3", region, url)
    }

    /// A queue.
    pub(crate) fn queue(&self, url: &QueueUrl) -> Service {
        let mut server = url.server.clone();
        if self.fips
            && server.name.ends_with(".amazonaws.com")
            && let Some(rest) = server.name.strip_prefix("sqs.")
        {
            server.name = format!("sqs-fips.{rest}");
        }
        // The queue may be in another region than the buckets.
        let region = url.region.as_deref().unwrap_or(&self.region);
        self.service("sqs", region, server)
    }

    /// CloudWatch Logs (<https://docs.aws.amazon.com/general/latest/gr/cwl_region.html>).
    pub(crate) fn logs(&self) -> Service {
        let region = &*self.region;
        // In the regions of the government of the United States, all servers are for FIPS.
        let is_fips = self.fips && !region.starts_with("us-gov-");
        let name = if is_fips { "logs-fips" } else { "logs" };
        let url = match &self.endpoint {
            Some(Endpoint::Url(url)) => url.clone(),
            Some(Endpoint::Domain(domain)) => {
                HostUrl { name: format!("{name}.{region}.{domain}"), ..service_url(name, region) }
            }
            None => service_url(name, region),
        };
        self.service("logs", region, url)
    }

    fn service(&self, name: &'static str, region: &str, url: HostUrl) -> Service {
        Service {
            name,
            region: region.to_owned(),
            target: Arc::new(Target::at(url, &self.proxy)),
            tls: self.tls.clone(),
            provider: Arc::clone(&self.provider),
            timeout: self.timeout,
        }
    }

    /// The region in which the bucket of a notification is asked for.
    pub(crate) fn region_of(&self, noted: &str) -> String {
        let has_url = self.endpoint.as_ref().is_some_and(Endpoint::is_url);
        if has_url || check_region(noted).is_err() { self.region.clone() } else { noted.to_owned() }
    }
}

/// `cloud.provider`, by the name of the server. The domains of services that many use.
pub(crate) fn provider_of(endpoint: Option<&Endpoint>) -> &'static str {
    const KNOWN: [(&str, &str); 19] = [
        ("amazonaws.com", "aws"),
        ("c2s.sgov.gov", "aws"),
        ("c2s.ic.gov", "aws"),
        ("amazonaws.com.cn", "aws"),
        ("backblazeb2.com", "backblaze"),
        ("cloudflarestorage.com", "cloudflare"),
        ("wasabisys.com", "wasabi"),
        ("digitaloceanspaces.com", "digitalocean"),
        ("dream.io", "dreamhost"),
        ("scw.cloud", "scaleway"),
        ("googleapis.com", "gcp"),
        ("cloud.it", "arubacloud"),
        ("linodeobjects.com", "linode"),
        ("vultrobjects.com", "vultr"),
        ("appdomain.cloud", "ibm"),
        ("aliyuncs.com", "alibaba"),
        ("oraclecloud.com", "oracle"),
        ("exo.io", "exoscale"),
        ("upcloudobjects.com", "upcloud"),
    ];
    let server = match endpoint {
        None => return "aws",
        Some(Endpoint::Domain(domain)) => domain,
        Some(Endpoint::Url(url)) => &url.name,
    };
    let is_below = |domain: &str| {
        server.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    };
    KNOWN.iter().find(|(domain, _)| is_below(domain)).map_or("unknown", |(_, name)| *name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use skidder_amazon::Source;
    use skidder_aws::Credentials;
    use skidder_config::Secret;
    use skidder_os::RealFs;

    fn servers(endpoint: Option<&str>) -> Servers {
        let keys = Credentials { id: "id".to_owned(), secret: Secret::new("x"), session: None };
        let provider = Provider::new(Source::Fixed(keys), ProxyChoice::Direct, Arc::new(RealFs));
        Servers {
            region: "eu-west-1".to_owned(),
            endpoint: endpoint.map(|text| Endpoint::parse(text.to_owned()).unwrap()),
            path_style: None,
            fips: false,
            provider: Arc::new(provider.unwrap()),
            tls: None,
            proxy: ProxyChoice::Direct,
            timeout: Duration::from_secs(1),
        }
    }

    fn url(service: &Service, key: &str) -> String {
        format!("{}{}", service.target.authority, service.target.path(Some(key)))
    }

    #[test]
    fn a_bucket_is_in_the_name_of_the_host_or_in_the_path() {
        let logs = BucketName::Bucket("logs".to_owned());
        let dotted = BucketName::Bucket("my.logs".to_owned());
        let point =
            BucketName::AccessPoint { name: "logs".to_owned(), account: "123456789012".to_owned() };
        let table = [
            (None, false, None, &logs, "logs.s3.us-east-2.amazonaws.com/a/b"),
            (None, false, None, &dotted, "s3.us-east-2.amazonaws.com/my.logs/a/b"),
            (None, true, None, &logs, "logs.s3-fips.us-east-2.amazonaws.com/a/b"),
            (
                Some("amazonaws.com.cn"),
                false,
                None,
                &logs,
                "logs.s3.us-east-2.amazonaws.com.cn/a/b",
            ),
            (Some("http://h:9000/x"), false, None, &logs, "h:9000/x/logs/a/b"),
            (Some("http://h:9000"), false, Some(false), &logs, "logs.h:9000/a/b"),
            (
                None,
                false,
                None,
                &point,
                "logs-123456789012.s3-accesspoint.us-east-2.amazonaws.com/a/b",
            ),
        ];
        for (endpoint, fips, path_style, bucket, expected) in table {
            let servers = Servers { path_style, fips, ..servers(endpoint) };
            let service = servers.bucket(bucket, "us-east-2");
            assert_eq!(url(&service, "a/b"), expected);
            assert_eq!((service.name, &*service.region), ("s3", "us-east-2"));
        }
    }

    #[test]
    fn a_queue_is_where_its_url_says() {
        let table = [
            (
                "https://sqs.us-east-2.amazonaws.com/1/q",
                false,
                "sqs.us-east-2.amazonaws.com",
                "us-east-2",
            ),
            (
                "https://sqs.us-east-2.amazonaws.com/1/q",
                true,
                "sqs-fips.us-east-2.amazonaws.com",
                "us-east-2",
            ),
            ("http://localhost:4566/1/q", true, "localhost:4566", "eu-west-1"),
        ];
        for (text, fips, authority, region) in table {
            let servers = Servers { fips, ..servers(None) };
            let service = servers.queue(&QueueUrl::parse(text).unwrap());
            assert_eq!((&*service.target.authority, &*service.region), (authority, region));
        }
    }

    #[test]
    fn logs_are_in_their_region() {
        let table = [
            (None, false, "eu-west-1", "logs.eu-west-1.amazonaws.com"),
            (None, true, "us-east-2", "logs-fips.us-east-2.amazonaws.com"),
            (None, true, "us-gov-west-1", "logs.us-gov-west-1.amazonaws.com"),
            (Some("amazonaws.com.cn"), false, "cn-north-1", "logs.cn-north-1.amazonaws.com.cn"),
            (None, false, "cn-north-1", "logs.cn-north-1.amazonaws.com.cn"),
            (Some("http://127.0.0.1:4566"), false, "eu-west-1", "127.0.0.1:4566"),
        ];
        for (endpoint, fips, region, expected) in table {
            let servers = Servers { fips, region: region.to_owned(), ..servers(endpoint) };
            let service = servers.logs();
            assert_eq!((service.name, &*service.target.authority), ("logs", expected));
            assert_eq!(service.region, region);
        }
    }

    #[test]
    fn arns_name_buckets_and_access_points() {
        let bucket = |name: &str| BucketName::Bucket(name.to_owned());
        for text in ["arn:aws:s3:::logs-1", "arn:aws-cn:s3:::logs-1", "logs-1"] {
            assert_eq!(BucketArn::parse(text).unwrap().bucket, bucket("logs-1"), "{text}");
        }
        let point = BucketArn::parse("arn:aws:s3:eu-west-1:123456789012:accesspoint/p-1").unwrap();
        assert_eq!(
            (&*point.bucket.text(), point.region.as_deref()),
            ("p-1-123456789012", Some("eu-west-1"))
        );
        let table = [
            ("", "3 to 63"),
            ("arn:aws:s3:::a/b", "3 to 63"),
            ("arn:aws:sqs:eu-west-1:1:logs", "expected `arn:aws:s3:::NAME`"),
            ("arn:aws:s3::1:accesspoint/x.mrap", "several regions"),
            ("arn:aws:s3:eu-west-1:x:accesspoint/p-1", "account"),
            ("arn:aws:s3:eu-west-1:1:bucket/p-1", "3 to 63"),
        ];
        for (text, expected) in table {
            let error = BucketArn::parse(text).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn the_provider_is_known_by_its_domain() {
        let table = [
            (None, "aws"),
            (Some("amazonaws.com.cn"), "aws"),
            (Some("https://s3.eu.wasabisys.com"), "wasabi"),
            (Some("https://notwasabisys.com"), "unknown"),
            (Some("http://127.0.0.1:9000"), "unknown"),
        ];
        for (text, expected) in table {
            let endpoint = text.map(|text: &str| Endpoint::parse(text.to_owned()).unwrap());
            assert_eq!(provider_of(endpoint.as_ref()), expected, "{text:?}");
        }
        for text in ["minio", "ftp://x", "http://u:p@h", "a.b/c"] {
            Endpoint::parse(text.to_owned()).unwrap_err();
        }
    }

    #[test]
    fn what_a_notification_says_of_the_region_must_be_the_name_of_one() {
        assert_eq!(servers(None).region_of("us-west-2"), "us-west-2");
        for odd in ["", "evil.example/", "a b"] {
            assert_eq!(servers(None).region_of(odd), "eu-west-1");
        }
        assert_eq!(servers(Some("http://h")).region_of("us-west-2"), "eu-west-1");
    }
}

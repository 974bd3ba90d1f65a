//! Where the services are.

use skidder_net::{HostUrl, encode_percent, usual_port};

/// A bucket of a server of S3: its name stands in the path, or before the name of the host.
pub fn bucket_url(mut server: HostUrl, bucket: &str, path_style: bool) -> HostUrl {
    if path_style {
        server.path.push('/');
        encode_percent(&mut server.path, bucket);
    } else {
        server.name = format!("{bucket}.{}", server.name);
    }
    server
}

/// Amazon's own server of a service, as `s3`, in a region
/// (<https://docs.aws.amazon.com/general/latest/gr/rande.html>).
pub fn service_url(service: &str, region: &str) -> HostUrl {
    let domain = if region.starts_with("cn-") { "amazonaws.com.cn" } else { "amazonaws.com" };
    HostUrl {
        https: true,
        name: format!("{service}.{region}.{domain}"),
        port: usual_port(true),
        path: String::new(),
        credentials: None,
    }
}

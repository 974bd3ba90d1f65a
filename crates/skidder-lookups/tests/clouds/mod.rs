//! The metadata services of clouds, as they document their answers.

use crate::common::{Answer, Request, serve};
use serde_json::json;

/// The address of each.
pub(crate) fn variables() -> Vec<(&'static str, String)> {
    vec![
        ("EC2", serve(ec2).0),
        ("EC2_OLD", serve(|request| ec2_document(request, true)).0),
        ("EC2_API", serve(ec2_api).0),
        ("AZURE", serve(azure).0),
        ("GCP", serve(gcp).0),
        ("DIGITALOCEAN", serve(digital_ocean).0),
        ("TEXTS", serve(texts).0),
        ("NOBODY", serve(|_| Answer::not_found()).0),
        ("SILENT", serve(|_| Answer::Silence).0),
    ]
}

/// With tokens (IMDSv2), and tags.
fn ec2(request: &Request) -> Answer {
    if request.target == "/latest/api/token" {
        let right = request.method == "PUT"
            && request.header("x-aws-ec2-metadata-token-ttl-seconds") == "21600";
        return if right { Answer::ok("a-token") } else { Answer::Now(400, String::new()) };
    }
    if request.header("x-aws-ec2-metadata-token") != "a-token" {
        return Answer::Now(401, String::new());
    }
    match request.target.as_str() {
        "/latest/meta-data/tags/instance" => Answer::ok("Name\neks:cluster-name"),
        "/latest/meta-data/tags/instance/Name" => Answer::ok("web 1"),
        "/latest/meta-data/tags/instance/eks%3Acluster-name" => Answer::ok("blue"),
        _ => ec2_document(request, false),
    }
}

/// An instance that does not show its tags but has a role, and the API of EC2, which requires signed requests.
fn ec2_api(request: &Request) -> Answer {
    const ROLES: &str = "/latest/meta-data/iam/security-credentials/";
    if request.target.starts_with("/?Action=DescribeTags&") {
        return describe_tags(request);
    }
    match request.target.strip_prefix(ROLES) {
        Some("") => Answer::ok("node-role\n"),
        Some("node-role") => {
            let role = json!({"Code": "Success", "AccessKeyId": "AKID", "SecretAccessKey": "secret", "Token": "a-session"});
            Answer::ok(role.to_string())
        }
        _ if request.target.starts_with("/latest/meta-data/tags") => Answer::not_found(),
        _ => ec2(request),
    }
}

fn describe_tags(request: &Request) -> Answer {
    let signed = "AWS4-HMAC-SHA256 Credential=AKID/20261121/us-east-1/ec2/aws4_request, \
                  SignedHeaders=host;x-amz-date;x-amz-security-token, Signature=";
    let right = request.target
        == "/?Action=DescribeTags&Filter.1.Name=resource-id&Filter.1.Value.1=i-11111111\
            &Filter.2.Name=key&Filter.2.Value.1=eks%3Acluster-name&Version=2016-11-15"
        && request.header("authorization").starts_with(signed)
        && request.header("authorization").len() == signed.len() + 64
        && request.header("x-amz-security-token") == "a-session"
        && request.header("x-amz-date") == "20261121T205257Z";
    if !right {
        return Answer::Now(403, String::new());
    }
    Answer::ok(
        "<DescribeTagsResponse><requestId>1</requestId><tagSet><item><resourceId>i-11111111</resourceId>\
         <resourceType>instance</resourceType><key>eks:cluster-name</key><value>green</value></item></tagSet>\
         </DescribeTagsResponse>",
    )
}

/// The identity document; of a service without tokens if `old`.
fn ec2_document(request: &Request, old: bool) -> Answer {
    let with_token = !request.header("x-aws-ec2-metadata-token").is_empty();
    if request.target != "/latest/dynamic/instance-identity/document" || (old && with_token) {
        return Answer::not_found();
    }
    let document = json!({
        "accountId": "111111111111111", "region": "us-east-1", "availabilityZone": "us-east-1c",
        "instanceId": "i-11111111", "imageId": "ami-abcd1234", "instanceType": "t2.medium",
        "privateIp": "10.0.0.1", "kernelId": null,
    });
    Answer::ok(document.to_string())
}

fn azure(request: &Request) -> Answer {
    let right = request.target == "/metadata/instance/compute?api-version=2021-02-01"
        && request.header("metadata") == "true";
    if !right {
        return Answer::Now(400, "bad request".to_owned());
    }
    let compute = json!({
        "location": "eastus", "name": "vm-1", "subscriptionId": "0e073ec1", "vmId": "220e2b43",
        "vmSize": "Standard_DS2_v2", "zone": "3", "resourceGroupName": "group",
    });
    Answer::ok(compute.to_string())
}

fn gcp(request: &Request) -> Answer {
    let right = request.target == "/computeMetadata/v1/?recursive=true&alt=json"
        && request.header("metadata-flavor") == "Google";
    if !right {
        return Answer::Now(403, String::new());
    }
    let config = "apiVersion: v1\nclusters:\n- cluster:\n    server: https://35.223.150.34\n";
    let all = json!({
        "instance": {
            "id": 3_910_564_293_633_576_924_u64, "name": "vm-2",
            "machineType": "projects/1/machineTypes/f1-micro", "zone": "projects/1/zones/us-east1-b",
            "attributes": {"cluster-name": "staging", "kubeconfig": config},
        },
        "project": {"projectId": "test-dev", "numericProjectId": 1},
    });
    Answer::ok(all.to_string())
}

fn digital_ocean(request: &Request) -> Answer {
    match request.target.as_str() {
        "/metadata/v1.json" => {
            Answer::ok(json!({"droplet_id": 1_111_111, "region": "nyc3"}).to_string())
        }
        _ => Answer::not_found(),
    }
}

/// The clouds that answer with a text for each path.
fn texts(request: &Request) -> Answer {
    Answer::ok(match request.target.as_str() {
        "/hetzner/v1/metadata/instance-id" => "42\n",
        "/hetzner/v1/metadata/hostname" => "box",
        "/hetzner/v1/metadata/availability-zone" => "hel1-dc2",
        "/hetzner/v1/metadata/region" => "eu-central",
        "/2009-04-04/meta-data/instance-id" => "i-0000ffac",
        "/2009-04-04/meta-data/instance-type" => "m1.small",
        "/2009-04-04/meta-data/hostname" => "vm.novalocal",
        "/2009-04-04/meta-data/placement/availability-zone" => "az-test-2",
        "/latest/meta-data/instance-id" => "i-wz9g",
        "/latest/meta-data/region-id" => "cn-shenzhen",
        "/latest/meta-data/zone-id" => "cn-shenzhen-a",
        "/meta-data/instance-id" => "ins-qcloudv5",
        "/meta-data/placement/region" => "china-south-gz",
        "/meta-data/placement/zone" => "gz-azone2",
        _ => return Answer::not_found(),
    })
}

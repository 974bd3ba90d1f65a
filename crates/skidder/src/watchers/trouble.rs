//! What to do when the API of a provider cannot be reached, or refuses.

use super::Report;
use skidder_autodiscover::Trouble;
use skidder_lookups::kubernetes::objects::{ReportError, is_refusal};
use skidder_lookups::nomad::api::NomadError;
use skidder_net::HttpError;
use std::io::ErrorKind;

/// Of an engine.
pub(super) fn of_docker(host: &str, error: &HttpError) -> Trouble {
    let remedy = match error {
        HttpError::Socket { source, .. } if source.kind() == ErrorKind::PermissionDenied => {
            "run skidder as root, or add its user to the group of the socket (usually `docker`)"
        }
        HttpError::Socket { .. } => {
            "start Docker, or set `host` of the provider to where it listens; in a container, mount the socket"
        }
        HttpError::Status { .. } | HttpError::Json(_) => {
            "set `host` of the provider to the address of a Docker engine"
        }
        _ => {
            "check that the engine is running, and `host` and `ssl` of the provider (variable DOCKER_HOST)"
        }
    };
    let error = match error {
        // They name it.
        HttpError::Socket { .. } | HttpError::Connection(_) => error.to_string(),
        _ => format!("`{host}`: {error}"),
    };
    Trouble { error, remedy: remedy.to_owned(), blocks: true }
}

/// Of an agent of Nomad.
pub(super) fn of_nomad(host: &str, error: &NomadError) -> Trouble {
    let remedy = match error {
        NomadError::Http(HttpError::Status { status, .. }) if status.as_u16() == 403 => {
            "set `secret_id` of the provider to a token whose policy has `read-job` and, for nodes, `node:read`"
        }
        NomadError::Http(_) => "check that the agent is running, and `address` of the provider",
        // These errors name the setting.
        NomadError::Node(_) | NomadError::NoList(_) => "",
    };
    Trouble { error: format!("`{host}`: {error}"), remedy: remedy.to_owned(), blocks: true }
}

/// Reports the errors of requests about objects of Kubernetes. `right` is what a role has to allow. Others than the main
/// ones are of metadata, and pods are read without those that are refused.
pub(super) fn of_kubernetes(
    about: String,
    right: &str,
    is_main: bool,
    report: Report,
) -> ReportError {
    let right = right.to_owned();
    Box::new(move |error| {
        let trouble = error.map(|error| Trouble {
            error: format!("{about}: {error}"),
            remedy: kubernetes_remedy(error, &right),
            blocks: is_main || !is_refusal(error),
        });
        report.trouble(&about, trouble);
    })
}

fn kubernetes_remedy(error: &HttpError, right: &str) -> String {
    match error {
        HttpError::Status { status, .. } => match status.as_u16() {
            401 => "the API server does not accept the credentials: check the token of the service account, or \
                    `kube_config` of the provider"
                .to_owned(),
            403 => format!(
                "allow the service account of skidder to {right} in a ClusterRole (see docs/kubernetes.md)"
            ),
            404 => "the API server does not have this kind of object: check its version".to_owned(),
            _ => "see the log of the API server".to_owned(),
        },
        _ => "check that the API server can be reached from here; its address is from `kube_config` of the provider, \
              or from KUBERNETES_SERVICE_HOST in a pod"
            .to_owned(),
    }
}

/// The kind of objects of a list: `pods` of `/api/v1/namespaces/a/pods?`.
pub(super) fn kind_of(path: &str) -> String {
    let path = path.split('?').next().unwrap_or(path);
    path.rsplit('/').next().unwrap_or(path).to_owned()
}

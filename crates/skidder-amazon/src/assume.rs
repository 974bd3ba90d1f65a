//! Another role, taken with credentials that are there: `AssumeRole` of the token service
//! (<https://docs.aws.amazon.com/STS/latest/APIReference/API_AssumeRole.html>).

use crate::client::{Failure, Service};
use crate::credentials::{CredentialsError, Provider, Source};
use crate::roles::{TIMEOUT, of_xml, url};
use crate::urls::service_url;
use bytes::Bytes;
use http::Method;
use skidder_aws::Credentials;
use skidder_config::{Group, Key, Section, settings};
use skidder_net::cloud::{Ask, Target};
use skidder_net::{HostUrl, ProxyChoice, encode_percent};
use skidder_os::{Clock, Timestamp};
use skidder_tls::TlsClient;
use std::sync::Arc;
use std::time::Duration;

settings! {
    /// Settings of another role.
    pub(crate) static ASSUME = Group::new("aws_assume_role", "Another role.");

    ROLE_ARN: String = Key::new("role_arn")
        .noun("the ARN of a role")
        .about("a role that is taken with these credentials, as `arn:aws:iam::123456789012:role/logs`");
    EXTERNAL_ID: String = Key::new("external_id")
        .about("what the owner of the role demands besides, if that is another account");
    DURATION: Duration = Key::new("assume_role.duration")
        .default(Assume::DURATION)
        .range(Duration::from_mins(15), Duration::from_hours(12))
        .about("how long its credentials are valid: 15 minutes to 12 hours, or to 1 hour if a role takes it");
    WINDOW: Duration = Key::new("assume_role.expiry_window")
        .default(Assume::WINDOW)
        .range(Duration::ZERO, Duration::from_hours(12))
        .about("renewed so long before they end; shorter than `assume_role.duration`");
}

/// A role, and how it is taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assume {
    /// Gives the credentials that the request is signed with. Not another role of this kind.
    pub by: Source,
    /// `role_arn`.
    pub role: String,
    /// `external_id`.
    pub external_id: Option<String>,
    /// `assume_role.duration`.
    pub duration: Duration,
    /// `assume_role.expiry_window`.
    pub window: Duration,
    /// The name of the session, which the account of the role sees.
    pub session: String,
    /// The token service.
    pub service: HostUrl,
    /// The region that requests to it are signed for.
    pub region: String,
}

impl Assume {
    /// Default of `assume_role.duration`, as in Filebeat.
    pub const DURATION: Duration = Duration::from_mins(15);
    /// Default of `assume_role.expiry_window`.
    pub const WINDOW: Duration = Duration::from_mins(5);

    /// Reads `role_arn`, `external_id`, `assume_role.duration` and `assume_role.expiry_window`; reports mistakes. Returns the
    /// source of the role's credentials, or `by` without a role; `None` after a mistake.
    pub(crate) fn read(
        section: &Section<'_>,
        region: &str,
        set: &impl Fn(&str) -> Option<String>,
        by: Option<Source>,
    ) -> Option<Source> {
        let role = section.get(&ROLE_ARN).check(|text| role_arn(text));
        let is_wrong = role.is_wrong();
        let role = role.optional().filter(|role| !role.is_empty());
        let external_id = section.get(&EXTERNAL_ID).check(|text| external_id(text)).optional();
        let external_id = external_id.filter(|id| !id.is_empty());
        let (duration, window) = (section.get(&DURATION), section.get(&WINDOW));
        let is_tuned = duration.is_set() || window.is_set();
        let (duration, window) = (duration.value(), window.value());
        let Some(role) = role else {
            if external_id.is_some() && !is_wrong {
                section.problem("external_id", "`external_id` needs `role_arn`", "");
            }
            if is_tuned && !is_wrong {
                let message = "`assume_role` has no effect without `role_arn`";
                section.warning("assume_role", message, "leave it out");
            }
            return by.filter(|_| !is_wrong);
        };
        if window >= duration {
            let message = "`assume_role.expiry_window` must be shorter than `assume_role.duration`";
            section.problem("assume_role.expiry_window", message, "");
        }
        let service = match set("AWS_ENDPOINT_URL_STS") {
            Some(text) => url("AWS_ENDPOINT_URL_STS", &text),
            None => Ok(service_url("sts", region)),
        };
        let service = service.map_err(|message| section.problem("", message, "")).ok()?;
        let session = set("AWS_ROLE_SESSION_NAME").unwrap_or_else(|| "skidder".to_owned());
        let region = region.to_owned();
        let by = by?;
        let assume = Self { by, role, external_id, duration, window, session, service, region };
        Some(Source::Assumed(Box::new(assume)))
    }

    /// The token service, for requests with the credentials of `by`.
    pub(crate) fn tokens(
        &self,
        by: Provider,
        tls: Option<Arc<TlsClient>>,
        proxy: &ProxyChoice,
    ) -> Service {
        Service {
            name: "sts",
            region: self.region.clone(),
            target: Arc::new(Target::at(self.service.clone(), proxy)),
            tls,
            provider: Arc::new(by),
            timeout: TIMEOUT,
        }
    }

    /// New credentials of the role, and until when they hold.
    pub(crate) async fn ask(
        &self,
        tokens: &Service,
        clock: &Arc<dyn Clock>,
    ) -> Result<(Credentials, Timestamp), CredentialsError> {
        let failed = |failure| CredentialsError::Assume {
            role: self.role.clone(),
            source: Box::new(failure),
        };
        let body = [Bytes::from(self.form())];
        let mut ask = Ask::empty(Method::POST, None);
        ask.headers = vec![("content-type", "application/x-www-form-urlencoded")];
        ask.body = &body;
        let mut client = tokens.client(Arc::new(()), Arc::clone(clock));
        let answer = client.ask(ask).await.map_err(failed)?;
        let found = of_xml(answer.body)
            .and_then(|(credentials, until)| Some((credentials, until?)))
            .filter(|(credentials, _)| credentials.session.is_some());
        found.ok_or_else(|| {
            let what = "there are no credentials with their end".to_owned();
            failed(Failure::Unexpected { service: "STS", status: answer.status, what })
        })
    }

    /// The body of the request.
    fn form(&self) -> String {
        let seconds = self.duration.as_secs().to_string();
        let mut form = "Action=AssumeRole&Version=2011-06-15".to_owned();
        let mut add = |name: &str, value: &str| {
            form.push('&');
            form.push_str(name);
            form.push('=');
            encode_percent(&mut form, value);
        };
        add("RoleArn", &self.role);
        add("RoleSessionName", &self.session);
        add("DurationSeconds", &seconds);
        if let Some(id) = &self.external_id {
            add("ExternalId", id);
        }
        form
    }
}

fn role_arn(text: &str) -> Result<(), String> {
    let parts: Vec<&str> = text.splitn(6, ':').collect();
    match parts[..] {
        _ if text.is_empty() => Ok(()),
        ["arn", _, "iam", _, _, role] if role.starts_with("role/") => Ok(()),
        _ => Err("expected `arn:aws:iam::ACCOUNT:role/NAME`".to_owned()),
    }
}

/// The rule of the service.
fn external_id(text: &str) -> Result<(), String> {
    let is_good = |byte: u8| byte.is_ascii_alphanumeric() || b"_+=,.@:/-".contains(&byte);
    let is_long = (2..=1224).contains(&text.len());
    if text.is_empty() || is_long && text.bytes().all(is_good) {
        return Ok(());
    }
    Err("expected 2 to 1224 letters, digits and `_+=,.@:/-`".to_owned())
}

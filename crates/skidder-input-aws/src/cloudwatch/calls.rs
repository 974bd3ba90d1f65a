//! Requests to the service: at the pace of the input, repeated if a failure may pass, with a remedy if not.

use super::pace::Pace;
use super::settings::{Groups, Settings};
use super::window::Milliseconds;
use skidder_amazon::{
    EventFilter, Failure, FoundGroup, LogEvent, LogGroup, Logs, Page, Refused, Service,
};
use skidder_input::{GroupNumbers, Intake};
use std::sync::Arc;
use std::time::Duration;

/// Tries of a request that fails, before it is left to the next scan. One that is throttled is tried without end.
const TRIES: u32 = 4;
/// The first pause between these; doubled with each that follows.
const PAUSE_FIRST: Duration = Duration::from_secs(1);

/// What all parts of the input share.
pub(crate) struct Shared {
    pub(crate) intake: Intake,
    pub(crate) numbers: Arc<GroupNumbers>,
    pub(crate) settings: Arc<Settings>,
    pub(crate) pace: Pace,
    pub(crate) service: Service,
    /// When this run began.
    pub(crate) started: Milliseconds,
    /// Where a group begins that was not read before.
    pub(crate) start: Milliseconds,
}

/// One worker's requests.
pub(crate) struct Calls {
    pub(crate) shared: Arc<Shared>,
    logs: Logs,
}

/// Why there is no answer. The texts are for people.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CallError {
    /// The input ends.
    #[error("the program ends")]
    Stopped,
    /// There is no such group, or no such stream in it.
    #[error("{0}")]
    Missing(String),
    /// Try again with the next scan.
    #[error("{0}")]
    Failed(String),
}

/// Repeats one request.
struct Tries<'a> {
    shared: &'a Shared,
    /// What has the trouble.
    part: &'a str,
    /// The group; nothing for a listing.
    group: Option<&'a str>,
    failed: u32,
    is_in_trouble: bool,
}

impl Calls {
    pub(crate) fn new(shared: &Arc<Shared>) -> Self {
        let clock = Arc::clone(shared.intake.clock());
        let logs = Logs::new(shared.service.client(Arc::new(()), clock));
        Self { shared: Arc::clone(shared), logs }
    }

    /// A page of events. `part` is the name of the source; `asked` is called for each request.
    pub(crate) async fn events(
        &mut self,
        part: &str,
        filter: EventFilter<'_>,
        asked: &(dyn Fn() + Sync),
    ) -> Result<Page<LogEvent>, CallError> {
        let (LogGroup::Name(group) | LogGroup::Arn(group)) = filter.group;
        let mut tries = Tries::new(&self.shared, part, Some(group));
        loop {
            tries.wait().await?;
            self.shared.numbers.calls.add(1);
            asked();
            let answer = tokio::select! {
                biased;
                () = self.shared.intake.stopped() => return Err(CallError::Stopped),
                answer = self.logs.events(filter) => answer,
            };
            match answer {
                Ok(page) => return Ok(tries.answered(page)),
                Err(failure) => tries.failed(&failure).await?,
            }
        }
    }

    /// A page of groups.
    pub(crate) async fn groups(
        &mut self,
        (prefix, linked): (&str, bool),
        token: Option<&str>,
    ) -> Result<Page<FoundGroup>, CallError> {
        let part = self.shared.settings.address();
        let mut tries = Tries::new(&self.shared, &part, None);
        loop {
            tries.wait().await?;
            self.shared.numbers.calls.add(1);
            let answer = tokio::select! {
                biased;
                () = self.shared.intake.stopped() => return Err(CallError::Stopped),
                answer = self.logs.groups(prefix, linked, token) => answer,
            };
            match answer {
                Ok(page) => return Ok(tries.answered(page)),
                Err(failure) => tries.failed(&failure).await?,
            }
        }
    }
}

impl Shared {
    /// Waits, unless the input ends before that.
    async fn sleep(&self, pause: Duration) -> Result<(), CallError> {
        tokio::select! {
            biased;
            () = self.intake.stopped() => Err(CallError::Stopped),
            () = tokio::time::sleep(pause) => Ok(()),
        }
    }
}

impl<'a> Tries<'a> {
    fn new(shared: &'a Shared, part: &'a str, group: Option<&'a str>) -> Self {
        Self { shared, part, group, failed: 0, is_in_trouble: false }
    }

    /// Waits until the request may be sent.
    async fn wait(&self) -> Result<(), CallError> {
        self.shared.sleep(self.shared.pace.take()).await
    }

    fn answered<T>(&self, answer: T) -> T {
        self.shared.pace.answered();
        if self.is_in_trouble {
            self.shared.intake.metrics().set_trouble_of(self.part, None);
        }
        answer
    }

    /// Waits until the next try is due. The error says that there is none.
    async fn failed(&mut self, failure: &Failure) -> Result<(), CallError> {
        let text = text_of(failure, self.group, &self.shared.settings);
        let is_throttled = matches!(failure, Failure::Refused(it) if it.is_throttled());
        if !is_throttled {
            self.failed += 1;
            let is_missing =
                matches!(failure, Failure::Refused(it) if it.code == "ResourceNotFoundException");
            if is_missing {
                return Err(CallError::Missing(text));
            }
            if !may_pass(failure) || self.failed == TRIES {
                return Err(CallError::Failed(text));
            }
        }
        let metrics = self.shared.intake.metrics();
        metrics.failed(self.part, &text);
        metrics.set_trouble_of(self.part, Some(&text));
        let is_first = !std::mem::replace(&mut self.is_in_trouble, true);
        if is_throttled {
            // The next request of any worker waits for that.
            let pause = self.shared.pace.throttled();
            if is_first {
                tracing::warn!(
                    part = self.part,
                    ?pause,
                    error = text,
                    "CloudWatch is asked less often"
                );
            }
            return Ok(());
        }
        let pause = PAUSE_FIRST.saturating_mul(2_u32.saturating_pow(self.failed - 1));
        if is_first {
            tracing::warn!(part = self.part, ?pause, error = text, "CloudWatch is asked again");
        }
        self.shared.sleep(pause).await
    }
}

/// Whether a request is repeated.
fn may_pass(failure: &Failure) -> bool {
    match failure {
        Failure::Refused(refused) => {
            refused.status >= 500 || refused.status == 408 || refused.is_about_credentials()
        }
        Failure::Header(_) => false,
        Failure::Connection(_) | Failure::Credentials(_) | Failure::Unexpected { .. } => true,
    }
}

/// What failed, and the remedy.
fn text_of(failure: &Failure, group: Option<&str>, settings: &Settings) -> String {
    match failure {
        Failure::Refused(refused) => {
            (**refused).clone().advised(advice(refused, group, settings)).to_string()
        }
        failure => failure.to_string(),
    }
}

/// The remedy; empty if there is none beside that of every service.
fn advice(refused: &Refused, group: Option<&str>, settings: &Settings) -> String {
    let region = &settings.servers.region;
    if refused.is_throttled() {
        return "requests are sent less often for now; if it stays so, raise `api_sleep`, or ask Amazon for a higher quota"
            .to_owned();
    }
    match (&*refused.code, group) {
        ("AccessDeniedException", Some(group)) => {
            format!(
                "whoever has these credentials needs the right `logs:FilterLogEvents` on `{group}:*`"
            )
        }
        ("AccessDeniedException", None) => {
            "whoever has these credentials needs the right `logs:DescribeLogGroups`".to_owned()
        }
        ("ResourceNotFoundException", Some(_)) if refused.to_string().contains("log stream") => {
            "see `log_streams`: each of them must be there".to_owned()
        }
        ("ResourceNotFoundException", Some(group)) => match &settings.groups {
            Groups::Prefix { .. } => format!("there is no log group `{group}` any more"),
            Groups::Arn(_) => format!("there is no log group `{group}`: see `log_group_arn`"),
            Groups::Name(_) => format!(
                "there is no log group `{group}` in `{region}`: see `log_group_name` and `region_name`"
            ),
        },
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cloudwatch::settings::tests::settings;
    use http::HeaderMap;

    fn refused(status: u16, kind: &str, message: &str) -> Failure {
        let body = format!("{{\"__type\":\"{kind}\",\"message\":\"{message}\"}}");
        let refused = Refused::read(status, &HeaderMap::new(), body.as_bytes());
        Failure::Refused(Box::new(refused))
    }

    #[test]
    fn a_refusal_has_a_remedy() {
        let name = settings("log_group_name: /app, region_name: eu-west-1");
        let prefix = settings("log_group_name_prefix: /app, region_name: eu-west-1");
        let denied = "AccessDeniedException";
        let none = "ResourceNotFoundException";
        let group = "The specified log group does not exist.";
        let stream = "The specified log stream does not exist.";
        let table = [
            (400, denied, "no", Some("/app"), &name, "`logs:FilterLogEvents` on `/app:*`", false),
            (400, denied, "no", None, &prefix, "`logs:DescribeLogGroups`", false),
            (400, none, group, Some("/app"), &name, "in `eu-west-1`: see `log_group_name`", false),
            (400, none, group, Some("/app"), &prefix, "`/app` any more", false),
            (400, none, stream, Some("/app"), &name, "see `log_streams`", false),
            (400, "ThrottlingException", "no", Some("/app"), &name, "raise `api_sleep`", false),
            (400, "UnrecognizedClientException", "no", None, &name, "see `access_key_id`", true),
            (503, "ServiceUnavailableException", "no", None, &name, "less often", true),
            (500, "InternalFailure", "no", None, &name, "`InternalFailure`: no", true),
            (400, "InvalidParameterException", "bad token", None, &name, "bad token", false),
        ];
        for (status, kind, message, group, settings, expected, passes) in table {
            let failure = refused(status, kind, message);
            let text = text_of(&failure, group, settings);
            assert!(text.contains(expected), "{text}, expected {expected}");
            assert_eq!(may_pass(&failure), passes, "{text}");
        }
    }
}

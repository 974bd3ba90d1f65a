//! What goes wrong with a subscription, and what to do.

use crate::settings::Names;
use skidder_grpc::{CallError, Code};
use skidder_input::Stopped;

/// What was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    /// Messages.
    Pull,
    /// A new subscription.
    Create,
    /// To acknowledge messages, to extend their deadlines, or to give them back.
    Answer,
}

/// Why a stream of messages ended.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PullError {
    /// After a pause.
    #[error("{}", text(.asked, .error, .names))]
    Call { asked: Asked, error: CallError, names: Names },
    /// After a pause.
    #[error("there is no access token: {0}")]
    Token(String),
    /// The server ended the stream in good order: it does so now and then.
    #[error("the server ended the stream")]
    Ended,
    /// No output takes anything any more.
    #[error(transparent)]
    Stopped(#[from] Stopped),
}

impl PullError {
    /// Whether the server has ended the stream for reasons of its own, as it does about every half an hour.
    pub(crate) fn is_usual(&self) -> bool {
        match self {
            Self::Ended => true,
            Self::Call { asked: Asked::Pull, error, .. } => error.code() == Some(Code::Unavailable),
            _ => false,
        }
    }

    /// Whether there is no such subscription.
    pub(crate) fn is_missing(&self) -> bool {
        matches!(self, Self::Call { asked: Asked::Pull, error, .. } if error.code() == Some(Code::NotFound))
    }
}

/// An error with what to do, for people.
pub(crate) fn text(asked: &Asked, error: &CallError, names: &Names) -> String {
    let Names { project, topic_id, subscription_id, is_created, .. } = names;
    let remedy = match (error.code(), asked) {
        (Some(Code::NotFound), Asked::Create) => {
            format!(
                "there is no topic `{topic_id}` in the project `{project}` to subscribe to: see `topic` and `project_id`"
            )
        }
        (Some(Code::NotFound), _) if *is_created => "it is created again".to_owned(),
        (Some(Code::NotFound), _) => {
            format!(
                "there is no subscription `{subscription_id}` in the project `{project}`: see `subscription.name` and \
                 `project_id`, or set `subscription.create: true`"
            )
        }
        (Some(Code::PermissionDenied), Asked::Create) => format!(
            "there is no subscription `{subscription_id}`, and the account may not create it: that needs \
             `pubsub.subscriptions.create` in the project and `pubsub.topics.attachSubscription` on the topic; or create \
             the subscription, and set `subscription.create: false`"
        ),
        (Some(Code::PermissionDenied), _) => format!(
            "the account needs the role `roles/pubsub.subscriber` on the subscription `{subscription_id}`; see also \
             `project_id`"
        ),
        (Some(Code::Unauthenticated), _) => {
            "see `credentials_file` and `credentials_json`; is the clock of this host right?"
                .to_owned()
        }
        (Some(Code::InvalidArgument), Asked::Answer) => String::new(),
        (Some(Code::InvalidArgument), _) => {
            "see `project_id`, `topic` and `subscription.name`".to_owned()
        }
        (Some(Code::FailedPrecondition), Asked::Pull) => format!(
            "the subscription `{subscription_id}` is detached from its topic, or its messages are pushed elsewhere; this \
             needs one with delivery by pull"
        ),
        (Some(Code::ResourceExhausted), _) => {
            "a quota of the project is used up: see the quotas of Pub/Sub in its console".to_owned()
        }
        (Some(Code::Unimplemented), _) => {
            "is this a server of Pub/Sub? See `api_endpoint` and `alternative_host`".to_owned()
        }
        _ => String::new(),
    };
    if remedy.is_empty() { error.to_string() } else { format!("{error}; {remedy}") }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use skidder_grpc::{RpcStatus, Status};

    pub(crate) fn refused(code: Code) -> CallError {
        let message = "no".to_owned();
        CallError::Status(Status { code, message, details: RpcStatus::default() })
    }

    #[test]
    fn each_refusal_says_what_to_do() {
        let names = Names::new("p", "t", "s", false);
        let created = Names::new("p", "t", "s", true);
        let table = [
            (Asked::Pull, Code::NotFound, &names, "set `subscription.create: true`"),
            (Asked::Pull, Code::NotFound, &created, "it is created again"),
            (Asked::Create, Code::NotFound, &created, "no topic `t` in the project `p`"),
            (Asked::Create, Code::PermissionDenied, &created, "may not create it"),
            (Asked::Answer, Code::PermissionDenied, &names, "`roles/pubsub.subscriber`"),
            (Asked::Pull, Code::Unauthenticated, &names, "see `credentials_file`"),
            (Asked::Pull, Code::FailedPrecondition, &names, "detached"),
            (Asked::Pull, Code::Unimplemented, &names, "see `api_endpoint`"),
        ];
        for (asked, code, names, expected) in table {
            let text = text(&asked, &refused(code), names).to_lowercase();
            assert!(text.contains(&expected.to_lowercase()), "{text}");
            assert!(
                text.starts_with(&format!("the server answered {code}: no").to_lowercase()),
                "{text}"
            );
        }
        let unavailable = text(&Asked::Pull, &refused(Code::Unavailable), &names);
        assert_eq!(unavailable, "the server answered UNAVAILABLE: no");
    }

    #[test]
    fn errors_are_told_apart() {
        let error = |asked, code| PullError::Call {
            asked,
            error: refused(code),
            names: Names::new("p", "t", "s", true),
        };
        assert!(error(Asked::Pull, Code::Unavailable).is_usual() && PullError::Ended.is_usual());
        assert!(!error(Asked::Create, Code::Unavailable).is_usual());
        assert!(error(Asked::Pull, Code::NotFound).is_missing());
        assert!(!error(Asked::Create, Code::NotFound).is_missing());
    }
}

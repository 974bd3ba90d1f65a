//! `skidder test output`: goes to each host step by step.

use super::Logstash;
use super::frames::ACK_BYTES;
use super::session::SessionError;
use skidder_net::{Steps, is_hang_up, is_tls_alert};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

/// The frame of a window without events.
const NO_WINDOW: [u8; 6] = *b"2W\0\0\0\0";

/// Share of `timeout` in which a server can hang up: a second by default. A server that requires a client certificate
/// rejects us only after its side of the handshake.
const HANG_UP_SHARE: u32 = 30;

impl Logstash {
    /// Tries every host; returns whether all of them can be reached.
    pub async fn check(&self, report: &mut (dyn FnMut(&str) + Send)) -> bool {
        let mut good = true;
        for route in &self.routes {
            let mut steps = Steps::new(report);
            steps.line(0, &format!("logstash: {}...", route.host));
            let Some(mut stream) = route.check(&mut steps, self.config.timeout).await else {
                good = false;
                continue;
            };
            let mut bytes = [0; ACK_BYTES];
            let patience = self.config.timeout / HANG_UP_SHARE;
            // A server of TLS answers to it, or hangs up; one of Lumberjack waits for the rest.
            let knocked = stream.write_all(&NO_WINDOW[..NO_WINDOW.len() - 1]).await;
            let said = match knocked {
                Ok(()) => tokio::time::timeout(patience, stream.read(&mut bytes)).await,
                Err(error) => Ok(Err(error)),
            };
            let talk = match said {
                // It waits for events; the protocol has no other request.
                Err(_) => Ok(()),
                Ok(Ok(0)) => Err(HUNG_UP.to_owned()),
                Ok(Ok(_)) if is_tls_alert(&bytes) => Err(SessionError::Tls.to_string()),
                Ok(Ok(_)) => Err(NOT_LUMBERJACK.to_owned()),
                Ok(Err(error)) if is_hang_up(&error) => Err(HUNG_UP.to_owned()),
                Ok(Err(error)) => Err(format!("{error}; see `ssl.certificate` and `ssl.key`")),
            };
            good &= steps.step(1, "talk to server", talk).is_some();
        }
        good
    }
}

const HUNG_UP: &str = "it closed the connection; is its `beats` input on this port, and does it expect TLS \
                       (`ssl.enabled`) and a client certificate (`ssl.certificate`)?";
const NOT_LUMBERJACK: &str =
    "it speaks first, which Lumberjack does not; is Logstash's `beats` input on this port?";

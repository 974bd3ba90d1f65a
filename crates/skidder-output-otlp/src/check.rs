//! `skidder test output`: goes to each host step by step and exports nothing.

use super::Otlp;
use super::answer::Verdict;
use super::body::Packer;
use super::client::Target;
use skidder_net::Steps;

impl Otlp {
    /// Tries every host; returns whether all of them would take events.
    pub async fn check(&self, report: &mut (dyn FnMut(&str) + Send)) -> bool {
        let mut good = true;
        for target in &self.targets {
            let mut steps = Steps::new(report);
            steps.line(0, &format!("otlp: {}...", target.host));
            good &= self.check_host(target, &mut steps).await.is_some();
        }
        good
    }

    async fn check_host(&self, target: &Target, steps: &mut Steps<'_>) -> Option<()> {
        let timeout = self.config.timeout;
        steps.ok(1, "parse url", "");
        let stream = target.route.check(steps, timeout).await?;
        let opened = target.over(stream, timeout).await;
        let mut link = steps.step(1, self.config.protocol.transport(), opened)?;
        // A request without a log: a server must take it, and has nothing to do.
        let mut packer = Packer::new(self.config.compression, target.is_grpc());
        let body = packer.pack(&mut Vec::new()).await;
        let result = match target.ask(&mut link, &body, timeout).await {
            Err(error) => Err(error.to_string()),
            Ok((verdict, _)) => outcome(verdict),
        };
        steps.step(1, "talk to server", result)
    }
}

fn outcome(verdict: Verdict) -> Result<(), String> {
    match verdict {
        Verdict::Taken { .. } => Ok(()),
        Verdict::Later { why, .. }
        | Verdict::Unreadable { why }
        | Verdict::TooLarge { why, .. } => Err(why),
        Verdict::Refused { kind, why, .. } => {
            Err(format!("the server answered {kind} to a request without a log: {why}"))
        }
        Verdict::Partly { refused, .. } => {
            Err(format!("the server says that it refused {refused} of no logs"))
        }
    }
}

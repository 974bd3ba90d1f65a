//! `skidder test output`: goes to each server step by step, as far as whether it would take events.

use super::Redis;
use super::config::DataType;
use skidder_net::Steps;
use skidder_redis::{Connection, Failure, Reply, Target, with_advice};

impl Redis {
    /// Tries every server; returns whether all of them would take events.
    pub async fn check(&self, report: &mut (dyn FnMut(&str) + Send)) -> bool {
        let mut good = true;
        for target in &self.targets {
            let mut steps = Steps::new(report);
            steps.line(0, &format!("redis: {}...", target.route.host));
            good &= self.check_target(target, &mut steps).await.is_some();
        }
        good
    }

    async fn check_target(&self, target: &Target, steps: &mut Steps<'_>) -> Option<()> {
        let timeout = self.config.timeout;
        let stream = target.route.check(steps, timeout).await?;
        let mut connection = target.connection(stream, timeout);
        if target.credentials.is_some() {
            let result = target.log_in(&mut connection).await.map_err(|error| advised(&error));
            steps.step(1, "credentials", result)?;
        } else {
            steps.warn(1, "credentials", "none are shown");
        }
        let answer = ask(&mut connection, &[b"PING"]).await;
        steps.step(1, "talk to server", answer)?;
        let result = target.select(&mut connection).await.map_err(|error| advised(&error));
        steps.step(1, &format!("database {}", target.db), result)?;
        if let Ok(Reply::Value(info)) = connection.ask(&[b"INFO", b"server"]).await {
            let info = String::from_utf8_lossy(&info);
            let version = info.lines().find_map(|line| line.strip_prefix("redis_version:"));
            steps.line(1, &format!("version: {}", version.unwrap_or("not told").trim()));
        }
        self.check_permission(&mut connection, steps).await
    }

    /// Whether events would be taken, without sending one.
    async fn check_permission(
        &self,
        connection: &mut Connection,
        steps: &mut Steps<'_>,
    ) -> Option<()> {
        let writer = self.writer();
        let Some(key) = writer.constant() else {
            steps.warn(1, "permission", "not known: the key is another for each event");
            return Some(());
        };
        let command = self.config.datatype.command().as_bytes();
        if self.config.datatype == DataType::List
            && let Ok(Reply::Value(kind)) = connection.ask(&[b"TYPE", key]).await
            && kind != b"list"
            && kind != b"none"
        {
            let key = String::from_utf8_lossy(key);
            let kind = String::from_utf8_lossy(&kind);
            let error = format!("`{key}` is a {kind} and no list; use another `key`, or delete it");
            return steps.step(1, "permission", Err(error));
        }
        // Since Redis 7; a user without the right to ask gets an error.
        let Ok(Reply::Value(user)) = connection.ask(&[b"ACL", b"WHOAMI"]).await else {
            steps.warn(1, "permission", "not known: the user may not ask");
            return Some(());
        };
        match connection.ask(&[b"ACL", b"DRYRUN", &user, command, key, b"x"]).await {
            Ok(Reply::Value(answer)) if answer == b"OK" => {
                steps.ok(1, "permission", "");
                Some(())
            }
            Ok(Reply::Value(why)) => {
                let why = String::from_utf8_lossy(&why).into_owned();
                let user = String::from_utf8_lossy(&user);
                let hint = format!("{why}; see `ACL SETUSER {user}` of Redis, or `username`");
                steps.step(1, "permission", Err(hint))
            }
            _ => {
                steps.warn(1, "permission", "not known: the user may not ask");
                Some(())
            }
        }
    }
}

async fn ask(connection: &mut Connection, command: &[&[u8]]) -> Result<(), String> {
    match connection.ask(command).await {
        Ok(Reply::Error(error)) => Err(with_advice(&error)),
        Ok(_) => Ok(()),
        Err(error) => Err(error.to_string()),
    }
}

fn advised(error: &Failure) -> String {
    match error {
        Failure::Greeting { error, .. } => with_advice(error),
        other => other.to_string(),
    }
}

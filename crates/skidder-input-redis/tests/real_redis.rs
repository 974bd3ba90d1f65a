//! The contract of inputs, kept with a real Redis.

mod common;

use common::{Redis, input};
use skidder_contract::{FarSideFuture, InputTrial, Meaning, keep_input, line, number};
use skidder_input::Input;
use skidder_testkit::servers::unique_name;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::{Arc, Mutex};

/// A list.
struct List {
    redis: Arc<Redis>,
    key: String,
    sent: Mutex<BTreeSet<usize>>,
}

impl InputTrial for List {
    fn input(&self) -> Box<dyn Input> {
        input(&self.redis, &format!("lists: [{}], consumer: c", self.key))
    }

    fn meaning(&self) -> Meaning {
        Meaning::Acknowledgement
    }

    fn send(&self, lines: Range<usize>) -> FarSideFuture<'_> {
        Box::pin(async move {
            let lines: Vec<usize> = lines.collect();
            for some in lines.chunks(500) {
                self.sent.lock().expect("no panic").extend(some);
                let values: Vec<String> = some.iter().map(|number| line(*number)).collect();
                let mut command = vec!["RPUSH", &self.key];
                command.extend(values.iter().map(String::as_str));
                self.redis.cli(&command);
            }
        })
    }

    fn acknowledged(&self) -> BTreeSet<usize> {
        let mut left = self.sent.lock().expect("no panic").clone();
        // Both at once: an element is in one of them.
        let both = "local all = redis.call('LRANGE', KEYS[1], 0, -1) \
                    for _, one in ipairs(redis.call('LRANGE', KEYS[2], 0, -1)) do all[#all + 1] = one end \
                    return all";
        let pending = format!("{{{}}}:skidder:pending:c", self.key);
        let found = self.redis.cli(&["EVAL", both, "2", &self.key, &pending]);
        for line in found.lines().filter(|line| !line.is_empty()) {
            left.remove(&number(line));
        }
        left
    }

    /// One batch, which is larger than the queue.
    fn on_the_way_max(&self) -> usize {
        2048
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real servers: cargo xtask test"]
async fn lists_keep_the_contract_of_inputs() {
    let redis = Arc::new(Redis::start(""));
    keep_input(|| List {
        redis: Arc::clone(&redis),
        key: unique_name("l"),
        sent: Mutex::default(),
    })
    .await;
    // Nothing is left in the server but what no run has left.
    let keys = redis.cli(&["KEYS", "*:pending:*"]);
    assert_eq!(keys.trim(), "");
}

/// A stream.
struct Stream {
    redis: Arc<Redis>,
    key: String,
    sent: Mutex<BTreeSet<usize>>,
}

impl InputTrial for Stream {
    fn input(&self) -> Box<dyn Input> {
        input(&self.redis, &format!("streams: [{}], group: g, consumer: c", self.key))
    }

    fn meaning(&self) -> Meaning {
        Meaning::Acknowledgement
    }

    fn send(&self, lines: Range<usize>) -> FarSideFuture<'_> {
        Box::pin(async move {
            let lines: Vec<usize> = lines.collect();
            for some in lines.chunks(500) {
                self.sent.lock().expect("no panic").extend(some);
                let values: Vec<String> = some.iter().map(|number| line(*number)).collect();
                let add = "for place, value in ipairs(ARGV) do redis.call('XADD', KEYS[1], '*', 'message', value) end";
                let mut command = vec!["EVAL", add, "1", &self.key];
                command.extend(values.iter().map(String::as_str));
                self.redis.cli(&command);
            }
        })
    }

    /// What was delivered to the group and is pending no more.
    fn acknowledged(&self) -> BTreeSet<usize> {
        let left = "local groups = redis.call('XINFO', 'GROUPS', KEYS[1]) \
                    local last = groups[1] and groups[1][8] or '0-0' \
                    local waits = {} \
                    for _, one in ipairs(redis.call('XPENDING', KEYS[1], 'g', '-', '+', 100000)) do waits[one[1]] = true end \
                    local out = {} \
                    for _, one in ipairs(redis.call('XRANGE', KEYS[1], '-', last)) do \
                      if not waits[one[1]] then out[#out + 1] = one[2][2] end \
                    end \
                    return out";
        if self.redis.cli(&["XINFO", "GROUPS", &self.key]).trim().is_empty() {
            return BTreeSet::new();
        }
        let found = self.redis.cli(&["EVAL", left, "1", &self.key]);
        found.lines().filter(|line| !line.is_empty()).map(number).collect()
    }

    /// One batch, which is larger than the queue.
    fn on_the_way_max(&self) -> usize {
        1000
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real servers: cargo xtask test"]
async fn streams_keep_the_contract_of_inputs() {
    let redis = Arc::new(Redis::start(""));
    keep_input(|| Stream {
        redis: Arc::clone(&redis),
        key: unique_name("s"),
        sent: Mutex::default(),
    })
    .await;
}

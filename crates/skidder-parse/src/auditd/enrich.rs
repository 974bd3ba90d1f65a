//! Values of audit records made readable.

use super::names;
use super::pairs::{avc, put};
use super::{Field, Text};
use skidder_event::{Cell, EventMut, NodeId};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A record whose pairs were read.
pub(super) struct Record<'r, 'e> {
    pub(super) event: &'r mut EventMut<'e>,
    pub(super) fields: &'r mut Vec<Field>,
}

impl Record<'_, '_> {
    /// Makes the values readable that the type of the record has. The first error is given; all
    /// that can be done is done.
    pub(super) fn enrich(&mut self, record_type: &[u8], body: Text) -> Result<(), String> {
        self.unset();
        self.context("subj");
        self.result();
        self.exit();
        self.rule_key();
        self.hexadecimal("cwd", b' ');
        let mut done = Ok(());
        match record_type {
            b"SECCOMP" => {
                done = self.signal();
                done = done.and(self.syscall());
            }
            b"SYSCALL" => done = self.syscall(),
            b"SOCKADDR" => done = self.address(),
            b"PROCTITLE" => done = self.needed("proctitle"),
            b"USER_CMD" => done = self.needed("cmd"),
            b"TTY" | b"USER_TTY" => done = self.needed("data"),
            b"EXECVE" => done = self.arguments(),
            b"PATH" => {
                self.context("obj");
                self.hexadecimal("name", b' ');
            }
            b"USER_LOGIN" => self.hexadecimal("acct", b' '),
            _ => {}
        }
        self.long_values(body);
        self.avc(body);
        done
    }

    fn find(&self, key: &str) -> Option<usize> {
        self.fields
            .iter()
            .position(|field| !field.gone && self.event.text(field.key) == key.as_bytes())
    }

    fn value(&self, at: usize) -> &[u8] {
        self.event.text(self.fields[at].value)
    }

    fn set(&mut self, at: usize, value: &[u8]) {
        self.fields[at].value = self.event.store_text(value);
    }

    fn add(&mut self, key: &str, value: Text) {
        let key = self.event.store_text(key.as_bytes());
        // With more pairs than are kept this is one too many, which was reported.
        put(self.event, self.fields, Field::new(key, value, value));
    }

    fn missing(key: &str) -> String {
        format!("{key} key not found")
    }

    /// `-1` means that no user logged in.
    fn unset(&mut self) {
        for key in ["auid", "ses", "old-auid"] {
            let Some(at) = self.find(key) else { continue };
            let value = self.value(at);
            if value == b"-1" || (key == "old-auid" && value == b"4294967295") {
                self.set(at, b"unset");
            }
        }
    }

    /// `user:role:domain:level:category` in its parts.
    fn context(&mut self, key: &str) {
        let Some(at) = self.find(key) else { return };
        let whole = self.fields[at].value;
        self.fields[at].gone = true;
        let text = self.event.text(whole);
        let mut start = 0;
        let parts: Vec<(usize, usize)> = text
            .splitn(5, |&byte| byte == b':')
            .map(|part| {
                let span = (start, part.len());
                start += part.len() + 1;
                span
            })
            .collect();
        let names = ["user", "role", "domain", "level", "category"];
        for ((start, len), name) in parts.into_iter().zip(names) {
            let part = Text { start: whole.start + start as u32, len: len as u32 };
            self.add(&format!("{key}_{name}"), part);
        }
    }

    /// `success` or `res` as `result`, which is `success` or `fail`.
    fn result(&mut self) {
        let Some(at) = self.find("success").or_else(|| self.find("res")) else { return };
        let value = self.value(at).to_ascii_lowercase();
        self.fields[at].gone = true;
        let success = value == b"yes" || value == b"1" || value.starts_with(b"suc");
        let result = self.event.store_text(if success { b"success" } else { b"fail" });
        self.add("result", result);
    }

    /// Negative exit codes as names of errors.
    fn exit(&mut self) {
        let Some(at) = self.find("exit") else { return };
        let error = number(self.value(at)).filter(|&code| code < 0).and_then(i64::checked_neg);
        if let Some(name) = error.and_then(|error| names::error(error as usize)) {
            self.set(at, name.as_bytes());
        }
    }

    /// The key of the rule: `key="key=a"`, or several in hexadecimal with 0x01 between them.
    fn rule_key(&mut self) {
        let Some(at) = self.find("key") else { return };
        if let Some(keys) = hex_upper(self.event.text(self.fields[at].written)) {
            let keys: Vec<Cell> = keys
                .split(|&byte| byte == 1)
                .map(|key| Cell::Str(self.event.store_text(key)))
                .collect();
            self.fields[at].cell = Some(match keys[..] {
                [key] => key,
                _ => self.event.store_list(&keys),
            });
            return;
        }
        let value = self.value(at);
        if let Some(equals) = memchr::memchr(b'=', value) {
            let value = self.fields[at].value;
            let skip = equals as u32 + 1;
            self.fields[at].value = Text { start: value.start + skip, len: value.len - skip };
        }
    }

    /// A text that was written in hexadecimal, because it has spaces or quotes; zeros in it become `between`.
    fn hexadecimal(&mut self, key: &str, between: u8) {
        let Some(at) = self.find(key) else { return };
        if let Some(mut text) = hex_upper(self.event.text(self.fields[at].written)) {
            for byte in &mut text {
                if *byte == 0 {
                    *byte = between;
                }
            }
            self.set(at, &text);
        }
    }

    /// As [`Record::hexadecimal`], of a field that the record must have.
    fn needed(&mut self, key: &str) -> Result<(), String> {
        self.hexadecimal(key, b' ');
        self.find(key).map(|_| ()).ok_or_else(|| Self::missing(key))
    }

    fn signal(&mut self) -> Result<(), String> {
        let at = self.find("sig").ok_or_else(|| Self::missing("sig"))?;
        let signal = number(self.value(at)).ok_or("failed to parse sig")?;
        if let Some(name) = usize::try_from(signal).ok().and_then(names::signal) {
            self.set(at, name.as_bytes());
        }
        Ok(())
    }

    /// The architecture, the name of the system call, and the program.
    fn syscall(&mut self) -> Result<(), String> {
        let arch = self.find("arch").ok_or_else(|| Self::missing("arch"))?;
        let code = std::str::from_utf8(self.value(arch)).ok();
        let code = code.and_then(|code| i64::from_str_radix(code, 16).ok());
        let code = code.ok_or("failed to parse arch")? as u32;
        match names::arch(code) {
            Some(name) => self.set(arch, name.as_bytes()),
            None => self.set(arch, format!("unknown[{code:x}]").as_bytes()),
        }
        let at = self.find("syscall").ok_or_else(|| Self::missing("syscall"))?;
        let syscall = number(self.value(at)).ok_or("failed to parse syscall")?;
        let name = usize::try_from(syscall)
            .ok()
            .and_then(|syscall| names::syscall(self.value(arch), syscall));
        if let Some(name) = name {
            self.set(at, name.as_bytes());
        }
        // Records of SECCOMP and of old kernels may have no program.
        self.hexadecimal("exe", b' ');
        Ok(())
    }

    /// The address of a socket, which is written as the bytes of the system call's argument.
    fn address(&mut self) -> Result<(), String> {
        let at = self.find("saddr").ok_or_else(|| Self::missing("saddr"))?;
        let whole = self.fields[at].value;
        let bytes = hex(self.event.text(whole)).ok_or("failed to parse saddr: not hexadecimal")?;
        let [low, high, rest @ ..] = &bytes[..] else {
            return Err(format!("failed to parse saddr: too short: {}", bytes.len()));
        };
        let short = || format!("failed to parse saddr: {} bytes for its family", bytes.len());
        let port = rest.first_chunk().map(|port| u16::from_be_bytes(*port).to_string());
        let family = u16::from_le_bytes([*low, *high]);
        let mut parts = Vec::new();
        match family {
            1 => {
                let end = memchr::memchr(0, rest).unwrap_or(rest.len());
                parts.extend([("family", b"unix".to_vec()), ("path", rest[..end].to_vec())]);
            }
            2 => {
                let ip =
                    rest.get(2..).and_then(|rest| rest.first_chunk::<4>()).ok_or_else(short)?;
                parts.push(("family", b"ipv4".to_vec()));
                parts.push(("addr", Ipv4Addr::from(*ip).to_string().into_bytes()));
            }
            10 => {
                let flow = rest.get(2..).and_then(|rest| rest.first_chunk()).ok_or_else(short)?;
                let ip =
                    rest.get(6..).and_then(|rest| rest.first_chunk::<16>()).ok_or_else(short)?;
                let ip = IpAddr::from(Ipv6Addr::from(*ip)).to_canonical();
                parts.push(("family", b"ipv6".to_vec()));
                parts.push(("addr", ip.to_string().into_bytes()));
                let flow = u32::from_be_bytes(*flow);
                if flow > 0 {
                    parts.push(("flow", flow.to_string().into_bytes()));
                }
            }
            16 => parts.push(("family", b"netlink".to_vec())),
            other => parts.push(("family", other.to_string().into_bytes())),
        }
        if matches!(family, 2 | 10)
            && let Some(port) = port
        {
            parts.push(("port", port.into_bytes()));
        }
        self.fields[at].gone = matches!(family, 1 | 2 | 10);
        for (key, value) in parts {
            let value = self.event.store_text(&value);
            self.add(key, value);
        }
        Ok(())
    }

    /// The arguments of a program, `a0` to as many as `argc` says.
    fn arguments(&mut self) -> Result<(), String> {
        let at = self.find("argc").ok_or_else(|| Self::missing("argc"))?;
        let count = number(self.value(at)).ok_or("failed to convert argc to number")?;
        for argument in 0..self.fields.len() {
            let key = self.event.text(self.fields[argument].key);
            let Some(index) = key.strip_prefix(b"a").and_then(number) else { continue };
            if index < 0 || index >= count {
                continue;
            }
            if let Some(text) = hex_upper(self.event.text(self.fields[argument].written)) {
                let end = memchr::memchr(0, &text).unwrap_or(text.len());
                self.set(argument, &text[..end]);
            }
        }
        let first_missing = (0..count.min(self.fields.len() as i64 + 1))
            .find(|index| self.find(&format!("a{index}")).is_none());
        match first_missing {
            Some(index) => Err(format!("failed to find arg a{index}")),
            None => Ok(()),
        }
    }

    /// Values of several words in the inner message, of which only the first was taken:
    /// `op=adding group to /etc/group`.
    fn long_values(&mut self, body: Text) {
        let text = self.event.text(body);
        let Some(start) = memchr::memmem::find(text, b"msg='") else { return };
        let start = start + 5;
        let Some(len) = memchr::memchr(b'\'', &text[start..]) else { return };
        let (inner, inner_start) = (&text[start..start + len], body.start + start as u32);
        let mut longer = Vec::new();
        for (at, field) in self.fields.iter().enumerate().filter(|(_, field)| !field.gone) {
            let value = field.value;
            let inside =
                value.start >= inner_start && value.start + value.len <= inner_start + len as u32;
            if !inside || field.written != value {
                continue;
            }
            let from = (value.start - inner_start) as usize;
            let end = from + value.len as usize;
            let more = words_before_pair(&inner[end..]);
            if more > 0 {
                longer.push((at, Text { len: value.len + more as u32, ..value }));
            }
        }
        for (at, value) in longer {
            self.fields[at].value = value;
        }
    }

    /// What SELinux decided about one permission.
    fn avc(&mut self, body: Text) {
        let Some((action, request, _)) = avc(self.event.text(body)) else { return };
        if request.is_empty()
            || !request.iter().all(|&byte| byte.is_ascii_alphanumeric() || byte == b'_')
        {
            return;
        }
        let texts = [action.to_vec(), request.to_vec()];
        let [action, request] = texts.map(|text| self.event.store_text(&text));
        let keys = [b"action", b"request" as &[u8]].map(|key| self.event.store_text(key));
        let (_, mut arena) = self.event.arena();
        let first = arena.push(NodeId::NONE, keys[0], Cell::Str(action), 0);
        arena.push(first, keys[1], Cell::Str(request), 0);
        self.add("avc", action);
        if let Some(at) = self.find("avc") {
            self.fields[at].cell = Some(Cell::Map { first, opaque: false });
        }
    }
}

/// How much of a text belongs to the value before it: the words up to the next `key=` or the end,
/// if there are any.
fn words_before_pair(text: &[u8]) -> usize {
    let mut end = 0;
    let mut at = 0;
    while text.get(at) == Some(&b' ') {
        let start = at + text[at..].iter().take_while(|&&byte| byte == b' ').count();
        let len = memchr::memchr(b' ', &text[start..]).unwrap_or(text.len() - start);
        let word = &text[start..start + len];
        if word.is_empty() || memchr::memchr3(b'=', b'"', b'\'', word).is_some() {
            break;
        }
        at = start + len;
        end = at;
    }
    end
}

fn number(text: &[u8]) -> Option<i64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// Bytes written in hexadecimal.
fn hex(text: &[u8]) -> Option<Vec<u8>> {
    if text.len() % 2 == 1 {
        return None;
    }
    let digit = |byte: u8| char::from(byte).to_digit(16);
    text.chunks(2).map(|pair| Some((digit(pair[0])? << 4 | digit(pair[1])?) as u8)).collect()
}

/// A text that the kernel wrote in hexadecimal, which it does with capital letters and never in quotes.
fn hex_upper(text: &[u8]) -> Option<Vec<u8>> {
    if text.is_empty() || text.iter().any(|byte| byte.is_ascii_lowercase()) {
        None
    } else {
        hex(text)
    }
}

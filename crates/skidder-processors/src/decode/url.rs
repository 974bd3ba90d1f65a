//! `urldecode`: resolves `%20` and `+` as in the query of a URL.

use super::in_place::{Decoded, FROM_TO, FromTo};
use crate::fields::pairs::run_each;
use crate::plan::{
    Constants, ERROR_MESSAGE, Failure, Footprint, Outcome, Processor, message_if, rehearse,
};
use skidder_config::{Group, Key, Parts, Section, settings};
use skidder_event::{EventMut, Path};

settings! {
    /// Settings of `urldecode`.
    pub(crate) static URLDECODE = Group::new("processor.urldecode", "Resolves `%20` and `+` in texts, as in the query of a URL.");

    FIELDS: Parts = Key::parts("fields", &FROM_TO)
        .required()
        .about("a list of `from` and `to`; without `to` the text is decoded in its place");
    IGNORE_MISSING: bool = Key::new("ignore_missing")
        .default(false)
        .about("a missing `from` is not a failure");
    FAIL_ON_ERROR: bool = Key::new("fail_on_error")
        .default(true)
        .about("the first field that fails undoes all of them; otherwise it alone is left out");
}

/// Decodes texts of fields.
#[derive(Clone, Debug)]
pub(crate) struct UrlDecode {
    fields: Vec<FromTo>,
    ignore_missing: bool,
    fail_on_error: bool,
}

impl UrlDecode {
    /// `fields` (a list of `from` and `to`), `ignore_missing`, `fail_on_error`.
    pub(crate) fn read(settings: &Section<'_>) -> Option<Self> {
        let sections = settings.parts(&FIELDS);
        if sections.is_empty() {
            let message = format!("`{}` is missing", settings.path_of(FIELDS.name()));
            settings.problem(
                FIELDS.name(),
                message,
                "give a list of `from: name`, each perhaps with `to: name`",
            );
        }
        let ignore_missing = settings.get(&IGNORE_MISSING).value();
        let fail_on_error = settings.get(&FAIL_ON_ERROR).value();
        let read = |section| FromTo::read(section, fail_on_error);
        let fields: Vec<_> = sections.iter().map(read).collect();
        let fields = fields.into_iter().collect::<Option<Vec<_>>>()?;
        (!fields.is_empty()).then_some(Self { fields, ignore_missing, fail_on_error })
    }

    fn decode(&self, event: &mut EventMut<'_>, field: &FromTo) -> Result<(), String> {
        let Some(text) = field.text(event.as_ref(), self.ignore_missing, "value")? else {
            return Ok(());
        };
        if memchr::memchr2(b'%', b'+', text).is_none() {
            return field.keep(event);
        }
        let mut decoded = Decoded::new();
        if let Err(at) = unescape(text, &mut decoded) {
            let bad = &text[at..(at + 3).min(text.len())];
            return Err(message_if(
                self.fail_on_error,
                format_args!(
                    "error trying to URL-decode {}: invalid URL escape {:?}",
                    String::from_utf8_lossy(text),
                    String::from_utf8_lossy(bad)
                ),
            ));
        }
        field.put(event, &decoded)
    }
}

/// Appends the text with its escapes resolved; the error is the place of a `%` without two hexadecimal
/// digits.
fn unescape(text: &[u8], out: &mut Decoded) -> Result<(), usize> {
    let digit = |at: usize| text.get(at).and_then(|&byte| (byte as char).to_digit(16));
    let mut at = 0;
    while let Some(len) = memchr::memchr2(b'%', b'+', &text[at..]) {
        out.extend_from_slice(&text[at..at + len]);
        at += len;
        if text[at] == b'+' {
            out.push(b' ');
            at += 1;
        } else {
            let (high, low) = digit(at + 1).zip(digit(at + 2)).ok_or(at)?;
            out.push((high * 16 + low) as u8);
            at += 3;
        }
    }
    out.extend_from_slice(&text[at..]);
    Ok(())
}

impl Processor for UrlDecode {
    fn name(&self) -> &'static str {
        "urldecode"
    }

    fn run(&self, event: &mut EventMut<'_>) -> Result<Outcome, Failure> {
        run_each(event, &self.fields, self.fail_on_error, |event, field| self.decode(event, field))
            .map_err(|reason| {
                Failure::new(format!("failed to decode fields in urldecode processor: {reason}"))
            })?;
        Ok(Outcome::Done)
    }

    fn footprint(&self, _: &Constants) -> Footprint {
        let reads = self.fields.iter().map(|field| field.from.clone()).collect();
        let mut writes: Vec<Path> = self.fields.iter().map(|field| field.to.clone()).collect();
        writes.push(ERROR_MESSAGE.clone());
        Footprint { reads, writes, ..Footprint::default() }
    }

    fn fold(&self, constants: &mut Constants) -> bool {
        let writes: Vec<&Path> = self.fields.iter().map(|field| &field.to).collect();
        rehearse(self, constants, &writes)
    }

    fn can_fail(&self) -> bool {
        self.fail_on_error
    }

    fn describe(&self) -> String {
        let names: Vec<_> = self.fields.iter().map(|field| field.from.as_str()).collect();
        format!("urldecode {}", names.join(", "))
    }
}

//! Shared by decoders of one text: the text of a field, decoded into another or in its place, and
//! the processor around it.

use crate::fields::pairs::{optional_path, required_path};
use crate::go_value::go_type;
use crate::plan::{
    Constants, ERROR_MESSAGE, Failure, Footprint, Outcome, Processor, message_if, rehearse,
};
use skidder_config::{Group, Key, Part, Section, settings};
use skidder_event::{EditError, EventMut, EventRef, Path, ValueRef};
use smallvec::SmallVec;
use std::fmt::Debug;

settings! {
    /// Source and target fields.
    pub(crate) static FROM_TO = Group::new("processor.from_to", "From where to where.").inline();

    FROM: String = Key::new("from")
        .required()
        .about("the field");
    TO: String = Key::new("to")
        .default_words("as `from`")
        .about("where the result goes");
}

settings! {
    /// What every processor has that decodes one field.
    static IN_PLACE = Group::new("processor.in_place", "Decodes a field.");

    FIELD: Part = Key::part("field", &FROM_TO)
        .required()
        .about("the field");
    IGNORE_MISSING: bool = Key::new("ignore_missing")
        .default(false)
        .about("a missing `from` is not a failure");
    FAIL_ON_ERROR: bool = Key::new("fail_on_error")
        .default(true)
        .about("otherwise an event that cannot be decoded stays as it is, and nothing is said");
}

/// Settings of `decode_base64_field`.
pub(crate) static DECODE_BASE64_FIELD: Group = Group::new(
    "processor.decode_base64_field",
    "Decodes a text in Base64 (the standard alphabet, with or without \
                               padding; line breaks do not count).",
)
.include(&[&IN_PLACE]);

/// Settings of `decompress_gzip_field`.
pub(crate) static DECOMPRESS_GZIP_FIELD: Group = Group::new(
    "processor.decompress_gzip_field",
    "Unpacks a field that holds a gzip file, such as one that \
                               `decode_base64_field` decoded.",
)
.include(&[&IN_PLACE]);

/// Decoded text. Longer ones go to the heap.
pub(super) type Decoded = SmallVec<[u8; 512]>;

/// `from`, and `to` or the same.
#[derive(Clone, Debug)]
pub(super) struct FromTo {
    pub(super) from: Path,
    pub(super) to: Path,
    /// Both are the same.
    is_same: bool,
    /// Whether messages of failures are used.
    is_used: bool,
}

impl FromTo {
    /// Returns `None`, and reports the problem, if `from` is missing or one of them is not a path.
    /// `is_used`: messages of failures are used.
    pub(super) fn read(section: &Section<'_>, is_used: bool) -> Option<Self> {
        let from = required_path(section, &FROM);
        let to = optional_path(section, &TO);
        let from = from?;
        let to = to.unwrap_or_else(|| from.clone());
        let is_same = from == to;
        Some(Self { from, to, is_same, is_used })
    }

    /// The bytes at `from`; `None` if there are none, that need not be there.
    #[inline]
    pub(super) fn text<'a>(
        &self,
        event: EventRef<'a>,
        ignore_missing: bool,
        noun: &str,
    ) -> Result<Option<&'a [u8]>, String> {
        match event.get(&self.from) {
            Some(ValueRef::Str(text)) => Ok(Some(text)),
            None if ignore_missing => Ok(None),
            other => Err(self.no_text(other, noun)),
        }
    }

    #[cold]
    fn no_text(&self, value: Option<ValueRef<'_>>, noun: &str) -> String {
        let from = &self.from;
        let Some(value) = value else {
            let why = format_args!("could not fetch {noun} for key: {from}, Error: key not found");
            return message_if(self.is_used, why);
        };
        let kind = go_type(value);
        let why = format_args!("invalid type for `from`, expecting a string received {kind}");
        message_if(self.is_used, why)
    }

    #[cold]
    fn refused(&self, error: &EditError) -> String {
        message_if(self.is_used, format_args!("could not put value: {}: {error}", self.to))
    }

    /// Puts the text as it is, which needs no copy where it is of the event's own.
    pub(super) fn keep(&self, event: &mut EventMut<'_>) -> Result<(), String> {
        if self.is_same {
            return Ok(());
        }
        let Some(cell) = event.copy(&self.from) else { return Ok(()) };
        event.put_cell(&self.to, cell).map_err(|error| self.refused(&error))
    }

    /// Puts the decoded value.
    pub(super) fn put(&self, event: &mut EventMut<'_>, decoded: &[u8]) -> Result<(), String> {
        event.put_text(&self.to, decoded).map_err(|error| self.refused(&error))
    }
}

/// What makes another text of one.
pub(super) trait Decoder: Debug + Send + Sync + 'static {
    /// The processor's name in the configuration.
    const NAME: &'static str;
    /// What the message of a failure begins with.
    const FAILED: &'static str;
    /// What the text is called when it is not there.
    const NOUN: &'static str;
    /// Owned bytes.
    type Decoded: AsRef<[u8]>;
    /// Why a text cannot be decoded.
    type Refused;

    fn decode(&self, text: &[u8]) -> Result<Self::Decoded, Self::Refused>;

    /// Why the text of the field `from` could not be decoded, in words.
    fn say(refused: &Self::Refused, text: &[u8], from: &Path) -> String;
}

/// Decodes the text of one field.
#[derive(Debug)]
pub(super) struct DecodeField<D> {
    decoder: D,
    field: FromTo,
    ignore_missing: bool,
    fail_on_error: bool,
}

impl<D: Decoder> DecodeField<D> {
    /// `field.from`, `field.to`, `ignore_missing`, `fail_on_error`.
    pub(super) fn read(settings: &Section<'_>, decoder: D) -> Option<Self> {
        let ignore_missing = settings.get(&IGNORE_MISSING).value();
        let fail_on_error = settings.get(&FAIL_ON_ERROR).value();
        let field = FromTo::read(&settings.part(&FIELD), fail_on_error);
        Some(Self { decoder, field: field?, ignore_missing, fail_on_error })
    }

    fn decode(&self, event: &mut EventMut<'_>) -> Result<(), String> {
        let Some(text) = self.field.text(event.as_ref(), self.ignore_missing, D::NOUN)? else {
            return Ok(());
        };
        let decoded = self.decoder.decode(text).map_err(|refused| {
            if self.fail_on_error {
                D::say(&refused, text, &self.field.from)
            } else {
                String::new()
            }
        })?;
        self.field.put(event, decoded.as_ref())
    }
}

impl<D: Decoder> Processor for DecodeField<D> {
    fn name(&self) -> &'static str {
        D::NAME
    }

    fn run(&self, event: &mut EventMut<'_>) -> Result<Outcome, Failure> {
        let mark = event.mark();
        if let Err(reason) = self.decode(event) {
            if self.fail_on_error {
                return Err(Failure::new(format!("{}: {reason}", D::FAILED)));
            }
            event.rollback(mark);
        }
        Ok(Outcome::Done)
    }

    fn footprint(&self, _: &Constants) -> Footprint {
        let writes = vec![self.field.to.clone(), ERROR_MESSAGE.clone()];
        Footprint { reads: vec![self.field.from.clone()], writes, ..Footprint::default() }
    }

    fn fold(&self, constants: &mut Constants) -> bool {
        rehearse(self, constants, &[&self.field.to])
    }

    fn can_fail(&self) -> bool {
        self.fail_on_error
    }

    fn describe(&self) -> String {
        format!("{} {}", D::NAME, self.field.from)
    }
}

//! `registered_domain`: the registered domain of a full name (`www.example.co.uk` gives
//! `example.co.uk`), with the list of public suffixes that is compiled in.

use crate::fields::pairs::{optional_path, required_path};
use crate::go_value::utf8_of;
use crate::plan::{Constants, Failure, Footprint, Outcome, Processor, message_if, rehearse};
use skidder_config::{Group, Key, Section, settings};
use skidder_event::{EventMut, Path};
use smallvec::SmallVec;

settings! {
    /// Settings of `registered_domain`.
    pub(crate) static REGISTERED_DOMAIN = Group::new("processor.registered_domain", "Finds the registered domain of a full name, with a compiled-in list \
                               of public suffixes.").deprecated(&[("id", "failures are counted for each processor without it")]);

    FIELD: String = Key::new("field")
        .required()
        .about("the field with the name");
    TARGET_FIELD: String = Key::new("target_field")
        .required()
        .about("where the registered domain goes");
    TARGET_ETLD_FIELD: String = Key::new("target_etld_field")
        .about("where the public suffix goes (`co.uk`)");
    TARGET_SUBDOMAIN_FIELD: String = Key::new("target_subdomain_field")
        .about("where the part before the registered domain goes, if any");
    IGNORE_MISSING: bool = Key::new("ignore_missing")
        .default(false)
        .about("a missing `field` is not a failure");
    IGNORE_FAILURE: bool = Key::new("ignore_failure")
        .default(false)
        .about("nothing is a failure");
}

/// Adds the registered domain of a name.
#[derive(Clone, Debug)]
pub(crate) struct RegisteredDomain {
    field: Path,
    target: Path,
    /// The public suffix: `co.uk`.
    target_etld: Option<Path>,
    /// The part before the registered domain: `www`.
    target_subdomain: Option<Path>,
    ignore_missing: bool,
    ignore_failure: bool,
}

impl RegisteredDomain {
    /// `field`, `target_field`, `target_etld_field`, `target_subdomain_field`, `ignore_missing`,
    /// `ignore_failure`, `id`.
    pub(crate) fn read(settings: &Section<'_>) -> Option<Self> {
        let field = required_path(settings, &FIELD);
        let target = required_path(settings, &TARGET_FIELD);
        let target_etld = optional_path(settings, &TARGET_ETLD_FIELD);
        let target_subdomain = optional_path(settings, &TARGET_SUBDOMAIN_FIELD);
        let ignore_missing = settings.get(&IGNORE_MISSING).value();
        let ignore_failure = settings.get(&IGNORE_FAILURE).value();
        Some(Self {
            field: field?,
            target: target?,
            target_etld,
            target_subdomain,
            ignore_missing,
            ignore_failure,
        })
    }

    fn add(&self, event: &mut EventMut<'_>) -> Result<(), String> {
        let Some(value) = event.as_ref().get(&self.field) else {
            if self.ignore_missing {
                return Ok(());
            }
            let field = &self.field;
            let why =
                format_args!("registered_domain source field [{field}] not found: key not found");
            return Err(message_if(!self.ignore_failure, why));
        };
        let Some(name) = utf8_of(value) else {
            let field = &self.field;
            let why = format_args!("registered_domain source field [{field}] is not a string");
            return Err(message_if(!self.ignore_failure, why));
        };
        let (domain, suffix) = split(name).map_err(|why| {
            let why = format_args!(
                "failed to determine the registered domain: publicsuffix: {why} domain {name:?}"
            );
            message_if(!self.ignore_failure, why)
        })?;
        // The text is the batch's own, which is about to grow.
        let name: SmallVec<[u8; 256]> = SmallVec::from_slice(name.as_bytes());
        let put = |event: &mut EventMut<'_>, path: &Path, text: &[u8], what: &str| {
            event.put_text(path, text).map_err(|error| {
                let why = format_args!("failed to write {what} to target field [{path}]: {error}");
                message_if(!self.ignore_failure, why)
            })
        };
        put(event, &self.target, &name[domain..], "registered domain")?;
        if let Some(path) = &self.target_etld {
            put(event, path, &name[suffix..], "effective top-level domain")?;
        }
        if let Some(path) = &self.target_subdomain
            && domain > 0
        {
            put(event, path, &name[..domain - 1], "subdomain")?;
        }
        Ok(())
    }
}

/// Where the registered domain and where the public suffix of a name begin. A name whose last part is in no
/// rule of the list has that part for its suffix.
fn split(name: &str) -> Result<(usize, usize), &'static str> {
    if name.starts_with('.') || name.ends_with('.') || name.contains("..") {
        return Err("empty label in");
    }
    let suffix = psl::suffix(name.as_bytes()).map_or(0, |suffix| suffix.as_bytes().len());
    match psl::domain(name.as_bytes()) {
        Some(domain) if suffix > 0 && domain.as_bytes().len() > suffix => {
            Ok((name.len() - domain.as_bytes().len(), name.len() - suffix))
        }
        _ => Err("cannot derive eTLD+1 for"),
    }
}

impl Processor for RegisteredDomain {
    fn name(&self) -> &'static str {
        "registered_domain"
    }

    fn run(&self, event: &mut EventMut<'_>) -> Result<Outcome, Failure> {
        match self.add(event) {
            Ok(()) => Ok(Outcome::Done),
            Err(reason) => Err(Failure::unnoted(reason).ignored(self.ignore_failure)),
        }
    }

    fn footprint(&self, _: &Constants) -> Footprint {
        let all =
            std::iter::once(&self.target).chain(&self.target_etld).chain(&self.target_subdomain);
        let writes = all.cloned().collect();
        Footprint { reads: vec![self.field.clone()], writes, ..Footprint::default() }
    }

    fn fold(&self, constants: &mut Constants) -> bool {
        let all =
            std::iter::once(&self.target).chain(&self.target_etld).chain(&self.target_subdomain);
        rehearse(self, constants, &all.collect::<Vec<_>>())
    }

    fn can_fail(&self) -> bool {
        !self.ignore_failure
    }

    fn describe(&self) -> String {
        format!("registered_domain of {} to {}", self.field, self.target)
    }
}

//! `decode_xml_wineventlog`: events of the Windows event log, as XML, become the fields that
//! Winlogbeat has for them.
//!
//! The elements are those of <https://learn.microsoft.com/windows/win32/wes/eventschema-elements>,
//! the fields those of Filebeat (winlogbeat/sys/winevent). Names of keywords, levels and opcodes
//! that the event does not bring are those of winmeta.xml, which all publishers share; this system
//! has no registry of publishers to look them up.

use super::super::object::Object;
use super::tree::{self, Element};
use super::{COMMON, Common, Target, constant};
use crate::plan::Constants;
use crate::plan::Failure;
use crate::plan::Footprint;
use crate::plan::{Outcome, Processor};
use skidder_config::{Group, Key, Section, settings};
use skidder_event::{Cell, EventMut, Path, Text};

settings! {
    /// Settings of `decode_xml_wineventlog`.
    pub(crate) static DECODE_XML_WINEVENTLOG = Group::new("processor.decode_xml_wineventlog", "Makes fields of an event of the Windows event log that is written as \
                               XML, the same as Winlogbeat has for it, and the fields of ECS that \
                               they stand for.").include(&[&COMMON]);

    TARGET_FIELD: String = Key::new("target_field")
        .default(DecodeXmlWineventlog::TARGET_FIELD)
        .about("the field that gets what was decoded, in place of what it was; \"\" is the event \
                itself");
    OVERWRITE_KEYS: bool = Key::new("overwrite_keys")
        .default(true)
        .about("what the event has is replaced by fields of ECS, and with `target_field: \"\"` by \
                all others");
    MAP_ECS_FIELDS: bool = Key::new("map_ecs_fields")
        .default(true)
        .about("`event.code`, `event.kind`, `event.provider`, `event.action`, `event.outcome`, \
                `host.name`, `log.level`, `message` and `error.code` are set too");
    LANGUAGE: u32 = Key::new("language")
        .default(0)
        .about("the language of texts that Windows itself renders; no effect on other systems, \
                which a warning says");
}

/// Bits of `System/Keywords` and their names.
const KEYWORDS: [(u64, &str); 7] = [
    (0x0001_0000_0000_0000, "Response Time"),
    (0x0004_0000_0000_0000, "WDI Diag"),
    (0x0008_0000_0000_0000, "SQM"),
    (AUDIT_FAILURE, "Audit Failure"),
    (AUDIT_SUCCESS, "Audit Success"),
    (0x0040_0000_0000_0000, "Correlation Hint"),
    (0x0080_0000_0000_0000, "Classic"),
];
const AUDIT_FAILURE: u64 = 0x0010_0000_0000_0000;
const AUDIT_SUCCESS: u64 = 0x0020_0000_0000_0000;

/// By number.
const OPCODES: [&str; 10] = [
    "Info",
    "Start",
    "Stop",
    "DCStart",
    "DCStop",
    "Extension",
    "Reply",
    "Resume",
    "Suspend",
    "Send",
];

/// By number.
const LEVELS: [&str; 6] = ["Information", "Critical", "Error", "Warning", "Information", "Verbose"];

/// Makes fields of events of the Windows event log.
#[derive(Clone, Debug)]
pub(crate) struct DecodeXmlWineventlog {
    common: Common,
    /// Paths of ECS that are set.
    ecs: Option<Vec<Path>>,
    overwrite: bool,
}

impl DecodeXmlWineventlog {
    /// Default target of the fields.
    const TARGET_FIELD: &'static str = "winlog";
    const ECS: [&'static str; 9] = [
        "event.kind",
        "event.code",
        "event.provider",
        "event.action",
        "host.name",
        "event.outcome",
        "log.level",
        "message",
        "error.code",
    ];

    /// All settings of the processor.
    pub(crate) fn read(settings: &Section<'_>) -> Option<Self> {
        let overwrite = settings.get(&OVERWRITE_KEYS).value();
        let common = Common::read(settings, "decode_xml_wineventlog", &TARGET_FIELD, overwrite);
        if settings.get(&LANGUAGE).optional().is_some_and(|language| language != 0) {
            let message = format!("`{}` has no effect here", settings.path_of(LANGUAGE.name()));
            settings.warning(
                LANGUAGE.name(),
                message,
                "only Windows itself has texts in other languages; leave it out",
            );
        }
        let ecs = settings.get(&MAP_ECS_FIELDS).value();
        let ecs = ecs.then(|| Self::ECS.iter().map(|name| constant(name)).collect());
        Some(Self { common, ecs, overwrite })
    }

    fn decode(&self, event: &mut EventMut<'_>, text: Text) -> Result<(), String> {
        // The batch grows while the tree is put into it.
        let xml = event.text(text).to_vec();
        let wrong = |why: String| format!("error decoding XML field: {why}");
        let roots = tree::parse(&xml).map_err(|error| wrong(error.to_string()))?;
        let found = WinEvent::read(&roots[0]).map_err(wrong)?;
        let object = found.fields(event);
        self.common.target.put(event, &object)?;
        if self.ecs.is_some() {
            let object = found.ecs(event);
            Target::Root(self.overwrite).put(event, &object)?;
        }
        Ok(())
    }
}

/// The content of an event.
#[derive(Debug, Default)]
struct WinEvent<'x> {
    provider: Option<&'x Element<'x>>,
    event_id: u32,
    version: u8,
    keywords_raw: u64,
    keywords: Vec<&'x str>,
    opcode: &'x str,
    level: String,
    task: &'x str,
    time_created: Option<i64>,
    record_id: u64,
    correlation: Option<&'x Element<'x>>,
    /// Names of fields and values, those of `System/Execution` and of errors.
    numbers: Vec<(&'static str, u32)>,
    channel: &'x str,
    computer: &'x str,
    user: &'x str,
    message: String,
    event_data: Vec<(&'x str, &'x str)>,
    user_data: Vec<(&'x str, &'x str)>,
    user_data_name: &'x str,
}

/// The text of the element at a path of names, if it is there.
fn text<'x>(root: &'x Element<'x>, path: [&str; 2]) -> Option<&'x str> {
    Some(&*root.child(path[0])?.child(path[1])?.text)
}

/// A number; nothing written is zero.
fn number<T: std::str::FromStr + Default>(text: &str) -> Result<T, String> {
    let text = text.trim();
    if text.is_empty() {
        return Ok(T::default());
    }
    text.parse().map_err(|_| format!("strconv.ParseUint: parsing {text:?}: invalid syntax"))
}

impl<'x> WinEvent<'x> {
    fn read(root: &'x Element<'x>) -> Result<Self, String> {
        let system = |name| text(root, ["System", name]);
        let rendered = |name| text(root, ["RenderingInfo", name]).unwrap_or_default();
        let of_system = |name| root.child("System").and_then(|system| system.child(name));
        let mut event = Self {
            provider: of_system("Provider"),
            event_id: number(system("EventID").unwrap_or_default())?,
            version: system("Version").and_then(|text| text.parse().ok()).unwrap_or_default(),
            keywords_raw: system("Keywords").map_or(Ok(0), hexadecimal)?,
            record_id: number(system("EventRecordID").unwrap_or_default())?,
            correlation: of_system("Correlation"),
            channel: system("Channel").unwrap_or_default(),
            computer: system("Computer").unwrap_or_default(),
            user: of_system("Security").map_or("", |security| security.attribute("UserID")),
            opcode: rendered("Opcode"),
            level: rendered("Level").to_lowercase(),
            task: rendered("Task"),
            message: without_windows_line_ends(rendered("Message")),
            ..Self::default()
        };
        let time = of_system("TimeCreated").map_or("", |time| time.attribute("SystemTime"));
        if !time.is_empty() {
            let read = skidder_parse::time::rfc3339(time.as_bytes());
            event.time_created = Some(read.ok_or_else(|| format!("`{time}` is not a time"))?);
        }
        event.read_numbers(root, of_system("Execution"))?;
        event.read_data(root);
        event.read_names(root, system("Level"), system("Task"), system("Opcode"))?;
        Ok(event)
    }

    fn read_numbers(
        &mut self,
        root: &Element<'_>,
        execution: Option<&Element<'_>>,
    ) -> Result<(), String> {
        let names = [
            ("KernelTime", "kernel_time"),
            ("ProcessID", "process.pid"),
            ("ThreadID", "process.thread.id"),
            ("ProcessorID", "processor_id"),
            ("ProcessorTime", "processor_time"),
            ("SessionID", "session_id"),
            ("UserTime", "user_time"),
        ];
        for (attribute, field) in names {
            let value = execution.map_or("", |execution| execution.attribute(attribute));
            self.numbers.push((field, number(value)?));
        }
        let code = text(root, ["ProcessingErrorData", "ErrorCode"]).unwrap_or_default();
        self.numbers.push(("error.code", number(code)?));
        self.numbers.retain(|(_, value)| *value != 0);
        Ok(())
    }

    fn read_data(&mut self, root: &'x Element<'x>) {
        if let Some(data) = root.child("EventData") {
            self.event_data = pairs(data);
        }
        let inner = root.child("UserData").and_then(|data| data.children.first());
        if let Some(data) = inner {
            self.user_data = pairs(data);
            self.user_data_name = &data.name;
        }
    }

    /// Names of numbers that the event does not bring.
    fn read_names(
        &mut self,
        root: &'x Element<'x>,
        level: Option<&str>,
        task: Option<&str>,
        opcode: Option<&str>,
    ) -> Result<(), String> {
        let keywords = root.child("RenderingInfo").and_then(|info| info.child("Keywords"));
        if let Some(keywords) = keywords {
            let words = keywords.children.iter().filter(|child| child.name == "Keyword");
            self.keywords = words.map(|word| &*word.text).collect();
        }
        if self.keywords.is_empty() {
            let set = KEYWORDS.iter().filter(|(bit, _)| self.keywords_raw & bit != 0);
            self.keywords = set.map(|(_, name)| *name).collect();
        }
        let (level_raw, task_raw): (u8, u16) =
            (number(level.unwrap_or_default())?, number(task.unwrap_or_default())?);
        if self.level.is_empty() {
            let name = LEVELS.get(usize::from(level_raw)).copied().unwrap_or_default();
            self.level = name.to_lowercase();
        }
        if self.task.is_empty() && task_raw == 0 {
            self.task = "None";
        }
        if let Some(opcode) = opcode {
            let raw: u8 = number(opcode)?;
            if self.opcode.is_empty() {
                self.opcode = OPCODES.get(usize::from(raw)).copied().unwrap_or_default();
            }
        }
        Ok(())
    }

    fn outcome(&self) -> &'static str {
        match self.keywords_raw {
            raw if raw & AUDIT_FAILURE != 0 => "failure",
            raw if raw & AUDIT_SUCCESS != 0 => "success",
            _ => "",
        }
    }

    fn of_provider(&self, attribute: &str) -> &str {
        self.provider.map_or("", |provider| provider.attribute(attribute))
    }

    /// The fields of Winlogbeat.
    fn fields(&self, event: &mut EventMut<'_>) -> Object {
        let mut object = Object::EMPTY;
        let of_correlation = |name| self.correlation.map_or("", |element| element.attribute(name));
        let texts = [
            ("channel", self.channel),
            ("event_id", &*self.event_id.to_string()),
            ("provider_name", self.of_provider("Name")),
            ("task", self.task),
            ("computer_name", self.computer),
            ("opcode", self.opcode),
            ("provider_guid", self.of_provider("Guid")),
            ("outcome", self.outcome()),
            ("level", &self.level),
            ("message", &self.message),
            ("user.identifier", self.user),
            ("activity_id", of_correlation("ActivityID")),
            ("related_activity_id", of_correlation("RelatedActivityID")),
        ];
        for (name, text) in texts {
            put_text(event, &mut object, name, text);
        }
        if self.record_id != 0 {
            put(event, &mut object, "record_id", Cell::UInt(self.record_id));
        }
        if self.version != 0 {
            put(event, &mut object, "version", Cell::Int(self.version.into()));
        }
        if let Some(time) = self.time_created {
            put(event, &mut object, "time_created", Cell::Time(time));
        }
        for (name, value) in &self.numbers {
            put(event, &mut object, name, Cell::Int((*value).into()));
        }
        if !self.keywords.is_empty() {
            let words = self.keywords.iter();
            let cells: Vec<Cell> =
                words.map(|word| Cell::Str(event.store_text(word.as_bytes()))).collect();
            let list = event.store_list(&cells);
            put(event, &mut object, "keywords", list);
        }
        let data = data_of(event, &self.event_data);
        if !data.is_empty() {
            put(event, &mut object, "event_data", data.cell());
        }
        let mut data = data_of(event, &self.user_data);
        if !data.is_empty() {
            put_text(event, &mut data, "xml_name", self.user_data_name);
            put(event, &mut object, "user_data", data.cell());
        }
        object
    }

    /// The fields of ECS.
    fn ecs(&self, event: &mut EventMut<'_>) -> Object {
        let mut object = Object::EMPTY;
        let provider = event.store_text(self.of_provider("Name").as_bytes());
        put(event, &mut object, "event.provider", Cell::Str(provider));
        let texts = [
            ("event.kind", "event"),
            ("event.code", &*self.event_id.to_string()),
            ("event.action", self.task),
            ("host.name", self.computer),
            ("event.outcome", self.outcome()),
            ("log.level", &self.level),
            ("message", &self.message),
        ];
        for (name, text) in texts {
            put_text(event, &mut object, name, text);
        }
        for (name, value) in self.numbers.iter().filter(|(name, _)| *name == "error.code") {
            put(event, &mut object, name, Cell::Int((*value).into()));
        }
        object
    }
}

/// Values by name: each element inside is one.
fn pairs<'x>(data: &'x Element<'x>) -> Vec<(&'x str, &'x str)> {
    let pair = |element: &'x Element<'x>| {
        let name = match element.attribute("Name") {
            "" => &*element.name,
            name => name,
        };
        (name, &*element.text)
    };
    data.children.iter().map(pair).collect()
}

/// The first value of each name; those that are only called `Data` are called by their place.
fn data_of(event: &mut EventMut<'_>, pairs: &[(&str, &str)]) -> Object {
    let mut object = Object::EMPTY;
    for (at, (name, value)) in pairs.iter().enumerate() {
        if value.is_empty() {
            continue;
        }
        let place = format!("param{}", at + 1);
        let name = if matches!(*name, "" | "Data") { &place } else { *name };
        let key = event.store_text(name.as_bytes());
        if !object.has_path(event, key) {
            let value = event.store_text(without_windows_line_ends(value).as_bytes());
            object.set_path(event, key, Cell::Str(value));
        }
    }
    object
}

fn put_text(event: &mut EventMut<'_>, object: &mut Object, name: &str, text: &str) {
    if !text.is_empty() {
        let text = event.store_text(text.as_bytes());
        put(event, object, name, Cell::Str(text));
    }
}

fn put(event: &mut EventMut<'_>, object: &mut Object, name: &str, cell: Cell) {
    let key = event.store_text(name.as_bytes());
    object.set_path(event, key, cell);
}

fn without_windows_line_ends(text: &str) -> String {
    text.replace("\r\n", "\n").trim_end_matches('\n').to_owned()
}

fn hexadecimal(text: &str) -> Result<u64, String> {
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    let read = match digits {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    };
    read.map_err(|_| format!("strconv.ParseUint: parsing {text:?}: invalid syntax"))
}

impl Processor for DecodeXmlWineventlog {
    fn name(&self) -> &'static str {
        "decode_xml_wineventlog"
    }

    fn run(&self, event: &mut EventMut<'_>) -> Result<Outcome, Failure> {
        self.common.run(event, |event, text| self.decode(event, text))
    }

    fn footprint(&self, _: &Constants) -> Footprint {
        self.common.footprint(self.ecs.clone().unwrap_or_default())
    }

    fn describe(&self) -> String {
        self.common.describe()
    }
}

//! The functions of the prelude: they reach events, the log and other processors.

use crate::convert;
use crate::current::{self, EventId};
use rquickjs::{Array, Ctx, Error, Exception, Function, Object, Result, Symbol, Value};
use skidder_config::{Problems, Settings};
use skidder_event::{Cell, EventMut, Path, PathError, ValueRef};
use skidder_processors::{Compiled, Context, Outcome, read_processors};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

/// Processors that one session may construct.
const CONSTRUCTED_MAX: usize = 1000;

/// The processors that a session constructed, in order.
type Constructed = Arc<Mutex<Vec<Compiled>>>;

/// Everything that the prelude uses, as one object.
pub(crate) fn functions<'js>(ctx: &Ctx<'js>, context: &Context) -> Result<Object<'js>> {
    let native = Object::new(ctx.clone())?;
    native.set("get", Function::new(ctx.clone(), get)?)?;
    native.set("put", Function::new(ctx.clone(), put)?)?;
    native.set("remove", Function::new(ctx.clone(), remove)?)?;
    native.set("rename", Function::new(ctx.clone(), rename)?)?;
    native.set("append", Function::new(ctx.clone(), append)?)?;
    native.set("keys", Function::new(ctx.clone(), keys)?)?;
    native.set("create", Function::new(ctx.clone(), create)?)?;
    native.set("cancel", Function::new(ctx.clone(), current::cancel)?)?;
    native.set("cancelled", Function::new(ctx.clone(), current::is_cancelled)?)?;
    native.set("isIP", Function::new(ctx.clone(), is_ip)?)?;
    native.set("log", Function::new(ctx.clone(), log)?)?;
    native.set("kinds", kinds(ctx, context)?)?;
    let constructed = Constructed::default();
    let (context, all) = (context.clone(), Arc::clone(&constructed));
    let construct = move |ctx: Ctx<'js>, kind: String, settings: Value<'js>| {
        construct(&ctx, &context, &all, &kind, settings)
    };
    native.set("construct", Function::new(ctx.clone(), construct)?)?;
    let run = move |ctx: Ctx<'js>, place: usize, id: EventId| {
        let list = constructed.lock().unwrap_or_else(PoisonError::into_inner);
        let processor = list.get(place).cloned();
        drop(list);
        processor.map_or(Ok(()), |processor| run(&ctx, &processor, id))
    };
    native.set("run", Function::new(ctx.clone(), run)?)?;
    Ok(native)
}

/// Works on an event; that it is gone is thrown.
fn on<R>(ctx: &Ctx<'_>, id: EventId, work: impl FnOnce(&mut EventMut<'_>) -> R) -> Result<R> {
    current::with(id, work).map_err(|why| Exception::throw_message(ctx, why))
}

/// The path that a script names: as in a configuration, and behind it keys as they are, a zero byte
/// before each.
fn path_of(event: &EventMut<'_>, field: &str) -> std::result::Result<Path, PathError> {
    let mut parts = field.split('\0');
    let object = parts.next().filter(|object| !object.is_empty()).map(Path::parse).transpose()?;
    let inside: Vec<&str> = parts.collect();
    match &object {
        Some(object) if inside.is_empty() => Ok(object.clone()),
        Some(object) if object.is_metadata() => Path::parse(&field.replace('\0', ".")),
        Some(object) => Path::of_keys(&[event.as_ref().keys_of(object), inside].concat()),
        None => Path::of_keys(&inside),
    }
}

/// The value of a field; of an object only that it is one.
fn get<'js>(ctx: Ctx<'js>, id: EventId, field: String) -> Result<Value<'js>> {
    on(&ctx, id, |event| {
        let Ok(path) = path_of(event, &field) else { return Ok(Value::new_undefined(ctx.clone())) };
        match event.as_ref().get(&path) {
            Some(ValueRef::Map(_)) => Ok(object_mark(&ctx)),
            Some(value) => convert::to_js(&ctx, value),
            None if event.as_ref().has(&path) => Ok(object_mark(&ctx)),
            None => Ok(Value::new_undefined(ctx.clone())),
        }
    })?
}

/// The mark that the prelude calls `OBJECT`.
fn object_mark<'js>(ctx: &Ctx<'js>) -> Value<'js> {
    Symbol::iterator(ctx.clone()).into_value()
}

/// Sets a field and gives what it was.
fn put<'js>(ctx: Ctx<'js>, id: EventId, field: String, value: Value<'js>) -> Result<Value<'js>> {
    // Before the event is taken: reading a value may run functions of the program that want it too.
    let value = convert::from_js(&ctx, &value)?;
    on(&ctx, id, |event| {
        let path = path_of(event, &field)
            .map_err(|error| Exception::throw_message(&ctx, &error.to_string()))?;
        let before = match event.as_ref().get(&path) {
            Some(before) => convert::to_js(&ctx, before)?,
            None => Value::new_undefined(ctx.clone()),
        };
        let mark = event.mark();
        event.put(&path, &value).map_err(|error| {
            event.rollback(mark);
            Exception::throw_message(&ctx, &error.to_string())
        })?;
        Ok(before)
    })?
}

fn remove(ctx: Ctx<'_>, id: EventId, field: String) -> Result<bool> {
    on(&ctx, id, |event| path_of(event, &field).is_ok_and(|path| event.delete(&path)))
}

/// Moves a field, if it is there and its new name is free.
fn rename(ctx: Ctx<'_>, id: EventId, from: String, to: String) -> Result<bool> {
    let (Ok(from), Ok(to)) = (Path::parse(&from), Path::parse(&to)) else { return Ok(false) };
    on(&ctx, id, |event| {
        if event.as_ref().has(&to) || from.is_timestamp() {
            return false;
        }
        let mark = event.mark();
        let moved = event.take(&from).is_some_and(|value| event.put_cell(&to, value).is_ok());
        if !moved {
            event.rollback(mark);
        }
        moved
    })
}

/// Adds a text to a field, which becomes a list when it has one already; a text that is there is not added.
fn append(ctx: Ctx<'_>, id: EventId, field: String, text: String, is_list: bool) -> Result<()> {
    let appended = on(&ctx, id, |event| {
        let path = path_of(event, &field).map_err(|error| error.to_string())?;
        append_text(event, &path, &text, is_list)
    })?;
    appended.map_err(|why| Exception::throw_message(&ctx, &why))
}

fn append_text(
    event: &mut EventMut<'_>,
    path: &Path,
    text: &str,
    is_list: bool,
) -> std::result::Result<(), String> {
    let mark = event.mark();
    let mut cells = match event.copy(path) {
        None => Vec::new(),
        Some(there @ Cell::Str(_)) => vec![there],
        Some(list @ Cell::List(_)) => event.list_cells(list).to_vec(),
        Some(_) => return Err(format!("`{path}` is neither a text nor a list")),
    };
    let is_there = |cell: &Cell| match cell {
        Cell::Str(known) => event.text(*known) == text.as_bytes(),
        _ => false,
    };
    if cells.iter().any(is_there) {
        return Ok(());
    }
    let new = Cell::Str(event.store_text(text.as_bytes()));
    let value = if cells.is_empty() && !is_list {
        new
    } else {
        cells.push(new);
        event.store_list(&cells)
    };
    event.put_cell(path, value).map_err(|error| {
        event.rollback(mark);
        error.to_string()
    })
}

/// The keys of an object of an event, sorted; of all fields, if no field is named.
fn keys(ctx: Ctx<'_>, id: EventId, field: String) -> Result<Vec<String>> {
    on(&ctx, id, |event| {
        let path = if field.is_empty() { None } else { path_of(event, &field).ok() };
        let event = event.as_ref();
        let mut keys = Vec::new();
        let mut push = |key: &[u8], _: ValueRef<'_>| {
            keys.push(String::from_utf8_lossy(key).into_owned());
        };
        match &path {
            None => event.root().for_each(push),
            Some(path) => match event.get(path) {
                Some(ValueRef::Map(map)) => map.for_each(push),
                Some(_) => {}
                None if event.has(path) => push(b"offset", ValueRef::Null),
                None => {}
            },
        }
        if path.is_none() {
            for own in ["message", "log"] {
                let there = Path::parse(own).is_ok_and(|path| event.has(&path));
                if there && !keys.iter().any(|key| key == own) {
                    keys.push(own.to_owned());
                }
            }
        }
        keys.sort_unstable();
        keys
    })
}

fn create<'js>(ctx: Ctx<'js>, fields: Object<'js>) -> Result<EventId> {
    let fields = convert::map_from_js(&ctx, &fields)?;
    current::make(&fields).map_err(|why| Exception::throw_range(&ctx, &why))
}

/// 4, 6, or 0 for no address.
fn is_ip(text: String) -> u8 {
    match text.parse::<IpAddr>() {
        Ok(IpAddr::V4(_)) => 4,
        Ok(IpAddr::V6(address)) if address.to_ipv4_mapped().is_some() => 4,
        Ok(IpAddr::V6(_)) => 6,
        Err(_) => 0,
    }
}

fn log(level: String, message: String) {
    match level.as_str() {
        "debug" => tracing::debug!("{message}"),
        "warn" => tracing::warn!("{message}"),
        "error" => tracing::error!("{message}"),
        _ => tracing::info!("{message}"),
    }
}

/// Names of constructors that are not simply those of the processors in capitals.
const NAMES: [(&str, &str); 13] = [
    ("add_id", "AddID"),
    ("append", "AppendProcessor"),
    ("community_id", "CommunityID"),
    ("decode_cef", "DecodeCEF"),
    ("decode_csv_fields", "DecodeCSVField"),
    ("decode_json_fields", "DecodeJSONFields"),
    ("decode_xml", "DecodeXML"),
    ("decode_xml_wineventlog", "DecodeXMLWineventlog"),
    ("dns", "DNS"),
    ("parse_aws_vpc_flow_log", "ParseAWSVPCFlowLog"),
    ("translate_ldap_attribute", "TranslateLDAPAttribute"),
    ("translate_sid", "TranslateSID"),
    ("urldecode", "URLDecode"),
];

/// `AddFields` of `add_fields`.
fn constructor_of(kind: &str) -> String {
    if let Some((_, name)) = NAMES.iter().find(|(known, _)| *known == kind) {
        return (*name).to_owned();
    }
    let words = kind.split('_').map(|word| {
        let (first, rest) = word.split_at(word.len().min(1));
        first.to_ascii_uppercase() + rest
    });
    words.collect()
}

/// Pairs of constructors and processors. A script is none of them: it would hold itself.
fn kinds<'js>(ctx: &Ctx<'js>, context: &Context) -> Result<Array<'js>> {
    let all = Array::new(ctx.clone())?;
    let names = context.kinds().map(|(name, ..)| *name).filter(|name| *name != "script");
    for (place, name) in names.enumerate() {
        all.set(place, vec![constructor_of(name), name.to_owned()])?;
    }
    Ok(all)
}

/// Makes a processor of settings, and gives its place.
fn construct<'js>(
    ctx: &Ctx<'js>,
    context: &Context,
    constructed: &Constructed,
    kind: &str,
    settings: Value<'js>,
) -> Result<usize> {
    let json = match ctx.json_stringify(settings)? {
        Some(json) => json.to_string()?,
        None => "{}".to_owned(),
    };
    // JSON is YAML too. The name stands there as in a configuration, so that mistakes are reported under it.
    let text = format!("{{\"processors\": [{{{}: {json}}}]}}", serde_json::Value::from(kind));
    let processor =
        read(&text, context).map_err(|why| Exception::throw_message(ctx, why.trim_end()))?;
    let mut list = constructed.lock().unwrap_or_else(PoisonError::into_inner);
    if list.len() >= CONSTRUCTED_MAX {
        let why =
            format!("more than {CONSTRUCTED_MAX} processors; construct them outside of `process`");
        return Err(Exception::throw_range(ctx, &why));
    }
    list.push(processor);
    Ok(list.len() - 1)
}

fn read(text: &str, context: &Context) -> std::result::Result<Compiled, String> {
    let settings = Settings::parse("script", text).map_err(|error| error.to_string())?;
    let problems = Problems::new();
    let root = settings.root(&problems);
    let mut list = read_processors(root.items("processors"), context);
    root.finish();
    match (list.pop(), problems.has_errors()) {
        (Some(processor), false) => {
            if !problems.is_empty() {
                tracing::warn!(problems = %problems, "a processor of a script has odd settings");
            }
            Ok(processor)
        }
        _ => Err(problems.to_string()),
    }
}

/// Runs a processor; its failure is thrown.
fn run(ctx: &Ctx<'_>, processor: &Compiled, id: EventId) -> Result<()> {
    match on(ctx, id, |event| processor.try_run(event))? {
        Ok(Outcome::Dropped) => current::cancel(id),
        Ok(Outcome::Done | Outcome::Incomplete) => {}
        Err(failure) => return Err(throw(ctx, failure.reason())),
    }
    Ok(())
}

fn throw(ctx: &Ctx<'_>, message: &str) -> Error {
    Exception::throw_message(ctx, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constructors_have_filebeats_names() {
        for (kind, name) in [
            ("add_fields", "AddFields"),
            ("append", "AppendProcessor"),
            ("rename", "Rename"),
            ("dns", "DNS"),
            ("decode_csv_fields", "DecodeCSVField"),
            ("decode_base64_field", "DecodeBase64Field"),
        ] {
            assert_eq!(constructor_of(kind), name);
        }
    }
}

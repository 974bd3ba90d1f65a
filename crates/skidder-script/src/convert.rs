//! Values of events as those of JavaScript, and back.

use rquickjs::function::{Constructor, This};
use rquickjs::{
    Array, BigInt, Coerced, Ctx, Exception, Function, Object, Result, String as JsString, Value,
};
use skidder_config::Value as Setting;
use skidder_event::{Map, Value as Owned, ValueRef};

/// Objects and lists inside each other that a program may put into an event.
const DEPTH_MAX: usize = 64;

/// Whole numbers up to here are exact as numbers of JavaScript; others become `BigInt`.
const EXACT_MAX: u64 = (1 << 53) - 1;

/// The key under which a date has its exact time, in nanoseconds since 1970-01-01 UTC.
const NANOSECONDS: &str = "_nanoseconds";

fn whole<'js>(ctx: &Ctx<'js>, number: i64) -> Result<Value<'js>> {
    if number.unsigned_abs() <= EXACT_MAX {
        return Ok(Value::new_number(ctx.clone(), number as f64));
    }
    Ok(BigInt::from_i64(ctx.clone(), number)?.into_value())
}

fn unsigned<'js>(ctx: &Ctx<'js>, number: u64) -> Result<Value<'js>> {
    if number <= EXACT_MAX {
        return Ok(Value::new_number(ctx.clone(), number as f64));
    }
    Ok(BigInt::from_u64(ctx.clone(), number)?.into_value())
}

fn text<'js>(ctx: &Ctx<'js>, text: &str) -> Result<Value<'js>> {
    Ok(JsString::from_str(ctx.clone(), text)?.into_value())
}

fn time<'js>(ctx: &Ctx<'js>, nanoseconds: i64) -> Result<Value<'js>> {
    let make: Constructor<'js> = ctx.globals().get("Date")?;
    let date: Object<'js> = make.construct((nanoseconds.div_euclid(1_000_000) as f64,))?;
    date.set(NANOSECONDS, nanoseconds.to_string())?;
    Ok(date.into_value())
}

/// A value of an event; objects and lists are copies.
pub(crate) fn to_js<'js>(ctx: &Ctx<'js>, value: ValueRef<'_>) -> Result<Value<'js>> {
    Ok(match value {
        ValueRef::Null => Value::new_null(ctx.clone()),
        ValueRef::Bool(truth) => Value::new_bool(ctx.clone(), truth),
        ValueRef::Int(number) => whole(ctx, number)?,
        ValueRef::UInt(number) => unsigned(ctx, number)?,
        ValueRef::Float(number) => Value::new_float(ctx.clone(), number),
        ValueRef::Str(bytes) => text(ctx, &String::from_utf8_lossy(bytes))?,
        ValueRef::Time(nanoseconds) => time(ctx, nanoseconds)?,
        ValueRef::List(list) => {
            let array = Array::new(ctx.clone())?;
            let mut failed = None;
            let mut place = 0;
            list.for_each(|element| {
                let set = to_js(ctx, element).and_then(|element| array.set(place, element));
                place += 1;
                failed = set.err();
                failed.is_none()
            });
            match failed {
                Some(error) => return Err(error),
                None => array.into_value(),
            }
        }
        ValueRef::Map(map) => {
            let object = Object::new(ctx.clone())?;
            let mut failed = None;
            map.for_each(|key, value| {
                if failed.is_none() {
                    let key = String::from_utf8_lossy(key);
                    failed = to_js(ctx, value).and_then(|value| object.set(&*key, value)).err();
                }
            });
            match failed {
                Some(error) => return Err(error),
                None => object.into_value(),
            }
        }
    })
}

/// A value of the configuration.
pub(crate) fn setting_to_js<'js>(ctx: &Ctx<'js>, value: &Setting) -> Result<Value<'js>> {
    Ok(match value {
        Setting::Null => Value::new_null(ctx.clone()),
        Setting::Bool(truth) => Value::new_bool(ctx.clone(), *truth),
        Setting::Int(number) => whole(ctx, *number)?,
        Setting::UInt(number) => unsigned(ctx, *number)?,
        Setting::Float(number) => Value::new_float(ctx.clone(), *number),
        Setting::String(string) => text(ctx, string)?,
        Setting::List(items) => {
            let array = Array::new(ctx.clone())?;
            for (place, item) in items.iter().enumerate() {
                array.set(place, setting_to_js(ctx, item)?)?;
            }
            array.into_value()
        }
        Setting::Map(map) => {
            let object = Object::new(ctx.clone())?;
            for (key, item) in map {
                object.set(key.as_str(), setting_to_js(ctx, item)?)?;
            }
            object.into_value()
        }
    })
}

/// A value of JavaScript. What an event cannot hold is thrown.
pub(crate) fn from_js<'js>(ctx: &Ctx<'js>, value: &Value<'js>) -> Result<Owned> {
    inside(ctx, value, 0)
}

/// The fields of an object of JavaScript.
pub(crate) fn map_from_js<'js>(ctx: &Ctx<'js>, object: &Object<'js>) -> Result<Map> {
    match inside(ctx, object.as_value(), 0)? {
        Owned::Map(map) => Ok(map),
        _ => Err(Exception::throw_type(ctx, "expected an object with fields")),
    }
}

fn inside<'js>(ctx: &Ctx<'js>, value: &Value<'js>, depth: usize) -> Result<Owned> {
    if depth > DEPTH_MAX {
        let message = format!("more than {DEPTH_MAX} objects inside each other");
        return Err(Exception::throw_range(ctx, &message));
    }
    if value.is_null() || value.is_undefined() {
        return Ok(Owned::Null);
    }
    if let Some(truth) = value.as_bool() {
        return Ok(Owned::Bool(truth));
    }
    if let Some(number) = value.as_number() {
        let is_exact = number.trunc() == number && number.abs() <= EXACT_MAX as f64;
        return Ok(if is_exact { Owned::Int(number as i64) } else { Owned::Float(number) });
    }
    if let Some(string) = value.as_string() {
        return Ok(Owned::from(string.to_string()?));
    }
    if value.is_big_int() {
        let digits: Coerced<String> = value.get()?;
        let number = digits.parse().map(Owned::Int).or_else(|_| digits.parse().map(Owned::UInt));
        return number
            .map_err(|_| Exception::throw_range(ctx, "a whole number of more than 64 bits"));
    }
    if let Some(array) = value.as_array() {
        let items = array.iter::<Value<'js>>();
        let items = items.map(|item| inside(ctx, &item?, depth + 1)).collect::<Result<Vec<_>>>();
        return Ok(Owned::List(items?));
    }
    match value.as_object() {
        Some(object) if !value.is_function() => object_from_js(ctx, object, depth),
        _ => {
            let kind = if value.is_function() { "function" } else { value.type_of().as_str() };
            let message = format!("an event cannot hold a {kind}");
            Err(Exception::throw_type(ctx, &message))
        }
    }
}

fn object_from_js<'js>(ctx: &Ctx<'js>, object: &Object<'js>, depth: usize) -> Result<Owned> {
    let time: Value<'js> = object.get("getTime")?;
    if let Some(time) = time.as_function() {
        return date_from_js(ctx, object, time);
    }
    let mut map = Map::new();
    for property in object.props::<String, Value<'js>>() {
        let (key, value) = property?;
        map.insert(&key, inside(ctx, &value, depth + 1)?);
    }
    Ok(Owned::Map(map))
}

/// A date is a time: the exact one it came with, unless it was changed since.
fn date_from_js<'js>(ctx: &Ctx<'js>, date: &Object<'js>, time: &Function<'js>) -> Result<Owned> {
    let milliseconds: f64 = time.call((This(date.clone()),))?;
    let bound = (i64::MAX / 1_000_000) as f64;
    if !milliseconds.is_finite() || milliseconds.abs() > bound {
        return Err(Exception::throw_range(ctx, "no date between the years 1678 and 2261"));
    }
    let rounded = milliseconds as i64;
    let exact: Option<String> = date.get(NANOSECONDS)?;
    let exact = exact.and_then(|digits| digits.parse::<i64>().ok());
    let exact = exact.filter(|nanoseconds| nanoseconds.div_euclid(1_000_000) == rounded);
    Ok(Owned::Time(exact.unwrap_or(rounded * 1_000_000)))
}

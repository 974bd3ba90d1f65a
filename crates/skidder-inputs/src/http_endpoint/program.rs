//! `program`: an expression in CEL that makes events of a body.
//!
//! It sees each value of a body as `obj` and gives an object or a list of objects, as in Filebeat, whose environment for
//! this input has the standard functions, optional values and `debug`, and none of the other extensions of mito. A name
//! or a function that is not there is an error of the configuration.

use cel::common::ast::{EntryExpr, Expr, IdedExpr};
use cel::{Context, Env, Value};
use serde_json::{Number, Value as Json};
use std::collections::HashMap;
use std::sync::Arc;

/// The largest integer that is a number in the result, as in Filebeat; larger ones become texts.
const SAFE_INTEGER: i64 = (1 << 53) - 1;

/// The functions that there are, beside operators and macros.
const FUNCTIONS: [&str; 38] = [
    "bool",
    "bytes",
    "contains",
    "debug",
    "double",
    "duration",
    "dyn",
    "endsWith",
    "getDate",
    "getDayOfMonth",
    "getDayOfWeek",
    "getDayOfYear",
    "getFullYear",
    "getHours",
    "getMilliseconds",
    "getMinutes",
    "getMonth",
    "getSeconds",
    "hasValue",
    "int",
    "matches",
    "none",
    "of",
    "ofNonZeroValue",
    "optMap",
    "optFlatMap",
    "optional.none",
    "optional.of",
    "optional.ofNonZeroValue",
    "or",
    "orValue",
    "size",
    "startsWith",
    "string",
    "timestamp",
    "type",
    "uint",
    "value",
];

/// Names that are no variables.
const NAMES: [&str; 14] = [
    "obj",
    "optional",
    "bool",
    "bytes",
    "double",
    "int",
    "list",
    "map",
    "null_type",
    "string",
    "timestamp",
    "duration",
    "type",
    "uint",
];

/// A program that was compiled.
pub(super) struct Program {
    program: cel::Program,
    env: Arc<Env>,
}

impl std::fmt::Debug for Program {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Program").finish_non_exhaustive()
    }
}

impl Program {
    /// Compiles a program.
    ///
    /// # Errors
    /// It is no CEL, or has a name or a function that is not there.
    pub(super) fn new(source: &str) -> Result<Self, String> {
        let env = Arc::new(Env::stdlib().with_optional_support(true));
        let program = env.compile(source).map_err(|error| error.to_string())?;
        check(program.expression(), &mut Vec::new())?;
        Ok(Self { program, env })
    }

    /// Makes lines of objects of the values of a body.
    ///
    /// # Errors
    /// The message for the client.
    pub(super) fn run(&self, values: &[&[u8]]) -> Result<Vec<u8>, String> {
        let mut out = Vec::new();
        for value in values {
            let value: Json = serde_json::from_str(&String::from_utf8_lossy(value))
                .map_err(|error| format!("malformed JSON object: {error}"))?;
            let mut line = |object: &Json| {
                out.extend_from_slice(object.to_string().as_bytes());
                out.push(b'\n');
            };
            match self.eval(&value)? {
                object @ Json::Object(_) => line(&object),
                Json::Array(items) => items.iter().filter(|item| item.is_object()).for_each(line),
                other => {
                    let kind = match other {
                        Json::Null => "<nil>",
                        Json::Bool(_) => "bool",
                        Json::Number(_) => "float64",
                        _ => "string",
                    };
                    return Err(format!("only JSON objects are accepted: {kind}"));
                }
            }
        }
        Ok(out)
    }

    fn eval(&self, value: &Json) -> Result<Json, String> {
        let failed = |why: &dyn std::fmt::Display| format!("failed eval: {why}");
        let mut context = Context::with_env(Arc::clone(&self.env));
        context
            .add_function("debug", |tag: Arc<String>, value: Value| {
                tracing::debug!(%tag, ?value, "a program of http_endpoint");
                value
            })
            .map_err(|error| failed(&error))?;
        context.add_variable_from_value("obj", to_cel(value));
        let value = self.program.execute(&context).map_err(|error| failed(&error))?;
        to_json(&value)
    }
}

/// Refuses what would be an error only for some bodies.
fn check<'a>(expression: &'a IdedExpr, scope: &mut Vec<&'a str>) -> Result<(), String> {
    let missing = |name: &str| {
        Err(format!(
            "undeclared reference to `{name}`; there is `obj`, with {}",
            FUNCTIONS.join(", ")
        ))
    };
    match &expression.expr {
        Expr::Unspecified | Expr::Literal(_) => Ok(()),
        Expr::Ident(name) => {
            let is_known = name.starts_with('@')
                || scope.contains(&name.as_str())
                || NAMES.contains(&name.as_str());
            if is_known { Ok(()) } else { missing(name) }
        }
        Expr::Select(select) => check(&select.operand, scope),
        Expr::Call(call) => {
            let name = call.func_name.as_str();
            if name.starts_with(|first: char| first.is_ascii_alphabetic())
                && !FUNCTIONS.contains(&name)
            {
                return missing(name);
            }
            call.target.iter().try_for_each(|target| check(target, scope))?;
            call.args.iter().try_for_each(|argument| check(argument, scope))
        }
        Expr::List(list) => list.elements.iter().try_for_each(|element| check(element, scope)),
        Expr::Map(map) => map.entries.iter().try_for_each(|entry| match &entry.expr {
            EntryExpr::StructField(field) => check(&field.value, scope),
            EntryExpr::MapEntry(entry) => {
                check(&entry.key, scope)?;
                check(&entry.value, scope)
            }
        }),
        Expr::Struct(_) => missing("a message of protobuf"),
        Expr::Comprehension(each) => {
            check(&each.iter_range, scope)?;
            check(&each.accu_init, scope)?;
            let before = scope.len();
            scope.push(&each.iter_var);
            scope.extend(each.iter_var2.as_deref());
            scope.push(&each.accu_var);
            let inside = [&each.loop_cond, &each.loop_step, &each.result];
            let checked = inside.into_iter().try_for_each(|part| check(part, scope));
            scope.truncate(before);
            checked
        }
    }
}

/// As Filebeat hands JSON over: numbers are integers if they can be.
fn to_cel(value: &Json) -> Value {
    match value {
        Json::Null => Value::Null,
        Json::Bool(truth) => Value::Bool(*truth),
        Json::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(number), _) => Value::Int(number),
            // Larger than an integer can be.
            (None, _) if number.is_u64() => number.to_string().into(),
            (None, Some(number)) => Value::Float(number),
            (None, None) => Value::Null,
        },
        Json::String(text) => text.as_str().into(),
        Json::Array(items) => Value::List(Arc::new(items.iter().map(to_cel).collect())),
        Json::Object(fields) => {
            let fields = fields.iter().map(|(key, value)| (key.clone(), to_cel(value)));
            Value::from(fields.collect::<HashMap<String, Value>>())
        }
    }
}

/// As Filebeat takes the result: by way of protobuf, whose numbers are doubles.
fn to_json(value: &Value) -> Result<Json, String> {
    Ok(match value {
        Value::Int(number) if (-SAFE_INTEGER..=SAFE_INTEGER).contains(number) => (*number).into(),
        Value::Int(number) => number.to_string().into(),
        Value::UInt(number) if *number <= SAFE_INTEGER as u64 => (*number).into(),
        Value::UInt(number) => number.to_string().into(),
        Value::Float(number) => double(*number)?,
        Value::List(items) => {
            Json::Array(items.iter().map(to_json).collect::<Result<Vec<_>, _>>()?)
        }
        Value::Map(map) => {
            let fields = map.map.iter().map(|(key, value)| Ok((key.to_string(), to_json(value)?)));
            Json::Object(fields.collect::<Result<_, String>>()?)
        }
        Value::Timestamp(time) => time.to_utc().to_rfc3339().replace("+00:00", "Z").into(),
        Value::Duration(span) => {
            let nanoseconds = span.num_nanoseconds().unwrap_or(i64::MAX);
            format!("{}s", nanoseconds as f64 / 1e9).into()
        }
        other => other.json().map_err(|error| format!("failed proto conversion: {error}"))?,
    })
}

/// A double as Go writes it: without a fraction if there is none.
fn double(number: f64) -> Result<Json, String> {
    if number.fract() == 0.0 && number.abs() <= SAFE_INTEGER as f64 {
        return Ok((number as i64).into());
    }
    Number::from_f64(number)
        .map(Json::Number)
        .ok_or_else(|| format!("failed proto conversion: {number} is no number of JSON"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_functions_that_are_not_there_are_refused_at_once() {
        for (source, expected) in [
            ("obj.map(x, x.y.map(z, x + z))", ""),
            ("has(obj.a) && optional.of(obj).hasValue() ? obj : [obj]", ""),
            ("obj.map(x, y)", "`y`"),
            ("obj.map(x, x) + [x]", "`x`"),
            ("unknown(obj)", "`unknown`"),
            ("obj.a.lowerAscii()", "`lowerAscii`"),
            ("obj +", "rror"),
        ] {
            let error = Program::new(source).err().unwrap_or_default();
            assert!(error.contains(expected), "{source}: {error}");
            assert_eq!(error.is_empty(), expected.is_empty(), "{source}: {error}");
        }
    }
}

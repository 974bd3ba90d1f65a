//! Single values as JSON.

use super::Wrong;
use super::columns::Values;
use crate::json::{
    DAY_NANOS, put, put_base64, put_date, put_decimal, put_f32, put_f64, put_time, put_timestamp,
    put_uuid,
};
use parquet::basic::{ConvertedType, LogicalType, TimeUnit, Type as Physical};
use parquet::data_type::Int96;
use parquet::schema::types::Type;
use skidder_parse::records::{Escapes, push_json_text};

/// Days from 1970-01-01 back to the day 0 of an `Int96`.
const JULIAN_DAYS: i64 = 2_440_588;

/// What a value means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scalar {
    /// What its physical type says.
    Plain,
    /// Without a sign.
    Unsigned,
    Text,
    /// Digits behind the point.
    Decimal(i32),
    Date,
    /// Since midnight, in so many nanoseconds.
    Time(i64),
    /// Since 1970, in so many nanoseconds.
    Timestamp(i64),
    /// A number of two bytes.
    Half,
    Uuid,
    /// Whatever it is, it is null.
    Null,
}

fn nanos_of(unit: &TimeUnit) -> i64 {
    match unit {
        TimeUnit::MILLIS => 1_000_000,
        TimeUnit::MICROS => 1_000,
        TimeUnit::NANOS => 1,
    }
}

impl Scalar {
    pub(super) fn of(of: &Type) -> Self {
        let info = of.get_basic_info();
        match info.logical_type_ref() {
            Some(LogicalType::String) => return Self::Text,
            Some(LogicalType::Decimal(of)) => return Self::Decimal(of.scale),
            Some(LogicalType::Date) => return Self::Date,
            Some(LogicalType::Time(of)) => return Self::Time(nanos_of(&of.unit)),
            Some(LogicalType::Timestamp(of)) => return Self::Timestamp(nanos_of(&of.unit)),
            Some(LogicalType::Integer(of)) if !of.is_signed => return Self::Unsigned,
            Some(LogicalType::Float16) => return Self::Half,
            Some(LogicalType::Uuid) => return Self::Uuid,
            Some(LogicalType::Unknown) => return Self::Null,
            _ => {}
        }
        match info.converted_type() {
            ConvertedType::UTF8 => Self::Text,
            ConvertedType::DECIMAL => Self::Decimal(of.get_scale()),
            ConvertedType::DATE => Self::Date,
            ConvertedType::TIME_MILLIS => Self::Time(1_000_000),
            ConvertedType::TIME_MICROS => Self::Time(1_000),
            ConvertedType::TIMESTAMP_MILLIS => Self::Timestamp(1_000_000),
            ConvertedType::TIMESTAMP_MICROS => Self::Timestamp(1_000),
            ConvertedType::UINT_8
            | ConvertedType::UINT_16
            | ConvertedType::UINT_32
            | ConvertedType::UINT_64 => Self::Unsigned,
            _ if of.get_physical_type() == Physical::INT96 => Self::Timestamp(1),
            _ => Self::Plain,
        }
    }

    /// Appends a value.
    pub(super) fn write(
        self,
        values: &Values,
        place: usize,
        into: &mut Vec<u8>,
    ) -> Result<(), Wrong> {
        if self == Self::Null {
            into.extend_from_slice(b"null");
            return Ok(());
        }
        let is_written = match values {
            Values::Bool(of) => of.get(place).map(|value| put(into, format_args!("{value}"))),
            Values::I32(of) => {
                of.get(place).map(|value| self.integer(i64::from(*value), true, into))
            }
            Values::I64(of) => of.get(place).map(|value| self.integer(*value, false, into)),
            Values::I96(of) => of.get(place).map(|value| time_of_int96(value, into)),
            Values::F32(of) => of.get(place).map(|value| put_f32(*value, into)),
            Values::F64(of) => of.get(place).map(|value| put_f64(*value, into)),
            Values::Bytes(of) => of.get(place).map(|value| self.bytes(value.data(), into)),
            Values::Fixed(of) => of.get(place).map(|value| self.bytes(value.data(), into)),
        };
        is_written.ok_or_else(|| Wrong::new("a column has fewer values than levels"))
    }

    fn integer(self, value: i64, is_short: bool, into: &mut Vec<u8>) {
        match self {
            // The same bits.
            Self::Unsigned if is_short => put(into, format_args!("{}", value as u32)),
            Self::Unsigned => put(into, format_args!("{}", value as u64)),
            Self::Decimal(scale) => put_decimal(&value.to_be_bytes(), scale, into),
            Self::Date => put_date(value, into),
            Self::Time(unit) => put_time(i128::from(value) * i128::from(unit), into),
            Self::Timestamp(unit) => put_timestamp(i128::from(value) * i128::from(unit), into),
            _ => put(into, format_args!("{value}")),
        }
    }

    fn bytes(self, value: &[u8], into: &mut Vec<u8>) {
        match self {
            Self::Text => push_json_text(value, Escapes::OfArrow, into),
            Self::Decimal(scale) => put_decimal(value, scale, into),
            Self::Half => {
                let bits = value.try_into().map(u16::from_le_bytes).unwrap_or_default();
                put_f32(half(bits), into);
            }
            Self::Uuid if value.len() == 16 => put_uuid(value, into),
            _ => put_base64(value, into),
        }
    }
}

/// A number of IEEE 754 with 16 bits.
fn half(bits: u16) -> f32 {
    let sign = if bits >> 15 == 1 { -1.0 } else { 1.0 };
    let (exponent, fraction) = (i32::from(bits >> 10 & 31), f32::from(bits & 1023));
    sign * match exponent {
        0 => fraction * 2_f32.powi(-24),
        31 if fraction == 0.0 => f32::INFINITY,
        31 => f32::NAN,
        _ => (fraction + 1024.0) * 2_f32.powi(exponent - 25),
    }
}

/// Nanoseconds of a day, and the day.
fn time_of_int96(value: &Int96, into: &mut Vec<u8>) {
    let [low, high, day] = value.data() else { return into.extend_from_slice(b"null") };
    let nanos = i128::from(u64::from(*high) << 32 | u64::from(*low));
    let day = i128::from(i64::from(*day) - JULIAN_DAYS);
    put_timestamp(day * DAY_NANOS + nanos, into);
}

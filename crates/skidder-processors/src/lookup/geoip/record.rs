//! What a record of a database says, as far as a property needs it. Everything else is skipped, names in other
//! languages too.

use serde::Deserialize;
use serde::de::{Deserializer, SeqAccess, Visitor};
use std::fmt;
use std::marker::PhantomData;

/// A record of a city or a country.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Place<'a> {
    #[serde(borrow)]
    pub(super) city: Named<'a>,
    #[serde(borrow)]
    pub(super) continent: Named<'a>,
    #[serde(borrow)]
    pub(super) country: Named<'a>,
    #[serde(borrow)]
    pub(super) registered_country: Named<'a>,
    #[serde(borrow)]
    pub(super) location: Location<'a>,
    #[serde(borrow)]
    pub(super) postal: Named<'a>,
    /// From the largest to the smallest, of which only the last counts.
    #[serde(borrow, deserialize_with = "last")]
    pub(super) subdivisions: Named<'a>,
}

/// Something that has a name, and perhaps a code.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Named<'a> {
    /// Of a continent, and of a postal area.
    pub(super) code: Option<&'a str>,
    pub(super) iso_code: Option<&'a str>,
    pub(super) is_in_european_union: bool,
    #[serde(borrow)]
    pub(super) names: Names<'a>,
}

/// A name in English.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Names<'a> {
    #[serde(borrow)]
    pub(super) en: Option<&'a str>,
}

/// Where it is.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Location<'a> {
    pub(super) accuracy_radius: Option<Number>,
    pub(super) latitude: Option<Number>,
    pub(super) longitude: Option<Number>,
    pub(super) time_zone: Option<&'a str>,
}

/// A record of an autonomous system.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct System<'a> {
    pub(super) autonomous_system_number: Option<Number>,
    pub(super) autonomous_system_organization: Option<&'a str>,
}

/// The last element of a list.
fn last<'de: 'a, 'a, D: Deserializer<'de>>(from: D) -> Result<Named<'a>, D::Error> {
    from.deserialize_seq(Last(PhantomData))
}

struct Last<'a>(PhantomData<&'a str>);

impl<'de: 'a, 'a> Visitor<'de> for Last<'a> {
    type Value = Named<'a>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a list")
    }

    fn visit_seq<S: SeqAccess<'de>>(self, mut list: S) -> Result<Named<'a>, S::Error> {
        let mut last = Named::default();
        while let Some(next) = list.next_element()? {
            last = next;
        }
        Ok(last)
    }
}

/// A number of any of the format's types; databases differ in them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Number(pub(super) f64);

impl Number {
    /// As a whole number.
    pub(super) fn whole(self) -> i64 {
        self.0 as i64
    }
}

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(AnyNumber)
    }
}

struct AnyNumber;

impl Visitor<'_> for AnyNumber {
    type Value = Number;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a number")
    }

    fn visit_i64<E>(self, number: i64) -> Result<Number, E> {
        Ok(Number(number as f64))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Number, E> {
        Ok(Number(number as f64))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Number, E> {
        Ok(Number(number))
    }
}

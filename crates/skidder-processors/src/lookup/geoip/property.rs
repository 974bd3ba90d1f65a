//! The properties that a database of each type has, and their values.

use super::record::{Place, System};
use skidder_event::{Cell, EventMut};
use std::net::IpAddr;

/// What the records of a database are about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DatabaseKind {
    /// Cities, with their countries.
    City,
    /// Countries.
    Country,
    /// Autonomous systems.
    System,
}

/// A fact about an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Property {
    Ip,
    ContinentCode,
    ContinentName,
    CountryInEuropeanUnion,
    CountryIsoCode,
    CountryName,
    RegisteredCountryInEuropeanUnion,
    RegisteredCountryIsoCode,
    RegisteredCountryName,
    RegionIsoCode,
    RegionName,
    CityName,
    Timezone,
    Latitude,
    Longitude,
    PostalCode,
    AccuracyRadius,
    SystemNumber,
    OrganizationName,
    Network,
}

/// The databases that have a property.
type In = &'static [DatabaseKind];

const ALL: In = &[DatabaseKind::City, DatabaseKind::Country, DatabaseKind::System];
const PLACES: In = &[DatabaseKind::City, DatabaseKind::Country];
const CITIES: In = &[DatabaseKind::City];
const SYSTEMS: In = &[DatabaseKind::System];

/// The name of a property in the settings, its fields below the target, the databases that have it, and
/// whether it is one of the default.
type Row = (&'static str, &'static [(&'static str, Property)], In, bool);

/// Names are those of the processor of Elasticsearch; so are the fields, except those of autonomous systems,
/// which are those of ECS.
const ROWS: &[Row] = &[
    ("ip", &[("ip", Property::Ip)], ALL, false),
    ("continent_code", &[("continent_code", Property::ContinentCode)], PLACES, false),
    ("continent_name", &[("continent_name", Property::ContinentName)], PLACES, true),
    (
        "country_in_european_union",
        &[("country_in_european_union", Property::CountryInEuropeanUnion)],
        PLACES,
        false,
    ),
    ("country_iso_code", &[("country_iso_code", Property::CountryIsoCode)], PLACES, true),
    ("country_name", &[("country_name", Property::CountryName)], PLACES, true),
    (
        "registered_country_in_european_union",
        &[("registered_country_in_european_union", Property::RegisteredCountryInEuropeanUnion)],
        PLACES,
        false,
    ),
    (
        "registered_country_iso_code",
        &[("registered_country_iso_code", Property::RegisteredCountryIsoCode)],
        PLACES,
        false,
    ),
    (
        "registered_country_name",
        &[("registered_country_name", Property::RegisteredCountryName)],
        PLACES,
        false,
    ),
    ("region_iso_code", &[("region_iso_code", Property::RegionIsoCode)], CITIES, true),
    ("region_name", &[("region_name", Property::RegionName)], CITIES, true),
    ("city_name", &[("city_name", Property::CityName)], CITIES, true),
    ("timezone", &[("timezone", Property::Timezone)], CITIES, false),
    (
        "location",
        &[("location.lat", Property::Latitude), ("location.lon", Property::Longitude)],
        CITIES,
        true,
    ),
    ("postal_code", &[("postal_code", Property::PostalCode)], CITIES, false),
    ("accuracy_radius", &[("accuracy_radius", Property::AccuracyRadius)], CITIES, false),
    ("asn", &[("number", Property::SystemNumber)], SYSTEMS, true),
    ("organization_name", &[("organization.name", Property::OrganizationName)], SYSTEMS, true),
    ("network", &[("network", Property::Network)], ALL, false),
];

impl DatabaseKind {
    /// By the type that a database has in its metadata, as `GeoLite2-City`.
    pub(super) fn of(name: &str) -> Option<Self> {
        let has = |word| name.contains(word);
        match () {
            () if has("City") || has("Enterprise") => Some(Self::City),
            () if has("Country") => Some(Self::Country),
            () if has("ASN") || has("ISP") => Some(Self::System),
            () => None,
        }
    }

    /// Where its fields go unless the configuration says it.
    pub(super) fn target(self) -> &'static str {
        match self {
            Self::City | Self::Country => "source.geo",
            Self::System => "source.as",
        }
    }

    /// The names of all its properties.
    pub(super) fn names(self) -> Vec<&'static str> {
        rows(self).map(|(name, ..)| *name).collect()
    }

    /// The fields of its properties of the default.
    pub(super) fn defaults(self) -> impl Iterator<Item = (&'static str, Property)> {
        rows(self).filter(|(.., default)| *default).flat_map(|(_, fields, ..)| *fields).copied()
    }

    /// The fields of a property. `None` if it does not have it.
    pub(super) fn fields(self, name: &str) -> Option<&'static [(&'static str, Property)]> {
        rows(self).find(|(known, ..)| *known == name).map(|(_, fields, ..)| *fields)
    }
}

fn rows(kind: DatabaseKind) -> impl Iterator<Item = &'static Row> {
    ROWS.iter().filter(move |(_, _, databases, _)| databases.contains(&kind))
}

/// What is known about an address.
#[expect(
    clippy::large_enum_variant,
    reason = "it is on the stack for one event; a box would be an allocation"
)]
pub(super) enum Facts<'a> {
    /// Where it is.
    Place(Place<'a>),
    /// The system it belongs to.
    System(System<'a>),
}

impl Facts<'_> {
    /// The value of a property, stored in the batch of the event; `None` if the record does not have it.
    /// `network` is the one that the record is about.
    pub(super) fn value(
        &self,
        event: &mut EventMut<'_>,
        property: Property,
        address: IpAddr,
        network: impl Fn() -> Option<String>,
    ) -> Option<Cell> {
        let text = match property {
            Property::Ip => return Some(store(event, &address.to_string())),
            Property::Network => return network().map(|network| store(event, &network)),
            property => match self {
                Self::Place(place) => match place_text(place, property) {
                    Some(text) => text,
                    None => return place_value(event, place, property),
                },
                Self::System(system) => match property {
                    Property::SystemNumber => {
                        return system
                            .autonomous_system_number
                            .map(|number| Cell::Int(number.whole()));
                    }
                    _ => system.autonomous_system_organization?,
                },
            },
        };
        Some(store(event, text))
    }
}

fn store(event: &mut EventMut<'_>, text: &str) -> Cell {
    Cell::Str(event.store_text(text.as_bytes()))
}

/// A property that is a text of the record.
fn place_text<'a>(place: &Place<'a>, property: Property) -> Option<&'a str> {
    match property {
        Property::ContinentCode => place.continent.code,
        Property::ContinentName => place.continent.names.en,
        Property::CountryIsoCode => place.country.iso_code,
        Property::CountryName => place.country.names.en,
        Property::RegisteredCountryIsoCode => place.registered_country.iso_code,
        Property::RegisteredCountryName => place.registered_country.names.en,
        Property::RegionName => place.subdivisions.names.en,
        Property::CityName => place.city.names.en,
        Property::Timezone => place.location.time_zone,
        Property::PostalCode => place.postal.code,
        _ => None,
    }
}

/// Any other property.
fn place_value(event: &mut EventMut<'_>, place: &Place<'_>, property: Property) -> Option<Cell> {
    let location = place.location.latitude.zip(place.location.longitude);
    Some(match property {
        // A record without the country says nothing about it.
        Property::CountryInEuropeanUnion => {
            place.country.iso_code?;
            Cell::Bool(place.country.is_in_european_union)
        }
        Property::RegisteredCountryInEuropeanUnion => {
            place.registered_country.iso_code?;
            Cell::Bool(place.registered_country.is_in_european_union)
        }
        Property::RegionIsoCode => {
            let (country, region) = place.country.iso_code.zip(place.subdivisions.iso_code)?;
            let written = event.store_with(|_, out| {
                out.extend_from_slice(country.as_bytes());
                out.push(b'-');
                out.extend_from_slice(region.as_bytes());
                Ok::<_, std::convert::Infallible>(())
            });
            match written {
                Ok(text) => Cell::Str(text),
                Err(never) => match never {},
            }
        }
        Property::Latitude => Cell::Float(location?.0.0),
        Property::Longitude => Cell::Float(location?.1.0),
        Property::AccuracyRadius => Cell::Int(place.location.accuracy_radius?.whole()),
        _ => return None,
    })
}

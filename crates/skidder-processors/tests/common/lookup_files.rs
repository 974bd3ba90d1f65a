//! The files that `geoip` and `user_agent` look values up in, for tests: databases in `/etc/geo`, expressions in
//! `/etc/regexes.yaml`.

#![allow(dead_code, reason = "every test program uses a part of it")]

use serde_json::{Value as Json, json};
use skidder_testkit::{MmdbWriter, SimFs};
use std::path::Path;

/// The expressions.
pub(crate) const EXPRESSIONS: &str = include_str!("../data/regexes.yaml");

/// Writes all of them.
pub(crate) fn write_lookup_files(fs: &SimFs) {
    fs.create_dir_as_other(Path::new("/etc/geo"));
    for (name, bytes) in [
        ("/etc/geo/city.mmdb", city().bytes()),
        ("/etc/geo/country.mmdb", country().bytes()),
        ("/etc/geo/asn.mmdb", systems().bytes()),
        ("/etc/geo/domain.mmdb", MmdbWriter::new("GeoIP2-Domain").bytes()),
    ] {
        fs.write_as_other(Path::new(name), &bytes);
    }
    fs.write_as_other(Path::new("/etc/regexes.yaml"), EXPRESSIONS.as_bytes());
}

/// A name in English and in German.
fn names(name: &str) -> Json {
    json!({"de": format!("{name} auf Deutsch"), "en": name})
}

fn germany() -> Json {
    json!({"geoname_id": 2_921_044, "is_in_european_union": true, "iso_code": "DE", "names": names("Germany")})
}

/// Cities: one with everything, one with only its country, one without subdivisions.
pub(crate) fn city() -> MmdbWriter {
    let europe = json!({"code": "EU", "geoname_id": 6_255_148, "names": names("Europe")});
    MmdbWriter::new("GeoLite2-City")
        .with(
            "192.0.2.0/24",
            &json!({
                "city": {"geoname_id": 2_867_714, "names": names("Munich")},
                "continent": europe,
                "country": germany(),
                "location": {
                    "accuracy_radius": 20, "latitude": 48.137_43, "longitude": 11.575_49,
                    "time_zone": "Europe/Berlin",
                },
                "postal": {"code": "80331"},
                "registered_country": {"iso_code": "CH", "names": names("Switzerland")},
                "subdivisions": [
                    {"iso_code": "BY", "names": names("Bavaria")},
                    {"iso_code": "OBB", "names": names("Upper Bavaria")},
                ],
            }),
        )
        .with("198.51.100.0/24", &json!({"continent": europe, "country": germany()}))
        .with(
            "2001:db8::/32",
            &json!({"city": {"names": names("Bern")}, "location": {"latitude": 46.5}}),
        )
}

/// Countries.
pub(crate) fn country() -> MmdbWriter {
    let record =
        json!({"continent": {"code": "EU", "names": names("Europe")}, "country": germany()});
    MmdbWriter::new("GeoIP2-Country").with("192.0.2.0/24", &record)
}

/// Autonomous systems.
pub(crate) fn systems() -> MmdbWriter {
    let record = json!({
        "autonomous_system_number": 64_496,
        "autonomous_system_organization": "Example Networks",
    });
    MmdbWriter::new("GeoLite2-ASN").with("192.0.2.0/25", &record)
}

//! Time zones as a configuration names them: `Local`, `Europe/Berlin`, `+0200`.

use jiff::tz::{Offset, TimeZone};

/// Why a text names no time zone.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TimeZoneError {
    /// Neither an offset nor in the time zone database of this machine.
    #[error(
        "not a time zone; expected `Local`, `UTC`, a name like `Europe/Berlin` (of this machine's zoneinfo) or an offset like `+0200`"
    )]
    Unknown,
}

/// The zone of a name. `Local` is that of the machine at this instant.
pub fn timezone(name: &str) -> Result<TimeZone, TimeZoneError> {
    let unknown = || TimeZoneError::Unknown;
    match name {
        "Local" => return Ok(TimeZone::system()),
        "" | "UTC" => return Ok(TimeZone::UTC),
        _ => {}
    }
    let Some(rest) = name.strip_prefix(['+', '-']) else {
        return TimeZone::get(name).map_err(|_| unknown());
    };
    let digits: String = rest.chars().filter(|&letter| letter != ':').collect();
    let (hours, minutes) = match (digits.len(), rest.find(':')) {
        (2, None) => (&digits[..], "0"),
        (4, None | Some(2)) => digits.split_at(2),
        _ => return Err(unknown()),
    };
    let number = |text: &str| text.parse::<i32>().map_err(|_| unknown());
    let (hours, minutes) = (number(hours)?, number(minutes)?);
    if hours > 23 || minutes > 59 {
        return Err(unknown());
    }
    let seconds = hours * 3600 + minutes * 60;
    let seconds = if name.starts_with('-') { -seconds } else { seconds };
    Offset::from_seconds(seconds).map(TimeZone::fixed).map_err(|_| unknown())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_and_names_are_understood() {
        let offset =
            |name: &str| timezone(name).unwrap().to_offset(jiff::Timestamp::UNIX_EPOCH).seconds();
        assert_eq!(offset("UTC"), 0);
        assert_eq!(offset("+0200"), 7200);
        assert_eq!(offset("-05:30"), -19_800);
        assert_eq!(offset("+02"), 7200);
        assert!(timezone("Local").is_ok());
        for name in ["+2", "+020", "+02:0", "+24:00", "Nowhere/Nothing", "+aa", "+0:200"] {
            assert_eq!(timezone(name), Err(TimeZoneError::Unknown));
        }
    }
}

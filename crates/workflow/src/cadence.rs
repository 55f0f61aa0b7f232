//! What is wrong with a cron expression or the name of a time zone, in words that say where to look.

use interlock_core::text::nearest::nearest;
use interlock_core::trigger::schedule::Cron;

/// Why this is no cron expression; none where it is one.
pub fn wrong_cron(text: &str) -> Option<String> {
    text.parse::<Cron>().err().map(|error| error.to_string())
}

/// In the database of zones, and no zones: what they mean is up to each machine.
const UP_TO_THE_MACHINE: &[&str] = &["factory", "localtime", "posixrules"];

/// Why there is no such time zone; none where there is.
pub fn wrong_zone(name: &str) -> Option<String> {
    let is_zone = |name: &str| !UP_TO_THE_MACHINE.contains(&name.to_ascii_lowercase().as_str());
    if is_zone(name) && jiff::tz::TimeZone::get(name).is_ok() {
        return None;
    }
    let shown: String = name.chars().take(80).collect();
    let mut known: Vec<String> = jiff::tz::db().available().map(|zone| zone.as_str().to_owned()).collect();
    known.retain(|name| is_zone(name));
    let hint = nearest(&shown, known.iter().map(String::as_str)).map_or_else(
        || "use a name of the IANA database, such as `Europe/Berlin` or `UTC`".to_owned(),
        |near| format!("did you mean `{near}`?"),
    );
    Some(format!("there is no time zone `{shown}`; {hint}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wrong_field_is_named_with_what_it_takes() {
        for (cron, field, takes) in [
            ("61 * * * *", "minute", "0 to 59"),
            ("0 25 * * *", "hour", "0 to 23"),
            ("0 3 32 * *", "day of month", "1 to 31"),
            ("0 3 * 13 *", "month", "1 to 12"),
            ("0 3 * * FUN", "day of week", "0 to 7"),
            ("75 0 3 * * *", "second", "0 to 59"),
        ] {
            let wrong = wrong_cron(cron).unwrap();
            assert!(wrong.contains(&format!("for the {field} cannot")) && wrong.contains(takes), "{cron}: {wrong}");
            assert!(wrong.contains("column "), "{wrong}");
        }
        assert!(wrong_cron("0 3 * *").unwrap().contains("five fields"));
        assert!(wrong_cron("").is_some());
        for cron in ["0 3 * * 1", "*/5 * * * *", "0 0 3 * * *", "@daily", "0 3 L * *"] {
            assert_eq!(wrong_cron(cron), None, "{cron}");
        }
    }

    #[test]
    fn the_zone_that_was_meant_is_named() {
        assert!(wrong_zone("Europe/Berln").unwrap().ends_with("did you mean `Europe/Berlin`?"));
        assert!(wrong_zone("Mars/Olympus").unwrap().contains("IANA"));
        for name in ["localtime", "Localtime", "posixrules", "Factory"] {
            assert!(wrong_zone(name).unwrap().starts_with(&format!("there is no time zone `{name}`")), "{name}");
        }
        assert_eq!((wrong_zone("UTC"), wrong_zone("Europe/Berlin")), (None, None));
    }
}

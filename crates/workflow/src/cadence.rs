//! What is wrong with a cron expression or the name of a time zone, in words that say where to look.

use interlock_core::text::nearest::nearest;
use interlock_core::trigger::schedule::Cron;

/// The fields of an expression with what they take; seconds may stand in front of them.
const FIELDS: [(&str, &str); 6] = [
    ("second", "0 to 59"),
    ("minute", "0 to 59"),
    ("hour", "0 to 23"),
    ("day of month", "1 to 31, or L for the last"),
    ("month", "1 to 12, or JAN to DEC"),
    ("day of week", "0 to 7, or SUN to SAT; 0 and 7 are Sunday"),
];

/// Why this is no cron expression; none where it is one.
pub fn wrong_cron(text: &str) -> Option<String> {
    let error = text.parse::<Cron>().err()?;
    let given: Vec<&str> = text.split_whitespace().collect();
    if given.len() != FIELDS.len() && given.len() != FIELDS.len() - 1 {
        // A nickname such as `@daily`, or not a word of five.
        return Some(error.to_string());
    }
    let fields = &FIELDS[FIELDS.len() - given.len()..];
    // Among stars a field is wrong all by itself.
    let alone = |at: usize| {
        let stars: Vec<&str> = (0..given.len()).map(|other| if other == at { given[at] } else { "*" }).collect();
        stars.join(" ").parse::<Cron>().is_err()
    };
    let Some(at) = (0..given.len()).find(|at| alone(*at)) else { return Some(error.to_string()) };
    let ((name, takes), shown) = (fields[at], given[at].chars().take(80).collect::<String>());
    Some(format!(
        "the field for the {name} cannot be `{shown}`: it takes {takes}, `*`, lists (1,2), ranges (1-3) and steps (*/5)"
    ))
}

/// Why there is no such time zone; none where there is.
pub fn wrong_zone(name: &str) -> Option<String> {
    if jiff::tz::TimeZone::get(name).is_ok() {
        return None;
    }
    let shown: String = name.chars().take(80).collect();
    let known: Vec<String> = jiff::tz::db().available().map(|zone| zone.as_str().to_owned()).collect();
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
        assert_eq!((wrong_zone("UTC"), wrong_zone("Europe/Berlin")), (None, None));
    }
}

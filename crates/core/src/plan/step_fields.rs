//! A step as JSON. An unknown field is a typing mistake of the author (`retires: 3`), so it is refused by name, and the
//! refusal says in which step.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use super::{DEFAULT_QUEUE, StepSpec, TRANSFORM_QUEUE};
use crate::state::StepKind;
use crate::text::article::with_article;

const OF_EVERY_STEP: &[&str] = &[
    "key",
    "kind",
    "if",
    "queue",
    "timeout",
    "retry",
    "effect",
    "blast_radius",
    "on_failure",
    "rollback",
    "resumable",
    "rules",
];

const OF_A_ROLLBACK: &[&str] = &["handler", "argv", "operation", "with", "conditions", "verify"];

/// What a step of this kind has beside.
const fn of_kind(kind: StepKind) -> &'static [&'static str] {
    match kind {
        StepKind::Task => &["handler", "with"],
        StepKind::Transform => &["value"],
        StepKind::Wait => &["signal", "for", "until", "wait_timeout"],
        StepKind::Approval => {
            &["approvers", "quorum", "message", "on_reject", "on_expiry", "escalate_after", "expires_after"]
        }
        StepKind::Rollback => &["undoes", "handler", "argv", "operation", "with", "verifies"],
        StepKind::Command => &["argv", "env"],
        StepKind::Connector => &["operation", "with"],
        StepKind::Model => &["model", "with"],
    }
}

impl<'de> Deserialize<'de> for StepSpec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let fields = Map::deserialize(deserializer)?;
        let text = |name: &str| fields.get(name).and_then(Value::as_str);
        let step: String = text("key").unwrap_or("without a key").chars().take(80).collect();
        if let Some(kind) = text("kind").and_then(|kind| kind.parse::<StepKind>().ok()) {
            let known = |name: &str| OF_EVERY_STEP.contains(&name) || of_kind(kind).contains(&name);
            if let Some(unknown) = fields.keys().find(|name| !known(name)) {
                let unknown: String = unknown.chars().take(80).collect();
                let known = [of_kind(kind), OF_EVERY_STEP].concat().join(", ");
                return Err(D::Error::custom(format!(
                    "step `{step}`: unknown field `{unknown}`; {} step has {known}",
                    with_article(kind.as_str())
                )));
            }
        }
        let rollback = fields.get("rollback").and_then(Value::as_object).into_iter().flat_map(Map::keys);
        if let Some(unknown) = rollback.into_iter().find(|name| !OF_A_ROLLBACK.contains(&name.as_str())) {
            let (unknown, known) = (unknown.chars().take(80).collect::<String>(), OF_A_ROLLBACK.join(", "));
            return Err(D::Error::custom(format!(
                "step `{step}`: unknown field `{unknown}` of its rollback, which has {known}"
            )));
        }
        let mut spec = Self::deserialize(Value::Object(fields))
            .map_err(|error| D::Error::custom(format!("step `{step}`: {error}")))?;
        // Only the server itself takes from this queue.
        if spec.kind() == StepKind::Transform && spec.queue == DEFAULT_QUEUE {
            TRANSFORM_QUEUE.clone_into(&mut spec.queue);
        }
        Ok(spec)
    }
}

impl Serialize for StepSpec {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Self::serialize(self, serializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Plan;

    #[test]
    fn a_transform_stands_in_the_servers_own_queue_unless_it_says_otherwise() {
        let read = |text: &str| serde_json::from_str::<StepSpec>(text).unwrap().queue;
        assert_eq!(read(r#"{"key":"a","kind":"transform","value":1}"#), TRANSFORM_QUEUE);
        assert_eq!(read(r#"{"key":"a","kind":"transform","value":1,"queue":"mine"}"#), "mine");
        assert_eq!(read(r#"{"key":"a","kind":"task","handler":"a"}"#), DEFAULT_QUEUE);
    }

    fn refusal(step: &str) -> String {
        serde_json::from_str::<StepSpec>(step).unwrap_err().to_string()
    }

    #[test]
    fn an_unknown_field_is_refused_with_its_name_and_its_step() {
        let says = refusal(r#"{"key":"pay","kind":"task","handler":"pay","retires":3}"#);
        assert!(says.contains("step `pay`") && says.contains("unknown field `retires`"), "{says}");
        assert!(says.contains("handler, with") && says.contains("retry"), "{says}");
        let says = refusal(r#"{"key":"pay","kind":"task","handler":"pay","quorum":2}"#);
        assert!(says.contains("`quorum`"), "a field of another kind: {says}");
    }

    #[test]
    fn so_is_one_further_inside() {
        for step in [
            r#"{"key":"a","kind":"task","handler":"t","rollback":{"handler":"u","condition":["failure"]}}"#,
            r#"{"key":"a","kind":"task","handler":"t","retry":{"max_attempts":1,"backoff":"ladder","jitter":1}}"#,
            r#"{"key":"a","kind":"task","handler":"t","retry":{"max_attempts":1,"backoff":{"fixed":{"delay":1,"by":2}}}}"#,
            r#"{"key":"a","kind":"wait","signal":{"type":"go","keys":"x"}}"#,
        ] {
            let says = refusal(step);
            assert!(says.contains("step `a`") && says.contains("unknown field"), "{says}");
        }
        let says = serde_json::from_str::<Plan>(r#"{"workflow":"w","version":1,"steps":[],"timeuot":1}"#).unwrap_err();
        assert!(says.to_string().contains("`timeuot`"), "{says}");
    }

    #[test]
    fn a_wrong_kind_and_a_missing_field_name_the_step_too() {
        let says = refusal(r#"{"key":"a","kind":"tusk"}"#);
        assert!(says.contains("step `a`") && says.contains("tusk"), "{says}");
        let says = refusal(r#"{"key":"a","kind":"task"}"#);
        assert!(says.contains("step `a`") && says.contains("handler"), "{says}");
    }

    /// Whatever a step can hold is among the known fields.
    #[test]
    fn a_step_with_everything_survives() {
        let every = r#""if":"true","queue":"q","timeout":1,"retry":{"max_attempts":2,"backoff":"ladder"},"effect":"read",
            "blast_radius":"low","on_failure":"fail","rollback":{"handler":"u","with":1,"verify":{"argv":["/bin/true"]}},"resumable":false"#;
        for own in [
            r#""kind":"task","handler":"t","with":{"a":1}"#,
            r#""kind":"transform","value":1"#,
            r#""kind":"wait","signal":{"type":"go","key":"k","accept":"any"},"wait_timeout":1"#,
            r#""kind":"wait","for":1"#,
            r#""kind":"wait","until":"1""#,
            r#""kind":"approval","approvers":["a"],"quorum":1,"message":"m","on_reject":"fail","on_expiry":"pause",
               "escalate_after":1,"expires_after":2"#,
            r#""kind":"rollback","undoes":0,"handler":"u","with":1"#,
            r#""kind":"rollback","undoes":0,"argv":["/bin/true"],"verifies":true"#,
            r#""kind":"command","argv":["true"],"env":{"A":"b"}"#,
            r#""kind":"connector","operation":"o","with":1"#,
            r#""kind":"model","model":"m","with":1"#,
        ] {
            let text = format!(r#"{{"key":"k",{every},{own}}}"#);
            let step: StepSpec = serde_json::from_str(&text).unwrap();
            let back = serde_json::to_value(&step).unwrap();
            assert_eq!(
                back,
                serde_json::from_str::<Value>(&text)
                    .map(|mut value| {
                        // Left out where it is the default.
                        if let Some(rollback) = value.get_mut("rollback") {
                            rollback["conditions"] = back["rollback"]["conditions"].clone();
                        }
                        value
                    })
                    .unwrap()
            );
        }
    }
}

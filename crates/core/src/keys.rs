//! Key schemes: what makes two requests, or two effects, the same one.

use crate::ids::RunId;
use crate::json::Hash;
use crate::limits;
use crate::rejection::Rejection;

/// The key of a trigger, by its source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TriggerKey<'a> {
    GitHub { delivery: &'a str },
    Api { client: &'a str, request: &'a str },
    Slack { team: &'a str, trigger: &'a str },
    Scheduler { schedule: &'a str, slot: &'a str },
    ServiceNow { instance: &'a str, sys_id: &'a str, sys_mod_count: u64 },
    Webhook { endpoint: &'a str, id: &'a str },
    Body { hash: Hash },
}

impl TriggerKey<'_> {
    pub fn render(&self) -> Result<String, Rejection> {
        let key = match self {
            Self::GitHub { delivery } => format!("github:{delivery}"),
            Self::Api { client, request } => format!("api:{client}:{request}"),
            Self::Slack { team, trigger } => format!("slack:{team}:{trigger}"),
            Self::Scheduler { schedule, slot } => format!("scheduler:{schedule}:{slot}"),
            Self::ServiceNow { instance, sys_id, sys_mod_count } => {
                format!("servicenow:{instance}:{sys_id}:{sys_mod_count}")
            }
            Self::Webhook { endpoint, id } => format!("webhook:{endpoint}:{id}"),
            // Of a delivery whose id is not signed and was used for another body. No id makes such a key.
            Self::Body { hash } => format!("body:{hash}"),
        };
        check_key(key)
    }
}

/// The scope in which an effect happens once: automatic retries stay inside it, an operator's retry leaves it.
#[derive(Debug, Clone, Copy)]
pub struct EffectScope<'a> {
    pub root: RunId,
    pub step_path: &'a str,
    pub iteration: u32,
    /// 0, 1, … in the order the step performs its effects.
    pub number: u32,
}

/// The connector's own template (`slack:post:{channel}:{thread}:{hash}`), made unique to the scope.
pub fn effect_key(template: &str, scope: EffectScope<'_>) -> Result<String, Rejection> {
    check_key(format!("{template}#{}/{}/{}/{}", scope.root, scope.step_path, scope.iteration, scope.number))
}

/// `sn:incident:update:{instance}:{incident}:{fields_hash}` and its kin: the hash part of a template.
pub fn fields_hash(canonical_fields: &[u8]) -> String {
    Hash::of(canonical_fields).to_string()[..16].to_owned()
}

fn check_key(key: String) -> Result<String, Rejection> {
    if key.len() > limits::KEY_BYTES_MAX {
        return Err(Rejection::TooLarge { what: "the key", bytes: key.len(), max: limits::KEY_BYTES_MAX });
    }
    if key.chars().any(char::is_control) {
        return Err(Rejection::InvalidInput { what: "the key holds control characters".into() });
    }
    Ok(key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    #[test]
    fn trigger_keys_are_the_seeds() {
        let key = |key: TriggerKey<'_>| key.render().unwrap();
        assert_eq!(key(TriggerKey::GitHub { delivery: "1234" }), "github:1234");
        assert_eq!(key(TriggerKey::Api { client: "cli", request: "r1" }), "api:cli:r1");
        assert_eq!(key(TriggerKey::Slack { team: "T1", trigger: "1.2" }), "slack:T1:1.2");
        assert_eq!(
            key(TriggerKey::Scheduler { schedule: "daily", slot: "2024-12-19T00:00:00Z" }),
            "scheduler:daily:2024-12-19T00:00:00Z"
        );
        assert_eq!(
            key(TriggerKey::ServiceNow { instance: "dev", sys_id: "abc", sys_mod_count: 3 }),
            "servicenow:dev:abc:3"
        );
        assert_eq!(key(TriggerKey::Body { hash: Hash([0xab; 32]) }), format!("body:{}", "ab".repeat(32)));
        assert!(TriggerKey::Webhook { endpoint: "e", id: "a\nb" }.render().is_err());
        assert!(TriggerKey::GitHub { delivery: &"x".repeat(600) }.render().is_err());
    }

    #[test]
    fn an_operators_retry_is_a_new_effect_an_automatic_one_is_not() {
        let scope = EffectScope { root: RunId(Uuid::nil()), step_path: "pay", iteration: 0, number: 0 };
        let key = |scope| effect_key("stripe:charge:42", scope).unwrap();
        assert_eq!(key(scope), key(scope));
        assert_ne!(key(scope), key(EffectScope { iteration: 1, ..scope }));
        assert_ne!(key(scope), key(EffectScope { number: 1, ..scope }));
    }
}

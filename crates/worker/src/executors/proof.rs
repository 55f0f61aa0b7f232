//! What the canaries of the sandbox last found, and for how long that is relied on.

use std::time::Duration;

use interlock_core::text::visible::visible;
use interlock_sandbox::{Profile, Proofs};
use tokio::time::Instant;

/// How much of what a canary found is told to the server.
const EVIDENCE_CHARS_MAX: usize = 500;
/// For how long a run is taken on what was found. After that the controls are tried out again first.
const RELIED_ON: Duration = Duration::from_mins(1);

pub(super) struct LastProof {
    proofs: Proofs,
    at: Instant,
}

impl LastProof {
    pub fn new(proofs: Proofs, at: Instant) -> Self {
        Self { proofs, at }
    }

    /// Whether a run of the profile may be taken on it: it is recent, and lacks nothing. What was missing may be back, and is looked
    /// for again.
    pub fn is_relied_on(&self, profile: Profile, now: Instant) -> bool {
        now.saturating_duration_since(self.at) <= RELIED_ON && self.missing(profile).is_none()
    }

    /// The first control that the profile needs and that does not hold, in words.
    pub fn missing(&self, profile: Profile) -> Option<String> {
        let (control, evidence) = self.proofs.first_missing(profile.spec().required)?;
        let evidence: String = visible(&evidence).chars().take(EVIDENCE_CHARS_MAX).collect();
        Some(format!("{profile}: the control `{control}` does not hold any more ({evidence})"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use interlock_sandbox::{Control, Proof};

    fn proofs(absent: Option<Control>) -> Proofs {
        let found = |control: Control| match absent {
            Some(absent) if absent == control => Proof::absent("the kernel has none"),
            _ => Proof::proven("refused"),
        };
        Control::ALL.iter().map(|control| (*control, found(*control))).collect()
    }

    #[test]
    fn a_run_is_taken_on_a_proof_that_is_recent_and_whole() {
        let at = Instant::now();
        for profile in Profile::ALL.iter().copied() {
            let whole = LastProof::new(proofs(None), at);
            assert!(whole.is_relied_on(profile, at + RELIED_ON), "{profile}");
            assert!(!whole.is_relied_on(profile, at + RELIED_ON + Duration::from_millis(1)), "{profile}: it is old");
            let control = profile.spec().required[0];
            let broken = LastProof::new(proofs(Some(control)), at);
            assert!(!broken.is_relied_on(profile, at), "{profile}: it lacks {control}");
            let why = broken.missing(profile).unwrap();
            assert!(why.contains(control.name()) && why.contains("the kernel has none"), "{why}");
        }
    }
}

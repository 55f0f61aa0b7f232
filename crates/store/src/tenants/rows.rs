use interlock_core::ids::TenantId;
use interlock_core::tenant::TenantSettings;
use interlock_core::tenant::caps::Caps;
use interlock_core::time::Timestamp;

/// A tenant with its limits.
#[derive(Debug, Clone, PartialEq)]
pub struct Tenant {
    pub id: TenantId,
    pub name: String,
    pub caps: Caps,
    /// Starts past this many pending runs are refused.
    pub pending_runs_max: Option<u32>,
    /// The share of capacity in the round robin.
    pub weight: u32,
    pub created_at: Timestamp,
    pub settings: TenantSettings,
    /// No credential of the tenant counts from then on; what is running goes on.
    pub disabled_at: Option<Timestamp>,
}

impl Tenant {
    /// A tenant without limits.
    pub fn new(id: TenantId, name: impl Into<String>, created_at: Timestamp) -> Self {
        Self {
            id,
            name: name.into(),
            caps: Caps::default(),
            pending_runs_max: None,
            weight: 1,
            created_at,
            settings: TenantSettings::default(),
            disabled_at: None,
        }
    }
}

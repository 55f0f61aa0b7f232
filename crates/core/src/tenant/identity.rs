//! Who may do what. A [`Role`] is given to a key or a person, a [`Permission`] is asked for by a route, and
//! [`Role::grants`] is the only place where the two meet.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::state::{UnknownName, names};

names!(
    /// What a key or a person is there for. Free-form groups stand beside roles: approval rules name groups.
    Role, "role", {
        /// Looks at everything, changes nothing.
        Viewer = "viewer",
        /// Starts and directs runs, and defines workflows, schedules and endpoints.
        Operator = "operator",
        /// Decides on approvals, where the rules of the approval let this person.
        Approver = "approver",
        /// All of these, and keys, people and the tenant's settings.
        Admin = "admin",
        /// Takes steps and reports on them; sees nothing else.
        Worker = "worker",
    }
);

names!(
    /// What a route needs.
    Permission, "permission", {
        /// No credential at all: health checks, signing in, what proves itself by its own signature.
        Public = "public",
        /// Any credential: asking about oneself.
        Known = "known",
        Read = "read",
        /// Start runs, direct them, send signals.
        Operate = "operate",
        /// Change what runs in future: workflows, schedules, endpoints.
        Define = "define",
        Vote = "vote",
        Work = "work",
        /// Keys, people, settings of the own tenant.
        Administer = "administer",
        /// Make and change tenants: an admin who also has charge of the installation.
        Install = "install",
    }
);

impl Role {
    /// Whether this role alone is enough.
    pub const fn grants(self, permission: Permission) -> bool {
        use Permission as P;
        matches!(
            (self, permission),
            (_, P::Public | P::Known)
                | (Self::Viewer | Self::Operator | Self::Approver | Self::Admin, P::Read)
                | (Self::Operator | Self::Admin, P::Operate | P::Define)
                | (Self::Approver | Self::Admin, P::Vote)
                | (Self::Worker, P::Work)
                | (Self::Admin, P::Administer | P::Install)
        )
    }
}

/// A set of roles. In JSON a list of names, in the order of [`Role::ALL`].
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Roles(u8);

impl Roles {
    pub const NONE: Self = Self(0);

    pub fn contains(self, role: Role) -> bool {
        self.0 & Self::bit(role) != 0
    }

    pub fn with(self, role: Role) -> Self {
        Self(self.0 | Self::bit(role))
    }

    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub fn iter(self) -> impl Iterator<Item = Role> {
        Role::ALL.iter().copied().filter(move |role| self.contains(*role))
    }

    pub fn grant(self, permission: Permission) -> bool {
        self.iter().any(|role| role.grants(permission))
    }

    /// Whether these roles permit nothing that `others` do not: no one gives away more than they have.
    pub fn within(self, others: Self) -> bool {
        let has = |permission: &Permission| !self.grant(*permission) || others.grant(*permission);
        others.contains(Role::Admin) || Permission::ALL.iter().all(has)
    }

    fn bit(role: Role) -> u8 {
        1 << role as u8
    }
}

impl FromIterator<Role> for Roles {
    fn from_iter<I: IntoIterator<Item = Role>>(roles: I) -> Self {
        roles.into_iter().fold(Self::NONE, Self::with)
    }
}

impl fmt::Display for Roles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.iter().map(Role::as_str).collect();
        f.write_str(&names.join(","))
    }
}

impl fmt::Debug for Roles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

/// `operator,approver`: how command lines and rows write a set.
impl FromStr for Roles {
    type Err = UnknownName;

    fn from_str(text: &str) -> Result<Self, UnknownName> {
        text.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::parse::<Role>).collect()
    }
}

impl Serialize for Roles {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

impl utoipa::PartialSchema for Roles {
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::Schema> {
        <Vec<Role> as utoipa::PartialSchema>::schema()
    }
}

impl utoipa::ToSchema for Roles {
    fn schemas(schemas: &mut Vec<(String, utoipa::openapi::RefOr<utoipa::openapi::Schema>)>) {
        schemas.push((<Role as utoipa::ToSchema>::name().into_owned(), <Role as utoipa::PartialSchema>::schema()));
    }
}

impl<'de> Deserialize<'de> for Roles {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Vec::<Role>::deserialize(deserializer).map(|roles| roles.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every pair, spelt out: a change of the rules is seen here.
    #[test]
    fn what_each_role_may() {
        let may = |role: Role| -> Vec<&str> {
            Permission::ALL.iter().filter(|wanted| role.grants(**wanted)).map(|wanted| wanted.as_str()).collect()
        };
        assert_eq!(may(Role::Viewer), ["public", "known", "read"]);
        assert_eq!(may(Role::Operator), ["public", "known", "read", "operate", "define"]);
        assert_eq!(may(Role::Approver), ["public", "known", "read", "vote"]);
        assert_eq!(may(Role::Admin), ["public", "known", "read", "operate", "define", "vote", "administer", "install"]);
        assert_eq!(may(Role::Worker), ["public", "known", "work"]);
    }

    #[test]
    fn sets_survive_text_and_json() {
        let roles: Roles = "worker, operator".parse().unwrap();
        assert_eq!(roles.to_string(), "operator,worker");
        assert_eq!(serde_json::to_string(&roles).unwrap(), r#"["operator","worker"]"#);
        assert_eq!(serde_json::from_str::<Roles>(r#"["worker","operator"]"#).unwrap(), roles);
        assert!("operator,root".parse::<Roles>().unwrap_err().to_string().contains("`root` is not a role"));
        assert!("".parse::<Roles>().unwrap().is_empty());
    }

    #[test]
    fn nobody_gives_away_more_than_they_have() {
        let set = |text: &str| text.parse::<Roles>().unwrap();
        assert!(set("viewer").within(set("operator")));
        assert!(!set("operator").within(set("viewer")));
        assert!(!set("worker").within(set("operator,approver")));
        assert!(set("worker,viewer").within(set("admin")));
    }
}
